/// \file
/// Additive attention with its parameters.
#pragma once

#include <cstdint>

#include "vitrail/nn/linear.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/attention/additive.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/recurrent/sequences.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The attention of Bahdanau et al. 2015 (section 3.1 and appendix A.1.2), with the names of PyTorch's tutorial
/// "Translation with a Sequence to Sequence Network and Attention":
///
/// ```text
/// score_m = v tanh(Wa query + Ua state_m),   p = softmax(score),   context = Σ_m p_m state_m
/// ```
///
/// Parameters `Wa.weight`, `Wa.bias`, `Ua.weight`, `Ua.bias` and `Va.weight` [1, dim]; the tutorial's `Va.bias` is
/// added to all scores alike and changes nothing, so that there is none.
struct AdditiveAttention {
  /// Of queries of `query` numbers and states of `state`.
  AdditiveAttention(const Scope& scope, std::int64_t query, std::int64_t state, std::int64_t dim)
      : of_query(scope / "Wa", query, dim), of_state(scope / "Ua", state, dim), weight(scope / "Va", dim, 1, false) {}

  /// States that are looked at, with what does not depend on the queries.
  struct Memory {
    Tensor keys;     ///< [S, M, dim] f32
    Tensor values;   ///< [S, M, D] f32: the states
    Tensor lengths;  ///< [S] i64, or undefined: all are M
  };
  /// The memory of states [S, M, D], of which the first `lengths` are real.
  Memory remember(const Tensor& states, const Tensor& lengths) const {
    const auto steps = ops::steps_of(states.size(0), states.size(1), lengths);  // without padding
    return {ops::unpack(ops::cast(of_state(ops::pack(states, steps)), DType::f32), steps),
            ops::cast(states, DType::f32), lengths};
  }
  /// What queries [R, Q] find, `each` of them in the same memory; both results f32 (ops::additive_attention()).
  ops::Attended operator()(const Tensor& query, const Memory& memory, Pass& pass, std::int64_t each = 1) const {
    return ops::additive_attention(ops::cast(of_query(ops::cast(query, pass.dtype)), DType::f32), memory.keys,
                                   memory.values, ops::reshape(weight.weight, {-1}), memory.lengths, each);
  }
  /// Multiply-accumulates for a source and a target of these many tokens.
  std::int64_t flops(std::int64_t source, std::int64_t target) const {
    return of_state.flops(source) + of_query.flops(target) +
           source * target * (of_state.in_features() + of_state.out_features());
  }

  Linear of_query;
  Linear of_state;
  Linear weight;
};

}  // namespace vitrail::nn
