#include "vitrail/kernels/shift.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

// The positions [begin, end) along one dimension that are summed to one position of the result; in the forward
// direction there is at most one.
struct Places {
  std::int64_t begin;
  std::int64_t end;
};

// The position that position i of the result reads in the forward direction.
Places read_places(std::int64_t i, std::int64_t size, std::int64_t shift, Border border) {
  const std::int64_t from = i + shift;
  if (border == Border::edge) {
    const std::int64_t inside = std::clamp<std::int64_t>(from, 0, size - 1);
    return {inside, inside + 1};
  }
  return from >= 0 && from < size ? Places{from, from + 1} : Places{0, 0};
}

// The positions of the result that read position i in the forward direction.
Places reading_places(std::int64_t i, std::int64_t size, std::int64_t shift, Border border) {
  const std::int64_t at = i - shift;
  const bool gathers = border == Border::edge;  // reads beyond the image are reads of its edge
  const std::int64_t begin = gathers && i == 0 ? 0 : std::max<std::int64_t>(at, 0);
  const std::int64_t end = gathers && i == size - 1 ? size : std::min(at + 1, size);
  return {begin, std::max(begin, end)};
}

// A shift, with a mask that selects its channels where they are not adjacent: all bits set for its channels, none for
// others.
template <class Bits>
struct Group {
  ChannelShift shift;
  std::vector<Bits> mask;  // for the channels from shift.begin on
};

template <class Bits>
std::vector<Group<Bits>> groups_of(std::span<const ChannelShift> shifts) {
  std::vector<Group<Bits>> groups;
  for (const ChannelShift& shift : shifts) {
    Group<Bits> group{shift,
                      std::vector<Bits>(static_cast<std::size_t>(std::max<std::int64_t>(shift.end - shift.begin, 0)))};
    for (std::size_t c = 0; c < group.mask.size(); c += static_cast<std::size_t>(shift.step)) {
      group.mask[c] = static_cast<Bits>(~Bits{0});
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// out[c] = in[c] for the channels of a group; out must be zero there.
template <class Bits>
void copy_channels(const Bits* in, const Group<Bits>& group, Bits* out) {
  const ChannelShift& s = group.shift;
  const auto count = group.mask.size();
  if (s.step == 1) {
    std::memcpy(out + s.begin, in + s.begin, count * sizeof(Bits));
    return;
  }
  const Bits* const mask = group.mask.data();
  const Bits* const from = in + s.begin;
  Bits* const to = out + s.begin;
  for (std::size_t c = 0; c < count; ++c) {
    to[c] = static_cast<Bits>(to[c] | (from[c] & mask[c]));
  }
}

template <class T, class Bits, class Find>
void gather(const Tensor& x, std::span<const ChannelShift> shifts, const Find& find, const Tensor& y) {
  const std::vector<Group<Bits>> groups = groups_of<Bits>(shifts);
  const std::int64_t height = x.size(1);
  const std::int64_t width = x.size(2);
  const std::int64_t channels = x.size(3);
  parallel_for(x.size(0) * height, (1 << 14) / std::max<std::int64_t>(width * channels, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const std::int64_t top = row / height * height;  // the sample's first row
                   const auto at = [&](const Tensor& t, std::int64_t r, std::int64_t column) {
                     return t.data<T>() + (r * width + column) * channels;
                   };
                   std::fill_n(at(y, row, 0), width * channels, T(0.0F));
                   for (const Group<Bits>& group : groups) {
                     const ChannelShift& s = group.shift;
                     const Places rows = find(row - top, height, s.rows);
                     for (std::int64_t j = 0; j < width; ++j) {
                       const Places columns = find(j, width, s.columns);
                       T* const out = at(y, row, j);
                       const std::int64_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
                       if (count == 1) {
                         copy_channels(reinterpret_cast<const Bits*>(at(x, top + rows.begin, columns.begin)), group,
                                       reinterpret_cast<Bits*>(out));
                       } else if (count > 1) {
                         for (std::int64_t c = s.begin; c < s.end; c += s.step) {
                           float sum = 0;
                           for (std::int64_t r = rows.begin; r < rows.end; ++r) {
                             for (std::int64_t k = columns.begin; k < columns.end; ++k) {
                               sum += static_cast<float>(at(x, top + r, k)[c]);
                             }
                           }
                           out[c] = static_cast<T>(sum);
                         }
                       }
                     }
                   }
                 }
               });
}

template <class Find>
void gather_floats(const Tensor& x, std::span<const ChannelShift> shifts, const Find& find, const Tensor& y) {
  check(is_floating(x.dtype()), "shift_channels() moves f32 or bf16, not {}", name_of(x.dtype()));
  Profile::traffic(x.numel(), x.dtype(), 2);
  if (x.dtype() == DType::bf16) {
    gather<bf16, std::uint16_t>(x, shifts, find, y);
  } else {
    gather<float, std::uint32_t>(x, shifts, find, y);
  }
}

}  // namespace

void shift_channels(const Tensor& x, std::span<const ChannelShift> shifts, Border border, const Tensor& y) {
  gather_floats(
      x, shifts,
      [border](std::int64_t i, std::int64_t size, std::int64_t shift) { return read_places(i, size, shift, border); },
      y);
}

void shift_channels_gradient(const Tensor& dy, std::span<const ChannelShift> shifts, Border border, const Tensor& dx) {
  gather_floats(
      dy, shifts,
      [border](std::int64_t i, std::int64_t size, std::int64_t shift) {
        return reading_places(i, size, shift, border);
      },
      dx);
}

}  // namespace vitrail::kernels
