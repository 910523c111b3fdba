/// \file
/// Captions of images: how they are learned, written and evaluated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/generate/generate.h"
#include "vitrail/io/image.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/text/score/captions.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// The captions of images as tokens, without those that begin and end a text.
struct CaptionTokens {
  using Ids = std::vector<std::int64_t>;

  /// Captions of more than `longest` tokens are cut. Throws Error, naming it, for one that the tokenizer cannot encode.
  CaptionTokens(const std::vector<std::vector<std::string>>& texts, const text::Tokenizer& tokenizer,
                std::int64_t longest);

  std::vector<std::vector<Ids>> ids;  ///< of each image, of each of its captions
  std::int64_t different = 0;         ///< captions
  std::int64_t cut = 0;               ///< of these
  text::UnknownTokens unknown;        ///< among the tokens of these
};

/// The mean cross-entropy of the tokens of a caption of each of images x [B, C, H, W], ends included: a scalar f32.
Tensor caption_loss(const models::Captioner& model, const Tensor& x, std::span<const CaptionTokens::Ids* const> texts,
                    nn::Pass& pass, float smoothing = 0);
/// The same plus `coef` times the attention_loss() of the last cross-attention, the mean over its heads, at all tokens
/// of a text. `targets` says of each text which of the places that the decoder sees it is about.
Tensor guided_caption_loss(const models::Captioner& model, const Tensor& x,
                           std::span<const CaptionTokens::Ids* const> texts,
                           const std::vector<const std::vector<bool>*>& targets, float coef, nn::Pass& pass,
                           float smoothing = 0);

/// How captions are written.
struct CaptionOptions {
  generate::GenerationConfig config;  ///< its tokens are those of the model
  generate::GenerateOptions generate;
};
inline constexpr std::int64_t usual_caption_beams = 3;  ///< where neither the user nor the folder says how many
inline constexpr std::int64_t usual_caption_tokens = 64;
/// Greedily or by a beam search, with at most so many tokens, and no more than there are positions for behind the
/// first.
CaptionOptions caption_options(const models::Captioner& model, std::int64_t num_beams, std::int64_t max_new_tokens,
                               DType dtype = DType::f32);
/// How captions are written by the model's generation_config, whose fields `said` gets, with the usual number of beams
/// and of tokens where that says none. Throws Error, which names `source`, as generate::read_generation_config() does.
CaptionOptions caption_options(const models::Captioner& model, const std::string& source, DType dtype = DType::f32,
                               std::vector<std::string>* said = nullptr);
/// A generation_config.json that says the usual numbers, by which transformers writes as many.
std::string usual_generation_config(const models::Captioner& model);
/// The longest text, without the token that it begins with, that the model can write, or `wanted` if that is less.
std::int64_t most_new_tokens(const models::Captioner& model, std::int64_t wanted);

/// A caption that a model has written.
struct Caption {
  std::string text;
  CaptionTokens::Ids ids;  ///< with the token that ended it, if one did
  double score = 0;        ///< of a beam search (generate::Sequence)
};
/// What the model says about each of images x [B, C, H, W]: num_return_sequences captions, the best first.
std::vector<std::vector<Caption>> captions_of(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                              const Tensor& x, const CaptionOptions& options);
/// The best of each.
std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer, const Tensor& x,
                                 const CaptionOptions& options);
/// Whether `said` is, to the letter, what the tokenizer makes of one of the captions of an image.
bool is_exact(const models::Captioner& model, const text::Tokenizer& tokenizer, const std::string& said,
              const std::vector<CaptionTokens::Ids>& captions);
/// Images as a model takes them, by its evaluation transform: [B, C, H, W].
Tensor prepared(const models::PretrainedConfig& how, const std::vector<io::Image>& images);

/// How well a model captions images.
struct CaptionEvaluation {
  std::int64_t count = 0;       ///< images
  double exact = 0;             ///< per cent of the images one of whose captions is said to the letter
  text::CaptionScores scores;   ///< of the words of what is said, against all captions of an image
  std::optional<double> truth;  ///< per cent of the captions that are true of their scenes, if these are known
  /// Of captions that say how many there are, per cent whose numbers are all right, and by how many the number of a
  /// class is wrong in the mean, of captions that can be understood.
  struct Counting {
    double right = 0;
    double error = 0;
  };
  std::optional<Counting> counting;
  double loss = 0;       ///< mean cross-entropy of a token of the images' first captions, ends included
  std::int64_t cut = 0;  ///< different captions that are longer than the model's, whose beginnings the loss is of
  std::string unknown;   ///< a note about tokens of captions that the tokenizer does not know; empty: none
  std::vector<std::string> broken;
};
/// Writes captions of all images as `how` says, and compares them with those that they have, of which at most `longest`
/// tokens count for the loss.
CaptionEvaluation evaluate_captions(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                    const data::CaptionedImages& pairs, const EvaluateOptions& options,
                                    const CaptionOptions& how, std::int64_t longest = usual_caption_tokens);

/// A sheet of at most `most` images, evenly spread over those there are (data::for_spread_images()), with what the
/// model says under each: green where it is one of the image's captions, else red. Empty if all are broken.
io::Image caption_sheet(const models::Captioner& model, const text::Tokenizer& tokenizer, const data::TextPairs& pairs,
                        bool skip_broken, std::int64_t most = 20, DType dtype = DType::f32);

}  // namespace vitrail::train
