// Images that cannot be read: named, or left out by --skip-broken.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class BrokenImages : public Commands {};

TEST_F(BrokenImages, AreLinksToNothing) {
  fs::copy(path("data"), path("links"), fs::copy_options::recursive);
  fs::create_symlink("nowhere.png", path("links/train/red/99.png"));
  const std::string predict = "predict " + best() + " " + path("links/train");
  EXPECT_EQ(vitrail(predict).status, 1);
  const Outcome predicted = vitrail(predict + " --skip-broken");
  EXPECT_EQ(predicted.status, 0);
  EXPECT_THAT(predicted.err, HasSubstr("left out: "));
  EXPECT_THAT(predicted.err, HasSubstr("red/99.png"));
  const std::string train = "train " + path("links") + small();
  EXPECT_EQ(vitrail(train + run_flags(path("runs"), "link")).status, 1);
  const Outcome trained = vitrail(train + run_flags(path("runs"), "links") + " -b 11 --skip-broken");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("1 broken image left out so far:\n  "));
  EXPECT_THAT(trained.out, HasSubstr("red/99.png"));
}

TEST_F(BrokenImages, AreNamedOnceEach) {
  const std::string data = data_with_broken("several", "train");
  std::ofstream(data + "/train/red/worse.png") << "neither";
  const Outcome outcome =
      vitrail("train " + data + small() + run_flags(path("runs"), "several") + " -b 4 --skip-broken");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto count = [&](const std::string& words) {
    std::size_t found = 0;
    for (std::size_t at = outcome.out.find(words); at != std::string::npos; at = outcome.out.find(words, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("red/bad.png: "), 1U) << outcome.out;
  EXPECT_EQ(count("red/worse.png: "), 1U) << outcome.out;
}

TEST_F(BrokenImages, AreNamedByEvaluations) {
  const std::string data = data_with_broken("broken", "validation");
  EXPECT_THAT(train(data, "broken", small() + " --skip-broken").out,
              HasSubstr("left out 1 broken image: " + data + "/validation/red/bad.png: "));
  EXPECT_THAT(vitrail("soup " + best() + " " + best() + " --output " + path("soup2") + " --data " + data +
                      " --split validation --skip-broken")
                  .err,
              HasSubstr("left out: " + data + "/validation/red/bad.png"));
  EXPECT_THAT(vitrail("quantize " + best() + " --output " + path("int8") + " --eval " + data +
                      " --split validation --skip-broken")
                  .err,
              HasSubstr("left out: " + data + "/validation/red/bad.png"));
  const std::string pixels =
      " --task pixels --model-kwargs n_layer=1 n_head=2 n_embd=16 --img-size 4 --clusters 4 "
      "--threads 1 -b 8";
  EXPECT_THAT(train(data, "pixels", pixels).err, HasSubstr("(--skip-broken leaves out such images)"));
  EXPECT_THAT(train(data, "pixels2", pixels + " --skip-broken").out, HasSubstr("left out 1 broken image: "));
}

TEST_F(BrokenImages, MayBeLeftOutByARunThatGoesOn) {
  fs::create_directories(path("some"));
  for (int i = 0; i < 8; ++i) {
    fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"), path("some/" + std::to_string(i) + ".png"));
  }
  const std::string learn = "pretrain mae " + path("some") + small() +
                            " --decoder-dim 16 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                            path("runs") + " --experiment ";
  ASSERT_EQ(vitrail(learn + "mae").status, 0);
  write("some/3.png", "no image");
  const std::string resume = "pretrain --resume " + path("runs/mae");
  const Outcome broken = vitrail(resume + " --epochs 2");
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, HasSubstr("vitrail " + resume + " --skip-broken"));
  EXPECT_EQ(vitrail(resume + " --epochs 2 --skip-broken").status, 0);
  refuses(learn + "new", "nothing has been learnt yet, and '" + path("runs/new") + "' is removed");
  EXPECT_FALSE(fs::exists(path("runs/new")));
  EXPECT_EQ(vitrail(learn + "new --skip-broken").status, 0);
  EXPECT_EQ(
      vitrail("reconstruct " + path("runs/mae") + " " + path("some") + " --skip-broken --output " + path("some.png"))
          .status,
      0);
  EXPECT_EQ(vitrail("patches " + best() + " " + path("some") + " --skip-broken --output " + path("patched")).status, 0);
}

}  // namespace
}  // namespace vitrail::test
