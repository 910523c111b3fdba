// vitrail index, search and duplicates.
#include <cmath>
#include <filesystem>
#include <fstream>
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

class Search : public Commands {};

TEST_F(Search, HasAnIndexThatFollowsItsFolder) {
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
  const std::string other_query = photos + "/red/4.png";
  const Outcome gone =
      vitrail("search " + path("albums.index") + " " + other_query + " -k 32 --output " + path("gone.png"));
  EXPECT_EQ(gone.status, 0) << gone.err;
  EXPECT_THAT(gone.out, HasSubstr("/red/3.png"));
  EXPECT_THAT(gone.err, HasSubstr("1 image that is found is not there any more: `vitrail index"));
  EXPECT_TRUE(std::filesystem::exists(path("gone.png")));
  refuses("search " + photos + " " + other_query, "is a folder, and no index: `vitrail index", 2);
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

TEST_F(Search, HasAnIndexThatKeepsWhatFlagsChange) {
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

TEST_F(Search, TellsNothingOfImagesInArchives) {
  std::filesystem::create_directories(path("archives"));
  ASSERT_EQ(std::system(("tar -cf " + path("archives/train.tar") + " -C " + path("data/train") + " red blue").c_str()),
            0);
  ASSERT_EQ(vitrail("index " + path("archives") + " --output " + path("archives.index") + " --model " + best()).status,
            0);
  const Outcome found = vitrail("search " + path("archives.index") + " " + path("data/train") + "/red/3.png -k 3");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.err, ::testing::Not(HasSubstr("not there any more")));
}

TEST_F(Search, BringsAnIndexUpToDateWhereAllThatIsNewIsBroken) {
  std::filesystem::copy(path("data/validation"), path("album"), std::filesystem::copy_options::recursive);
  const std::string index = "index " + path("album") + " --output " + path("album.index");
  EXPECT_EQ(vitrail(index + " --model " + best()).status, 0);
  std::ofstream(path("album/new.png")) << "no image";
  std::filesystem::remove(path("album/red/3.png"));
  const Outcome outcome = vitrail(index + " --skip-broken");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0 new, 1 gone"));
  EXPECT_THAT(outcome.out, HasSubstr("new.png"));
  const Outcome other = vitrail(index + " --model vit_tiny_patch16_224");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("was made by '" + best() + "' with other weights"));
}

// An index knows how its images were prepared, and no feature is NaN.
TEST_F(Search, ComparesOnlyWhatIsAlike) {
  fs::copy(best(), path("model"), fs::copy_options::recursive);
  const std::string image = path("data/train/red/0.png");
  ASSERT_EQ(
      vitrail("index " + path("data/train") + " --model " + path("model") + " --output " + path("i.index")).status, 0);
  ASSERT_EQ(vitrail("search " + path("i.index") + " " + image).status, 0);
  nlohmann::json config = nlohmann::json::parse(io::read_text(path("model/config.json")));
  config["pretrained_cfg"]["crop_pct"] = 0.5;
  io::write_atomically(path("model/config.json"), config.dump());
  refuses("search " + path("i.index") + " " + image, "of images that were prepared otherwise");
  io::NamedTensors tensors;
  const io::Safetensors file = io::Safetensors::open(path("model/model.safetensors"));
  for (const std::string& name : file.names()) {
    tensors.emplace_back(name, file.get(name).clone());
    if (name == "norm.weight") {
      *tensors.back().second.data<float>() = std::nanf("");
    }
  }
  io::save_safetensors(path("model/model.safetensors"), tensors);
  const char* found = "0.png' hold NaN or infinity";
#ifdef VITRAIL_CHECK_FINITE
  found = "layer_norm: the output [32, 24] holds nan";
#endif
  refuses("embed " + path("model") + " " + path("data/train") + " --output " + path("f.safetensors"), found);
  EXPECT_FALSE(fs::exists(path("f.safetensors")));
}

class SearchedFolder : public Commands {};

TEST_F(SearchedFolder, MayBeGone) {
  fs::copy(path("data/train/red"), path("album"), fs::copy_options::recursive);
  ASSERT_EQ(vitrail("index " + path("album") + " --model " + best() + " --output " + path("a.index")).status, 0);
  refuses("search " + path("a.index") + " " + path("data/train/red/3.png") + " --output " + path("album/1.png"),
          "album/1.png' is the input");
  fs::rename(path("album"), path("moved"));
  const Outcome found = vitrail("search " + path("a.index") + " " + path("moved/3.png") + " -k 1");
  EXPECT_THAT(found.out, HasSubstr("1.0000  " + path("album/3.png")));
  EXPECT_THAT(found.err, HasSubstr("'" + path("album") + "' is not there any more"));
  EXPECT_THAT(vitrail("duplicates " + path("a.index")).err, HasSubstr("is not there any more"));
  // An index goes on with the folder under its new name, and with no other.
  EXPECT_THAT(vitrail("index " + path("data/validation") + " --output " + path("a.index")).err,
              HasSubstr("is an index of"));
  const Outcome again = vitrail("index " + path("moved") + " --output " + path("a.index"));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("the index goes on with '" + path("moved") + "'"));
  EXPECT_THAT(again.out, HasSubstr("16 images, 0 new, 0 gone or changed"));
  EXPECT_THAT(vitrail("search " + path("a.index") + " " + path("moved/3.png") + " -k 1").out,
              HasSubstr("1.0000  " + path("moved/3.png")));
}

TEST_F(SearchedFolder, MayHaveNamesThatAreNoUtf8) {
  fs::create_directories(path("bytes"));
  fs::copy_file(path("data/train/red/1.png"), path("bytes/\xff.png"));
  fs::copy_file(path("data/train/red/2.png"), path("bytes/a.png"));
  ASSERT_EQ(
      vitrail("index " + path("bytes") + " --model " + best() + " --threads 1 --output " + path("bytes.index")).status,
      0);
  const Outcome found =
      vitrail("search " + path("bytes.index") + " " + path("bytes/a.png") + " --threads 1 --output " + path("f.png"));
  EXPECT_EQ(found.status, 0) << found.err;
}

}  // namespace
}  // namespace vitrail::test
