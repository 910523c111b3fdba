#include "vitrail/data/color_clusters.h"

#include <algorithm>
#include <array>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::data {
namespace {

using test::error_of;

// Images of one of three colours each.
class Flags final : public Dataset {
 public:
  static constexpr std::array<std::array<std::uint8_t, 3>, 3> colors = {{{255, 0, 0}, {0, 0, 255}, {250, 250, 250}}};

  std::int64_t size() const override { return 6; }
  io::Image image(std::int64_t index) const override {
    io::Image image(4, 4);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = colors[static_cast<std::size_t>(index % 3)][i % 3];
    }
    return image;
  }
  std::int64_t label(std::int64_t) const override { return 0; }
  std::string name(std::int64_t) const override { return "flag"; }
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  std::vector<std::string> classes_;
};

TEST(ColorClusters, AreTheColoursOfImagesThatHaveFew) {
  const Flags flags;
  const ColorClusters clusters = learn_clusters(flags, 24, 2, 5);
  EXPECT_EQ(clusters.count(), 24);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<std::int64_t> ids = clusters.encode(flags.image(i));
    EXPECT_EQ(ids, std::vector<std::int64_t>(4, ids[0]));
    const io::Image back = clusters.decode(ids);
    ASSERT_EQ(back.width, 2);
    for (std::size_t p = 0; p < back.pixels.size(); ++p) {
      EXPECT_NEAR(back.pixels[p], Flags::colors[static_cast<std::size_t>(i)][p % 3], 1) << i;
    }
  }
  EXPECT_EQ(learn_clusters(flags, 24, 2, 5).centers, clusters.centers);
}

TEST(ColorClusters, ArePlacedInTheMiddleOfTheirColours) {
  const ColorClusters one = learn_clusters(Flags(), 1, 2, 5);
  // The pixels of each image are drawn equally often.
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = (Flags::colors[0][c] + Flags::colors[1][c] + Flags::colors[2][c]) / 3.0 / 127.5 - 1;
    EXPECT_NEAR(one.centers[0][c], mean, 1e-5);
  }
}

TEST(ColorClusters, AreKeptInTheFileOfTransformers) {
  const test::TemporaryFolder folder;
  const ColorClusters clusters = learn_clusters(Flags(), 3, 2, 1);
  write_clusters(clusters, folder.path());
  const ColorClusters again = read_clusters(folder.path());
  EXPECT_EQ(again.centers, clusters.centers);
  EXPECT_EQ(again.size, 2);
  const nlohmann::json json = io::read_json(folder / "preprocessor_config.json");
  EXPECT_EQ(json["image_processor_type"], "ImageGPTImageProcessor");
  EXPECT_EQ(json["size"]["height"], 2);
}

TEST(ColorClusters, SayWhatIsWrong) {
  const ColorClusters clusters = learn_clusters(Flags(), 3, 2, 1);
  EXPECT_EQ(error_of([&] {
              (void)clusters.decode(std::vector<std::int64_t>{0, 1, 2});
            }),
            "a picture of 2x2 pixels has 4 colours, not 3");
  EXPECT_EQ(error_of([&] {
              (void)clusters.decode(std::vector<std::int64_t>{0, 1, 2, 3});
            }),
            "pixel 3 has the colour 3, but there are 3");
  const test::TemporaryFolder folder;
  const auto reading = [&](const std::string& text) {
    std::ofstream(folder / "preprocessor_config.json") << text;
    const std::string error = error_of([&] { read_clusters(folder.path()); });
    return error.substr(std::min(error.find("preprocessor"), error.size()));
  };
  EXPECT_EQ(reading(R"({"clusters": [[0, 1]]})"),
            "preprocessor_config.json: 'clusters' has [0,1], which is no colour [red, green, blue]");
  EXPECT_EQ(reading(R"({"clusters": [[0, 1, 0]], "size": 0})"),
            "preprocessor_config.json: pictures of 0 pixels a side cannot be told as sequences");
  EXPECT_EQ(reading(R"({"clusters": [[0, 1, 0]], "size": {"height": 2, "width": 3}})"),
            "preprocessor_config.json: 'size' must be square");
}

}  // namespace
}  // namespace vitrail::data
