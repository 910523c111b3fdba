// What a ninth newcomer was told wrongly or not at all: pictures and questions under names that several images have,
// tokens that are unknown, texts that are too long, shards and links in archives, schedules that do nothing.
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/tar.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NinthWalk : public Commands {
 protected:
  static Outcome with_shipped(const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
  }
  static std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) {
      all += text;
    }
    return all;
  }
  static std::string golden(const std::string& name) { return golden_path("models/predictions/" + name).string(); }
  // Scenes as a/x.png, b/x.png and x-2.png.
  static void make_scenes(const std::string& folder) {
    ASSERT_EQ(vitrail("scenes " + path(folder) + " --count 3").status, 0);
    for (const auto& [from, to] : {std::pair{"0", "a/x"}, std::pair{"1", "b/x"}, std::pair{"2", "x-2"}}) {
      const fs::path file = path(folder + "/" + to + ".png");
      fs::create_directories(file.parent_path());
      fs::copy_file(path(folder + "/images/00000" + from + ".png"), file);
    }
  }
};

TEST_F(NinthWalk, DrawsNoPictureOverAnother) {
  make_scenes("drawn");
  const std::string detect = "detect vitrail/scenes_detr --threads 1 ";
  const std::string x = path("drawn/a/x.png") + " " + path("drawn/b/x.png");
  const std::string out = path("drawn/out");
  ASSERT_EQ(with_shipped(detect + x + " " + path("drawn/x-2.png") + " --output " + out).status, 0);
  for (const char* name : {"x.png", "x-2.png", "x-2-2.png"}) {
    EXPECT_TRUE(fs::exists(fs::path(out) / name)) << name;
  }
  EXPECT_THAT(with_shipped(detect + path("drawn/a/x.png") + " --output " + out).err,
              HasSubstr("has 2 other pictures that were there before"));
  const Outcome counted = with_shipped(detect + x + " --format json");
  EXPECT_THAT(counted.err, HasSubstr("image_id counts the images from 1"));
  const Outcome named = with_shipped(detect + path("drawn/images/000002.png") + " --format json");
  EXPECT_EQ(named.err, "");
  EXPECT_EQ(json::parse(named.out).at(0).at("image_id"), 2);
}

TEST_F(NinthWalk, AsksQuestionsOfTheirOwnImages) {
  make_scenes("asked");
  const std::string questions = write(
      "asked/q.csv", "path,question,answer\na/x.png,how many birds are there?,1\nb/x.png,is there a giraffe?,yes\n");
  const auto gallery = [&](const std::string& images) {
    return with_shipped("gallery " + images + " --vqa vitrail/scenes_vqa --threads 1 --questions " + questions +
                        " --output " + path("asked/g.html"));
  };
  const std::string both = path("asked/a/x.png") + " " + path("asked/b/x.png");
  EXPECT_THAT(gallery(both).out,
              AllOf(HasSubstr("of 1 answers are right"), HasSubstr("1 question the model could not")));
  fs::create_directories(path("asked/c"));
  fs::copy_file(path("asked/a/x.png"), path("asked/c/x.png"));
  const Outcome other = gallery(path("asked/c/x.png") + " " + path("asked/x-2.png"));
  EXPECT_THAT(other.err, AllOf(HasSubstr("it is not clear which image"), HasSubstr("has no question about any of")));
}

TEST_F(NinthWalk, CountsCharactersAndNotTokensThatStandForThem) {
  const std::string text = write("lm/train.txt", repeated("der Hund ist da\n", 40));
  const std::string other = write("lm/other.txt", repeated("der Zar ißt Eis\n", 20));
  const Outcome run = vitrail("train --task lm " + text + " --val-data " + other +
                              " --model gpt2 --model-kwargs n_layer=1 n_embd=8 n_head=1 --tokenizer char --block-size "
                              "16 -b 4 --epochs 1 --threads 1 --output " +
                              path("runs") + " --experiment lm");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("other.txt: 60 of 320 tokens are [UNK]"));
  const std::string metrics = io::lines_of(io::read_text(path("runs/lm/metrics.jsonl"))).back();
  const json judged = json::parse(vitrail("eval " + path("runs/lm") + " " + other + " --json --threads 1").out);
  EXPECT_NEAR(json::parse(metrics).at("bits_per_character").get<double>(), judged.at("bits_per_character"), 0.02);
}

TEST_F(NinthWalk, LeavesOutPairsThatAreTooLongBeforeItTrains) {
  write("pairs/de", repeated("der Hund\ndie Katze\n", 20));
  write("pairs/en", repeated("the dog\nthe cat\n", 20));
  write("pairs/val.de", "der Hund\n" + repeated("die Katze ", 30) + "\n");
  write("pairs/val.en", "the dog\nthe cats\n");
  const Outcome run =
      vitrail("train --task translate --src " + path("pairs/de") + " --tgt " + path("pairs/en") + " --val-src " +
              path("pairs/val.de") + " --val-tgt " + path("pairs/val.en") +
              " --vocab-size 20 --model-kwargs d_model=16 encoder_layers=1 decoder_layers=1 encoder_ffn_dim=16 "
              "decoder_ffn_dim=16 encoder_attention_heads=2 decoder_attention_heads=2 max_position_embeddings=24 "
              "--epochs 1 --threads 1 --output " +
              path("runs") + " --experiment pairs");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 pair to evaluate on left out: the model reads at most 24 tokens"));
  EXPECT_TRUE(fs::exists(path("runs/pairs/best")));
}

TEST_F(NinthWalk, TellsWhatBecomesOfTexts) {
  const Outcome two = vitrail("predict " + golden("classes") + " 'two dogs' '' --threads 1");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("two dogs:"));
  EXPECT_THAT(two.err, HasSubstr("1 empty line left out"));
  refuses("predict " + golden("classes") + " ''", "there are no texts");
  const std::string longer = "'[MASK] " + repeated("dogs ", 600) + "'";
  const Outcome masked = vitrail("fill-mask " + golden("fill_mask") + " " + longer);
  EXPECT_EQ(masked.status, 1);
  EXPECT_THAT(masked.err, HasSubstr("the model is made for at most 20: --truncate cuts it"));
  EXPECT_EQ(vitrail("fill-mask " + golden("fill_mask") + " " + longer + " --truncate").status, 0);
}

TEST_F(NinthWalk, TakesShardsWhereverImagesAreTaken) {
  ASSERT_EQ(vitrail("shard " + path("data") + " --split train --output " + path("shards")).status, 0);
  const std::string one = "'" + path("shards/train-{000000..000000}.tar") + "'";
  for (const std::string& source : {one, path("shards"), path("shards/train.json")}) {
    const Outcome said = vitrail("predict " + best() + " " + source + " --format json --threads 1");
    ASSERT_EQ(said.status, 0) << said.err;
    const json list = json::parse(said.out);
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

TEST_F(NinthWalk, KnowsShardsByTheClassesInTheirJson) {
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

TEST_F(NinthWalk, TakesNoFieldOfATableInSilence) {
  make_scenes("table");
  const std::string table = write("table/q.csv", "a/x.png,how many birds, if any, are there?,1\n");
  refuses("train --task vqa " + table, "line 1 has 5 fields, but 3 were expected: put what has separators in quotes");
  write("table/labels.txt",
        "\xef\xbb\xbf"
        "red\nblue\n");
  const Outcome labels = with_shipped("zeroshot vitrail/scenes_clip " + path("table/a/x.png") + " --labels " +
                                      path("table/labels.txt") + " --format json --threads 1");
  ASSERT_EQ(labels.status, 0) << labels.err;
  EXPECT_THAT(labels.out, HasSubstr("\"label\": \"red\""));
}

TEST_F(NinthWalk, SaysWhatLiesBesideThePartThatIsTaken) {
  fs::copy(path("data"), path("twice"), fs::copy_options::recursive);
  io::TarWriter tar(path("twice/train.tar"));
  tar.add("red/1.png", io::read_bytes(path("data/train/red/1.png")));
  tar.commit();
  EXPECT_THAT(vitrail("eval " + best() + " " + path("twice") + " --split train --threads 1").err,
              HasSubstr("takes 'train' and leaves 'train.tar'"));
}

TEST_F(NinthWalk, RefusesSchedulesThatDoNothing) {
  const std::string train = "train " + path("data") + small() + " --epochs 3 --output " + path("runs");
  refuses(train + " --lr 1e-3 --warmup-lr 1e-2", "--warmup-lr 0.01 is above the learning rate 0.001", 2);
  refuses(train + " --sched multistep --decay-milestones 5 9", "--decay-milestones [5, 9] never decays in 3 --epochs",
          2);
  const Outcome still = vitrail(train + " --lr 0 --experiment still");
  ASSERT_EQ(still.status, 0) << still.err;
  ASSERT_EQ(vitrail(train + " --lr 0 --experiment again --epochs 1").status, 0);
  EXPECT_EQ(io::read_bytes(path("runs/still/last/model.safetensors")),
            io::read_bytes(path("runs/again/last/model.safetensors")));
}

TEST_F(NinthWalk, GoesOnFromWhatIsARun) {
  refuses("train --resume " + path("runs/one") + " --epochs 2", "is in epoch 3 already: it cannot end after 2");
  EXPECT_THAT(io::read_text(path("runs/one/config.toml")), HasSubstr("epochs = 3\n"));
  refuses("train --resume " + best(), "is not a run folder: it has no config.toml, but");
  const Outcome of_folder = vitrail("train -c " + path("runs/one") + " --epochs 1 --experiment of_folder");
  EXPECT_EQ(of_folder.status, 0) << of_folder.err;
  refuses("train " + path("data") + " -c " + write("nan.toml", "lr = nan\n"), "'lr' is nan, which is no number");
  refuses("predict " + best() + " " + path("data/train/red/1.png") + " --num-classes 0",
          "--num-classes 0 leaves no classes", 2);
}

TEST_F(NinthWalk, NamesWhatItDoesNotTake) {
  const Tensor x = Tensor::zeros({1, 3, 16, 16});
  io::save_safetensors(path("x.safetensors"), {{"x", x}, {"labels", Tensor::zeros({1})}});
  const Outcome forward = vitrail("forward " + best() + " --threads 1 --input " + path("x.safetensors") + " --output " +
                                  path("y.safetensors"));
  EXPECT_EQ(forward.status, 0) << forward.err;
  EXPECT_THAT(forward.err, HasSubstr("'labels' is no input of '" + best()));
  const std::string red = path("data/train/red/1.png");
  const std::string table = write("both.csv", red + ",red\n" + red + ",blue\n");
  EXPECT_THAT(vitrail("eval " + best() + " " + table + " --threads 1").err,
              HasSubstr("1 image under several classes, such as " + red));
  EXPECT_THAT(vitrail("scenes " + path("few") + " --count 2 --preview 9").err,
              HasSubstr("--preview 9 shows the 2 scenes that there are"));
}

TEST_F(NinthWalk, FindsImagesWhoseNamesAreNoUtf8) {
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
