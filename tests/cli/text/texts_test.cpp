// Commands on models of texts, as a person types them.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string model(const std::string& name) { return golden_path("models/" + name).string(); }

TEST(FillMask, NamesTokens) {
  const std::string folder = model("predictions/fill_mask");
  const Outcome text = vitrail("fill-mask " + folder + " 'A man is [MASK] a horse.' --top-k 2 --threads 1");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("  6.6 %  .                a man is. a horse.\n"));
  const Outcome one = vitrail("fill-mask " + folder + " - --json --top-k 3 --threads 1", "two [MASK]\n[MASK] [MASK]\n");
  ASSERT_EQ(one.status, 0) << one.err;
  const json lists = json::parse(one.out);  // one for each text
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0].size(), 3U);
  EXPECT_TRUE(lists[0][0].contains("token_str"));
  EXPECT_EQ(lists[1].size(), 2U);  // a list for each mask
  // A text in brackets is no list.
  EXPECT_EQ(vitrail("fill-mask " + folder + " '[MASK] [MASK]' 'a [MASK]' --threads 1").status, 0);
  EXPECT_THAT(vitrail("fill-mask " + folder + " hello").err, HasSubstr("there is no [MASK] in 'hello'"));
  EXPECT_THAT(vitrail("fill-mask bert-tiny '[MASK]'").err,
              HasSubstr("'bert-tiny' is the name of a model, whose weights are random"));
  EXPECT_THAT(vitrail("fill-mask " + model("predictions/classes") + " '[MASK]'").err,
              HasSubstr("the model does not predict masked tokens"));
}

TEST(PredictTexts, NamesClassesAndLabels) {
  const std::string classes = "predict " + model("predictions/classes") + " --threads 1 ";
  EXPECT_THAT(vitrail(classes + "'two dogs' --topk 1").out, StartsWith("two dogs:  O 43.4 %\n"));
  EXPECT_THAT(vitrail(classes + "'a, b' --format csv").out, HasSubstr("\"a, b\",1,"));
  const json list = json::parse(vitrail(classes + "- --format json", "snow\n\ntwo dogs\n").out);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1]["text"], "two dogs");
  EXPECT_EQ(list[1]["top"].size(), 3U);
  const std::string tokens = "predict " + model("predictions/tokens") + " --threads 1 ";
  EXPECT_THAT(vitrail(tokens + "'two dogs'").out, StartsWith("two\tB-person\t48.4 %\ndogs\tB-animal\t75.6 %\n"));
  EXPECT_EQ(json::parse(vitrail(tokens + "'two dogs' --format json").out)[0]["tokens"][1]["start"], 4);
  EXPECT_THAT(vitrail(tokens + "'two dogs' --format csv").out, HasSubstr("two dogs,2,dogs,B-animal,"));
  EXPECT_THAT(vitrail(classes + "x --tta 2").err, HasSubstr("it takes no --tta"));
  for (const std::string flag : {"--crop-pct 1", "--crop-mode squash", "--interpolation nearest", "--mean 0.5",
                                 "--std 0.5", "--img-size 32", "--num-classes 2"}) {
    EXPECT_THAT(vitrail(classes + "x " + flag).err, HasSubstr("it takes no --num-classes, --img-size or other flags"));
  }
  EXPECT_THAT(vitrail("predict " + model("text/bert_bare") + " x").err, HasSubstr("(BertModel) has no classes"));
}

// A model whose config.json says "regression" predicts numbers, of which none is likelier than another.
TEST(PredictTexts, GivesTheNumbersOfARegression) {
  const TemporaryFolder temporary;
  const std::string folder = (temporary / "numbers").string();
  std::filesystem::copy(model("predictions/classes"), folder);
  json config = io::read_json(folder + "/config.json");
  config["problem_type"] = "regression";
  std::ofstream(folder + "/config.json") << config;
  const std::string command = "predict " + folder + " 'two dogs' --threads 1 --format ";
  const json top = json::parse(vitrail(command + "json").out)[0]["top"];
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0]["index"], 0);
  EXPECT_FALSE(top[0].contains("probability"));
  EXPECT_THAT(vitrail(command + "csv").out, StartsWith("text,rank,label,index,value\n"));
  EXPECT_THAT(vitrail(command + "text").out, Not(HasSubstr("%")));
  EXPECT_THAT(vitrail(command + "text --topk 1").err, HasSubstr("predicts numbers: it takes no --topk"));
  const std::string moods = (temporary / "moods.tsv").string();
  std::ofstream(moods) << "O\ttwo dogs\n";
  EXPECT_THAT(vitrail("eval " + folder + " " + moods + " --threads 1").err,
              HasSubstr("predicts numbers ('problem_type' is 'regression'), not the classes of"));
}

TEST(EmbedTexts, GivesVectorsSimilaritiesAndNeighbours) {
  const std::string folder = model("sentences/mean");
  const std::string embed = "embed " + folder + " --threads 1 ";
  const TemporaryFolder temporary;
  const std::string file = (temporary / "x.safetensors").string();
  const Outcome written = vitrail(embed + folder + "/texts.txt --output " + file);
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("features [8, 8] f32, with 8 texts"));
  const Tensor expected = io::Safetensors::open(folder + "/expected.safetensors").get("embeddings");
  expect_close(io::Safetensors::open(file).get("features"), expected, 1e-5);
  EXPECT_EQ(vitrail(embed + "--similarity 'two dogs' 'two dogs'").out, "1.0000\n");
  EXPECT_NEAR(json::parse(vitrail(embed + "--similarity 'two dogs' 'dogs run' --json").out)["similarity"], 0.9854,
              1e-3);
  EXPECT_THAT(vitrail(embed + "'two dogs' --topk 1 --search " + folder + "/texts.txt").out,
              StartsWith("1.0000  two dogs\n"));
  const json hits =
      json::parse(vitrail(embed + "- --json --topk 2 --search " + folder + "/texts.txt", "snow\nthe man\n").out);
  EXPECT_EQ(hits[1]["hits"][0]["index"], 5);
  EXPECT_EQ(json::parse(vitrail(embed + "snow --json").out)[0]["embedding"].size(), 8U);
  EXPECT_THAT(vitrail(embed + "snow --json --crop-pct 1").err, HasSubstr("or other flags of images"));
  EXPECT_THAT(vitrail(embed + "snow").err, HasSubstr("name what to do with the vectors"));
  EXPECT_THAT(vitrail(embed).err, HasSubstr("name texts to embed, or two by --similarity"));
  EXPECT_THAT(vitrail("embed vit_tiny_patch16_224 --output y.safetensors").err, HasSubstr("DATA is required"));
}

// `--task classify`, which is the default, is about texts where the data or the model are.
TEST(TrainTexts, LearnsFromAFileOfTexts) {
  const TemporaryFolder temporary;
  const auto path = [&](const std::string& name) { return (temporary / name).string(); };
  std::ofstream texts(path("moods.tsv"));
  for (int i = 0; i < 8; ++i) {
    texts << "good\tthe man is riding a horse\nbad\ttwo dogs run on the snow\n";
  }
  texts.close();
  const Outcome trained =
      vitrail("train " + path("moods.tsv") + " --model " + model("predictions/classes") +
              " --epochs 2 --batch-size 4 --threads 1 --output " + path("runs") + " --experiment moods");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("BertForSequenceClassification"));
  EXPECT_THAT(vitrail("predict " + path("runs/moods") + " 'two dogs' --threads 1").out, HasSubstr("bad"));
  EXPECT_EQ(vitrail("train --resume " + path("runs/moods") + " --epochs 3 --threads 1").status, 0);
  EXPECT_THAT(vitrail("train --task embed --src a").err, HasSubstr("embed wants --src and --tgt"));
  EXPECT_THAT(vitrail("pretrain bert").err, HasSubstr("--data is missing: a text file, or --examples"));
}

TEST(FillMask, TakesSeveralTargetsBehindTheTexts) {
  const std::string model = golden_path("models/predictions/fill_mask").string();
  const std::string texts = "'A man is [MASK] a horse.' ";
  const Outcome several = vitrail("fill-mask " + model + " " + texts + "--targets a and --json --threads 1");
  ASSERT_EQ(several.status, 0) << several.err;
  const nlohmann::json list = nlohmann::json::parse(several.out);
  ASSERT_EQ(list.size(), 2U);
  for (const nlohmann::json& one : list) {
    EXPECT_TRUE(one["token_str"] == "a" || one["token_str"] == "and") << one;
  }
  EXPECT_EQ(vitrail("fill-mask " + model + " " + texts + "--targets a --targets and --json --threads 1").out,
            several.out);
  EXPECT_EQ(vitrail("fill-mask --targets a --targets and " + model + " " + texts + "--json --threads 1").out,
            several.out)
      << "in front of the texts one a flag";
  EXPECT_EQ(vitrail("fill-mask " + model + " --targets and --threads 1 " + texts + "--json --targets a").out,
            several.out);
}

TEST(FillMask, PrintsOneListOfSeveralTexts) {
  const std::string model = golden_path("models/predictions/fill_mask").string();
  const nlohmann::json all =
      nlohmann::json::parse(vitrail("fill-mask " + model + " 'two [MASK]' '[MASK] [MASK]' --json --top-k 3").out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].size(), 3U);
  EXPECT_TRUE(all[0][0].contains("token_str"));
  EXPECT_EQ(all[1].size(), 2U) << "a list for each mask";
}

}  // namespace
}  // namespace vitrail::test
