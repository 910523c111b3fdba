/// \file
/// Grids of tokens on an image.
#pragma once

#include <array>
#include <cstdint>

namespace vitrail::nn {

/// Rows and columns of something on an image: its size, a patch's, or a grid's.
using Size2 = std::array<std::int64_t, 2>;

/// Where the queries and keys of an attention map lie on the image: on grids that cover it, row by row, behind
/// `prefix` tokens of another kind. With a window (Swin: Liu et al. 2021) both grids are the same, rolled up and left
/// by `shift`, filled up at the bottom and the right to whole windows (with `pad_first` in the opposite order), and
/// each window, row by row, attends to itself alone. Of a video, the rows of its frames lie below each other.
struct TokenGrid {
  std::int64_t prefix = 0;
  Size2 queries = {0, 0};
  Size2 keys = {0, 0};
  Size2 window = {0, 0};
  Size2 shift = {0, 0};
  bool pad_first = false;
  std::int64_t query_frames = 1;
  std::int64_t key_frames = 1;

  bool windowed() const { return window[0] > 0; }
};

}  // namespace vitrail::nn
