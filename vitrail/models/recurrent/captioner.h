/// \file
/// Networks that say in words what is in a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/recurrent/recurrent_decoder.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// A network that reads a picture and writes a text about it (Vinyals et al. 2015, "Show and tell"): an image model f
/// without its classifier, whose features a recurrent network begins with in each of its layers,
///
/// ```text
/// h = tanh(W_h f(x) + b_h),   c = W_c f(x) + b_c
/// ```
///
/// and a RecurrentDecoder. The first token that it reads, and the one that ends a text, is `end`. Parameters: those of
/// the image model by their own names, and `decoder.start.h.{layer}.…`, `decoder.start.c.{layer}.…`, `decoder.…`.
class Captioner final : public nn::Network {
 public:
  /// `image_model` gives features, not logits; the decoder is that of the fields of `decoder`: what read_cells() reads,
  /// vocab_size, embedding_size (default: hidden_size), tie_word_embeddings and eos_token_id. Throws Error, naming
  /// `source`, if they do not fit.
  Captioner(Model image_model, const std::string& decoder, const std::string& source);

  /// The logits [B, N, V] of the token that follows each of `texts` about images x [B, C, H, W], normalized.
  Tensor logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const {
    return decoder().logits(texts, look(x, pass), pass);
  }
  /// What the decoder begins with.
  RecurrentDecoder::Start look(const Tensor& x, nn::Pass& pass) const;
  const RecurrentDecoder& decoder() const { return *decoder_; }

  std::int64_t end() const { return end_; }
  const std::string& decoder_config() const { return decoder_config_; }

  std::int64_t depth() const override { return image_model.net->depth() + layers(); }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override {
    return !of_decoder(parameter) && image_model.net->no_weight_decay(parameter);
  }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder.out."); }

  Model image_model;  ///< whose parameters are in this network's store

 private:
  static bool of_decoder(const std::string& parameter) { return parameter.starts_with("decoder."); }
  std::int64_t layers() const { return std::ssize(start_h_); }

  std::string decoder_config_;
  std::int64_t end_ = 0;
  std::vector<nn::Linear> start_h_;  // for each layer
  std::vector<nn::Linear> start_c_;  // of cells with a memory
  std::unique_ptr<const RecurrentDecoder> decoder_;
};

/// Images with the model that writes about them, as one that continues the texts, which begin with Captioner::end().
class Captioning final : public LanguageBody {
 public:
  /// x [B, C, H, W]. The model must outlive this object.
  Captioning(const Captioner& model, Tensor x, DType dtype) : model_(model), x_(std::move(x)), dtype_(dtype) {}

  std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const override;
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return model_.decoder().forward_last(ids, pass, state);
  }
  std::int64_t vocab_size() const override { return model_.decoder().config().vocab_size; }
  std::int64_t max_positions() const override { return unbounded_positions; }
  std::size_t state_bytes(std::int64_t /*tokens*/, DType dtype) const override {
    return model_.decoder().state_bytes(0, dtype);
  }

 private:
  const Captioner& model_;
  Tensor x_;
  DType dtype_;
};

/// Whether `folder` has a config.json that names a Captioner.
bool is_captioner_folder(const std::filesystem::path& folder);
/// Loads the network of a folder with config.json, which has the image model's arguments and the decoder's fields, and
/// model.safetensors. Throws Error if the folder cannot be read, or if its files do not fit each other.
std::unique_ptr<Captioner> load_captioner(const std::filesystem::path& folder);
/// Writes the config.json and model.safetensors that load_captioner() reads into `folder`, which exists.
void write_captioner(const Captioner& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
