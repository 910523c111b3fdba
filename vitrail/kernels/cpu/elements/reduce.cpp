#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/reduce.cpp"
#include "vitrail/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/strided.h"

#ifndef VITRAIL_KERNELS_REDUCE_ONCE
#define VITRAIL_KERNELS_REDUCE_ONCE
namespace vitrail::kernels {

// The value that a reduction begins with: its identity element.
constexpr float identity(Reduction reduction) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return reduction == Reduction::maximum ? -infinity : reduction == Reduction::minimum ? infinity : 0;
}

// Combines two partial results; a maximum or minimum with NaN is NaN.
template <class T>
T merge(Reduction reduction, T x, T y) {
  if (reduction == Reduction::sum || reduction == Reduction::product) {
    return x + y;
  }
  const bool first = reduction == Reduction::maximum ? x > y : x < y;
  return first || x != x ? x : y;
}

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// Combines `acc` with the elements at `a`, for sums of products multiplied by those at `b`; otherwise b is not read.
template <Reduction R, class T, class Part>
HWY_INLINE V<F32> combine(V<F32> acc, const T* a, const T* b, Part part) {
  const F32 d;
  const auto x = load(d, a, part);
  if constexpr (R == Reduction::maximum) {
    return hn::IfThenElse(hn::Or(hn::Gt(acc, x), hn::IsNaN(acc)), acc, x);
  } else if constexpr (R == Reduction::minimum) {
    return hn::IfThenElse(hn::Or(hn::Lt(acc, x), hn::IsNaN(acc)), acc, x);
  } else if constexpr (R == Reduction::product) {
    return hn::MulAdd(x, load(d, b, part), acc);
  } else {
    return hn::Add(acc, x);
  }
}

// The reduction of n dense elements.
template <Reduction R, class T>
float row(const T* a, const T* b, std::int64_t n) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, static_cast<float>(identity(R)));
  auto acc0 = start;
  auto acc1 = start;
  auto acc2 = start;
  auto acc3 = start;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    acc0 = combine<R>(acc0, a + i, b + i, Whole{});
    acc1 = combine<R>(acc1, a + i + lanes, b + i + lanes, Whole{});
    acc2 = combine<R>(acc2, a + i + 2 * lanes, b + i + 2 * lanes, Whole{});
    acc3 = combine<R>(acc3, a + i + 3 * lanes, b + i + 3 * lanes, Whole{});
  }
  for (; i + lanes <= n; i += lanes) {
    acc0 = combine<R>(acc0, a + i, b + i, Whole{});
  }
  if (i < n) {
    acc1 = first_lanes(d, combine<R>(acc1, a + i, b + i, n - i), acc1, n - i);
  }
  if constexpr (R == Reduction::sum || R == Reduction::product) {
    return sum_of(d, hn::Add(hn::Add(acc0, acc1), hn::Add(acc2, acc3)));
  }
  HWY_ALIGN float lane[4 * hn::MaxLanes(F32())];  // one by one, since Highway's maximum of lanes drops NaN
  hn::StoreU(acc0, d, lane);
  hn::StoreU(acc1, d, lane + lanes);
  hn::StoreU(acc2, d, lane + 2 * lanes);
  hn::StoreU(acc3, d, lane + 3 * lanes);
  return std::accumulate(lane, lane + 4 * lanes, lane[0], [](float x, float y) { return merge(R, x, y); });
}

// Combines acc[i] with `rows` terms, which lie `a_step` and `b_step` elements apart in a and b, for i < n.
template <Reduction R, class T>
void columns(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, std::int64_t rows, std::int64_t n,
             float* acc) {
  const F32 d;
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {  // four rows at once, so that acc is read and written less often
    const T* a0 = a + r * a_step;
    const T* b0 = b + r * b_step;
    for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
      auto sum = load(d, acc + i, part);
      sum = combine<R>(sum, a0 + i, b0 + i, part);
      sum = combine<R>(sum, a0 + a_step + i, b0 + b_step + i, part);
      sum = combine<R>(sum, a0 + 2 * a_step + i, b0 + 2 * b_step + i, part);
      sum = combine<R>(sum, a0 + 3 * a_step + i, b0 + 3 * b_step + i, part);
      store(sum, d, acc + i, part);
    });
  }
  for (; r < rows; ++r) {
    for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto sum = combine<R>(load(d, acc + i, part), a + r * a_step + i, b + r * b_step + i, part);
      store(sum, d, acc + i, part);
    });
  }
}

// Calls `function<R>()` for a reduction R that is known only at run time.
template <class Function>
decltype(auto) visit_reduction(Reduction reduction, const Function& function) {
  switch (reduction) {
    case Reduction::sum:
      return function.template operator()<Reduction::sum>();
    case Reduction::product:
      return function.template operator()<Reduction::product>();
    case Reduction::maximum:
      return function.template operator()<Reduction::maximum>();
    case Reduction::minimum:
      return function.template operator()<Reduction::minimum>();
  }
  fail("no such reduction: {}", static_cast<int>(reduction));
}

}  // namespace

float reduce_row(Reduction reduction, const void* a, const void* b, std::int64_t n, DType dtype) {
  return visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    return visit_reduction(reduction, [&]<Reduction R>() HWY_ATTR {
      return row<R>(static_cast<const T*>(a), static_cast<const T*>(b), n);
    });
  });
}

void reduce_columns(Reduction reduction, const void* a, std::int64_t a_step, const void* b, std::int64_t b_step,
                    std::int64_t rows, std::int64_t n, float* acc, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    visit_reduction(reduction, [&]<Reduction R>() HWY_ATTR {
      columns<R>(static_cast<const T*>(a), a_step, static_cast<const T*>(b), b_step, rows, n, acc);
    });
  });
}

}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(reduce_row);
HWY_EXPORT(reduce_columns);

constexpr std::int64_t block = 1024;         // elements of a row, or columns, that are reduced at once
constexpr std::int64_t longest_run = 64;     // rows summed in f32 before their sum is added to the f64 total
constexpr std::int64_t short_row = 32;       // shorter rows are copied together into blocks of several
constexpr std::int64_t part_size = 1 << 15;  // elements of a part, where there are too few results to share
constexpr std::int64_t enough_results = 16;
constexpr std::int64_t most_parts = 64;
constexpr std::int64_t grain = 1 << 14;  // least elements per thread

constexpr std::size_t out_place = 2;  // index of the result's strides in a Plan, behind those of operands a and b

// How a reduction is done: for each kept element (or, if the innermost dimension is kept, for each row of `columns`
// kept elements) a loop over all elements that are reduced to it. Where there are too few kept elements to share among
// the threads, this loop is divided into `parts`.
struct Plan {
  Reduction reduction;
  std::size_t count;  // number of operands
  Shape kept;
  std::array<Shape, 3> kept_strides;
  Loops reduced{Shape{}, {}};
  std::int64_t columns = 0;  // 0: the innermost dimension is reduced
  std::array<std::int64_t, 3> column_steps{};
  std::int64_t parts = 1;

  Plan(Reduction reduction, std::span<const Operand> operands, const Shape& out_strides, const Shape& shape);

  std::int64_t offset(std::size_t k, std::int64_t kept_index) const {
    return strided_offset(kept, kept_strides[k], kept_index);
  }
  std::int64_t part_begin(std::int64_t part) const { return reduced.shape.numel() * part / parts; }
};

// The dimensions in the order of the operands' strides, the largest first.
std::vector<int> memory_order(const std::array<Shape, 3>& strides, std::size_t count, int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  const auto step = [&](int d) { return count > 1 ? std::max(strides[0][d], strides[1][d]) : strides[0][d]; };
  std::ranges::stable_sort(order, std::greater<>(), step);
  return order;
}

Plan::Plan(Reduction reduction, std::span<const Operand> operands, const Shape& out_strides, const Shape& shape)
    : reduction(reduction), count(operands.size()) {
  const std::array<Shape, 3> given = {operands.front().strides, operands.back().strides, out_strides};
  Shape sorted = shape;
  std::array<Shape, 3> strides = given;
  int to = 0;
  for (const int from : memory_order(given, count, shape.rank())) {
    sorted[to] = shape[from];
    for (std::size_t k = 0; k < strides.size(); ++k) {
      strides[k][to] = given[k][from];
    }
    ++to;
  }
  const Loops loops(sorted, strides);
  const int rank = loops.shape.rank();
  Shape gone;
  std::array<Shape, 3> gone_strides;
  for (int d = 0; d < rank; ++d) {
    if (loops.strides[out_place][d] != 0 && d == rank - 1) {
      columns = loops.shape[d];
      std::ranges::transform(loops.strides.begin(), loops.strides.begin() + 3, column_steps.begin(),
                             [&](const Shape& step) { return step[d]; });
      continue;
    }
    const bool keep = loops.strides[out_place][d] != 0;
    Shape& part = keep ? kept : gone;
    part = part.inserted(-1, loops.shape[d]);
    for (std::size_t k = 0; k < strides.size(); ++k) {
      Shape& part_strides = keep ? kept_strides[k] : gone_strides[k];
      part_strides = part_strides.inserted(-1, loops.strides[k][d]);
    }
  }
  reduced = Loops(gone, gone_strides);
  const std::int64_t results = kept.numel() * ((columns + block - 1) / block + (columns == 0 ? 1 : 0));
  if (results < enough_results) {
    const std::int64_t width = std::max<std::int64_t>(1, std::min(columns, block));
    parts = std::clamp<std::int64_t>(reduced.shape.numel() * width / part_size, 1, most_parts);
  }
}

// A pointer to elements [i, i + n) of the reduced dimensions of operand `k`: into the operand if they are dense there,
// else to a copy in `dense`.
template <class T>
const T* dense_run(const Plan& plan, std::size_t k, const T* data, std::int64_t i, std::int64_t n, bool several_rows,
                   T* dense) {
  if (!several_rows && plan.reduced.strides[k].back() == 1) {
    return data + plan.reduced.offset(static_cast<int>(k), i);
  }
  gather_elements(plan.reduced, static_cast<int>(k), data, i, n, dense);
  return dense;
}

// Reduces part `part` of the elements that belong to one kept element.
template <class T>
double reduce_one(const Plan& plan, const std::array<const T*, 2>& data, std::int64_t part) {
  std::array<std::array<T, block>, 2> dense;
  const std::int64_t inner = plan.reduced.inner();
  const bool several_rows = inner < short_row && plan.reduced.shape.rank() > 1;
  const std::int64_t end = plan.part_begin(part + 1);
  double total = identity(plan.reduction);
  for (std::int64_t i = plan.part_begin(part); i < end;) {
    const std::int64_t n = std::min({end - i, block, several_rows ? block : inner - i % inner});
    const T* a = dense_run(plan, 0, data[0], i, n, several_rows, dense[0].data());
    const T* b = plan.count > 1 ? dense_run(plan, 1, data[1], i, n, several_rows, dense[1].data()) : a;
    const float value = HWY_DYNAMIC_DISPATCH(reduce_row)(plan.reduction, a, b, n, dtype_of<T>::value);
    total = merge<double>(plan.reduction, total, value);
    i += n;
  }
  return total;
}

// Reduces part `part` of the elements that belong to `n` adjacent columns, to totals [n].
template <class T>
void reduce_many(const Plan& plan, const std::array<const T*, 2>& data, std::int64_t n, std::int64_t part,
                 double* totals) {
  std::array<std::array<T, block>, 2> dense;
  std::array<float, block> acc;
  const Loops& reduced = plan.reduced;
  const float start = identity(plan.reduction);
  std::fill_n(totals, n, start);
  const bool gathers = plan.column_steps[0] != 1 || plan.column_steps[1] != 1;
  const std::int64_t end = plan.part_begin(part + 1);
  for (std::int64_t i = plan.part_begin(part); i < end;) {
    const std::int64_t stop = std::min(end, i + longest_run);
    std::fill_n(acc.data(), n, start);
    while (i < stop) {
      const std::int64_t rows = gathers ? 1 : std::min(stop - i, reduced.inner() - i % reduced.inner());
      std::array<const T*, 2> in = data;
      for (std::size_t k = 0; k < 2; ++k) {
        in[k] += reduced.offset(static_cast<int>(k), i);
        if (plan.column_steps[k] != 1) {
          for (std::int64_t c = 0; c < n; ++c) {
            dense[k][static_cast<std::size_t>(c)] = in[k][c * plan.column_steps[k]];
          }
          in[k] = dense[k].data();
        }
      }
      HWY_DYNAMIC_DISPATCH(reduce_columns)
      (plan.reduction, in[0], reduced.strides[0].back(), in[1], reduced.strides[1].back(), rows, n, acc.data(),
       dtype_of<T>::value);
      i += rows;
    }
    for (std::int64_t c = 0; c < n; ++c) {
      totals[c] = merge<double>(plan.reduction, totals[c], acc[static_cast<std::size_t>(c)]);
    }
  }
}

// Runs a plan: each unit of work is one part of one kept element, or of up to `block` columns of one row of them.
template <class T>
void run(const Plan& plan, std::span<const Operand> operands, T* out, float scale) {
  const std::int64_t width = std::max<std::int64_t>(plan.columns, 1);
  const std::int64_t chunks = (width + block - 1) / block;
  const std::int64_t kept = plan.kept.numel();
  // Partial results [part, kept, column], if the parts have to be combined afterwards.
  std::vector<double> partial(static_cast<std::size_t>(plan.parts > 1 ? plan.parts * kept * width : 0));
  const auto put = [&](std::int64_t index, std::int64_t first, std::span<const double> totals) {
    T* place = out + plan.offset(out_place, index) + first * plan.column_steps[out_place];
    for (const double total : totals) {
      *place = static_cast<T>(static_cast<float>(total * static_cast<double>(scale)));
      place += plan.column_steps[out_place];
    }
  };
  const auto unit = [&](std::int64_t index, std::int64_t chunk, std::int64_t part) {
    std::array<double, block> totals;
    const std::int64_t first = chunk * block;
    const std::int64_t n = std::min(block, width - first);
    std::array<const T*, 2> data{};
    for (std::size_t k = 0; k < 2; ++k) {
      const Operand& operand = operands[std::min(k, operands.size() - 1)];
      data[k] = static_cast<const T*>(operand.data) + plan.offset(k, index) + first * plan.column_steps[k];
    }
    if (plan.columns == 0) {
      totals[0] = reduce_one(plan, data, part);
    } else {
      reduce_many(plan, data, n, part, totals.data());
    }
    if (plan.parts == 1) {
      put(index, first, std::span(totals).first(static_cast<std::size_t>(n)));
    } else {
      std::copy_n(totals.data(), n, partial.data() + (part * kept + index) * width + first);
    }
  };
  const std::int64_t work = std::max<std::int64_t>(plan.reduced.shape.numel() * std::min(width, block) / plan.parts, 1);
  parallel_for(kept * chunks * plan.parts, (grain + work - 1) / work,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   unit(i / plan.parts / chunks, i / plan.parts % chunks, i % plan.parts);
                 }
               });
  if (plan.parts == 1) {
    return;
  }
  for (std::int64_t part = 1; part < plan.parts; ++part) {
    for (std::int64_t i = 0; i < kept * width; ++i) {
      double& total = partial[static_cast<std::size_t>(i)];
      total = merge(plan.reduction, total, partial[static_cast<std::size_t>(part * kept * width + i)]);
    }
  }
  for (std::int64_t index = 0; index < kept; ++index) {
    put(index, 0, std::span(partial).subspan(static_cast<std::size_t>(index * width), static_cast<std::size_t>(width)));
  }
}

}  // namespace

void reduce(Reduction reduction, std::span<const Operand> operands, void* out, const Shape& out_strides,
            const Shape& shape, DType dtype, float scale) {
  check(operands.size() == (reduction == Reduction::product ? 2 : 1), "reduce() was given {} operands",
        operands.size());
  Profile::traffic(shape.numel(), dtype, static_cast<int>(operands.size()));
  visit_floating(dtype, [&]<class T>(T) {
    if (shape.numel() > 0) {
      run(Plan(reduction, operands, out_strides, shape), operands, static_cast<T*>(out), scale);
      return;
    }
    std::int64_t results = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      results *= out_strides[d] != 0 ? shape[d] : 1;
    }
    std::fill_n(static_cast<T*>(out), results, static_cast<T>(scale * identity(reduction)));
  });
}

}  // namespace vitrail::kernels
#endif
