// `vitrail train --task pixels` and `vitrail generate` of pictures, as a person types them.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"

namespace vitrail {
namespace {

using test::Outcome;
using test::vitrail;
using ::testing::HasSubstr;

// Pictures whose lower half is that of their upper half's colour: red above blue, green above yellow.
void write_pictures(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < 8; ++i) {
    io::Image image(6, 6);
    for (std::int64_t p = 0; p < 36; ++p) {
      const bool upper = p < 18;
      const bool first = i % 2 == 0;
      std::uint8_t* pixel = image.at(p % 6, p / 6);
      pixel[0] = first == upper ? 255 : (first ? 0 : (upper ? 0 : 255));
      pixel[1] = first ? 0 : 255;
      pixel[2] = first && !upper ? 255 : 0;
    }
    io::write_png(folder / (std::to_string(i) + ".png"), image);
  }
}

TEST(Pixels, AreLearnedAndCompleted) {
  const test::TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  write_pictures(folder / "pictures");
  const Outcome trained = vitrail(
      "train " + path("pictures") + " --task pixels --train-split '' --val-split '' --val-dir " + path("pictures") +
      " --model-kwargs n_layer=2 n_head=2 n_embd=24 --img-size 6 --clusters 12 --drop 0 -b 4 --epochs 40 "
      "--val-interval 20 --lr 1e-2 --warmup-epochs 2 --threads 1 --output " +
      path("runs") + " --experiment one");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("6x6 pixels in 12 colours"));
  EXPECT_THAT(trained.out, HasSubstr("the images to evaluate on are those to train on"));
  const nlohmann::json config = io::read_json(folder / "runs/one/best/config.json");
  EXPECT_EQ(config["architectures"][0], "ImageGPTForCausalImageModeling");
  EXPECT_EQ(config["vocab_size"], 13);
  EXPECT_EQ(config["n_positions"], 36);

  const Outcome completed = vitrail("generate " + path("runs/one") + " " + path("pictures/0.png") +
                                    " --do-sample --top-k 1 --num-return-sequences 2 --output " + path("strip.png"));
  ASSERT_EQ(completed.status, 0) << completed.err;
  const io::Image strip = io::read_image(folder / "strip.png");
  const io::Image whole = io::read_image(folder / "pictures/0.png");
  EXPECT_EQ(strip.width, 4 * (96 + 4) + 4);
  EXPECT_EQ(strip.height, 96 + 2 * 4);
  for (std::int64_t y = 0; y < 6; ++y) {
    for (const std::int64_t column : {0, 2, 3}) {  // the picture, and two completions
      const std::uint8_t* pixel = strip.at(4 + column * 100 + 50, 4 + y * 16 + 8);
      for (std::int64_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(pixel[c], whole.at(3, y)[c], 3) << "row " << y << " of column " << column;
      }
    }
    const std::uint8_t* given = strip.at(4 + 100 + 50, 4 + y * 16 + 8);
    EXPECT_EQ(given[1] == 225, y >= 3);
  }
  EXPECT_EQ(vitrail("generate " + path("runs/one") + " --do-sample --output " + path("new.png")).status, 0);
  EXPECT_EQ(io::read_image(folder / "new.png").width, 96 + 2 * 4);

  const auto fails = [](const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  fails(vitrail("generate " + path("runs/one") + " " + path("pictures/0.png")), 2, "--output FILE.png says where");
  fails(vitrail("eval " + path("runs/one") + " " + path("pictures") + " --img-size 4"), 2,
        "reads images as its folder says: it takes no --num-classes, --img-size");
  fails(vitrail("generate " + path("runs/one") + " " + path("pictures/0.png") + " --rows 6 --output " + path("x.png")),
        2, "--rows 6 leaves nothing of a picture of 6 rows to complete");
  fails(vitrail("generate " + path("runs/one") + " --rows 3 --output " + path("x.png")), 2, "of no picture");
}

}  // namespace
}  // namespace vitrail
