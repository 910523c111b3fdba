#include "vitrail/ops/recurrent/sequences.h"

#include <algorithm>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gather.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// The place of step t of sequence b among all B · T places.
std::int64_t place(const Steps& steps, Layout layout, std::int64_t b, std::int64_t t) {
  return layout == Layout::batch_first ? b * steps.time + t : t * steps.batch + b;
}

// For each row the place that it comes from.
std::vector<std::int64_t> places_of_rows(const Steps& steps, Layout layout) {
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(steps.rows()));
  for (std::int64_t t = 0; t < steps.count(); ++t) {
    for (std::int64_t i = 0; i < steps.size(t); ++i) {
      result.push_back(place(steps, layout, steps.order[static_cast<std::size_t>(i)], t));
    }
  }
  return result;
}

// For each place the row that goes there; -1 for padding.
std::vector<std::int64_t> rows_of_places(const Steps& steps, Layout layout) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(steps.batch * steps.time), -1);
  const std::vector<std::int64_t> places = places_of_rows(steps, layout);
  for (std::size_t row = 0; row < places.size(); ++row) {
    result[static_cast<std::size_t>(places[row])] = static_cast<std::int64_t>(row);
  }
  return result;
}

// Rows are packed as the sequences lie if those are equally long and time comes first.
bool lies_packed(const Steps& steps, Layout layout) { return steps.equal() && layout == Layout::time_first; }

Tensor packed(const Tensor& x, const Steps& steps, Layout layout) {
  const Tensor dense = x.detach().contiguous();
  if (lies_packed(steps, layout)) {
    return dense.reshape({steps.rows(), x.size(2)});
  }
  Tensor rows = Tensor::empty({steps.rows(), x.size(2)}, x.dtype());
  kernels::gather_slices(dense.raw(), 1, steps.batch * steps.time,
                         static_cast<std::size_t>(x.size(2)) * size_of(x.dtype()), places_of_rows(steps, layout),
                         rows.raw());
  return rows;
}

Tensor unpacked(const Tensor& rows, const Steps& steps, Layout layout) {
  const Tensor dense = rows.detach().contiguous();
  const Shape shape = layout == Layout::batch_first ? Shape{steps.batch, steps.time, rows.size(1)}
                                                    : Shape{steps.time, steps.batch, rows.size(1)};
  if (lies_packed(steps, layout)) {
    return dense.reshape(shape);
  }
  Tensor x = Tensor::empty(shape, rows.dtype());
  kernels::gather_slices(dense.raw(), 1, steps.rows(), static_cast<std::size_t>(rows.size(1)) * size_of(rows.dtype()),
                         rows_of_places(steps, layout), x.raw());
  return x;
}

}  // namespace

Tensor Steps::sorting() const { return Tensor::from(order, {batch}); }

Tensor Steps::unsorting() const {
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return Tensor::from(inverse, {batch});
}

std::shared_ptr<const Steps> steps_of(std::int64_t batch, std::int64_t time, const Tensor& lengths) {
  check(batch >= 1 && time >= 1, "a recurrent network needs at least one sequence of one step, not {} of {}", batch,
        time);
  std::vector<std::int64_t> length(static_cast<std::size_t>(batch), time);
  if (lengths.defined()) {
    check(lengths.dtype() == DType::i64 && lengths.shape() == Shape{batch},
          "the lengths of {} sequences must be [{}] i64, not {} {}", batch, batch, lengths.shape(),
          name_of(lengths.dtype()));
    const Tensor dense = lengths.contiguous();
    std::ranges::copy(dense.span<std::int64_t>(), length.begin());
  }
  const auto wrong = std::ranges::find_if(length, [&](std::int64_t n) { return n < 1 || n > time; });
  check(wrong == length.end(), "the length of sequence {} is {}, which must lie in 1 … {}", wrong - length.begin(),
        wrong == length.end() ? 0 : *wrong, time);

  auto steps = std::make_shared<Steps>(Steps{.batch = batch, .time = time, .order = {}, .sizes = {}, .offsets = {0}});
  steps->order.resize(length.size());
  std::iota(steps->order.begin(), steps->order.end(), 0);
  const auto length_of = [&](std::int64_t b) { return length[static_cast<std::size_t>(b)]; };
  std::ranges::stable_sort(steps->order, std::ranges::greater(), length_of);
  std::int64_t size = batch;
  for (std::int64_t t = 0; t < length_of(steps->order.front()); ++t) {
    while (length_of(steps->order[static_cast<std::size_t>(size - 1)]) <= t) {
      --size;
    }
    steps->sizes.push_back(size);
    steps->offsets.push_back(steps->offsets.back() + size);
  }
  return steps;
}

Tensor pack(const Tensor& x, const std::shared_ptr<const Steps>& steps, Layout layout) {
  const bool batch_first = layout == Layout::batch_first;
  check(x.rank() == 3 && x.size(batch_first ? 0 : 1) == steps->batch && x.size(batch_first ? 1 : 0) == steps->time,
        "pack: {} sequences of {} steps cannot be {}", steps->batch, steps->time, x.shape());
  return autograd::record("pack", packed(x, *steps, layout), {&x}, [steps, layout, dx = Gradient(x)](const Tensor& dy) {
    dx.add(unpacked(dy, *steps, layout));
  });
}

Tensor unpack(const Tensor& rows, const std::shared_ptr<const Steps>& steps, Layout layout) {
  check(rows.rank() == 2 && rows.size(0) == steps->rows(), "unpack: {} rows of sequences cannot be {}", steps->rows(),
        rows.shape());
  return autograd::record(
      "unpack", unpacked(rows, *steps, layout), {&rows},
      [steps, layout, drows = Gradient(rows)](const Tensor& dy) { drows.add(packed(dy, *steps, layout)); });
}

}  // namespace vitrail::ops
