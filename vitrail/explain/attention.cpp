#include "vitrail/explain/attention.h"

#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/matmul.h"
#include "vitrail/ops/reduce.h"

namespace vitrail::explain {
namespace {

// The query's rows of matrix [N, N], averaged, over the patch columns: [rows, columns].
Tensor patches_seen_by(const Tensor& matrix, const models::TokenLayout& layout, const Query& query) {
  const std::int64_t patches = layout.rows * layout.columns;
  check(matrix.size(0) == layout.prefix + patches && matrix.size(1) == matrix.size(0),
        "the attention {} does not belong to {} + {} x {} tokens", matrix.shape(), layout.prefix, layout.rows,
        layout.columns);
  Tensor row;
  if (query.kind == Query::Kind::patch) {
    check(query.row >= 0 && query.row < layout.rows && query.column >= 0 && query.column < layout.columns,
          "there is no patch {},{}: the picture has {} rows and {} columns of patches, counted from 0", query.row,
          query.column, layout.rows, layout.columns);
    row = matrix.select(0, layout.prefix + query.row * layout.columns + query.column);
  } else if (layout.class_token) {
    row = matrix.select(0, 0);
  } else {
    row = ops::mean(matrix.narrow(0, layout.prefix, patches), {0});
  }
  return row.narrow(0, layout.prefix, patches).clone().reshape({layout.rows, layout.columns});
}

}  // namespace

Attention record_attention(const models::ImageModel& model, const Tensor& x, DType dtype) {
  check(x.rank() == 4 && x.size(0) == 1, "attention is recorded for one picture [1, C, H, W], not {}", x.shape());
  nn::Recorder recorder(false, true);
  nn::Pass pass;
  pass.dtype = dtype;
  pass.recorder = &recorder;
  Attention result;
  result.logits = model.forward(x, pass).select(0, 0);
  for (const auto& [block, probabilities] : recorder.attention()) {
    result.layers.push_back(probabilities.select(0, 0));
  }
  result.layout = model.token_layout(x.size(2), x.size(3));
  return result;
}

Tensor attention_map(const Attention& attention, std::int64_t layer, std::int64_t head, const Query& query) {
  const auto layers = static_cast<std::int64_t>(attention.layers.size());
  check(layer >= 0 && layer < layers, "there is no layer {}: the model has the layers 0 to {}", layer, layers - 1);
  const Tensor& heads = attention.layers[static_cast<std::size_t>(layer)];
  if (head == all_heads) {
    return patches_seen_by(ops::mean(heads, {0}), attention.layout, query);
  }
  check(head >= 0 && head < heads.size(0), "there is no head {}: layer {} has the heads 0 to {}", head, layer,
        heads.size(0) - 1);
  return patches_seen_by(heads.select(0, head), attention.layout, query);
}

Tensor rollout(const Attention& attention, const Query& query) {
  check(!attention.layers.empty(), "the model has no attention to roll out");
  Tensor product;
  for (const Tensor& heads : attention.layers) {
    Tensor mixed = ops::multiply(ops::mean(heads, {0}), 0.5F);
    for (std::int64_t i = 0; i < mixed.size(0); ++i) {
      mixed.data<float>()[i * mixed.size(1) + i] += 0.5F;
    }
    product = product.defined() ? ops::matmul(mixed, product) : mixed;
  }
  return patches_seen_by(product, attention.layout, query);
}

}  // namespace vitrail::explain
