// vitrail project.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Project : public Commands {};

TEST_F(Project, LaysFeaturesOutOnAPage) {
  const std::string data = path("data");
  const std::string features = path("places.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + data + " --split validation --output " + features).status, 0);
  const std::string images = " --images " + data + " --split validation";
  const Outcome tsne = vitrail("project " + features + images + " --output " + path("map") + " --perplexity 5");
  ASSERT_EQ(tsne.status, 0) << tsne.err;
  EXPECT_THAT(tsne.out, AllOf(HasSubstr("32 features of 24 numbers each"), HasSubstr("trustworthiness 0.9")));
  EXPECT_EQ(io::read_image(path("map/thumbnails.png")).width, 6 * 48);
  EXPECT_GT(io::read_image(path("map/map.png")).width, 1200);
  EXPECT_THAT(io::read_text(path("map/index.html")), AllOf(HasSubstr("red/15.png"), HasSubstr("<canvas")));
  const io::Safetensors places = io::Safetensors::open(path("map/map.safetensors"));
  EXPECT_EQ(places.shape("features").str(), "[32, 2]");

  const Outcome pca = vitrail("project " + features + " --method pca --json --output " + path("pca"));
  ASSERT_EQ(pca.status, 0) << pca.err;
  const auto facts = nlohmann::json::parse(pca.out);
  EXPECT_GE(facts["explained_variance_ratio"][0].get<double>(), facts["explained_variance_ratio"][1].get<double>());
  EXPECT_FALSE(std::filesystem::exists(path("pca/thumbnails.png")));
  EXPECT_EQ(nlohmann::json::parse(
                vitrail("project " + features + " --json --perplexity 3 --limit 12 --output " + path("some"))
                    .out)["iterations"],
            1000);

  const Outcome few = vitrail("project " + features + " --perplexity 40 --output " + path("few"));
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.err, HasSubstr("below the number of features, 32, but is 40"));
  EXPECT_EQ(vitrail("project " + features + " --method pca --perplexity 5 --output " + path("few")).status, 2);
  std::filesystem::create_directory(path("reds"));
  std::filesystem::copy(data + "/validation/red", path("reds/red"));
  const Outcome others =
      vitrail("project " + features + " --images " + path("reds") + " --perplexity 5 --output " + path("few"));
  EXPECT_EQ(others.status, 1);
  EXPECT_THAT(others.err, HasSubstr("of which there are features"));
}

// Images of two parts may have the same names: features know of which they are.
TEST_F(Project, TakesTheImagesThatTheFeaturesAreOf) {
  const std::string features = path("part.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split validation --output " + features).status, 0);
  const std::string project = "project " + features + " --method pca --images " + path("data") + " --output ";
  EXPECT_THAT(vitrail(project + path("map-x") + " --split train").err,
              HasSubstr("the features are of the part 'validation', not of --split train"));
  const Outcome named = vitrail(project + path("map-a") + " --split validation");
  EXPECT_EQ(named.status, 0) << named.err;
  const Outcome unnamed = vitrail(project + path("map-b"));
  EXPECT_EQ(unnamed.status, 0) << unnamed.err;
  EXPECT_EQ(io::read_text(path("map-a/map.png")), io::read_text(path("map-b/map.png")));
  const std::string all = path("all.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --unlabeled --output " + all).status, 0);
  const Outcome unlabeled =
      vitrail("project " + all + " --method pca --images " + path("data") + " --output " + path("map-c"));
  EXPECT_EQ(unlabeled.status, 0) << unlabeled.err;
}

TEST_F(Project, TakesFewFeatures) {
  const std::string features = path("few.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split validation --output " + features).status, 0);
  const std::string project = "project " + features + " --limit 13 --output " + path("few");
  const Outcome few = vitrail(project);
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.err, HasSubstr("note: of 13 features the perplexity is 4, not 30: --perplexity chooses another"));
  EXPECT_EQ(few.out, vitrail(project + " --perplexity 4").out);
  const Outcome many = vitrail(project + " --perplexity 13");
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, HasSubstr("--perplexity must be below the number of features, 13, but is 13"));
}

}  // namespace
}  // namespace vitrail::test
