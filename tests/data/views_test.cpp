#include "vitrail/data/views.h"

#include <set>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/images.h"

namespace vitrail::data {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ten images made on demand.
class Ten final : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  io::Image image(std::int64_t index) const override {
    check(!broken.contains(index), "{}: the image is broken", name(index));
    return test::noise_image(12, 9, static_cast<std::uint64_t>(index));
  }
  std::int64_t label(std::int64_t) const override { return unlabeled; }
  std::string name(std::int64_t index) const override { return std::to_string(index); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::set<std::int64_t> broken;

 private:
  std::vector<std::string> classes_;
};

Transform transform_to(std::int64_t side, double blur = 0) {
  ImageConfig config;
  config.height = config.width = side;
  AugmentOptions augment;
  augment.blur_prob = blur;
  return train_transform(config, augment);
}

LoaderOptions of_three() {
  LoaderOptions options;
  options.batch_size = 3;
  options.shuffle = options.drop_last = true;
  options.seed = 5;
  return options;
}

// Two views of 8 by 8 pixels, then three of 4 by 4.
std::vector<Transform> five_views() {
  return {transform_to(8), transform_to(8, 1), transform_to(4), transform_to(4), transform_to(4)};
}

TEST(Views, AreMadeByATransformEach) {
  const Ten images;
  const auto loader = view_loader(images, five_views(), of_three());
  loader->start_epoch(2);
  ViewBatch batch;
  ASSERT_TRUE(loader->next(batch));
  ASSERT_EQ(batch.sizes.size(), 2U);
  EXPECT_EQ(batch.sizes[0].shape().str(), Shape({2, 3, 3, 8, 8}).str());
  EXPECT_EQ(batch.sizes[1].shape().str(), Shape({3, 3, 3, 4, 4}).str());
  EXPECT_EQ(batch.views(), 5);
  EXPECT_EQ(batch.images(), 3);
  EXPECT_EQ(batch.epoch, 2);
  EXPECT_EQ(batch.all_views(1).shape().str(), Shape({9, 3, 4, 4}).str());
  std::set<std::vector<float>> all;
  for (std::int64_t v = 0; v < 5; ++v) {
    const Transform transform = five_views()[static_cast<std::size_t>(v)];
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::int64_t index = batch.indices[static_cast<std::size_t>(i)];
      const Tensor alone =
          transform(images.image(index), mix(mix(5, hash("views")), static_cast<std::uint64_t>(v)), 2, index);
      EXPECT_EQ(batch.view(v).select(0, i).values(), alone.values()) << "view " << v << " of image " << index;
      all.insert(alone.values());
    }
  }
  EXPECT_EQ(all.size(), 15U) << "no view is like another";
}

TEST(Views, DoNotDependOnWorkersNorOnWhereAnEpochIsEntered) {
  const Ten images;
  const auto read = [&](int workers, std::int64_t first) {
    LoaderOptions options = of_three();
    options.workers = workers;
    const auto loader = view_loader(images, five_views(), options);
    loader->start_epoch(1, first);
    std::vector<std::vector<float>> values;
    for (ViewBatch batch; loader->next(batch);) {
      EXPECT_EQ(batch.number, first + std::ssize(values));
      values.push_back(batch.sizes[0].values());
    }
    return values;
  };
  const auto all = read(0, 0);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(read(3, 0), all);
  EXPECT_EQ(read(2, 1), std::vector(all.begin() + 1, all.end()));
}

TEST(Views, BrokenImagesLeaveNoGaps) {
  const Ten images;
  Ten damaged;
  damaged.broken = {1};
  LoaderOptions options = of_three();
  options.shuffle = false;
  options.skip_broken = true;
  const auto whole = view_loader(images, five_views(), options);
  const auto broken = view_loader(damaged, five_views(), options);
  ViewBatch expected;
  ViewBatch batch;
  ASSERT_TRUE(broken->next(batch));
  EXPECT_THAT(batch.indices, ElementsAre(0, 2));
  ASSERT_TRUE(whole->next(expected));
  for (std::int64_t v = 0; v < 5; ++v) {
    EXPECT_EQ(batch.view(v).select(0, 1).values(), expected.view(v).select(0, 2).values());
  }
  EXPECT_EQ(broken->broken().size(), 1U);
}

TEST(Views, AreReadFromAFileInOrder) {
  const test::TemporaryFolder folder;
  const Tensor large = test::random_tensor({2, 7, 3, 8, 8}, 1);  // for two epochs
  const Tensor small = test::random_tensor({7, 3, 4, 4}, 2);     // the same in each epoch
  io::save_safetensors(folder / "views.safetensors", {{"view0", large}, {"view1", small}});
  const auto loader = ready_views(folder / "views.safetensors", {{3, 8, 8}, {3, 4, 4}}, of_three());
  EXPECT_EQ(loader->batches_per_epoch(), 2);
  for (const std::int64_t epoch : {0, 1, 2}) {
    loader->start_epoch(epoch, 1);
    ViewBatch batch;
    ASSERT_TRUE(loader->next(batch));
    EXPECT_EQ(batch.view(0).values(), large.select(0, epoch % 2).narrow(0, 3, 3).values());
    EXPECT_EQ(batch.view(1).values(), small.narrow(0, 3, 3).values());
    EXPECT_FALSE(loader->next(batch));
  }
}

TEST(Views, SayWhatAFileLacks) {
  const test::TemporaryFolder folder;
  const auto refusal = [&](const io::NamedTensors& tensors) {
    io::save_safetensors(folder / "views.safetensors", tensors);
    return error_of([&] { ready_views(folder / "views.safetensors", {{3, 8, 8}, {3, 4, 4}}, of_three()); });
  };
  const Tensor large = Tensor::zeros({7, 3, 8, 8});
  EXPECT_THAT(refusal({{"view0", large}}), HasSubstr("no tensor 'view1', but the views are 2"));
  EXPECT_THAT(refusal({{"view0", large}, {"view1", large}}), HasSubstr("'view1' is f32 [1, 7, 3, 8, 8], expected"));
  EXPECT_THAT(refusal({{"view0", large}, {"view1", Tensor::zeros({6, 3, 4, 4})}}), HasSubstr("is of 7 images"));
  EXPECT_THAT(refusal({{"view0", large}, {"view1", Tensor::zeros({7, 3, 4, 4})}, {"view2", large}}),
              HasSubstr("3 tensors, but the views are 2"));
  EXPECT_THAT(refusal({{"view0", Tensor::zeros({2, 3, 8, 8})}, {"view1", Tensor::zeros({2, 3, 4, 4})}}),
              HasSubstr("2 images do not fill a batch of 3"));
}

}  // namespace
}  // namespace vitrail::data
