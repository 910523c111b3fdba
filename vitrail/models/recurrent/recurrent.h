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

namespace vitrail::io {
class Fields;
}

namespace vitrail::models {

/// The layer of a parameter of nn::Recurrent by its name, from 1: 2 for "weight_ih_l1".
std::int64_t layer_of_recurrent(const std::string& parameter);

/// A recurrent network that stands alone, with its parameters.
struct RecurrentModel final : nn::Network {
  explicit RecurrentModel(const nn::RecurrentConfig& config, const nn::StoreOptions& store = {});

  std::int64_t depth() const override { return network.config.num_layers; }
  std::int64_t layer_of(const std::string& parameter) const override { return layer_of_recurrent(parameter); }
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& /*parameter*/) const override { return false; }

  nn::Recurrent network;
};

/// Reads what config.json says of the layers: "architecture" is "rnn", "lstm", "gru", "mut1", "mut2", "mut3" or "nas";
/// hidden_size, num_layers, bias, dropout, proj_size and, of rnn, nonlinearity with torch's meanings and defaults;
/// further reset_after of gru, input_projection of mut1 and mut2, forget_bias of lstm.
void read_cells(io::Fields& fields, nn::RecurrentConfig& config);
/// Reads config.json of a recurrent folder: what read_cells() reads, and torch's input_size, batch_first and
/// bidirectional. Error, which names `source`, if a key is unknown or wrong.
nn::RecurrentConfig read_recurrent_config(const nlohmann::json& config, const std::string& source);

/// Whether `folder` has a config.json that names a recurrent architecture and no "model_type", as a language model
/// has.
bool is_recurrent_folder(const std::filesystem::path& folder);
/// Loads the network of a folder with config.json and model.safetensors, whose tensors have torch's names. Error if the
/// folder cannot be read, or if its files do not fit each other.
std::unique_ptr<RecurrentModel> load_recurrent(const std::filesystem::path& folder);
/// Writes the folder that load_recurrent() reads, completely or not at all.
void save_recurrent(const RecurrentModel& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
