/// \file
/// Recurrent networks in folders of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/nn/network.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// A recurrent network that stands alone, with its parameters.
struct RecurrentModel final : nn::Network {
  explicit RecurrentModel(const nn::RecurrentConfig& config, const nn::StoreOptions& store = {});

  std::int64_t depth() const override { return network.config.num_layers; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& /*parameter*/) const override { return false; }

  nn::Recurrent network;
};

/// Reads config.json of a recurrent folder: "architecture" is "rnn", "lstm", "gru", "mut1", "mut2", "mut3" or "nas",
/// the other keys are the arguments of torch.nn.LSTM's constructor, with its defaults: input_size, hidden_size,
/// num_layers, bias, batch_first, dropout, bidirectional, proj_size, and nonlinearity of rnn; further reset_after of
/// gru, input_projection of mut1 and mut2, forget_bias of lstm. Error, which names `source`, if a key is unknown or
/// wrong.
nn::RecurrentConfig read_recurrent_config(const nlohmann::json& config, const std::string& source);

/// Whether `folder` has a config.json that names a recurrent architecture.
bool is_recurrent_folder(const std::filesystem::path& folder);
/// Loads the network of a folder with config.json and model.safetensors, whose tensors have torch's names. Error if the
/// folder cannot be read, or if its files do not fit each other.
std::unique_ptr<RecurrentModel> load_recurrent(const std::filesystem::path& folder);
/// Writes the folder that load_recurrent() reads, completely or not at all.
void save_recurrent(const RecurrentModel& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
