/// \file
/// Flat buckets: how what belongs to the trainable parameters of a network lies when it travels between ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/nn/parameters.h"

namespace vitrail::train {

/// Where each trainable parameter lies in the buckets.
struct Buckets {
  struct Place {
    const nn::Parameter* parameter;
    std::size_t bucket;
    std::int64_t offset;  ///< of its first element, at the beginning of a cache line
  };
  std::vector<Place> places;        ///< in the reverse order of the parameters, which is about that of backward()
  std::vector<std::int64_t> sizes;  ///< of the buckets, in whole cache lines
};

/// `bucket_bytes` is about the size of a bucket in f32; the first is smaller, as PyTorch's DistributedDataParallel has
/// it. The store must outlive the result.
Buckets make_buckets(const nn::ParameterStore& parameters, std::int64_t bucket_bytes);

/// `count` numbers and those that fill up their last cache line.
std::int64_t whole_lines(std::int64_t count);

/// The elements [begin, end) of a parameter, as a flat vector, that a rank owns.
struct Owned {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t at = 0;  ///< where they begin in the rank's part of the bucket
};
/// The elements of the parameter of a place which lie in the part of its bucket that belongs to a rank
/// (dist::part_of()).
Owned owned_of(const Buckets& buckets, const Buckets::Place& place, int rank, int ranks);

/// Copies n numbers, on all threads if there are many.
void copy_numbers(const float* from, float* to, std::int64_t n);

}  // namespace vitrail::train
