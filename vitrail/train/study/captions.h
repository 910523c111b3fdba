/// \file
/// Captions of pictures: how they are learned, written and evaluated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/io/image.h"
#include "vitrail/models/recurrent/captioner.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// The captions of a data set: what its classes are called, as tokens without an end.
struct Captions {
  /// Captions of more than `longest` tokens are cut. Throws Error, naming it, for one that the tokenizer cannot encode.
  Captions(const std::vector<std::string>& classes, const text::Tokenizer& tokenizer, std::int64_t longest);

  std::vector<std::vector<std::int64_t>> ids;  ///< of each class
  std::vector<std::string> texts;              ///< what the tokenizer makes of these
};

/// The mean cross-entropy of the tokens of the captions of images x [B, C, H, W] with `labels` [B] i64, ends included:
/// a scalar f32.
Tensor caption_loss(const models::Captioner& model, const Tensor& x, const Tensor& labels, const Captions& captions,
                    nn::Pass& pass, float smoothing = 0);

/// How captions are written.
struct CaptionOptions {
  std::int64_t num_beams = 1;
  std::int64_t max_new_tokens = 64;
  DType dtype = DType::f32;
};
/// What the model says about images x [B, C, H, W].
std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer, const Tensor& x,
                                 const CaptionOptions& options = {});
/// What it says about images, which are prepared by the image model's evaluation transform.
std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                 const std::vector<io::Image>& images, const CaptionOptions& options = {});

/// How well a model captions a data set.
struct CaptionEvaluation {
  std::int64_t count = 0;  ///< images
  double exact = 0;        ///< per cent of the images whose caption is said to the letter
  double loss = 0;         ///< mean cross-entropy of a token, ends included
  std::vector<std::string> broken;
};
/// Writes captions of all images of the data set, greedily, and compares them with the names of their classes.
CaptionEvaluation evaluate_captions(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                    const data::Dataset& dataset, const EvaluateOptions& options,
                                    std::int64_t longest = 64);

/// A sheet of at most `most` images of the data set, evenly spread over it, with what the model says under each: green
/// where it is the name of the image's class, else red.
io::Image caption_sheet(const models::Captioner& model, const text::Tokenizer& tokenizer, const data::Dataset& dataset,
                        std::int64_t most = 20, DType dtype = DType::f32);

}  // namespace vitrail::train
