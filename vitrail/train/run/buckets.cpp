#include "vitrail/train/run/buckets.h"

#include <algorithm>
#include <cstring>

#include "vitrail/dist/tree_sum.h"
#include "vitrail/kernels/parallel.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t first_bucket_bytes = 1 << 20;  // DistributedDataParallel's

}  // namespace

std::int64_t whole_lines(std::int64_t count) { return dist::lines_of(count) * dist::numbers_a_line; }

Buckets make_buckets(const nn::ParameterStore& parameters, std::int64_t bucket_bytes) {
  Buckets result;
  const std::vector<nn::Parameter>& all = parameters.all();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (!one->trainable || one->buffer) {
      continue;
    }
    const std::int64_t most = result.sizes.size() <= 1 ? std::min(first_bucket_bytes, bucket_bytes) : bucket_bytes;
    if (result.sizes.empty() || result.sizes.back() * static_cast<std::int64_t>(sizeof(float)) >= most) {
      result.sizes.push_back(0);
    }
    result.places.push_back({&*one, result.sizes.size() - 1, result.sizes.back()});
    result.sizes.back() += whole_lines(one->value.numel());
  }
  return result;
}

Owned owned_of(const Buckets& buckets, const Buckets::Place& place, int rank, int ranks) {
  const auto [first, last] = dist::part_of(buckets.sizes[place.bucket], rank, ranks);
  const std::int64_t count = place.parameter->value.numel();
  const std::int64_t begin = std::clamp<std::int64_t>(first - place.offset, 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(last - place.offset, 0, count);
  return begin < end ? Owned{begin, end, place.offset + begin - first} : Owned{};
}

void copy_numbers(const float* from, float* to, std::int64_t n) {
  kernels::parallel_for(n, 1 << 16, kernels::lines, [&](std::int64_t begin, std::int64_t end, int) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

}  // namespace vitrail::train
