// What a twenty-second newcomer would stumble on, and one who asks whether the documentation is true.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/tar.h"

namespace vitrail::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TwentySecondWalk : public Commands {
 protected:
  static void refuses(const std::string& command, const std::string& sentence) {
    const Outcome outcome = vitrail(command);
    EXPECT_NE(outcome.status, 0) << command;
    EXPECT_THAT(outcome.err, HasSubstr(sentence)) << command;
  }
  static std::string small(const std::string& name) {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3 "
           "--epochs 1 -b 8 --no-aug --threads 1 --output " +
           path("runs") + " --experiment " + name;
  }
};

// One archive of samples was taken for each part that was asked for: a training was evaluated on what it had learnt.
TEST_F(TwentySecondWalk, HoldsAShareOfOneShardOut) {
  ASSERT_EQ(vitrail("shard " + path("data") + " --output " + path("shards")).status, 0);
  fs::create_directories(path("alone"));
  fs::copy(path("shards/train-000000.tar"), path("alone/one.tar"));
  for (const std::string source : {"shards/train-000000.tar", "alone/one.tar", "shards/train.json"}) {
    const Outcome trained = vitrail("train " + path(source) + small("of-" + fs::path(source).filename().string()));
    ASSERT_EQ(trained.status, 0) << trained.err;
    EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1")) << source;
    EXPECT_THAT(trained.out + trained.err, HasSubstr("29 training and 3 validation images")) << source;
    EXPECT_THAT(vitrail("info " + path(source)).out, Not(HasSubstr("--val-split"))) << source;
  }
  const std::string one = path("alone/one.tar");
  const std::string sentence = "an archive of samples is of one part: it has no 'validation' images";
  refuses("eval " + best() + " " + one + " --split validation", sentence);
  refuses("knn " + one + " " + one + " --train-split train --split validation --model " + best(), sentence);
  refuses("train " + one + small("other") + " --train-split nonsense", "it has no 'nonsense' images");
  EXPECT_EQ(vitrail("eval " + best() + " " + one).status, 0);
  EXPECT_EQ(vitrail("eval " + best() + " " + one + " --split train").status, 0);
}

TEST_F(TwentySecondWalk, LearnsClassesOfSamplesThatHaveTextsToo) {
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
  const Outcome trained = vitrail("train " + path("both.tar") + small("both"));
  EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1")) << "its classes are said";
}

TEST_F(TwentySecondWalk, SaysHowTablesAreLearned) {
  std::string table = "path,label\n";
  for (int i = 0; i < 16; ++i) {
    table += "data/train/red/" + std::to_string(i) + ".png,red\ndata/train/blue/" + std::to_string(i) + ".png,blue\n";
  }
  write("table.csv", table);
  EXPECT_THAT(vitrail("info " + path("table.csv")).out,
              AllOf(HasSubstr("vitrail train"), Not(HasSubstr("--val-split"))));
  const Outcome trained = vitrail("train " + path("table.csv") + small("table"));
  EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1"));
}

TEST_F(TwentySecondWalk, EvaluatesDocumentsAsItDoesBlocks) {
  const std::string file =
      write("a.txt", "abc d\xc3\xa9\n\nabc\n\nabd\xc3\xa9 abd\n\nabc abc\n\nabc\n\nabc\n\nabc\n\nabc\n\nabc\n\nabd\n");
  const std::string run = path("runs/documents");
  ASSERT_EQ(vitrail("train " + file +
                    " --task lm --model lstm --model-kwargs hidden_size=8 --block-size 8 --epochs 1 --threads 1 "
                    "--documents --tokenizer char --output " +
                    path("runs") + " --experiment documents")
                .status,
            0);
  const std::string other = write("b.txt", "abc zebra\n\ncab d\xc3\xa9\n");
  const Outcome told = vitrail("eval " + run + " " + other);
  EXPECT_THAT(told.err, HasSubstr("tokens are [UNK]"));
  EXPECT_THAT(told.out, HasSubstr("per byte"));
  const auto judged = nlohmann::json::parse(vitrail("eval " + run + " " + other + " --json").out);
  EXPECT_NEAR(judged["bits_per_byte"].get<double>() / judged["bits_per_character"].get<double>(), 19.0 / 20, 1e-9);
  refuses("train " + path("data") + " --task lm --model " + best() + " --output " + path("no"), "is no model of texts");
}

}  // namespace
}  // namespace vitrail::test
