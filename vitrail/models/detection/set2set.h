/// \file
/// A set in, a set out: DETR's transformer over the elements of a set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/detection/detr_transformer.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes of a Set2Set, by the names of its config.json, which are those of transformers' DetrConfig where it has
/// them.
struct Set2SetConfig : DetrTransformerConfig {
  std::int64_t input_size = 1;   ///< numbers of an element that is read
  std::int64_t output_size = 1;  ///< numbers of an element that is predicted
};

/// Sets of a batch. Those with fewer elements than the largest are padded.
struct SetInput {
  Tensor x;     ///< [B, N, input_size] f32
  Tensor mask;  ///< bool [B, N], true where an element is the set's; undefined: everywhere
};

/// An encoder (Vaswani et al. 2017) without positions, and DETR's decoder with learned queries (Carion et al. 2020):
///
/// ```text
/// memory = encoder(input_projection(x)),   element_q = heads(decoder(queries, memory)_q)
/// ```
///
/// Each query is an element of the set that is predicted: a class, or "nothing", and output_size numbers, of which no
/// sigmoid is taken. The order of the elements of x makes no difference.
///
/// Parameters are called as Detr's: `model.input_projection` [D, input_size], `model.query_position_embeddings`,
/// `model.encoder.layers.{i}.…`, `model.decoder.layers.{i}.…`, `model.decoder.layernorm`, `class_labels_classifier`;
/// what are boxes there are values here: `value_predictor.layers.{0,1,2}`.
class Set2Set final : public nn::Network {
 public:
  /// Throws Error if the arguments contradict each other.
  explicit Set2Set(const Set2SetConfig& config, const nn::StoreOptions& store = {});

  /// What the last layer of the decoder says, of B sets.
  SetOutputs forward(const SetInput& input, nn::Pass& pass) const;
  /// What all layers of the decoder say, in order, of decoder_layers · B sets.
  SetOutputs forward_layers(const SetInput& input, nn::Pass& pass) const;

  /// The multiply-accumulates of the products for one set of this size, as fvcore counts them.
  std::int64_t flops(std::int64_t elements) const;
  const Set2SetConfig& config() const { return config_; }

  std::int64_t depth() const override { return transformer_->depth(); }
  std::int64_t layer_of(const std::string& parameter) const override { return transformer_->layer_of(parameter); }
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& parameter) const override;

 private:
  std::vector<Tensor> decode(const SetInput& input, nn::Pass& pass, bool all_layers) const;

  Set2SetConfig config_;
  std::optional<nn::Linear> input_projection_;
  std::optional<DetrTransformer> transformer_;
  std::optional<DetrHeads> heads_;
};

/// A Set2Set with all that its folder says about it.
struct SetModel {
  std::unique_ptr<Set2Set> net;
  std::string name;                 ///< "set2set"
  std::vector<std::string> labels;  ///< the names of the classes
  std::string config = "{}";        ///< config.json as text
};

/// What a new network is for.
struct SetShape {
  std::int64_t input_size = 1;
  std::int64_t output_size = 1;
  std::vector<std::string> labels;
  std::int64_t num_queries = 8;
};
/// Creates the network "set2set" with weights as training begins with. `kwargs` are fields of its config.json that
/// differ, a JSON object: d_model, encoder_layers …. Throws Error, which names it, for one that there is not.
SetModel create_set_model(const std::string& name, const SetShape& shape, const std::string& kwargs = "{}",
                          const nn::StoreOptions& store = {});

/// Whether `folder` has a config.json of a set2set.
bool is_set_model_folder(const std::filesystem::path& folder);
/// Loads the folder that write_set_model() wrote. Throws Error if it cannot be read, or if its files do not fit each
/// other.
SetModel load_set_model(const std::filesystem::path& folder, nn::Fill fill = nn::Fill::leave);
/// Writes config.json and model.safetensors into `folder`, which exists.
void write_set_model(const SetModel& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
