#include "vitrail/explain/attention.h"

#include <algorithm>

#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/matmul.h"
#include "vitrail/ops/reduce.h"

namespace vitrail::explain {
namespace {

using nn::AttentionPlace;
using nn::Size2;

bool has_class_token(const Attention& attention, const AttentionPlace& place) {
  return attention.layout.class_token && place.prefix > 0;
}

void check_query(const Attention& attention, const Query& query) {
  const models::TokenLayout& layout = attention.layout;
  check(query.kind != Query::Kind::patch ||
            (query.row >= 0 && query.row < layout.rows && query.column >= 0 && query.column < layout.columns),
        "there is no patch {},{}: the picture has {} rows and {} columns of patches, counted from 0", query.row,
        query.column, layout.rows, layout.columns);
}

// The place of the queried patch on a coarser or equal grid.
Size2 on_grid(const Attention& attention, const Query& query, const Size2& grid) {
  return {query.row * grid[0] / attention.layout.rows, query.column * grid[1] / attention.layout.columns};
}

// The query's rows of matrix [N, M], averaged, over the grid of keys: [rows, columns].
Tensor global_map(const Attention& attention, const AttentionPlace& place, const Tensor& matrix, const Query& query) {
  const std::int64_t queries = place.queries[0] * place.queries[1];
  const std::int64_t keys = place.keys[0] * place.keys[1];
  check(matrix.size(0) == place.prefix + queries && matrix.size(1) == place.prefix + keys,
        "the attention {} does not belong to {} tokens and {} x {} queries, {} x {} keys", matrix.shape(), place.prefix,
        place.queries[0], place.queries[1], place.keys[0], place.keys[1]);
  Tensor row;
  if (query.kind == Query::Kind::patch) {
    const Size2 at = on_grid(attention, query, place.queries);
    row = matrix.select(0, place.prefix + at[0] * place.queries[1] + at[1]);
  } else if (has_class_token(attention, place)) {
    row = matrix.select(0, 0);
  } else {
    row = ops::mean(matrix.narrow(0, place.prefix, queries), {0});
  }
  return row.narrow(0, place.prefix, keys).clone().reshape({place.keys[0], place.keys[1]});
}

// The same for windows [W, n, n].
Tensor windowed_map(const Attention& attention, const AttentionPlace& place, const Tensor& windows,
                    const Query& query) {
  const auto [rows, columns] = place.queries;
  const auto [height, width] = place.window;
  const std::int64_t across = (columns + width - 1) / width;
  check(windows.size(0) == across * ((rows + height - 1) / height) && windows.size(1) == height * width,
        "the attention {} does not belong to windows of {} x {} on {} x {}", windows.shape(), height, width, rows,
        columns);
  const Tensor map = Tensor::zeros({rows, columns});
  const auto add_query = [&, rows = rows, columns = columns, height = height, width = width](
                             std::int64_t row, std::int64_t column, float weight) {
    const std::int64_t r = (row - place.shift[0] + rows) % rows;
    const std::int64_t c = (column - place.shift[1] + columns) % columns;
    const Tensor seen = windows.select(0, r / height * across + c / width).select(0, r % height * width + c % width);
    for (std::int64_t key = 0; key < height * width; ++key) {
      const std::int64_t y = r / height * height + key / width;
      const std::int64_t x = c / width * width + key % width;
      if (y < rows && x < columns) {  // not what was filled up
        const std::int64_t at = (y + place.shift[0]) % rows * columns + (x + place.shift[1]) % columns;
        map.data<float>()[at] += weight * seen.data<float>()[key * seen.stride(0)];
      }
    }
  };
  if (query.kind == Query::Kind::patch) {
    const Size2 at = on_grid(attention, query, place.queries);
    add_query(at[0], at[1], 1);
  } else {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      add_query(i / columns, i % columns, 1 / static_cast<float>(rows * columns));
    }
  }
  return map;
}

// Of one head or of the mean of heads: [W, N, M].
Tensor map_of(const Attention& attention, std::size_t layer, const Tensor& probabilities, const Query& query) {
  check_query(attention, query);
  const AttentionPlace& place = attention.places[layer];
  return place.windowed() ? windowed_map(attention, place, probabilities, query)
                          : global_map(attention, place, probabilities.select(0, 0), query);
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
  result.layout = model.token_layout(x.size(2), x.size(3));
  const Size2 grid = {result.layout.rows, result.layout.columns};
  for (const auto& [index, probabilities] : recorder.attention()) {
    const auto place = recorder.places().find(index);
    result.layers.push_back(probabilities);
    result.places.push_back(place == recorder.places().end()
                                ? AttentionPlace{.prefix = result.layout.prefix, .queries = grid, .keys = grid}
                                : place->second);
  }
  return result;
}

Tensor attention_map(const Attention& attention, std::int64_t layer, std::int64_t head, const Query& query) {
  const auto layers = static_cast<std::int64_t>(attention.layers.size());
  check(layer >= 0 && layer < layers, "there is no layer {}: the model has the layers 0 to {}", layer, layers - 1);
  const auto index = static_cast<std::size_t>(layer);
  const Tensor& heads = attention.layers[index];
  if (head == all_heads) {
    return map_of(attention, index, ops::mean(heads, {1}), query);
  }
  check(head >= 0 && head < heads.size(1), "there is no head {}: layer {} has the heads 0 to {}", head, layer,
        heads.size(1) - 1);
  return map_of(attention, index, heads.select(1, head), query);
}

bool can_roll_out(const Attention& attention) {
  return !attention.layers.empty() && std::ranges::all_of(attention.places, [&](const AttentionPlace& place) {
    return !place.windowed() && place.queries == place.keys && place.queries == attention.places.front().queries;
  });
}

Tensor rollout(const Attention& attention, const Query& query) {
  check(can_roll_out(attention),
        "attention rollout is for models in which all tokens see all others in every layer, which is not so here");
  Tensor product;
  for (const Tensor& heads : attention.layers) {
    Tensor mixed = ops::multiply(ops::mean(heads.select(0, 0), {0}), 0.5F);
    for (std::int64_t i = 0; i < mixed.size(0); ++i) {
      mixed.data<float>()[i * mixed.size(1) + i] += 0.5F;
    }
    product = product.defined() ? ops::matmul(mixed, product) : mixed;
  }
  return map_of(attention, 0, product.unsqueeze(0), query);
}

}  // namespace vitrail::explain
