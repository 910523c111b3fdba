// Features of images, and what is made of them: embed, knn, probe, project, index and search.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/data/tar_writer.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

TEST_F(Commands, EmbedAndKnnSayTheSameFromFilesAndImages) {
  const std::string data = path("data");
  for (const std::string split : {"train", "validation"}) {
    const Outcome outcome = vitrail("embed " + best() + " " + data + " --split " + split + " --output " +
                                    path(split + ".safetensors") + " -b 5");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("features [32, 24] f32"));
  }
  const io::Safetensors file = io::Safetensors::open(path("validation.safetensors"));
  EXPECT_EQ(file.shape("labels").str(), "[32]");
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("names"))[31], "red/15.png");
  const Outcome text =
      vitrail("knn " + path("train.safetensors") + " " + path("validation.safetensors") + " -k 5 20 --temperature 0.1");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("32 images by their neighbours among 32, 24 features each"));
  const auto json = [](const std::string& command) { return nlohmann::json::parse(vitrail(command + " --json").out); };
  const auto files = json("knn " + path("train.safetensors") + " " + path("validation.safetensors") + " -k 5 20");
  const auto images =
      json("knn " + data + " " + data + " --train-split train --split validation --model " + best() + " -k 5 20 -b 5");
  EXPECT_EQ(files, images);
  EXPECT_GE(files["knn"][0]["top1"].get<double>(), 90.0);
  EXPECT_EQ(files["knn"][1]["k"], 20);

  EXPECT_THAT(
      vitrail("embed " + best() + " " + data + " --unlabeled --pool avg --output " + path("all.safetensors")).out,
      HasSubstr("[64, 24]"));
  const Outcome flat =
      vitrail("embed " + best() + " " + data + "/validation/red --logits --output " + path("red.safetensors"));
  ASSERT_EQ(flat.status, 0) << flat.err;
  EXPECT_THAT(flat.err, HasSubstr("has no folders of classes: the labels of its images are -1"));
  EXPECT_EQ(io::Safetensors::open(path("red.safetensors")).get("labels").data<std::int64_t>()[15], -1);
  const Outcome unlabeled = vitrail("knn " + path("all.safetensors") + " " + path("train.safetensors"));
  EXPECT_EQ(unlabeled.status, 1);
  EXPECT_THAT(unlabeled.err, HasSubstr("has no label"));
  const Outcome without = vitrail("knn " + data + " " + data);
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("a --model is needed"));
}

TEST_F(Commands, FeaturesOfALayerAreProbed) {
  const std::string data = path("data");
  for (const std::string split : {"train", "validation"}) {
    const Outcome outcome =
        vitrail("embed " + best() + " " + data + " --split " + split + " --layer 0 --output-dtype " + "bf16 --output " +
                path("layer-" + split + ".safetensors"));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("features [32, 24] bf16"));
  }
  const std::string both = path("layer-train.safetensors") + " " + path("layer-validation.safetensors");
  const Outcome probe = vitrail("probe " + both + " --lr 0.1 1 --epochs 20 --json");
  ASSERT_EQ(probe.status, 0) << probe.err;
  const auto results = nlohmann::json::parse(probe.out);
  EXPECT_EQ(results["features"], 24);
  ASSERT_EQ(results["probe"].size(), 2U);
  EXPECT_GE(results["probe"][1]["best_top1"].get<double>(), 90);
  EXPECT_THAT(vitrail("probe " + both + " --epochs 2").out, HasSubstr("32 images by a linear classifier of 32"));
  const Outcome knn = vitrail("knn " + both);
  EXPECT_THAT(knn.out, AllOf(HasSubstr("\n   10 "), HasSubstr("\n   20 "), Not(HasSubstr("\n  100 "))));

  EXPECT_THAT(
      vitrail("embed " + best() + " " + data + " --split train --layer 2 --output " + path("no.safetensors")).err,
      HasSubstr("--layer 2 is none of the 2 layers"));
  EXPECT_EQ(vitrail("embed " + best() + " " + data + " --logits --pool avg --output " + path("no.safetensors")).status,
            2);
  std::filesystem::create_directories(path("broken"));
  std::ofstream(path("broken/1.png")) << "no image";
  EXPECT_THAT(vitrail("embed " + best() + " " + path("broken") + " --unlabeled --skip-broken --output " +
                      path("no.safetensors"))
                  .err,
              HasSubstr("all 1 images are broken"));
  EXPECT_FALSE(std::filesystem::exists(path("no.safetensors")));
}

TEST_F(Commands, ProjectLaysFeaturesOutOnAPage) {
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

TEST_F(Commands, AnIndexFollowsItsFolderAndIsSearched) {
  const std::string photos = path("albums");
  std::filesystem::copy(path("data/validation"), photos, std::filesystem::copy_options::recursive);
  const std::string index = "index " + photos + " --output " + path("albums.index");
  EXPECT_EQ(vitrail(index).status, 2) << "without a model";
  const Outcome made = vitrail(index + " --model " + best());
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("32 images, 32 new, 0 gone or changed"));
  EXPECT_THAT(vitrail(index).out, HasSubstr("32 images, 0 new, 0 gone or changed"));

  const std::string query = photos + "/red/3.png";
  const Outcome found = vitrail("search " + path("albums.index") + " " + query + " -k 3 --output " + path("found.png"));
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr("/red/3.png"), HasSubstr("1.00")));
  EXPECT_GT(io::read_image(path("found.png")).width, 4 * 128);
  const auto json = nlohmann::json::parse(vitrail("search " + path("albums.index") + " " + query + " -k 3 --json").out);
  EXPECT_EQ(json[0]["found"].size(), 3U);

  std::filesystem::remove(photos + "/red/3.png");
  std::filesystem::copy(photos + "/red/4.png", photos + "/blue/copy.png");
  EXPECT_THAT(vitrail(index).out, HasSubstr("32 images, 1 new, 1 gone or changed"));
  const Outcome same = vitrail("duplicates " + path("albums.index") + " --threshold 0.9999");
  EXPECT_THAT(same.out, AllOf(HasSubstr("/blue/copy.png"), HasSubstr("/red/4.png")));

  const Outcome other = vitrail(index + " --model vit_tiny_patch16_224");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("with other weights than these"));
  const Outcome changed = vitrail(index + " --mean 0.3");
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.err,
              HasSubstr(R"(with the model and images as they are, not with {"mean":[0.3]}: leave these flags out)"));
  const Outcome elsewhere = vitrail("index " + path("data") + " --output " + path("albums.index"));
  EXPECT_EQ(elsewhere.status, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("is an index of"));
}

TEST_F(Commands, AnIndexKeepsWhatFlagsChange) {
  const std::string index = "index " + path("data/train") + " --output " + path("changed.index");
  const std::string flags =
      " --model " + best() + " --img-size 24 --mean 0.1 --crop-mode squash --interpolation nearest";
  ASSERT_EQ(vitrail(index + flags).status, 0);
  const Outcome found =
      vitrail("search " + path("changed.index") + " " + path("data/train") + "/red/3.png -k 1 --json");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_GT(nlohmann::json::parse(found.out)[0]["found"][0]["cosine"].get<double>(), 0.999);
  EXPECT_THAT(vitrail(index).out, HasSubstr("32 images, 0 new, 0 gone or changed"));
}

TEST_F(Commands, EmbedTakesImagesOfClassesThatTheModelDoesNotKnow) {
  for (const char* name : {"rouge", "bleu"}) {
    fs::create_directories(path("others/") + name);
    io::write_png(path("others/") + name + "/0.png", image(0, 0));
  }
  const Outcome outcome = vitrail("embed " + best() + " " + path("others") + " --output " + path("others.safetensors"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the labels are numbers of the 2 classes of '" + path("others") + "'"));
  EXPECT_EQ(io::Safetensors::open(path("others.safetensors")).metadata().at("classes"), R"(["bleu","rouge"])");
  const Outcome logits =
      vitrail("embed " + best() + " " + path("others") + " --logits --output " + path("others.safetensors"));
  EXPECT_EQ(logits.status, 1);
  EXPECT_THAT(logits.err, HasSubstr("the class 'bleu' is unknown"));
}

}  // namespace
}  // namespace vitrail::test
