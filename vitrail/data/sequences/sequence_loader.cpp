#include "vitrail/data/sequences/sequence_loader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "vitrail/data/image_cache.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

class SequenceSamples final : public Samples<SequenceBatch> {
 public:
  SequenceSamples(const Sequences& data, std::vector<std::int64_t> numbers, Transform transform,
                  const SequenceLoaderOptions& options)
      : data_(data),
        numbers_(std::move(numbers)),
        transform_(std::move(transform)),
        options_(options),
        cache_(std::make_unique<ImageCache>(*data.images, options.cache)) {}

  std::string name(std::int64_t index) const override { return sequence(index).name; }

  SequenceBatch begin(const BatchPlan& plan) const override {
    SequenceBatch batch;
    batch.number = plan.number;
    std::vector<std::int64_t> lengths;
    for (const Pick& pick : plan.picks) {
      const std::vector<std::int64_t> places = places_of(plan.epoch, pick.index);
      lengths.push_back(std::ssize(places));
      batch.places.insert(batch.places.end(), places.begin(), places.end());
      for (const std::int64_t place : places) {
        batch.frames.push_back(sequence(pick.index).frames[static_cast<std::size_t>(place)]);
      }
    }
    batch.lengths = Tensor::from(lengths, {std::ssize(lengths)});
    batch.x = Tensor::empty(transform_.shape().inserted(0, std::ssize(batch.frames)));
    return batch;
  }

  void fill(SequenceBatch& batch, const BatchPlan& plan, std::int64_t i) const override {
    const auto [first, count] = span_of(batch, i);
    const std::int64_t number = number_of(plan.picks[static_cast<std::size_t>(i)].index);
    const std::int64_t size = transform_.shape().numel();
    for (std::int64_t t = first; t < first + count; ++t) {
      cache_->with(batch.frames[static_cast<std::size_t>(t)], [&](const io::Image& image) {
        transform_.apply(image, options_.seed, plan.epoch, number, batch.x.data<float>() + t * size);
      });
    }
  }

  void finish(SequenceBatch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    const std::int64_t size = transform_.shape().numel();
    float* x = batch.x.data<float>();
    std::vector<std::int64_t> lengths;
    std::int64_t kept = 0;
    for (const std::int64_t i : whole) {
      const auto [first, count] = span_of(batch, i);
      if (kept != first) {
        std::copy_n(x + first * size, count * size, x + kept * size);
        std::copy_n(batch.frames.begin() + first, count, batch.frames.begin() + kept);
        std::copy_n(batch.places.begin() + first, count, batch.places.begin() + kept);
      }
      kept += count;
      lengths.push_back(count);
      batch.sequences.push_back(number_of(plan.picks[static_cast<std::size_t>(i)].index));
    }
    batch.x = batch.x.narrow(0, 0, kept);
    batch.frames.resize(static_cast<std::size_t>(kept));
    batch.places.resize(static_cast<std::size_t>(kept));
    batch.lengths = Tensor::from(lengths, {std::ssize(lengths)});
  }

 private:
  struct Span {
    std::int64_t first;
    std::int64_t count;
  };

  std::int64_t number_of(std::int64_t index) const { return numbers_[static_cast<std::size_t>(index)]; }
  const Sequence& sequence(std::int64_t index) const {
    return data_.sequences[static_cast<std::size_t>(number_of(index))];
  }

  // The rows of sample i of a batch whose gaps are not closed.
  static Span span_of(const SequenceBatch& batch, std::int64_t i) {
    const auto* lengths = batch.lengths.data<std::int64_t>();
    std::int64_t first = 0;
    for (std::int64_t before = 0; before < i; ++before) {
      first += lengths[before];
    }
    return {first, lengths[i]};
  }

  // The places in its sequence of the frames that sample `index` has in this epoch.
  std::vector<std::int64_t> places_of(std::int64_t epoch, std::int64_t index) const {
    const auto all = std::ssize(sequence(index).frames);
    const std::int64_t count = options_.max_frames > 0 ? std::min(all, options_.max_frames) : all;
    const std::uint64_t seed = mix(mix(options_.seed, hash("frames")), static_cast<std::uint64_t>(epoch));
    Draws draws(Philox(seed, static_cast<std::uint64_t>(number_of(index))));
    const std::int64_t start = draws.integer(0, options_.circular ? all : all - count + 1);
    std::vector<std::int64_t> places;
    for (std::int64_t t = 0; t < count; ++t) {
      places.push_back((start + t) % all);
    }
    return places;
  }

  const Sequences& data_;
  const std::vector<std::int64_t> numbers_;
  const Transform transform_;
  const SequenceLoaderOptions options_;
  const std::unique_ptr<ImageCache> cache_;
};

PrefetchOptions prefetch_sequences(const Sequences& data, const std::vector<std::int64_t>& numbers, const Shape& shape,
                                   const SequenceLoaderOptions& options) {
  std::int64_t longest = 1;
  for (const std::int64_t number : numbers) {
    longest = std::max<std::int64_t>(longest, std::ssize(data.sequences[static_cast<std::size_t>(number)].frames));
  }
  const std::int64_t frames = options.max_frames > 0 ? std::min(longest, options.max_frames) : longest;
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * shape.numel() * frames * options.batch_size;
  const std::int64_t useful = options.workers <= 0 ? 1 : 2 * std::int64_t{options.workers} + 2;
  return {.workers = options.workers,
          .most_ahead = std::clamp(static_cast<std::int64_t>(options.memory) / bytes, std::int64_t{1}, useful),
          .skip_broken = options.skip_broken,
          .items = "sequences"};
}

}  // namespace

SequenceLoader::SequenceLoader(const Sequences& data, std::vector<std::int64_t> numbers, const Transform& transform,
                               const SequenceLoaderOptions& options)
    : Prefetch(std::make_shared<SequenceSamples>(data, numbers, transform, options),
               plan_batches({.size = std::ssize(numbers),
                             .batch_size = options.batch_size,
                             .shuffle = options.shuffle,
                             .shuffle_block = options.shuffle_block,
                             .drop_last = options.drop_last,
                             .seed = options.seed}),
               prefetch_sequences(data, numbers, transform.shape(), options)) {
  check(!numbers.empty(), "there are no sequences to load");
}

}  // namespace vitrail::data
