#include "vitrail/explain/attention.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/core.h>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/matmul.h"

namespace vitrail::explain {
namespace {

using nn::Size2;
using nn::TokenGrid;

bool has_class_token(const Attention& attention, const TokenGrid& place) {
  return attention.layout.class_token && place.prefix > 0;
}

std::int64_t frames_of(const models::TokenLayout& layout) { return std::max<std::int64_t>(1, layout.frames); }

void check_query(const Attention& attention, const Query& query) {
  if (query.kind != Query::Kind::patch) {
    return;
  }
  check(!attention.class_token_alone, "the attention of the patches was not kept, but that of the class token alone");
  const models::TokenLayout& layout = attention.layout;
  const std::int64_t frames = frames_of(layout);
  const std::int64_t rows = layout.rows / frames;
  check(query.row >= 0 && query.row < rows && query.column >= 0 && query.column < layout.columns,
        "there is no patch {},{}: the image has {} rows and {} columns of patches, counted from 0", query.row,
        query.column, rows, layout.columns);
  check(query.frame >= 0 && query.frame < frames, "there is no frame {}: there are {} of them, counted from 0",
        query.frame, frames);
}

// Of `cells` along a side, the range [begin, end) that makes up part `index` of `parts`. If cells are smaller than
// parts, it begins with the cell at the beginning of the part and ends before the cell at the beginning of the next
// part; otherwise it is the one cell that covers the part.
Size2 cells_in_part(std::int64_t index, std::int64_t parts, std::int64_t cells) {
  const std::int64_t begin = index * cells / parts;
  return {begin, std::max(begin + 1, (index + 1) * cells / parts)};
}

// The indices of the tokens whose attention is asked for.
std::vector<std::int64_t> queried_tokens(const Attention& attention, const TokenGrid& place, const Query& query) {
  const auto [rows, columns] = place.queries;
  if (query.kind == Query::Kind::summary) {
    if (has_class_token(attention, place)) {
      return {0};
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows * columns));
    std::iota(all.begin(), all.end(), place.prefix);
    return all;
  }
  const models::TokenLayout& layout = attention.layout;
  const std::int64_t frames = frames_of(layout);
  const std::int64_t height = rows / place.query_frames;  // rows of a frame
  const Size2 in_frames = cells_in_part(query.frame, frames, place.query_frames);
  const Size2 in_rows = cells_in_part(query.row, layout.rows / frames, height);
  const Size2 in_columns = cells_in_part(query.column, layout.columns, columns);
  std::vector<std::int64_t> tokens;
  for (std::int64_t frame = in_frames[0]; frame < in_frames[1]; ++frame) {
    for (std::int64_t row = in_rows[0]; row < in_rows[1]; ++row) {
      for (std::int64_t column = in_columns[0]; column < in_columns[1]; ++column) {
        tokens.push_back(place.prefix + (frame * height + row) * columns + column);
      }
    }
  }
  return tokens;
}

// The mean of the queried rows of a matrix [N, M] over the grid of keys: [rows, columns].
Tensor global_map(const Attention& attention, const TokenGrid& place, const Tensor& matrix, const Query& query) {
  const std::int64_t queries = place.queries[0] * place.queries[1];
  const std::int64_t keys = place.keys[0] * place.keys[1];
  const std::int64_t kept = attention.class_token_alone ? 1 : place.prefix + queries;
  check(matrix.size(0) == kept && matrix.size(1) == place.prefix + keys,
        "the attention {} does not belong to {} tokens and {} x {} queries, {} x {} keys", matrix.shape(), place.prefix,
        place.queries[0], place.queries[1], place.keys[0], place.keys[1]);
  const std::vector<std::int64_t> tokens = queried_tokens(attention, place, query);
  const float share = 1 / static_cast<float>(tokens.size());
  const Tensor map = Tensor::zeros({place.keys[0], place.keys[1]});
  float* out = map.data<float>();
  for (const std::int64_t token : tokens) {
    const Tensor row = matrix.select(0, token).narrow(0, place.prefix, keys).contiguous();
    const float* seen = row.data<float>();
    for (std::int64_t key = 0; key < keys; ++key) {
      out[key] += share * seen[key];
    }
  }
  return map;
}

// The mean of the queried rows of the matrices of windows [W, n, n] over the grid of keys: [rows, columns].
Tensor windowed_map(const Attention& attention, const TokenGrid& place, const Tensor& windows, const Query& query) {
  const auto [rows, columns] = place.queries;
  const auto [height, width] = place.window;
  const std::int64_t across = (columns + width - 1) / width;
  const std::int64_t down = (rows + height - 1) / height;
  check(windows.size(0) == across * down && windows.size(1) == height * width,
        "the attention {} does not belong to windows of {} x {} on {} x {}", windows.shape(), height, width, rows,
        columns);
  const std::vector<std::int64_t> tokens = queried_tokens(attention, place, query);
  const float share = 1 / static_cast<float>(tokens.size());
  const Tensor map = Tensor::zeros({rows, columns});
  const std::int64_t rolled_rows = place.pad_first ? down * height : rows;
  const std::int64_t rolled_columns = place.pad_first ? across * width : columns;
  for (const std::int64_t token : tokens) {
    const std::int64_t r = (token / columns - place.shift[0] + rolled_rows) % rolled_rows;
    const std::int64_t c = (token % columns - place.shift[1] + rolled_columns) % rolled_columns;
    const Tensor seen = windows.select(0, r / height * across + c / width).select(0, r % height * width + c % width);
    for (std::int64_t key = 0; key < height * width; ++key) {
      const std::int64_t y = r / height * height + key / width;
      const std::int64_t x = c / width * width + key % width;
      const std::int64_t row = y < rolled_rows ? (y + place.shift[0]) % rolled_rows : rows;
      const std::int64_t column = x < rolled_columns ? (x + place.shift[1]) % rolled_columns : columns;
      if (row < rows && column < columns) {  // skips padding
        map.data<float>()[row * columns + column] += share * seen.data<float>()[key * seen.stride(0)];
      }
    }
  }
  return map;
}

// The map of the probabilities [W, N, M] of one head, or of the mean of heads.
Tensor map_of(const Attention& attention, std::size_t layer, const Tensor& probabilities, const Query& query) {
  check_query(attention, query);
  const TokenGrid& place = attention.grids[layer];
  const Tensor map = place.windowed() ? windowed_map(attention, place, probabilities, query)
                                      : global_map(attention, place, probabilities.select(0, 0), query);
  const bool video = attention.layout.frames > 0;
  return video ? map.reshape({place.key_frames, map.size(0) / place.key_frames, map.size(1)}) : map;
}

// One head of the probabilities [W, H, N, M], or the mean of all heads: [W, N, M].
Tensor head_of(const Tensor& heads, std::int64_t head, const std::string& layer) {
  check(head == all_heads || (head >= 0 && head < heads.size(1)), "there is no head {}: {} has the heads 0 to {}", head,
        layer, heads.size(1) - 1);
  return head == all_heads ? ops::mean(heads, {1}) : heads.select(1, head);
}

}  // namespace

Attention record_attention(const models::ImageModel& model, const Tensor& x, DType dtype, Looking looking) {
  const bool video = model.frames() > 0;
  check(x.rank() == (video ? 5 : 4) && x.size(0) == 1, "attention is recorded for one {}, not {}",
        video ? "video [1, C, T, H, W]" : "image [1, C, H, W]", x.shape());
  Attention result;
  result.layout = model.token_layout(x.size(-2), x.size(-1));
  result.class_token_alone = looking == Looking::class_token && result.layout.class_token;
  nn::Recorder recorder(false, true, result.class_token_alone ? 1 : 0);
  nn::Pass pass;
  pass.dtype = dtype;
  pass.recorder = &recorder;
  result.logits = model.forward(x, pass).select(0, 0);
  if (!recorder.pool_attention().empty()) {
    result.pool = recorder.pool_attention()[0].value;
  }
  const Size2 grid = {result.layout.rows, result.layout.columns};
  for (const nn::Recorded& map : recorder.attention()) {
    result.layers.push_back(map.value);
    result.grids.push_back(
        map.grid != nullptr ? *map.grid : TokenGrid{.prefix = result.layout.prefix, .queries = grid, .keys = grid});
  }
  return result;
}

Tensor attention_map(const Attention& attention, std::int64_t layer, std::int64_t head, const Query& query) {
  const auto layers = static_cast<std::int64_t>(attention.layers.size());
  check(layer >= 0 && layer < layers, "there is no layer {}: the model has the layers 0 to {}", layer, layers - 1);
  const auto index = static_cast<std::size_t>(layer);
  const Tensor chosen = head_of(attention.layers[index], head, fmt::format("layer {}", layer));
  return map_of(attention, index, chosen, query);
}

Tensor pooling_map(const Attention& attention, std::int64_t head) {
  check(attention.pool.defined(), "the model does not pool by attention");
  const Tensor row = ops::mean(head_of(attention.pool, head, "attention pooling").select(0, 0), {0});
  const std::int64_t patches = attention.layout.rows * attention.layout.columns;
  check(row.size(0) >= patches, "the attention {} does not belong to {} patches", attention.pool.shape(), patches);
  return row.narrow(0, row.size(0) - patches, patches).reshape({attention.layout.rows, attention.layout.columns});
}

bool can_roll_out(const Attention& attention) {
  return !attention.layers.empty() && !attention.class_token_alone &&
         std::ranges::all_of(attention.grids, [&](const TokenGrid& place) {
           return !place.windowed() && place.queries == place.keys && place.queries == attention.grids.front().queries;
         });
}

Tensor rolled_out(const std::vector<Tensor>& layers) {
  Tensor product;
  for (const Tensor& heads : layers) {
    Tensor mixed = ops::multiply(ops::mean(heads, {0}), 0.5F);
    for (std::int64_t i = 0; i < mixed.size(0); ++i) {
      mixed.data<float>()[i * mixed.size(1) + i] += 0.5F;
    }
    product = product.defined() ? ops::matmul(mixed, product) : mixed;
  }
  return product;
}

Tensor rollout(const Attention& attention, const Query& query) {
  check(can_roll_out(attention),
        "attention rollout is for models in which all tokens see all others in every layer, which is not so here");
  std::vector<Tensor> layers;
  for (const Tensor& windows : attention.layers) {
    layers.push_back(windows.select(0, 0));
  }
  return map_of(attention, 0, rolled_out(layers).unsqueeze(0), query);
}

}  // namespace vitrail::explain
