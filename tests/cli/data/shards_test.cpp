// vitrail shard, and shards as data.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/tar.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ShardedImages : public OnImages {};

TEST_F(ShardedImages, AreOfTheClassesOfTheirFolder) {
  fs::copy(path("data"), path("uneven"), fs::copy_options::recursive);
  fs::create_directories(path("uneven/train/aqua"));
  io::write_png(path("uneven/train/aqua/0.png"), image(0, 1));
  const std::string shard = "shard " + path("uneven") + " --output " + path("shards");
  ASSERT_EQ(vitrail(shard + " --split validation").status, 0);
  refuses(shard + " --split train", "classes.txt has other classes than 'train'");
  EXPECT_FALSE(fs::exists(path("shards/train.json")));
  EXPECT_EQ(io::read_text(path("shards/classes.txt")), "blue\nred\n");
}

TEST_F(ShardedImages, AreWholeOrNotThere) {
  fs::copy(path("data"), path("damaged"), fs::copy_options::recursive);
  fs::remove(path("damaged/train/red/9.png"));
  fs::create_symlink("nowhere.png", path("damaged/train/red/9.png"));
  const std::string shard = "shard " + path("damaged") + " --in-order --output " + path("parts");
  refuses(shard, "9.png");
  EXPECT_FALSE(fs::exists(path("parts")));
  EXPECT_EQ(vitrail(shard + " --skip-broken").status, 0);
}

TEST_F(ShardedImages, MayHaveClassesAndTexts) {
  io::TarWriter tar(path("both.tar"));
  for (const std::string color : {"blue", "red"}) {
    const auto bytes = [&](const std::string& text) {
      return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    };
    for (int i = 0; i < 16; ++i) {
      const std::string key = color + std::to_string(i);
      tar.add(key + ".png", io::read_bytes(path("data/train/" + color + "/" + std::to_string(i) + ".png")));
      tar.add(key + ".cls", bytes(color));
      tar.add(key + ".txt", bytes("something " + color));
    }
  }
  tar.commit();
  const Outcome trained = vitrail("train " + path("both.tar") + small_run("both"));
  EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1")) << "its classes are said";
}

class Shards : public Commands {};

TEST_F(Shards, AreTakenWhereverImagesAre) {
  ASSERT_EQ(vitrail("shard " + path("data") + " --split train --output " + path("shards")).status, 0);
  const std::string one = "'" + path("shards/train-{000000..000000}.tar") + "'";
  for (const std::string& source : {one, path("shards"), path("shards/train.json")}) {
    const Outcome said = vitrail("predict " + best() + " " + source + " --format json --threads 1");
    ASSERT_EQ(said.status, 0) << said.err;
    const nlohmann::json list = nlohmann::json::parse(said.out);
    EXPECT_EQ(list.size(), 32U);
    EXPECT_THAT(list[0]["file"].get<std::string>(), HasSubstr("shards/train-000000.tar/"));
    EXPECT_THAT(
        vitrail("embed " + best() + " " + source + " --unlabeled --threads 1 --output " + path("shards.safetensors"))
            .out,
        HasSubstr("32 images"));
    fs::remove(path("shards.safetensors"));
  }
  const Outcome index =
      vitrail("index " + one + " --model " + best() + " --threads 1 --output " + path("shards.index"));
  EXPECT_THAT(index.out, HasSubstr("32 images, 32 new")) << index.err;
  EXPECT_EQ(vitrail("search " + path("shards.index") + " " + path("data/train/red/1.png") + " --threads 1 --output " +
                    path("found.png"))
                .status,
            0);
  const Outcome more = vitrail("train " + path("data") + small() + " --epochs 1 --teacher-model " + best() +
                               " --unlabeled-dir " + one + " --output " + path("runs") + " --experiment more");
  EXPECT_THAT(more.out, HasSubstr("32 of the training images have no labels")) << more.err;
}

TEST_F(Shards, AreKnownByTheClassesInTheirJson) {
  fs::create_directories(path("json"));
  io::TarWriter tar(path("json/train-000000.tar"));
  for (const int label : {0, 1}) {
    const std::vector<std::uint8_t> png =
        io::read_bytes(path(label == 0 ? "data/train/blue/3.png" : "data/train/red/3.png"));
    const std::string cls = fmt::format("{{\"label\": {}}}", label);
    tar.add(fmt::format("{}.png", label), png);
    tar.add(fmt::format("{}.json", label), {reinterpret_cast<const std::uint8_t*>(cls.data()), cls.size()});
  }
  tar.commit();
  write("json/classes.txt", "blue\nred\n");
  const Outcome judged = vitrail("eval " + best() + " " + path("json/train-000000.tar") + " --threads 1");
  EXPECT_THAT(judged.out, HasSubstr("2 images")) << judged.err;
}

class BrokenShards : public Commands {};

TEST_F(BrokenShards, AreLeftOutWhereverImagesAreTaken) {
  ASSERT_EQ(vitrail("shard " + path("data/train") + " --output " + path("shards")).status, 0);
  const std::string whole = path("shards/train-000000.tar");
  std::ofstream(path("shards/train-000001.tar")) << io::read_text(whole).substr(0, 2000);
  fs::remove(path("shards/train.json"));
  const std::string source = path("shards/train-{000000..000001}.tar");
  refuses("predict " + best() + " '" + source + "' --threads 1", "train-000001.tar");
  const Outcome predicted = vitrail("predict " + best() + " '" + source + "' --skip-broken --threads 1 --format csv");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("a shard is left out"));
}

class OneShard : public Commands {};

// One archive of samples was taken for each part that was asked for: a training was evaluated on what it had learnt.
TEST_F(OneShard, HasAShareHeldOut) {
  ASSERT_EQ(vitrail("shard " + path("data") + " --output " + path("shards")).status, 0);
  fs::create_directories(path("alone"));
  fs::copy(path("shards/train-000000.tar"), path("alone/one.tar"));
  for (const std::string source : {"shards/train-000000.tar", "alone/one.tar", "shards/train.json"}) {
    const Outcome trained = vitrail("train " + path(source) + small_run("of-" + fs::path(source).filename().string()));
    ASSERT_EQ(trained.status, 0) << trained.err;
    EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1")) << source;
    EXPECT_THAT(trained.out + trained.err, HasSubstr("29 training and 3 validation images")) << source;
    EXPECT_THAT(vitrail("info " + path(source)).out, Not(HasSubstr("--val-split"))) << source;
  }
  const std::string one = path("alone/one.tar");
  const std::string sentence = "an archive of samples is of one part: it has no 'validation' images";
  refuses("eval " + best() + " " + one + " --split validation", sentence);
  refuses("knn " + one + " " + one + " --train-split train --split validation --model " + best(), sentence);
  refuses("train " + one + small_run("other") + " --train-split nonsense", "it has no 'nonsense' images");
  EXPECT_EQ(vitrail("eval " + best() + " " + one).status, 0);
  EXPECT_EQ(vitrail("eval " + best() + " " + one + " --split train").status, 0);
  // Its name makes it no part of its own: else it would be learnt from and evaluated on.
  fs::copy(one, path("alone/val.tar"));
  refuses("eval " + best() + " " + path("alone/val.tar") + " --split validation", "name an archive that has them");
  EXPECT_THAT(printed("train " + path("alone/val.tar") + small_run("val")), HasSubstr("29 training and 3 validation"));
}

}  // namespace
}  // namespace vitrail::test
