#include "vitrail/train/run/zero.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/dist/tree_sum.h"
#include "vitrail/train/run/buckets.h"

namespace vitrail::train {
namespace {

// A bucket of weights on its way: the own part to the others, theirs to here.
struct Travelling {
  std::size_t bucket = 0;
  Tensor weights = {};  // of the whole bucket
  std::vector<dist::Awaited> messages = {};
};

class Zero {
 public:
  Zero(const nn::ParameterStore& parameters, dist::Communicator& ranks, std::int64_t bucket_bytes);
  Owned owned(const nn::Parameter& parameter) const { return owned(place_of(parameter), ranks_.rank()); }
  void gather_weights();
  Tensor whole(const nn::Parameter& parameter, const Tensor& part);

 private:
  Owned owned(const Buckets::Place& place, int rank) const { return owned_of(layout_, place, rank, ranks_.size()); }
  const Buckets::Place& place_of(const nn::Parameter& parameter) const;
  Travelling send_off(std::size_t bucket);
  void take_in(Travelling& bucket);

  dist::Communicator& ranks_;
  Buckets layout_;
  std::vector<std::vector<std::size_t>> places_of_buckets_;  // indices into layout_.places
};

Zero::Zero(const nn::ParameterStore& parameters, dist::Communicator& ranks, std::int64_t bucket_bytes)
    : ranks_(ranks), layout_(make_buckets(parameters, bucket_bytes)), places_of_buckets_(layout_.sizes.size()) {
  for (std::size_t at = 0; at < layout_.places.size(); ++at) {
    places_of_buckets_[layout_.places[at].bucket].push_back(at);
  }
}

const Buckets::Place& Zero::place_of(const nn::Parameter& parameter) const {
  const auto found = std::ranges::find(layout_.places, &parameter, &Buckets::Place::parameter);
  check(found != layout_.places.end(), "'{}' is not trained, so no rank updates it", parameter.name);
  return *found;
}

// Sends the own part of a bucket, and begins to receive the others.
Travelling Zero::send_off(std::size_t bucket) {
  const std::int64_t size = layout_.sizes[bucket];
  Travelling result{bucket, Tensor::empty({size})};
  const auto [first, last] = dist::part_of(size, ranks_.rank(), ranks_.size());
  std::ranges::fill(dist::bytes_of(result.weights, first, last), std::byte{});  // what fills up the lines
  for (const std::size_t at : places_of_buckets_[bucket]) {
    const Buckets::Place& place = layout_.places[at];
    const Owned own = owned(place, ranks_.rank());
    copy_numbers(place.parameter->value.data<float>() + own.begin, result.weights.data<float>() + first + own.at,
                 own.end - own.begin);
  }
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == ranks_.rank()) {
      continue;
    }
    if (const auto [begin, end] = dist::part_of(size, other, ranks_.size()); begin < end) {
      result.messages.push_back(
          {ranks_.receive(dist::bytes_of(result.weights, begin, end), other, dist::weights_tag), other});
    }
    if (first < last) {
      result.messages.push_back(
          {ranks_.send(dist::bytes_of(result.weights, first, last), other, dist::weights_tag), other});
    }
  }
  return result;
}

// Two buckets travel at a time, so that not all weights lie in memory twice.
void Zero::gather_weights() {
  std::deque<Travelling> travelling;
  for (std::size_t bucket = 0; bucket < layout_.sizes.size(); ++bucket) {
    travelling.push_back(send_off(bucket));
    if (travelling.size() == 2) {
      take_in(travelling.front());
      travelling.pop_front();
    }
  }
  for (Travelling& last : travelling) {
    take_in(last);
  }
}

// Waits for the parts of the others, and makes them the weights.
void Zero::take_in(Travelling& bucket) {
  dist::wait(ranks_, bucket.messages, fmt::format("bucket {} of the weights", bucket.bucket + 1));
  for (const std::size_t at : places_of_buckets_[bucket.bucket]) {
    const Buckets::Place& place = layout_.places[at];
    const Owned own = owned(place, ranks_.rank());
    const float* from = bucket.weights.data<float>() + place.offset;
    float* to = place.parameter->value.data<float>();
    copy_numbers(from, to, own.begin);
    copy_numbers(from + own.end, to + own.end, place.parameter->value.numel() - own.end);
    place.parameter->value.touch();
  }
}

Tensor Zero::whole(const nn::Parameter& parameter, const Tensor& part) {
  const Buckets::Place& place = place_of(parameter);
  std::vector<dist::Awaited> messages;
  Tensor result;
  if (ranks_.rank() == 0) {
    result = Tensor::empty(parameter.value.shape());
    const Owned own = owned(place, 0);
    copy_numbers(part.data<float>(), result.data<float>() + own.begin, own.end - own.begin);
    for (int other = 1; other < ranks_.size(); ++other) {
      if (const Owned there = owned(place, other); there.begin < there.end) {
        messages.push_back(
            {ranks_.receive(dist::bytes_of(result, there.begin, there.end), other, dist::moments_tag), other});
      }
    }
  } else if (part.numel() > 0) {
    messages.push_back({ranks_.send(dist::bytes_of(part, 0, part.numel()), 0, dist::moments_tag), 0});
  }
  dist::wait(ranks_, messages, fmt::format("the optimizer's state of '{}'", parameter.name));
  return result;
}

}  // namespace

optim::Sharding zero_sharding(const nn::ParameterStore& parameters, dist::Communicator& ranks,
                              std::int64_t bucket_bytes) {
  const auto zero = std::make_shared<Zero>(parameters, ranks, bucket_bytes);
  optim::Sharding result;
  result.owned = [zero](const nn::Parameter& parameter) {
    const Owned own = zero->owned(parameter);
    return std::pair{own.begin, own.end};
  };
  result.gather_weights = [zero] { zero->gather_weights(); };
  result.whole = [zero](const nn::Parameter& parameter, const Tensor& part) { return zero->whole(parameter, part); };
  return result;
}

double zero_state_bytes(int stage, int ranks, std::int64_t moments) {
  constexpr double number = sizeof(float);
  const double shared = 1.0 / ranks;
  return number * (1 + (stage >= 2 ? shared : 1) + static_cast<double>(moments) * (stage >= 1 ? shared : 1));
}

}  // namespace vitrail::train
