/// \file
/// What the logits of a classifier say.
#pragma once

#include <string>

#include "vitrail/io/json.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// transformers' `problem_type`.
enum class ProblemType {
  single_label_classification,  ///< one class of all
  multi_label_classification,   ///< each class for itself
  regression                    ///< no classes: numbers
};

/// The field of a config.json that names one.
inline constexpr const char* problem_type_field = "problem_type";

/// "single_label_classification" …
std::string name_of(ProblemType type);
/// The "problem_type" of a config.json; the first without one, or with null. Throws Error for others.
ProblemType read_problem_type(io::Fields& f);

/// The probabilities [..., C] of logits, as transformers' pipelines: the softmax, or the sigmoid of each for classes by
/// themselves and for a single one. The logits themselves of a regression.
Tensor class_scores(ProblemType type, const Tensor& logits);

}  // namespace vitrail::models
