// Learning from pictures without labels.
#pragma once

#include <filesystem>
#include <string>

#include "vitrail/models/mae.h"
#include "vitrail/train/setup.h"

namespace vitrail::train {

// What a pre-training is told by default, for a method ("mae"): as the reference pre-trains
// (https://github.com/facebookresearch/mae, main_pretrain.py), on a small encoder.
TrainOptions pretraining_defaults(const std::string& method);

// The parts of a run whose options.pretrain is set: all pictures of the data whatever their classes, a masked
// autoencoder around the Vision Transformer options.model (or the masked autoencoder of that folder), and its loss. If
// `checkpoint` is given, the model saved there. Error as set_up() has it.
Setup set_up_pretraining(const TrainOptions& options, const std::filesystem::path& checkpoint = {});

// "masked autoencoder, 75 % of the patches hidden".
std::string pretraining_text(const TrainOptions& options);

// The loss of a masked autoencoder, with patches hidden at random by the pass's stream. It must outlive the result.
Objective masked_autoencoding(const models::MaskedAutoencoder& mae);

}  // namespace vitrail::train
