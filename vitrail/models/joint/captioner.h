/// \file
/// Networks that say in words what is in an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/decoder_block.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// A network that reads an image and predicts the next token of a text about it from the tokens so far: an image model
/// without its classifier, and a decoder. The parameters of the image model have its own names, those of the decoder
/// begin with `decoder.`.
class Captioner : public nn::Network {
 public:
  using nn::Network::Network;

  /// The logits [..., V] of the token that follows each of `texts`, in either form, about images x [B, C, H, W],
  /// normalized. An image may have several texts, all equally many, which follow each other.
  virtual Tensor logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const = 0;
  /// The state of texts about images x of which nothing has been written. An image may get several texts by
  /// TextState::select(), all images equally many, which follow each other. Keys and values are kept in the dtype
  /// `cache` (LanguageBody::begin()).
  virtual std::unique_ptr<TextState> begin(const Tensor& x, nn::Pass& pass,
                                           std::optional<DType> cache = std::nullopt) const = 0;
  /// The logits [B, V] f32 of the token after the last of ids [B, N], which continue those that the state has seen.
  virtual Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const = 0;

  /// The sizes of its decoder. The longest text has its first token too.
  virtual TextShape decoder_shape() const = 0;
  /// The decoder's multiply-accumulates for one token, of which attention's are few.
  virtual std::int64_t decoder_flops() const = 0;
  std::int64_t vocab_size() const { return decoder_shape().vocab_size; }
  std::int64_t max_positions() const { return decoder_shape().max_positions; }
  /// About how much memory a state holds of a text of so many tokens and of its image.
  virtual std::size_t state_bytes(std::int64_t tokens, DType dtype) const = 0;
  /// Whether it looks at places of the image for each token. Then a recorder gets the maps of its cross-attention,
  /// whose names cross_attention() has from the first layer to the last.
  virtual std::vector<std::string> cross_attention() const { return {}; }
  /// What it is called: "gru" or "gpt2", the kind of its decoder.
  virtual std::string decoder_kind() const = 0;
  /// Writes what load_captioner() reads into `folder`, which exists, weights in `dtype`: f32 or bf16.
  virtual void write(const std::filesystem::path& folder, DType dtype = DType::f32) const = 0;

  Model image_model;       ///< whose parameters are in this network's store
  std::int64_t start = 0;  ///< the token that a text begins with
  std::int64_t end = 0;    ///< the one that ends it
  /// Whether texts begin and end so whatever a generation_config.json says, as those of transformers' BLIP.
  bool fixed_tokens = false;
  /// The folder's generation_config.json as text, or what transformers would make of an old config.json, which is
  /// written as it was read; empty: there is none.
  std::string generation_config = {};

 protected:
  /// Writes it into `folder` if there is one.
  void write_generation_config(const std::filesystem::path& folder) const;
};

/// The layout of the `count` tokens that an image model gives, whose stages may each halve the grid of its first ones.
/// Throws Error if they lie on no grid.
TokenLayout layout_of_tokens(const ImageModel& model, std::int64_t height, std::int64_t width, std::int64_t count);

/// How many of `texts` texts each of `images` images has. Throws Error if they are not equally many.
std::int64_t texts_of_each(std::int64_t texts, std::int64_t images);
/// The index [images · each] i64 of the image of each text.
Tensor repeated_rows(std::int64_t images, std::int64_t each);

/// What the layers of a decoder look at in images, for texts that lie in one row: `texts` of them, equally many about
/// each image, which follow each other.
std::vector<nn::DecoderBlock::Source> sources_in_a_row(std::vector<nn::DecoderBlock::Source> sources,
                                                       std::int64_t texts);

/// Images with the model that writes about them, as one that continues the texts, which begin with Captioner::start.
class Captioning final : public LanguageBody {
 public:
  /// x [B, C, H, W]. The model must outlive this object.
  Captioning(const Captioner& model, Tensor x, DType dtype) : model_(model), x_(std::move(x)), dtype_(dtype) {}

  std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const override;
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return model_.forward_last(ids, pass, state);
  }
  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_positions() const override { return model_.max_positions(); }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override { return model_.state_bytes(tokens, dtype); }

 private:
  const Captioner& model_;
  Tensor x_;
  DType dtype_;
};

/// Whether `folder` has a config.json that names a captioner.
bool is_captioner_folder(const std::filesystem::path& folder);
/// Loads the network of a folder: one that `vitrail train --task caption` has written, or transformers'
/// VisionEncoderDecoderModel or BlipForConditionalGeneration. Throws Error if the folder cannot be read, or if its
/// files do not fit each other.
std::unique_ptr<Captioner> load_captioner(const std::filesystem::path& folder);

}  // namespace vitrail::models
