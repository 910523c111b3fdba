/// \file
/// BLIP's captioner (Li et al. 2022): transformers' BlipForConditionalGeneration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/joint/blip.h"
#include "vitrail/models/joint/blip_decoder.h"
#include "vitrail/models/joint/captioner.h"

namespace vitrail::models {

/// A Vision Transformer whose tokens, the class token first, a BlipDecoder looks at in every layer:
///
/// ```text
/// logits = decoder(caption, vision(x))
/// ```
///
/// A caption begins with `[DEC]` and ends with `[SEP]`. Parameters: those of the Vision Transformer by timm's names,
/// and `decoder.bert.…`, `decoder.cls.…`. Folders have transformers' names.
class BlipCaptioner final : public Captioner {
 public:
  /// `config` is config.json as text, which is written as it was read.
  BlipCaptioner(const BlipConfig& sizes, const std::string& config, const nn::StoreOptions& store = {});

  Tensor logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const override;
  std::unique_ptr<TextState> begin(const Tensor& x, nn::Pass& pass,
                                   std::optional<DType> cache = std::nullopt) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return decoder_->forward_last(ids, pass, state);
  }

  TextShape decoder_shape() const override;
  std::int64_t decoder_flops() const override { return decoder_->flops(); }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override;
  std::vector<std::string> cross_attention() const override;
  std::string decoder_kind() const override { return "blip"; }
  void write(const std::filesystem::path& folder, DType dtype) const override;

  std::int64_t depth() const override { return image_model.net->depth() + decoder_->text().config().depth; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder.cls."); }
  bool is_backbone(const std::string& parameter) const override { return !parameter.starts_with("decoder."); }

 private:
  std::string config_;
  std::optional<BlipDecoder> decoder_;
};

/// Whether `folder` has the config.json of one.
bool is_blip_captioner_folder(const std::filesystem::path& folder);
/// Loads the folder that save_pretrained() of transformers' BlipForConditionalGeneration wrote (load_captioner()).
std::unique_ptr<Captioner> load_blip_captioner(const std::filesystem::path& folder);

}  // namespace vitrail::models
