#include "vitrail/ops/attention/additive.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/additive_attention.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_additive(const char* what, const Tensor& x, const Shape& shape) {
  check(x.shape() == shape && x.dtype() == DType::f32, "additive_attention: {} must be {} f32, not {} {}", what, shape,
        x.shape(), name_of(x.dtype()));
}

// Calls use(to) with memory to which a part of a gradient is to be added, or with null if none is wanted.
template <class Use>
void into(const Gradient& gradient, Use&& use) {
  if (!gradient.wanted()) {
    use(nullptr);
    return;
  }
  gradient.accumulate(DType::f32, {}, [&](const Tensor& to, const Tensor& sum) {
    if (!sum.defined()) {
      to.fill(0);
    } else if (to.raw() != sum.raw()) {
      to.copy_from(sum);
    }
    use(to.data<float>());
  });
}

}  // namespace

Attended additive_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& weight,
                            const Tensor& lengths, std::int64_t each) {
  check(query.rank() == 2 && key.rank() == 3 && value.rank() == 3,
        "additive_attention: query, key and value must be [R, A], [S, M, A] and [S, M, D], not {}, {} and {}",
        query.shape(), key.shape(), value.shape());
  const std::int64_t rows = query.size(0), dim = query.size(1), width = value.size(2);
  const std::int64_t memories = key.size(0), length = key.size(1);
  check_additive("query", query, query.shape());
  check_additive("key", key, {memories, length, dim});
  check_additive("value", value, {memories, length, width});
  check_additive("weight", weight, {dim});
  check(each >= 1 && rows % each == 0 && rows / each <= memories && length >= 1,
        "additive_attention: {} queries, {} of a memory, do not fit {} memories of {}", rows, each, memories, length);
  check(!lengths.defined() || (lengths.shape() == Shape{memories} && lengths.dtype() == DType::i64),
        "additive_attention: lengths must be {} i64", Shape{memories});
  const Tensor own_lengths = lengths.defined() ? lengths.contiguous() : lengths;
  for (std::int64_t s = 0; own_lengths.defined() && s < memories; ++s) {
    const std::int64_t own = own_lengths.data<std::int64_t>()[s];
    check(own >= 1 && own <= length, "additive_attention: length {} is {}, expected 1 … {}", s, own, length);
  }
  struct Operands {
    Tensor query, key, value, weight, lengths;
    std::int64_t each;

    kernels::AdditiveAttention raw() const {
      return {.memories = query.size(0) / each,
              .each = each,
              .length = key.size(1),
              .dim = key.size(2),
              .width = value.size(2),
              .lengths = lengths.defined() ? lengths.data<std::int64_t>() : nullptr,
              .query = query.data<float>(),
              .key = key.data<float>(),
              .value = value.data<float>(),
              .weight = weight.data<float>()};
    }
  };
  Operands in{query.detach().contiguous(),
              key.detach().contiguous(),
              value.detach().contiguous(),
              weight.detach().contiguous(),
              own_lengths,
              each};
  const Tensor p = Tensor::empty({rows, length});
  const Tensor context = Tensor::empty({rows, width});
  kernels::additive_attention_forward(in.raw(), p.data<float>(), context.data<float>());
  const Gradient dquery(query);
  const Gradient dkey(key);
  const Gradient dvalue(value);
  const Gradient dweight(weight);
  return {autograd::record("additive_attention", context, {&query, &key, &value, &weight},
                           [in = std::move(in), p, dquery, dkey, dvalue, dweight](const Tensor& dy) {
                             const Tensor dout = dy.contiguous();
                             Tensor of_query = Tensor::empty_like(in.query);
                             Tensor of_weight = dweight.wanted() ? Tensor::empty_like(in.weight) : Tensor();
                             into(dkey, [&](float* of_key) {
                               into(dvalue, [&](float* of_value) {
                                 kernels::additive_attention_backward(
                                     in.raw(), {.p = p.data<float>(),
                                                .dout = dout.data<float>(),
                                                .dquery = of_query.data<float>(),
                                                .dkey = of_key,
                                                .dvalue = of_value,
                                                .dweight = of_weight.defined() ? of_weight.data<float>() : nullptr});
                               });
                             });
                             dquery.add(std::move(of_query));
                             if (dweight.wanted()) {
                               dweight.add(std::move(of_weight));
                             }
                           }),
          p};
}

}  // namespace vitrail::ops
