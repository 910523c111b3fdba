// The losses of batches beside those of their items alone.
#pragma once

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/train/task.h"

namespace vitrail::test {

// What a batch weighs, its loss, and the floating-point operations of its products but attention.
struct BatchCost {
  std::int64_t units = 0;
  double loss = 0;
  double flops = 0;
};

inline std::optional<BatchCost> cost_of_next(train::Task& task) {
  const std::optional<train::Drawn> drawn = task.next();
  if (!drawn) {
    return std::nullopt;
  }
  const Profile profile;
  nn::Pass pass{.training = true};
  autograd::Tape tape;
  BatchCost cost{drawn->units, static_cast<double>(task.loss(pass).item()), 0};
  for (const Profile::Event& event : profile.events()) {
    cost.flops += event.name.starts_with("attention") ? 0 : event.flops;
  }
  return cost;
}

// Expects that each batch of `together` has the mean loss of as many batches of `alone` as make up its units, and that
// its products cost as much as theirs: nothing else is multiplied.
inline void expect_sums(train::Task& together, train::Task& alone) {
  std::int64_t batches = 0;
  for (std::optional<BatchCost> batch; (batch = cost_of_next(together)); ++batches) {
    BatchCost sum;
    while (sum.units < batch->units) {
      const BatchCost one = cost_of_next(alone).value();
      sum.units += one.units;
      sum.loss += one.loss * static_cast<double>(one.units);
      sum.flops += one.flops;
    }
    EXPECT_EQ(sum.units, batch->units);
    EXPECT_NEAR(batch->loss * static_cast<double>(batch->units), sum.loss, 2e-6 * sum.loss);
    EXPECT_GT(batch->flops, 0);
    EXPECT_DOUBLE_EQ(batch->flops, sum.flops);
  }
  EXPECT_GT(batches, 1);
  EXPECT_FALSE(cost_of_next(alone).has_value());
}

}  // namespace vitrail::test
