/// \file
/// How well a language model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vitrail/models/text/language_body.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::train {

/// How a text is read.
struct EvaluateLanguageOptions {
  std::int64_t block_size = 1024;  ///< tokens that the model sees at once
  /// How far each block begins behind the one before; 0: block_size. With less, the blocks overlap, and of each only
  /// the tokens count that no block before has predicted, which so have at least block_size - stride tokens in view.
  std::int64_t stride = 0;
  std::int64_t batch_size = 8;                         ///< blocks at once
  DType dtype = DType::f32;                            ///< f32 or bf16
  std::function<void(std::int64_t tokens)> advance{};  ///< called with the number of tokens that are done
};

/// What a model makes of a text.
struct LanguageEvaluation {
  std::int64_t tokens = 0;  ///< that were predicted: all but the first
  double loss = 0;          ///< mean cross-entropy of a token, in nats
  /// The mean cross-entropy of the tokens that were predicted with n + 1 tokens in view, n = 0 … block_size - 1, and
  /// how many there were; 0 where there were none.
  std::vector<double> loss_by_position = {};
  std::vector<std::int64_t> tokens_by_position = {};
};

/// Reads a text of token ids block by block. Throws Error if it has fewer than two tokens, if the block is longer than
/// the model's positions, or if the stride is longer than the block.
LanguageEvaluation evaluate_language(const models::LanguageBody& model, std::span<const std::int64_t> ids,
                                     const EvaluateLanguageOptions& options = {});

}  // namespace vitrail::train
