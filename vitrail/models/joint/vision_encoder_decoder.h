/// \file
/// Captioners whose decoder is a transformer that attends to the image, as transformers' VisionEncoderDecoderModel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/joint/map_encoder.h"
#include "vitrail/models/text/cross_decoder.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// The "model_type" of its config.json: transformers', or with an image model that transformers does not have.
inline constexpr const char* vision_encoder_decoder_type = "vision-encoder-decoder";
inline constexpr const char* attending_captioner_type = "attending_captioner";
inline constexpr std::int64_t most_encoder_layers = 100;

/// An image model whose tokens e_1 … e_M a decoder of GPT-2's kind attends to,
///
/// ```text
/// memory = W f(x) + b   (enc_to_dec_proj, where the two differ in width; else f(x)),   logits = decoder(texts, memory)
/// ```
///
/// transformers' VisionEncoderDecoderModel with a Vision Transformer (ViT, DeiT, BEiT, DINOv2) or Swin and GPT-2. All
/// tokens of the image are memory, the class token too. Parameters: those of the image model by timm's names,
/// `enc_to_dec_proj.{weight,bias}`, and GPT-2's behind `decoder.`:
/// `decoder.transformer.h.0.crossattention.q_attn.weight`.
class VisionEncoderDecoder final : public Captioner {
 public:
  /// `image_model` gives tokens and has no classifier; `decoder` is the JSON object of a GPT2Config. With
  /// `encoder_layers`, which transformers does not have, the memory is MapEncoder(f(x)). Throws Error, naming `source`,
  /// if they do not fit.
  VisionEncoderDecoder(Model image_model, const std::string& decoder, const std::string& source,
                       std::int64_t encoder_layers = 0);

  Tensor logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const override;
  std::unique_ptr<TextState> begin(const Tensor& x, nn::Pass& pass,
                                   std::optional<DType> cache = std::nullopt) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return decoder_->forward_last(ids, pass, state, "caption");
  }
  /// What the decoder attends to, [B, M, D].
  Tensor look(const Tensor& x, nn::Pass& pass) const;

  TextShape decoder_shape() const override;
  std::int64_t decoder_flops() const override { return decoder_->flops(0, 1); }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override;
  std::vector<std::string> cross_attention() const override;
  std::string decoder_kind() const override { return "gpt2"; }
  void write(const std::filesystem::path& folder, DType dtype) const override;

  std::int64_t depth() const override { return image_model.net->depth() + decoder_->config().depth; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override {
    return !is_own(parameter) && image_model.net->no_weight_decay(parameter);
  }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder.lm_head."); }
  bool is_backbone(const std::string& parameter) const override { return !is_own(parameter); }

  bool in_transformers() const { return in_transformers_; }
  bool tied_head() const { return decoder_->config().tied_head; }

 private:
  static bool is_own(const std::string& parameter) {
    return parameter.starts_with("decoder.") || parameter.starts_with("enc_to_dec_proj.") ||
           parameter.starts_with("map_encoder.");
  }

  void write_own(const std::filesystem::path& folder, DType dtype) const;

  bool in_transformers_;  // whether transformers has the image model
  std::string decoder_config_;
  std::int64_t encoder_layers_;
  std::optional<MapEncoder> map_encoder_;
  std::optional<nn::Linear> projection_;
  std::optional<CrossDecoder> decoder_;
};

/// Loads a folder that save_pretrained() of transformers' VisionEncoderDecoderModel, or Captioner::write(), wrote. The
/// tokens that begin and end a text are those of its generation_config.json, or of its config.json.
std::unique_ptr<Captioner> load_vision_encoder_decoder(const std::filesystem::path& folder);
/// Loads a folder of vitrail's own (attending_captioner_type).
std::unique_ptr<Captioner> load_attending_captioner(const std::filesystem::path& folder);

}  // namespace vitrail::models
