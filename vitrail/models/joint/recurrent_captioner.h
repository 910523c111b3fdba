/// \file
/// A captioner whose decoder is a recurrent network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/recurrent/recurrent_decoder.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// The "model_type" of its config.json.
inline constexpr const char* recurrent_captioner_type = "recurrent_captioner";

/// A captioner with a recurrent decoder (Vinyals et al. 2015, "Show and tell"): an image model f
/// without its classifier, whose features a recurrent network begins with in each of its layers,
///
/// ```text
/// h = tanh(W_h f(x) + b_h),   c = W_c f(x) + b_c
/// ```
///
/// and a RecurrentDecoder. The first token that it reads is the one that ends a text. Parameters: those of the image
/// model by their own names, and `decoder.start.h.{layer}.…`, `decoder.start.c.{layer}.…`, `decoder.…`.
class RecurrentCaptioner final : public Captioner {
 public:
  /// `image_model` gives features, not logits; the decoder is that of the fields of `decoder`: what read_cells() reads,
  /// vocab_size, embedding_size (default: hidden_size), tie_word_embeddings and eos_token_id. Throws Error, naming
  /// `source`, if they do not fit.
  RecurrentCaptioner(Model image_model, const std::string& decoder, const std::string& source);

  Tensor logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const override;
  std::unique_ptr<TextState> begin(const Tensor& x, nn::Pass& pass,
                                   std::optional<DType> /*cache*/ = std::nullopt) const override {
    return decoder_->begin(look(x, pass));
  }
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return decoder_->forward_last(ids, pass, state);
  }
  /// What the decoder begins with.
  RecurrentDecoder::Start look(const Tensor& x, nn::Pass& pass) const;

  TextShape decoder_shape() const override;
  std::int64_t decoder_flops() const override { return decoder_->flops(1, 0); }
  std::size_t state_bytes(std::int64_t /*tokens*/, DType dtype) const override {
    return decoder_->state_bytes(0, dtype);
  }
  std::string decoder_kind() const override;
  void write(const std::filesystem::path& folder, DType dtype) const override;

  std::int64_t depth() const override { return image_model.net->depth() + layers(); }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override {
    return !of_decoder(parameter) && image_model.net->no_weight_decay(parameter);
  }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder.out."); }

 private:
  static bool of_decoder(const std::string& parameter) { return parameter.starts_with("decoder."); }
  std::int64_t layers() const { return std::ssize(start_h_); }

  std::string decoder_config_;
  std::vector<nn::Linear> start_h_;  // for each layer
  std::vector<nn::Linear> start_c_;  // of cells with a memory
  std::unique_ptr<const RecurrentDecoder> decoder_;
};

/// Loads the folder of one, whose config.json has the image model's arguments and the decoder's fields
/// (load_captioner()).
std::unique_ptr<Captioner> load_recurrent_captioner(const std::filesystem::path& folder);

}  // namespace vitrail::models
