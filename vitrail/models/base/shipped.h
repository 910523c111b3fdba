/// \file
/// Checkpoints that ship with the program: `vitrail/NAME` wherever a model is named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::models {

/// What `card.json` beside the weights of such a checkpoint says.
struct ModelCard {
  std::string name;          ///< "vitrail/cifar10_resnet"
  std::string what;          ///< what it is and does, in one line
  std::string data;          ///< what it has learnt from
  std::string data_licence;  ///< the licence of that, or what is known of it
  std::string licence;       ///< of the weights
  std::string command;       ///< the one command that made it
  std::int64_t seed = 0;
  std::string machine;
  double hours = 0;
  std::string date;         ///< "2026-11-24"
  std::string accuracy;     ///< its figures, in one line
  std::string measured_by;  ///< the command that measures them
  std::string limits;       ///< what it cannot do
  std::string sha256;       ///< of model.safetensors
};
/// Reads a card.json. Throws Error, naming the key, if a field is missing, empty, unknown or of another type.
ModelCard read_card(const std::filesystem::path& path);

/// Whether a model of this name is one that ships with the program: whether it begins with "vitrail/". A folder of that
/// name is reached by "./vitrail/…".
bool is_shipped_name(std::string_view name);
/// The folders in which such checkpoints are looked for, the first first: that of the environment variable
/// VITRAIL_WEIGHTS, the one beside the program (`../share/vitrail/weights`, which a build folder has too), and the one
/// of the installation that was configured.
std::vector<std::filesystem::path> shipped_folders();

/// A checkpoint that is there.
struct ShippedModel {
  std::filesystem::path folder;
  ModelCard card;
  std::int64_t bytes = 0;  ///< of all its files
};
/// All of them, sorted by name. Throws Error if a card cannot be read.
std::vector<ShippedModel> shipped_models();

/// Whether there is a checkpoint `name`.
bool has_shipped(std::string_view name);
/// The folder of the checkpoint `name`. Throws Error, with similar names, if there is none.
std::filesystem::path shipped_folder(std::string_view name);
/// shipped_folder() of a name that begins with "vitrail/"; any other path as it is.
std::filesystem::path shipped_or(const std::filesystem::path& path);

}  // namespace vitrail::models
