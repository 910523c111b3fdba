#include "vitrail/data/loader.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "vitrail/data/image_cache.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

// The batches of plan_batches(), in each of which images without labels come after the others.
EpochPlan labeled_first(const Dataset& dataset, const LoaderOptions& options) {
  const EpochPlan plan = plan_batches(plan_options(dataset.size(), options));
  return [plan, &dataset](std::int64_t epoch) {
    std::vector<std::vector<Pick>> batches = plan(epoch);
    for (std::vector<Pick>& picks : batches) {
      std::stable_partition(picks.begin(), picks.end(),
                            [&](const Pick& pick) { return dataset.label(pick.index) != unlabeled; });
    }
    return batches;
  };
}

// Samples of one shape, stacked in one tensor, with their labels.
class DenseSamples : public Samples<Batch> {
 public:
  DenseSamples(const Dataset& dataset, const Shape& shape, Loader::Fill fill, const LoaderOptions& options)
      : dataset_(dataset), shape_(shape), fill_(std::move(fill)), options_(options) {}

  std::string name(std::int64_t index) const override { return dataset_.name(index); }

  Batch begin(const BatchPlan& plan) const override {
    Batch batch;
    batch.x = Tensor::empty(shape_.inserted(0, std::ssize(plan.picks)));
    batch.number = plan.number;
    batch.epoch = plan.epoch;
    return batch;
  }

  void fill(Batch& batch, const BatchPlan& plan, std::int64_t i) const override {
    const auto [index, repeat] = plan.picks[static_cast<std::size_t>(i)];
    // An image that comes again is another sample.
    const std::int64_t draw = index + repeat * dataset_.size();
    const bool erase = !options_.resplit || i >= batch.x.size(0) / 2;
    fill_({plan.epoch, index, draw, erase}, batch.x.data<float>() + i * shape_.numel());
  }

  void finish(Batch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    close_gaps(batch, plan, whole);
    const auto end =
        std::ranges::find_if(batch.indices, [&](std::int64_t index) { return dataset_.label(index) == unlabeled; });
    batch.labels = Tensor::empty({end - batch.indices.begin()}, DType::i64);
    std::transform(batch.indices.begin(), end, batch.labels.data<std::int64_t>(),
                   [&](std::int64_t index) { return dataset_.label(index); });
    if (options_.mix.enabled()) {
      mix_batch(batch, plan.epoch);
    }
  }

 private:
  void close_gaps(Batch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const;
  void mix_batch(Batch& batch, std::int64_t epoch) const;

  const Dataset& dataset_;
  const Shape shape_;  // of a sample
  const Loader::Fill fill_;
  const LoaderOptions options_;
};

void DenseSamples::close_gaps(Batch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const {
  const std::int64_t size = shape_.numel();
  float* data = batch.x.data<float>();
  std::int64_t kept = 0;
  for (const std::int64_t from : whole) {
    if (kept != from) {
      std::copy_n(data + from * size, size, data + kept * size);
    }
    batch.indices.push_back(plan.picks[static_cast<std::size_t>(from)].index);
    ++kept;
  }
  batch.x = batch.x.narrow(0, 0, kept);
}

void DenseSamples::mix_batch(Batch& batch, std::int64_t epoch) const {
  const std::int64_t labeled = batch.labels.size(0);
  std::vector<Mixture> mixtures(static_cast<std::size_t>(labeled));
  std::vector<Mixture> others(batch.indices.size() - mixtures.size());
  if (options_.mix.mixup_off_epoch == 0 || epoch < options_.mix.mixup_off_epoch) {
    const std::uint64_t seed = mix(mix(options_.seed, hash("mix")), static_cast<std::uint64_t>(epoch));
    Draws draws(Philox(seed, static_cast<std::uint64_t>(batch.number)));
    mixtures = draw_mixtures(options_.mix, labeled, batch.x.size(2), batch.x.size(3), draws);
    others = draw_mixtures(options_.mix, std::ssize(others), batch.x.size(2), batch.x.size(3), draws);
  }
  // Images with labels are mixed with one another, and so are those without.
  mix_images(batch.x.narrow(0, 0, labeled), mixtures);
  mix_images(batch.x.narrow(0, labeled, std::ssize(others)), others);
  batch.targets =
      mix_labels(batch.labels.span<std::int64_t>(), options_.num_classes, mixtures, options_.label_smoothing);
  if (options_.mix.mode == MixMode::half) {
    const std::int64_t kept = (batch.x.size(0) + 1) / 2;
    batch.x = batch.x.narrow(0, 0, kept);
    batch.labels = batch.labels.narrow(0, 0, kept);
    batch.targets = batch.targets.narrow(0, 0, kept);
    batch.indices.resize(static_cast<std::size_t>(kept));
  }
}

// Fills in images that are decoded, now or earlier, and transformed.
Loader::Fill from_images(const Dataset& dataset, const Transform& transform, const LoaderOptions& options) {
  const auto cache = std::make_shared<ImageCache>(dataset, options.cache);
  return [cache, transform, seed = options.seed](const Loader::Sample& sample, float* out) {
    cache->with(sample.index, [&](const io::Image& image) {
      transform.apply(image, seed, sample.epoch, sample.draw, out, sample.erase);
    });
  };
}

// Throws Error if MixUp and CutMix are not possible with these samples.
const LoaderOptions& checked(const LoaderOptions& options, const Shape& shape) {
  check(!options.mix.enabled() || options.num_classes > 0, "MixUp and CutMix need the number of classes");
  check(!options.mix.enabled() || shape.rank() == 3, "MixUp and CutMix are for images, not for samples {}", shape);
  return options;
}

}  // namespace

PlanOptions plan_options(std::int64_t size, const LoaderOptions& options) {
  return {.size = size,
          .batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .shuffle_block = options.shuffle_block,
          .drop_last = options.drop_last,
          .repeats = options.aug_repeats,
          .seed = options.seed};
}

PrefetchOptions prefetch_options(std::int64_t sample_floats, const LoaderOptions& options) {
  const auto batch_bytes = static_cast<std::int64_t>(sizeof(float)) * sample_floats * options.batch_size;
  // Batches farther ahead do not even out any more waiting; they only take memory.
  const std::int64_t useful = options.workers <= 0 ? 1 : 2 * std::int64_t{options.workers} + 2;
  const std::int64_t affordable = static_cast<std::int64_t>(options.memory) / std::max(batch_bytes, std::int64_t{1});
  return {.workers = options.workers,
          .most_ahead = std::clamp(affordable, std::int64_t{1}, useful),
          .skip_broken = options.skip_broken,
          .items = "images"};
}

PrefetchOptions prefetch_images(const Dataset& images, std::int64_t sample_floats, const LoaderOptions& options) {
  PrefetchOptions result = prefetch_options(sample_floats, options);
  result.announce = [&images](std::span<const std::int64_t> items) { images.will_read(items); };
  constexpr std::int64_t most = 4096;  // images that are announced at once
  const std::int64_t block = options.shuffle ? std::clamp<std::int64_t>(options.shuffle_block, 0, most) : 0;
  result.announced =
      std::max(std::min({block * blocks_together, images.size(), most}) / std::max(options.batch_size, std::int64_t{1}),
               std::int64_t{1});
  return result;
}

Loader::Loader(const Dataset& dataset, const Transform& transform, const LoaderOptions& options)
    : Prefetch(std::make_shared<DenseSamples>(dataset, transform.shape(), from_images(dataset, transform, options),
                                              checked(options, transform.shape())),
               labeled_first(dataset, options), prefetch_images(dataset, transform.shape().numel(), options)) {}

Loader::Loader(const Dataset& dataset, const Shape& shape, Fill fill, const LoaderOptions& options)
    : Prefetch(std::make_shared<DenseSamples>(dataset, shape, std::move(fill), checked(options, shape)),
               labeled_first(dataset, options), prefetch_options(shape.numel(), options)) {}

}  // namespace vitrail::data
