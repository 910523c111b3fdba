#include "vitrail/models/base/problem_type.h"

#include <algorithm>
#include <vector>

#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::models {
namespace {

// In the order of ProblemType.
const std::vector<std::string> problem_types = {"single_label_classification", "multi_label_classification",
                                                "regression"};

}  // namespace

std::string name_of(ProblemType type) { return problem_types.at(static_cast<std::size_t>(type)); }

ProblemType read_problem_type(io::Fields& f) {
  if (f.is_unset(problem_type_field)) {
    return ProblemType::single_label_classification;
  }
  const std::string name = f.choice(problem_type_field, "", problem_types);
  return static_cast<ProblemType>(std::ranges::find(problem_types, name) - problem_types.begin());
}

Tensor class_scores(ProblemType type, const Tensor& logits) {
  if (type == ProblemType::regression) {
    return logits;
  }
  const bool alone = type == ProblemType::multi_label_classification || logits.size(-1) == 1;
  return alone ? ops::sigmoid(logits) : ops::softmax(logits, -1);
}

}  // namespace vitrail::models
