/// \file
/// Activation checkpointing of blocks.
#pragma once

#include <memory>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Runs block(x, pass). If the pass asks for checkpoints, the intermediate results are not kept, and backward computes
/// them again (autograd::checkpoint); `block` is kept until then. A block that takes its input by value may overwrite
/// it if that was moved in.
template <class Block>
Tensor run_block(Block block, Tensor x, Pass& pass) {
  if (!pass.checkpoint) {
    return block(std::move(x), pass);
  }
  // Both runs of the block must draw the same random numbers, so each begins the same stream anew.
  Pass start = pass;
  const Philox draws = pass.random.next();
  start.random = RandomStream(mix(draws.seed(), draws.stream()));
  return autograd::checkpoint(
      [block = std::move(block), start, runs = std::make_shared<int>(0)](const Tensor& input) {
        Pass own = start;
        own.again = (*runs)++ > 0;
        return block(input, own);
      },
      x);
}

}  // namespace vitrail::nn
