#include "vitrail/ops/recurrent/recurrence.h"

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::test {
namespace {

using ops::Cell;
using ops::CellState;
using Inputs = std::vector<Tensor>;

constexpr std::int64_t hidden = 5;

// A step of the differences that is unlikely to meet a kink of the cell's relu.
double step_for(Cell cell) { return cell == Cell::nas ? 1e-3 : 1e-2; }

std::shared_ptr<const ops::Steps> three_sequences() {
  return ops::steps_of(3, 4, Tensor::from<std::int64_t>({2, 4, 1}, {3}));  // 7 rows
}

// All results as one number, so that every output has a gradient.
Tensor mixed(const ops::Recurrence& result) {
  const auto number = [](const Tensor& x) { return ops::sum(x * random_tensor(x.shape(), 8)); };
  const Tensor sum = number(result.output) + number(result.last.h);
  return result.last.c.defined() ? sum + number(result.last.c) : sum;
}

TEST(Recurrence, HasTheGradientsOfFiniteDifferences) {
  const auto steps = three_sequences();
  for (const Cell cell : {Cell::rnn_tanh, Cell::lstm, Cell::gru, Cell::nas}) {
    const auto traits = kernels::traits_of(cell);
    const std::int64_t gates = traits.gates * hidden;
    for (const bool reverse : {false, true}) {
      Inputs inputs = {random_tensor({7, gates}, 1), random_tensor({3, hidden}, 2),
                       random_tensor({gates, hidden}, 3, 0.5F), random_tensor({gates}, 4)};
      if (traits.memory) {
        inputs.push_back(random_tensor({3, hidden}, 5));
      }
      check_gradients(
          [&](const Inputs& in) {
            return mixed(ops::recurrence(cell, in[0], steps, {in[1], traits.memory ? in[4] : Tensor()},
                                         {in[2], in[3], {}}, reverse));
          },
          inputs, 4e-3, step_for(cell));
    }
  }
}

TEST(Recurrence, HasThemWithAProjection) {
  const auto steps = three_sequences();
  for (const Cell cell : {Cell::rnn_tanh, Cell::lstm, Cell::nas}) {
    const std::int64_t gates = kernels::traits_of(cell).gates * hidden;
    check_gradients(
        [&](const Inputs& in) {
          return mixed(ops::recurrence(cell, in[0], steps, {in[1], {}}, {in[2], {}, in[3]}));
        },
        {random_tensor({7, gates}, 1), random_tensor({3, 2}, 2), random_tensor({gates, 2}, 3, 0.5F),
         random_tensor({2, hidden}, 4)},
        4e-3, step_for(cell));
  }
}

TEST(Recurrence, HasThemWhereTheStateIsResetBeforeTheProduct) {
  const auto steps = three_sequences();
  for (const bool z_takes_new : {false, true}) {
    for (const bool z_of_tanh : {false, true}) {
      for (const bool with_z : {false, true}) {
        Inputs inputs = {random_tensor({7, hidden}, 1),
                         random_tensor({7, hidden}, 2),
                         random_tensor({7, hidden}, 3),
                         random_tensor({3, hidden}, 4),
                         random_tensor({hidden, hidden}, 5, 0.5F),
                         random_tensor({hidden, hidden}, 6, 0.5F)};
        if (with_z) {
          inputs.push_back(random_tensor({hidden, hidden}, 7, 0.5F));
        }
        check_gradients(
            [&](const Inputs& in) {
              return mixed(ops::reset_recurrence({in[0], in[1], in[2]}, steps, in[3],
                                                 {in[4], with_z ? in[6] : Tensor(), in[5]}, {z_takes_new, z_of_tanh},
                                                 z_of_tanh));
            },
            inputs, 4e-3);
      }
    }
  }
}

TEST(Recurrence, CarriesTheStateInF32) {
  // An update of h below the resolution of bf16 adds up over the steps.
  const std::int64_t time = 64;
  const auto steps = ops::steps_of(1, time);
  Tensor x = Tensor::zeros({time, 3});
  for (std::int64_t t = 0; t < time; ++t) {
    x.data<float>()[3 * t + 1] = 7;  // z = 0.99909
    x.data<float>()[3 * t + 2] = 8;  // n = 1
  }
  const auto last = [&](DType dtype) {
    return ops::recurrence(Cell::gru, ops::cast(x, dtype), steps, {Tensor::full({1, 1}, 0.5), {}},
                           {Tensor::zeros({3, 1}), {}, {}})
        .last.h.item();
  };
  EXPECT_NEAR(last(DType::bf16), last(DType::f32), 1e-3);
  EXPECT_GT(last(DType::bf16), 0.52F);
}

TEST(Recurrence, RefusesWhatDoesNotFit) {
  const auto steps = three_sequences();
  const auto error = [&](const Tensor& x, const CellState& state, const ops::CellWeights& weights, Cell cell) {
    return error_of([&] { ops::recurrence(cell, x, steps, state, weights); });
  };
  const Tensor x = random_tensor({7, 12});
  const Tensor weight = random_tensor({12, 3});
  EXPECT_EQ(error(random_tensor({6, 12}), {}, {weight, {}, {}}, Cell::lstm),
            "recurrence: x must be [7, 4 · hidden], not [6, 12]");
  EXPECT_EQ(error(random_tensor({7, 10}), {}, {weight, {}, {}}, Cell::lstm),
            "recurrence: x must be [7, 4 · hidden], not [7, 10]");
  EXPECT_EQ(error(x, {}, {random_tensor({12, 4}), {}, {}}, Cell::lstm),
            "recurrence: the weight of the state must be [12, 3] f32, not [12, 4] f32");
  EXPECT_EQ(error(x, {}, {weight, random_tensor({3}), {}}, Cell::lstm),
            "recurrence: the bias must be [12] f32, not [3] f32");
  EXPECT_EQ(error(x, {}, {weight, {}, random_tensor({2, 4})}, Cell::lstm),
            "recurrence: the projection must be [2, 3] f32, not [2, 4] f32");
  EXPECT_EQ(error(x, {random_tensor({2, 3}), {}}, {weight, {}, {}}, Cell::lstm),
            "recurrence: h before the first step must be [3, 3] f32, not [2, 3] f32");
  EXPECT_EQ(error(x, {{}, random_tensor({3, 2})}, {weight, {}, {}}, Cell::lstm),
            "recurrence: c before the first step must be [3, 3] f32, not [3, 2] f32");
  EXPECT_EQ(error(x, {{}, random_tensor({3, 4})}, {random_tensor({12, 4}), {}, {}}, Cell::gru),
            "recurrence: this cell has no memory c");
  const Tensor part = random_tensor({7, 3});
  const Tensor square = random_tensor({3, 3});
  EXPECT_EQ(error_of([&] {
              ops::reset_recurrence({part, random_tensor({7, 4}), part}, steps, {}, {square, square, square});
            }),
            "recurrence: the parts of x must all be [7, 3] f32, not [7, 4] f32");
}

}  // namespace
}  // namespace vitrail::test
