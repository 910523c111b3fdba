#include "vitrail/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/images.h"

namespace vitrail::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Images made on demand; some broken, all as slow as wanted.
class MadeUp final : public Dataset {
 public:
  explicit MadeUp(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  io::Image image(std::int64_t index) const override {
    ++decoded;
    std::this_thread::sleep_for(delay);
    check(!broken.contains(index), "{}: the image is broken", name(index));
    return test::noise_image(6 + index % 3, 7, static_cast<std::uint64_t>(index));
  }
  std::int64_t label(std::int64_t index) const override { return index < labeled ? index % 4 : unlabeled; }
  std::string name(std::int64_t index) const override { return "made/" + std::to_string(index) + ".png"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void will_read(std::span<const std::int64_t> indices) const override {
    const std::lock_guard lock(mutex_);
    announced.emplace_back(indices.begin(), indices.end());
  }

  mutable std::vector<std::vector<std::int64_t>> announced;
  std::int64_t labeled = 1 << 20;
  std::set<std::int64_t> broken;
  std::chrono::microseconds delay{0};
  mutable std::atomic<int> decoded = 0;

 private:
  std::int64_t size_;
  mutable std::mutex mutex_;
  std::vector<std::string> classes_ = {"a", "b", "c", "d"};
};

Transform small_transform() {
  ImageConfig config;
  config.height = config.width = 8;
  return train_transform(config, {});
}

struct Epoch {
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<std::vector<float>> x;
  std::vector<std::vector<float>> targets;
  bool operator==(const Epoch&) const = default;
};

Epoch read_epoch(Loader& loader) {
  Epoch epoch;
  Batch batch;
  while (loader.next(batch)) {
    EXPECT_EQ(batch.x.size(0), static_cast<std::int64_t>(batch.indices.size()));
    const auto labels = batch.labels.span<std::int64_t>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(labels[i], batch.indices[i] % 4);
    }
    epoch.indices.push_back(batch.indices);
    epoch.x.push_back(batch.x.values());
    epoch.targets.push_back(batch.targets.defined() ? batch.targets.values() : std::vector<float>{});
  }
  return epoch;
}

TEST(Loader, GivesTheSameBatchesWhateverTheNumberOfWorkers) {
  MadeUp dataset(75);
  dataset.broken = {3, 40, 41};
  LoaderOptions options;
  options.batch_size = 20;
  options.shuffle = true;
  options.seed = 9;
  options.skip_broken = true;
  options.mix.mixup = 0.8;
  options.mix.cutmix = 1;
  options.mix.mixup_prob = 0.8;
  options.num_classes = 4;
  options.label_smoothing = 0.1;
  std::vector<Epoch> expected;
  for (const int workers : {0, 1, 2, 5}) {
    options.workers = workers;
    options.cache = workers == 2 ? 0 : options.cache;
    Loader loader(dataset, small_transform(), options);
    std::vector<Epoch> epochs;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch);
      epochs.push_back(read_epoch(loader));
    }
    EXPECT_EQ(loader.broken().size(), 3U);
    if (expected.empty()) {
      expected = epochs;
      EXPECT_NE(epochs[0].indices, epochs[1].indices);
      EXPECT_NE(epochs[0].x, epochs[1].x);
    }
    EXPECT_TRUE(epochs == expected) << workers << " workers";
  }
}

TEST(Loader, GoesThroughTheImagesInOrderUnlessToldToShuffle) {
  const MadeUp dataset(10);
  LoaderOptions options;
  options.batch_size = 4;
  Loader loader(dataset, small_transform(), options);
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  EXPECT_THAT(read_epoch(loader).indices,
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9)));
  Batch batch;
  EXPECT_FALSE(loader.next(batch));  // the end stays the end
  loader.start_epoch(1, 2);
  EXPECT_THAT(read_epoch(loader).indices, ElementsAre(ElementsAre(8, 9)));

  options.drop_last = true;
  Loader dropping(dataset, small_transform(), options);
  EXPECT_EQ(dropping.batches_per_epoch(), 2);
  EXPECT_EQ(read_epoch(dropping).indices.size(), 2U);

  options.batch_size = 11;  // the only batch is not left out, full or not
  Loader one(dataset, small_transform(), options);
  EXPECT_EQ(one.batches_per_epoch(), 1);
  EXPECT_EQ(read_epoch(one).indices.at(0).size(), 10U);

  options.batch_size = 4;
  options.drop_last = false;
  options.shuffle = true;
  Loader shuffling(dataset, small_transform(), options);
  std::vector<std::int64_t> all;
  for (const auto& indices : read_epoch(shuffling).indices) {
    all.insert(all.end(), indices.begin(), indices.end());
  }
  EXPECT_NE(all[0] * 10 + all[1], 1);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.back(), 9);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

// The items of an epoch in their order.
std::vector<std::int64_t> order_in(const EpochPlan& plan, std::int64_t epoch) {
  std::vector<std::int64_t> order;
  for (const std::vector<Pick>& picks : plan(epoch)) {
    std::ranges::transform(picks, std::back_inserter(order), &Pick::index);
  }
  return order;
}

TEST(Plan, ShufflesBlocksOfNeighboursSeveralTogether) {
  constexpr std::int64_t size = 1000;
  constexpr std::int64_t block = 10;
  const EpochPlan plan =
      plan_batches({.size = size, .batch_size = 7, .shuffle = true, .shuffle_block = block, .seed = 3});
  const std::vector<std::int64_t> order = order_in(plan, 0);
  std::vector<std::int64_t> sorted = order;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> all(size);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  EXPECT_EQ(sorted, all);  // each item once
  EXPECT_EQ(order_in(plan, 0), order);
  EXPECT_NE(order_in(plan, 1), order);
  // The items of the first blocks together are of as many blocks, and not in the order of these.
  const std::size_t together = blocks_together * block;
  for (std::size_t first = 0; first < order.size(); first += together) {
    std::set<std::int64_t> blocks;
    for (std::size_t i = first; i < std::min(first + together, order.size()); ++i) {
      blocks.insert(order[i] / block);
    }
    EXPECT_LE(std::ssize(blocks), blocks_together) << "from " << first;
  }
  EXPECT_NE(order[0] / block, order[1] / block);

  std::vector<std::int64_t> uneven =
      order_in(plan_batches({.size = 1003, .batch_size = 7, .shuffle = true, .shuffle_block = block}), 0);
  std::ranges::sort(uneven);
  EXPECT_EQ(std::ssize(uneven), 1003);
  EXPECT_EQ(std::ranges::adjacent_find(uneven), uneven.end());
}

TEST(Plan, ShufflesAllItemsWhereABlockHasThem) {
  const PlanOptions whole = {.size = 50, .batch_size = 8, .shuffle = true, .seed = 3};
  PlanOptions blocks = whole;
  blocks.shuffle_block = 64;
  EXPECT_EQ(order_in(plan_batches(blocks), 2), order_in(plan_batches(whole), 2));
  blocks.shuffle = false;
  EXPECT_EQ(order_in(plan_batches(blocks), 2)[49], 49);
  blocks.shuffle_block = -1;
  EXPECT_THAT([&] { plan_batches(blocks); }, ::testing::ThrowsMessage<Error>(HasSubstr("(0: all), not -1")));
}

TEST(Loader, AnnouncesWhatItReadsSoon) {
  const MadeUp dataset(400);
  LoaderOptions options;
  options.batch_size = 10;
  options.shuffle = true;
  options.workers = 0;
  Loader loader(dataset, small_transform(), options);
  const Epoch whole = read_epoch(loader);
  EXPECT_EQ(dataset.announced, whole.indices);  // batch by batch

  dataset.announced.clear();
  const auto fill = [](const Loader::Sample&, float* out) { *out = 0; };
  Loader features(dataset, Shape({1}), fill, options);  // which reads no images
  read_epoch(features);
  EXPECT_TRUE(dataset.announced.empty());
  options.shuffle_block = std::int64_t{1} << 60;
  Loader all(dataset, small_transform(), options);
  EXPECT_EQ(read_epoch(all).indices, whole.indices);
  EXPECT_EQ(dataset.announced.size(), 1U);

  dataset.announced.clear();
  options.shuffle_block = 5;  // 80 images are shuffled together
  Loader blocks(dataset, small_transform(), options);
  Batch batch;
  blocks.start_epoch(0, 3, [](std::int64_t number) { return number % 2 == 1; });
  std::vector<std::vector<std::int64_t>> read;
  while (blocks.next(batch)) {
    read.push_back(batch.indices);
  }
  // Of batches 3 to 7, then of 8 to 15 …, those that are wanted.
  ASSERT_EQ(dataset.announced.size(), 5U);
  ASSERT_EQ(read.size(), 19U);
  EXPECT_EQ(dataset.announced[0].size(), 30U);
  EXPECT_EQ(dataset.announced[1].size(), 40U);
  std::vector<std::int64_t> announced;
  std::vector<std::int64_t> given;
  for (const std::vector<std::int64_t>& items : dataset.announced) {
    announced.insert(announced.end(), items.begin(), items.end());
  }
  for (const std::vector<std::int64_t>& items : read) {
    given.insert(given.end(), items.begin(), items.end());
  }
  EXPECT_EQ(announced, given);
}

TEST(Loader, ResumesInTheMiddleOfAnEpochWithTheSameBatches) {
  const MadeUp dataset(50);
  LoaderOptions options;
  options.batch_size = 8;
  options.shuffle = true;
  options.workers = 2;
  Loader loader(dataset, small_transform(), options);
  loader.start_epoch(4);
  const Epoch whole = read_epoch(loader);
  Batch batch;
  loader.start_epoch(7);
  loader.next(batch);  // others are on their way when the epoch changes
  loader.start_epoch(4, 3);
  const Epoch rest = read_epoch(loader);
  EXPECT_TRUE(std::equal(rest.x.begin(), rest.x.end(), whole.x.begin() + 3, whole.x.end()));
}

TEST(Loader, StopsAtABrokenImageInItsTurnAndNamesIt) {
  MadeUp dataset(20);
  dataset.broken = {9, 5};
  for (const int workers : {0, 3}) {
    LoaderOptions options;
    options.batch_size = 4;
    options.workers = workers;
    Loader loader(dataset, small_transform(), options);
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
    try {
      loader.next(batch);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("made/5.png: the image is broken"));
    }
    loader.start_epoch(1);
    EXPECT_TRUE(loader.next(batch));
  }
}

TEST(Loader, LeavesBrokenImagesOutAndCountsThemOnce) {
  MadeUp dataset(12);
  dataset.broken = {0, 2, 4, 5, 6, 7};
  LoaderOptions options;
  options.batch_size = 4;
  options.skip_broken = true;
  Loader loader(dataset, small_transform(), options);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    EXPECT_THAT(read_epoch(loader).indices, ElementsAre(ElementsAre(1, 3), ElementsAre(8, 9, 10, 11)));
  }
  EXPECT_EQ(loader.broken().size(), 6U);
  EXPECT_THAT(loader.broken()[1], HasSubstr("made/2.png"));
}

TEST(Loader, KeepsSmallDataSetsDecoded) {
  const MadeUp dataset(30);
  LoaderOptions options;
  options.workers = 2;
  options.batch_size = 7;
  Loader loader(dataset, small_transform(), options);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    read_epoch(loader);
  }
  EXPECT_EQ(dataset.decoded, 30);

  dataset.decoded = 0;
  options.cache = 1000;  // fewer than 30 images of 6 x 7 x 3 bytes
  Loader forgetful(dataset, small_transform(), options);
  read_epoch(forgetful);
  forgetful.start_epoch(1);
  read_epoch(forgetful);
  EXPECT_EQ(dataset.decoded, 60);
}

TEST(Loader, WorksAheadOnlyAsFarAsMemoryAllows) {
  const MadeUp dataset(64);
  LoaderOptions options;
  options.batch_size = 4;
  options.workers = 1;
  options.cache = 0;
  options.memory = 2 * 4 * 3 * 8 * 8 * sizeof(float);  // two batches
  Loader loader(dataset, small_transform(), options);
  Batch batch;
  loader.next(batch);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(dataset.decoded, 12);  // the one that was taken and two that wait
}

TEST(Loader, RepeatsImagesInARowAsTimmsRepeatAugSamplerDoes) {
  const auto all = [](std::int64_t size, double repeats) {
    const MadeUp dataset(size);
    LoaderOptions options;
    options.batch_size = size;
    options.aug_repeats = repeats;
    Loader loader(dataset, small_transform(), options);
    Batch batch;
    loader.next(batch);
    return batch;
  };
  // What RepeatAugSampler(range(n), 1, 0, shuffle=False, num_repeats=r) gives.
  EXPECT_THAT(all(5, 3).indices, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(all(5, 1.5).indices, ElementsAre(0, 0, 1, 2, 2));
  EXPECT_THAT(all(7, 2.5).indices, ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_THAT(all(6, 1).indices, ElementsAre(0, 1, 2, 3, 4, 5));
  const Batch large = all(600, 3);
  EXPECT_EQ(large.indices.size(), 512U);
  EXPECT_EQ(large.indices.back(), 170);
  // Each time the image is augmented anew; the first time as without repeats.
  const Batch batch = all(5, 3);
  const auto values = [](const Batch& b, std::int64_t i) { return b.x.select(0, i).values(); };
  EXPECT_NE(values(batch, 0), values(batch, 1));
  EXPECT_NE(values(batch, 1), values(batch, 2));
  EXPECT_EQ(values(batch, 0), values(all(5, 0), 0));
  EXPECT_EQ(values(batch, 3), values(all(5, 0), 1));
  LoaderOptions options;
  options.aug_repeats = 0.5;
  const MadeUp dataset(5);
  EXPECT_THROW(Loader(dataset, small_transform(), options), Error);
}

TEST(Loader, ErasesOnlyInTheSecondHalfIfTheBatchIsSplit) {
  const MadeUp dataset(7);
  ImageConfig config;
  config.height = config.width = 16;
  AugmentOptions augment;
  augment.reprob = 1;
  augment.remode = "const";
  LoaderOptions options;
  options.batch_size = 7;
  options.resplit = true;
  Loader loader(dataset, train_transform(config, augment), options);
  Batch batch;
  loader.next(batch);
  for (std::int64_t i = 0; i < 7; ++i) {
    const std::vector<float> values = batch.x.select(0, i).values();
    EXPECT_EQ(std::ranges::count(values, 0.0F) > 0, i >= 3) << i;
  }
}

TEST(Loader, KeepsHalfOfABatchThatIsMixedWithTheOtherHalf) {
  const MadeUp dataset(7);
  LoaderOptions options;
  options.batch_size = 7;
  options.mix.mixup = 1;
  options.mix.mode = MixMode::half;
  options.num_classes = 4;
  Loader loader(dataset, small_transform(), options);
  Batch batch;
  loader.next(batch);
  EXPECT_EQ(batch.x.size(0), 4);
  EXPECT_EQ(batch.targets.size(0), 4);
  EXPECT_THAT(batch.indices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(batch.labels.size(0), 4);
  // Image 0 is of class 0, its partner 6 of class 2.
  const std::vector<float> first = batch.targets.select(0, 0).values();
  EXPECT_NEAR(first[0] + first[2], 1, 1e-6);
  EXPECT_GT(first[2], 0);
}

TEST(Loader, CountsTheTimeThatItsCallerWaits) {
  MadeUp dataset(8);
  dataset.delay = std::chrono::milliseconds(5);
  LoaderOptions options;
  options.batch_size = 8;
  Loader loader(dataset, small_transform(), options);
  read_epoch(loader);
  EXPECT_GE(loader.seconds_waited(), 0.03);
}

TEST(Loader, CanBeDestroyedAtAnyMoment) {
  MadeUp dataset(400);
  dataset.delay = std::chrono::microseconds(100);
  for (int batches = 0; batches < 6; ++batches) {
    LoaderOptions options;
    options.batch_size = 10;
    options.workers = 1 + batches % 3;
    Loader loader(dataset, small_transform(), options);
    Batch batch;
    for (int i = 0; i < batches; ++i) {
      loader.next(batch);
    }
  }
}

TEST(Loader, RefusesOptionsThatMakeNoSense) {
  const MadeUp dataset(4);
  LoaderOptions options;
  options.batch_size = 0;
  EXPECT_THROW(Loader(dataset, small_transform(), options), Error);
  options.batch_size = 2;
  options.workers = -1;
  EXPECT_THROW(Loader(dataset, small_transform(), options), Error);
  options.workers = 1;
  options.mix.mixup = 1;
  EXPECT_THROW(Loader(dataset, small_transform(), options), Error);
}

TEST(Loader, StopsMixingFromTheGivenEpochOn) {
  const MadeUp dataset(8);
  LoaderOptions options;
  options.batch_size = 8;
  options.mix.mixup = 1;
  options.mix.mixup_off_epoch = 1;
  options.num_classes = 4;
  Loader loader(dataset, small_transform(), options);
  Batch batch;
  loader.next(batch);
  EXPECT_LT(batch.targets.values()[0], 1);
  loader.start_epoch(1);
  loader.next(batch);
  EXPECT_EQ(batch.targets.values()[0], 1);  // image 0 is of class 0
}

TEST(Loader, PutsImagesWithoutLabelsLastInEachBatch) {
  MadeUp dataset(20);
  dataset.labeled = 11;
  dataset.broken = {2, 15};
  LoaderOptions options;
  options.batch_size = 5;
  options.shuffle = options.skip_broken = true;
  options.num_classes = 4;
  std::map<std::int64_t, std::vector<float>> plain;  // image → its pixels
  for (const bool mixed : {false, true}) {
    options.mix.cutmix = mixed ? 1 : 0;
    Loader loader(dataset, small_transform(), options);
    std::int64_t labeled = 0;
    std::int64_t seen = 0;
    for (Batch batch; loader.next(batch);) {
      const auto count = static_cast<std::size_t>(batch.labels.size(0));
      for (std::size_t i = 0; i < batch.indices.size(); ++i) {
        const std::int64_t index = batch.indices[i];
        EXPECT_EQ(index < dataset.labeled, i < count);
        if (i < count) {
          EXPECT_EQ(batch.labels.data<std::int64_t>()[i], index % 4);
        }
        const std::vector<float> pixels = batch.x.select(0, static_cast<std::int64_t>(i)).values();
        if (!mixed) {
          plain[index] = pixels;
          continue;
        }
        // Each pixel is the image's own or that of its partner, which has a label if the image has one.
        const std::size_t partner = i < count ? count - 1 - i : count + batch.indices.size() - 1 - i;
        for (std::size_t p = 0; p < pixels.size(); ++p) {
          EXPECT_TRUE(pixels[p] == plain[index][p] || pixels[p] == plain[batch.indices[partner]][p]);
        }
      }
      EXPECT_EQ(batch.targets.defined(), mixed);
      if (mixed) {
        EXPECT_EQ(batch.targets.shape(), (Shape{batch.labels.size(0), 4}));
      }
      labeled += batch.labels.size(0);
      seen += batch.x.size(0);
    }
    EXPECT_EQ(labeled, 10);
    EXPECT_EQ(seen, 18);
  }
}

}  // namespace
}  // namespace vitrail::data
