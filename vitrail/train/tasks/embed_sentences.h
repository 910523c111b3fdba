/// \file
/// Vectors of sentences learned from pairs: the task of `vitrail train --task embed`.
#pragma once

#include <memory>
#include <string>

#include "vitrail/tensor/tensor.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {

/// The options of learning vectors of sentences.
struct EmbedSentencesOptions : TextTaskOptions {
  EmbedSentencesOptions();

  std::string src;
  std::string tgt;
  std::string val_src;
  std::string val_tgt;
  /// The part of tables of pairs to evaluate on, and whether that is all that is read: `vitrail eval` sets both.
  std::string split = "validation";
  bool split_is_asked = false;
  std::string pool;  ///< empty: the folder's, or mean
  bool normalize = true;
  double scale = 20;

  std::string kind() const override { return "embed"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<EmbedSentencesOptions>(*this); }
  void describe(OptionList& list) override;
  /// Opens pairs of sentences, line by line, and an encoder with pooling. Folders are those of sentence-transformers.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

/// The loss of vectors a and b [B, D], of which those of one row belong together: the cross-entropy of row i of scale ·
/// cos(a_i, b_j) with the class i. In other words, each b_j, j ≠ i, is a negative of a_i (Henderson et al. 2017;
/// sentence-transformers' MultipleNegativesRankingLoss).
Tensor ranking_loss(const Tensor& a, const Tensor& b, float scale);

/// The share of the rows of a [N, D] whose cosine is largest with the same row of b [N, D].
double recall_at_1(const Tensor& a, const Tensor& b);

}  // namespace vitrail::train
