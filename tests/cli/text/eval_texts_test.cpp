// vitrail eval of models of texts.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/language_model.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class EvalTexts : public LanguageModel {};

TEST_F(EvalTexts, TakesEachKindOfModel) {
  const Outcome p = vitrail("predict " + golden_model("predictions/classes") + " 'two dogs' --format json --threads 1");
  ASSERT_EQ(p.status, 0) << p.err;
  const nlohmann::json top = nlohmann::json::parse(p.out)[0]["top"];
  const std::string best = top[0]["label"], other = top[1]["label"];
  const std::string table = write("classes.tsv", best + "\ttwo dogs\n" + other + "\ttwo dogs\n");
  const Outcome classes = vitrail("eval " + golden_model("predictions/classes") + " " + table + " --json --threads 1");
  ASSERT_EQ(classes.status, 0) << classes.err;
  const nlohmann::json figures = nlohmann::json::parse(classes.out);
  EXPECT_DOUBLE_EQ(figures["accuracy"], 50);
  const double loss =
      (std::log(top[0]["probability"].get<double>()) + std::log(top[1]["probability"].get<double>())) / -2;
  EXPECT_NEAR(figures["loss"], loss, 1e-4);
  fails(vitrail("eval " + golden_model("predictions/classes") + " " + write("odd.tsv", "odd\ttwo dogs\n")), 1,
        "the label 'odd' is none of the");
  fails(vitrail("eval " + golden_model("predictions/classes") + " x --crop-pct 1"), 2, "or other flags of images");
  fails(vitrail("quantize " + golden_model("predictions/classes") + " --output " + path("q") + " --mean 0.5"), 2,
        "or other flags of images");

  const std::string words = write("words.conll", "two\tB-person\ndogs\tB-person\n\n");
  const Outcome tokens =
      vitrail("eval " + golden_model("predictions/tokens") + " " + words + " --threads 1 --output " + path("report"));
  ASSERT_EQ(tokens.status, 0) << tokens.err;
  EXPECT_THAT(tokens.out, StartsWith("accuracy 50.00 %   loss ")) << "two dogs are a person and an animal";
  EXPECT_TRUE(std::filesystem::exists(path("report/eval.json")));
  EXPECT_THAT(io::read_text(path("report/confusion.svg")), HasSubstr("Confusion matrix: 50.0 % of 2 words right"));
  const std::string drawn = " 'two dogs' --threads 1 --output " + path("words.svg");
  EXPECT_EQ(vitrail("predict " + golden_model("predictions/tokens") + drawn).status, 0);
  EXPECT_THAT(io::read_text(path("words.svg")), HasSubstr("<title>B-person: "));
  fails(vitrail("predict " + golden_model("predictions/classes") + drawn), 2, "labels no words: it takes no --output");

  const std::string sentences = write("sentences.txt", "two dogs\nsnow falls\na man rides\n");
  EXPECT_THAT(vitrail("eval " + golden_model("sentences/mean") + " --src " + sentences + " --tgt " + sentences).out,
              StartsWith("recall@1 100.00 %"))
      << "each sentence is its own neighbour";
  fails(vitrail("eval " + golden_model("sentences/mean") + " " + sentences), 2, "evaluated on --src and --tgt");

  const std::string documents = write("documents.txt", "two dogs run.\na man rides.\n\nsnow falls.\nit is cold.\n");
  const Outcome masked = vitrail("eval " + golden_model("predictions/fill_mask") + " " + documents + " --threads 1");
  EXPECT_EQ(masked.status, 0) << masked.err;
  EXPECT_THAT(masked.out, HasSubstr("masked tokens"));
  fails(vitrail("eval " + path("runs/one")), 2, "DATA is required: a text");
}

class TextsToEvaluate : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    std::ofstream words(path("words.txt"));
    for (int i = 0; i < 40; ++i) {
      words << "a red circle and " << i << " birds\n";
    }
  }
};

TEST_F(TextsToEvaluate, AreCountedIfTheyAreCut) {
  const std::string longer = "two two two two two two two two two two two two two two two two two two two two two two";
  const std::string texts = write("long.tsv", "O\ttwo dogs\nB-animal\t" + longer + "\n");
  const std::string classes = golden_model("predictions/classes");
  EXPECT_THAT(vitrail("eval " + classes + " " + texts + " --threads 1").err,
              HasSubstr("note: 1 of 2 texts has more than 20 tokens and is cut"));
  EXPECT_THAT(train_task(texts + " --model " + classes + " --val-data " + texts + " --epochs 1", "cut").out,
              HasSubstr("2 of 4 texts have more than 20 tokens and are cut"));
  std::string words;
  for (int i = 0; i < 30; ++i) {
    words += "two O\n";
  }
  const std::string tags = write("long.conll", words + "\ndogs B-animal\n");
  EXPECT_THAT(vitrail("eval " + golden_model("predictions/tokens") + " " + tags + " --threads 1").err,
              HasSubstr("1 of 2 sentences has more than 20 tokens and is cut"));
  EXPECT_THAT(vitrail("eval " + classes + " " + write("short.tsv", "O\ttwo dogs\n") + " --threads 1").err, "");
  EXPECT_THAT(
      vitrail("eval " + classes + " " + write("latin.tsv", "O\ttwo\nO\tB\xe4r\n") + " --skip-broken --threads 1").err,
      HasSubstr("1 line that is not UTF-8 is left out"));
}

TEST_F(TextsToEvaluate, AreForModelsThatTakeNoArguments) {
  const std::string text = path("words.txt");
  ASSERT_EQ(vitrail("tokenizer train " + text + " --model wordpiece --vocab-size 80 --output " + path("pieces")).status,
            0);
  const Outcome trained = train_epoch(
      "--task embed --src " + text + " --tgt " + text + " --model bert-tiny --tokenizer " + path("pieces"), "emb");
  ASSERT_EQ(trained.status, 0) << trained.err;
  refuses("eval " + path("runs/emb") + " --src " + text + " --tgt " + text + " --model-kwargs a=1",
          "makes vectors of texts: it takes no --model-kwargs", 2);
}

}  // namespace
}  // namespace vitrail::test
