#include "vitrail/train/study/image_index.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::train {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An index of random features of length 1.
ImageIndex random_index(std::int64_t count, std::int64_t width) {
  Tensor x = test::random_tensor({count, width});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto row = x.select(0, i).span<float>();
    const float length = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0F));
    std::ranges::for_each(row, [length](float& value) { value /= length; });
  }
  ImageIndex index{.source = "photos", .model = "m", .pool = "", .weights = "1", .images = {}, .features = {}};
  index.features = ops::cast(x, DType::bf16);
  for (std::int64_t i = 0; i < count; ++i) {
    index.images.push_back({.name = std::to_string(i) + ".png", .file = {.bytes = i, .modified = 2 * i}});
  }
  return index;
}

// Two images that are one, whose rows bf16 makes longer, shorter, or leaves alone, are as alike as images can be.
TEST(ImageIndex, KnowsThatAnImageIsLikeItself) {
  const test::TemporaryFolder folder;
  ImageIndex index = random_index(40, 24);
  for (std::int64_t i = 0; i < 40; i += 2) {
    index.features.select(0, i + 1).copy_from(index.features.select(0, i));
  }
  save_index(folder / "a.index", index);
  for (const ImageIndex& one : {index, load_index(folder / "a.index")}) {
    EXPECT_EQ(duplicates(one, 1).size(), 20U);
    const Tensor rows = ops::cast(one.features, DType::f32);
    const auto hits = search(one, rows, 2);
    for (const std::vector<Hit>& two : hits) {
      EXPECT_NEAR(two[0].cosine, 1, 1e-6);
      EXPECT_NEAR(two[1].cosine, 1, 1e-6);
    }
  }
  EXPECT_TRUE(io::Safetensors::open(folder / "a.index").contains("lengths"));
}

double cosine_of(const ImageIndex& index, const Tensor& queries, std::int64_t query, std::int64_t image) {
  const std::vector<float> a = queries.select(0, query).values();
  const std::vector<float> b = index.features.select(0, image).values();
  double product = 0;
  double square = 0;
  double own = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    square += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    own += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return product / std::sqrt(square * own);
}

TEST(ImageIndex, FindsTheNearestWhateverItsSize) {
  for (const std::int64_t count : {7, 20000}) {  // the larger one is multiplied as it lies
    const ImageIndex index = random_index(count, 40);
    const Tensor queries = test::random_tensor({2, 40}, 5, 3.0F);
    const auto hits = search(index, queries, 5);
    for (std::int64_t q = 0; q < 2; ++q) {
      std::vector<double> all;
      for (std::int64_t i = 0; i < count; ++i) {
        all.push_back(cosine_of(index, queries, q, i));
      }
      std::ranges::sort(all, std::ranges::greater());
      for (std::size_t k = 0; k < 5; ++k) {
        const Hit& hit = hits[static_cast<std::size_t>(q)][k];
        EXPECT_NEAR(hit.cosine, all[k], 1e-6);
        EXPECT_NEAR(cosine_of(index, queries, q, hit.image), hit.cosine, 1e-6);
      }
    }
  }
  EXPECT_EQ(search(random_index(3, 8), test::random_tensor({1, 8}), 10)[0].size(), 3U);
  EXPECT_THAT(error_of([] {
                search(random_index(3, 8), test::random_tensor({1, 9}), 1);
              }),
              HasSubstr("a query [1, 9] does not fit the features of the index, which have 8 numbers"));
}

TEST(ImageIndex, IsReadAsItWasWritten) {
  const test::TemporaryFolder folder;
  const ImageIndex index = random_index(5, 8);
  save_index(folder / "a.index", index);
  const ImageIndex read = load_index(folder / "a.index");
  EXPECT_EQ(read.images, index.images);
  EXPECT_EQ(read.source, "photos");
  EXPECT_EQ(read.features.values(), index.features.values());
  io::save_safetensors(folder / "b.index", {{"features", index.features}});
  EXPECT_THAT(error_of([&] { load_index(folder / "b.index"); }), HasSubstr("this is no index of images"));
}

TEST(ImageIndex, JoinsDuplicatesInGroups) {
  ImageIndex index = random_index(1300, 32);  // several blocks
  index.features.select(0, 1200).copy_from(index.features.select(0, 3));
  index.features.select(0, 700).copy_from(index.features.select(0, 1200));
  index.features.select(0, 8).copy_from(index.features.select(0, 9));
  std::int64_t last = 0;
  const auto groups = duplicates(index, 0.99, [&](std::int64_t done) { last = done; });
  EXPECT_EQ(last, 1300);
  EXPECT_THAT(groups, ElementsAre(ElementsAre(3, 700, 1200), ElementsAre(8, 9)));
}

}  // namespace
}  // namespace vitrail::train
