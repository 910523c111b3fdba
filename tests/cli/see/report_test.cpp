// vitrail report.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Report : public Commands {};

TEST_F(Report, MakesAPage) {
  const Outcome outcome = vitrail("report " + path("runs/one") + " " + path("data/validation") + " --output " +
                                  path("page") + " --images 4");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"index.html", "curves.svg", "confusion.svg", "attention/03.png", "attention/layers.png"}) {
    EXPECT_TRUE(fs::exists(path("page/") + name)) << name;
  }
  EXPECT_THAT(io::read_text(path("page/index.html")), HasSubstr("<h1>one: vit_tiny_patch16_224 on "));
  const Outcome by_model =
      vitrail("report " + best() + "/ " + path("data/validation") + " --output " + path("page") + " --images 1");
  ASSERT_EQ(by_model.status, 0) << by_model.err;
  EXPECT_THAT(io::read_text(path("page/index.html")), HasSubstr("<h1>one: ")) << "the name of the model's run";
}

TEST_F(Report, TakesAnotherSizeAndLeavesBrokenImagesOut) {
  fs::copy(path("data/validation"), path("some_broken"), fs::copy_options::recursive);
  std::ofstream(path("some_broken/red/0.png")) << "no image";
  const std::string command =
      "report " + path("runs/one") + " " + path("some_broken") + " --output " + path("page") + " --img-size 24";
  const Outcome refused = vitrail(command);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("red/0.png"));
  const Outcome outcome = vitrail(command + " --skip-broken");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("31 images"), HasSubstr("left out: ")));
}

}  // namespace
}  // namespace vitrail::test
