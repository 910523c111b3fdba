/// \file
/// Batches of images with the questions about them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// Questions of each image as tokens, which a QuestionBatch takes.
using QuestionTokens = std::vector<std::vector<std::vector<std::int64_t>>>;

/// Images, each of which is there once, with questions about them.
struct QuestionBatch {
  Tensor x;                           ///< [S, C, H, W] f32, normalized
  Tensor ids;                         ///< [B, N] i64: the tokens of the questions, filled up with zeros
  Tensor lengths;                     ///< [B] i64: how many of them are real
  Tensor rows;                        ///< [B] i64: the image that each question is about; equal ones follow each other
  std::vector<std::int64_t> indices;  ///< [S]: the images in the data set; fewer than planned if some were broken
  std::vector<std::array<std::int64_t, 2>> sizes;  ///< [S]: width and height of the images as they were
  /// [B]: the place of each question among those of its image.
  std::vector<std::int64_t> places;
  std::int64_t epoch = 0;
  std::int64_t number = 0;
};

/// How batches of questions are made.
struct QuestionLoading {
  LoaderOptions images;        ///< batches of how many images, in which order
  std::int64_t per_image = 0;  ///< the most questions of an image in a batch, drawn for each epoch; 0: all
};

/// Makes batches of the images of a data set and `tokens` of the questions about each; an image without a question is
/// there without one. The data set and the tokens must outlive it.
using QuestionLoader = Prefetch<QuestionBatch>;
std::unique_ptr<QuestionLoader> question_loader(const Dataset& images, const QuestionTokens& tokens,
                                                const Transform& transform, const QuestionLoading& options);

/// The ids and lengths of questions side by side.
void put_side_by_side(const std::vector<std::vector<std::int64_t>>& questions, QuestionBatch& batch);

}  // namespace vitrail::data
