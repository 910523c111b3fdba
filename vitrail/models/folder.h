/// \file
/// Reading model folders in either layout, for callers that need more of them than a Model (model.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/formats/weights.h"

namespace vitrail::models {

/// Reads the folder's config.json, in timm's layout or in that of transformers. Throws Error if it does not describe a
/// model that vitrail has.
FolderConfig read_folder(const std::filesystem::path& folder);

/// The names of a model's arguments that timm does not know: a folder in its layout has them beside what timm reads.
std::vector<std::string> arguments_beyond_timm(const Model& model);

/// The names of a model's arguments with which timm refuses to build its architecture, so that it cannot load the
/// folder.
std::vector<std::string> arguments_refused_by_timm(const Model& model);

/// Loads the weights of a model that is a part of another one (weights_of()) from the folder of a stand-alone model, in
/// either layout. If the model has no classifier, or one with another number of classes than the folder's, `fresh_head`
/// ignores the classifier of the folder and initializes the model's own. Throws Error if anything else does not fit.
void load_weights(const WeightsTarget& target, const std::filesystem::path& folder, bool fresh_head = false);

}  // namespace vitrail::models
