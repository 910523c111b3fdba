// What people who know transformers stumble on when they use models of texts for the first time.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "vitrail/io/file.h"

namespace vitrail {
namespace {

using nlohmann::json;
using test::Outcome;
using test::vitrail;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A small language model and a translator, which have learned next to nothing.
class TextNewcomer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += "der Bär ist da.\n";
    }
    write("text.txt", text);
    trained_ = vitrail("train " + path("text.txt") +
                       " --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 20 --epochs 1 -b 4 "
                       "--threads 1 --output " +
                       path("runs") + " --experiment one");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string model(const std::string& name) { return test::golden_path("models/" + name).string(); }
  static Outcome generate(const std::string& arguments, const std::string& input = "") {
    return vitrail("generate " + path("runs/one") + " " + arguments + " --threads 1", input);
  }
  static void fails(const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }

  static inline test::TemporaryFolder* folder_ = nullptr;
  static inline Outcome trained_;
};

TEST_F(TextNewcomer, IsToldOfFlagsOfGenerationThatChangeNothing) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  const Outcome greedy = generate("'der B' --temperature 0.5 --top-k 5 --seed 3 --length-penalty 2 --max-new-tokens 3");
  EXPECT_EQ(greedy.status, 0);
  EXPECT_THAT(greedy.err, HasSubstr("without --do-sample, --temperature, --top-k, --seed changes nothing"));
  EXPECT_THAT(greedy.err, HasSubstr("without --num-beams, --length-penalty changes nothing"));
  EXPECT_THAT(generate("'der B' --max-matching-ngram-size 3 --max-new-tokens 3").err,
              HasSubstr("without --prompt-lookup-num-tokens, --max-matching-ngram-size changes nothing"));
  EXPECT_THAT(generate("'der B' --do-sample --top-k 5 --seed 3 --max-new-tokens 3").err, Not(HasSubstr("note: ")));
  EXPECT_EQ(generate("'der B' --no-repeat-ngram-size 0 --max-new-tokens 3").status, 0);
  fails(generate("'der B' --stop ''"), 2, "--stop is empty");
  fails(generate("'der B' --top-p 0 --do-sample"), 2, "--top-p must be above 0");
  fails(generate("'der B' --dtype fp16"), 2, "--dtype: fp16 not in {f32,bf16,int8");
}

TEST_F(TextNewcomer, IsToldWhatAPromptLacks) {
  fails(generate("'der B' --max-new-tokens 30"), 1,
        "the prompt has 5 tokens, and with 30 new ones it would be longer than the 20 that the model is made for: "
        "--slide goes on beyond them");
  fails(generate("'der B' --max-new-tokens 30 --slide --num-beams 2"), 2, "--slide goes on with one text");
  fails(generate("--prompts " + write("prompts.txt", "der\n\nist\n")), 1, "prompts.txt: line 2 is empty");
  fails(generate("--prompts " + write("latin.txt", "der\nB\xe4r\n")), 1,
        "latin.txt: line 2 is not UTF-8: byte 2 of it is 0xe4");
  EXPECT_EQ(generate("--prompts - --max-new-tokens 2", "der\nist\n").out,
            generate("--prompts " + write("two.txt", "der\nist\n") + " --max-new-tokens 2").out);
  EXPECT_THAT(generate("'der x' --max-new-tokens 2").err, HasSubstr("1 of 5 tokens is [UNK]"));
}

TEST_F(TextNewcomer, EvaluatesEachKindOfModelOfTexts) {
  const Outcome p = vitrail("predict " + model("predictions/classes") + " 'two dogs' --format json --threads 1");
  ASSERT_EQ(p.status, 0) << p.err;
  const json top = json::parse(p.out)[0]["top"];
  const std::string best = top[0]["label"], other = top[1]["label"];
  const std::string table = write("classes.tsv", best + "\ttwo dogs\n" + other + "\ttwo dogs\n");
  const Outcome classes = vitrail("eval " + model("predictions/classes") + " " + table + " --json --threads 1");
  ASSERT_EQ(classes.status, 0) << classes.err;
  const json figures = json::parse(classes.out);
  EXPECT_DOUBLE_EQ(figures["accuracy"], 50);
  const double loss =
      (std::log(top[0]["probability"].get<double>()) + std::log(top[1]["probability"].get<double>())) / -2;
  EXPECT_NEAR(figures["loss"], loss, 1e-4);
  fails(vitrail("eval " + model("predictions/classes") + " " + write("odd.tsv", "odd\ttwo dogs\n")), 1,
        "the label 'odd' is none of the");
  fails(vitrail("eval " + model("predictions/classes") + " x --crop-pct 1"), 2, "or other flags of images");
  fails(vitrail("quantize " + model("predictions/classes") + " --output " + path("q") + " --mean 0.5"), 2,
        "or other flags of images");

  const std::string words = write("words.conll", "two\tB-person\ndogs\tB-person\n\n");
  const Outcome tokens =
      vitrail("eval " + model("predictions/tokens") + " " + words + " --threads 1 --output " + path("report"));
  ASSERT_EQ(tokens.status, 0) << tokens.err;
  EXPECT_THAT(tokens.out, StartsWith("accuracy 50.00 %   loss ")) << "two dogs are a person and an animal";
  EXPECT_TRUE(std::filesystem::exists(path("report/eval.json")));
  EXPECT_THAT(io::read_text(path("report/confusion.svg")), HasSubstr("Confusion matrix: 50.0 % of 2 words right"));
  const std::string drawn = " 'two dogs' --threads 1 --output " + path("words.svg");
  EXPECT_EQ(vitrail("predict " + model("predictions/tokens") + drawn).status, 0);
  EXPECT_THAT(io::read_text(path("words.svg")), HasSubstr("<title>B-person: "));
  fails(vitrail("predict " + model("predictions/classes") + drawn), 2, "labels no words: it takes no --output");

  const std::string sentences = write("sentences.txt", "two dogs\nsnow falls\na man rides\n");
  EXPECT_THAT(vitrail("eval " + model("sentences/mean") + " --src " + sentences + " --tgt " + sentences).out,
              StartsWith("recall@1 100.00 %"))
      << "each sentence is its own neighbour";
  fails(vitrail("eval " + model("sentences/mean") + " " + sentences), 2, "evaluated on --src and --tgt");

  const std::string documents = write("documents.txt", "two dogs run.\na man rides.\n\nsnow falls.\nit is cold.\n");
  const Outcome masked = vitrail("eval " + model("predictions/fill_mask") + " " + documents + " --threads 1");
  EXPECT_EQ(masked.status, 0) << masked.err;
  EXPECT_THAT(masked.out, HasSubstr("masked tokens"));
  fails(vitrail("eval " + path("runs/one")), 2, "DATA is required: a text");
}

TEST_F(TextNewcomer, LeavesLinesOutThatAreNotUtf8) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += i % 20 == 7 ? "sch\xf6n\n" : "der Mann ist da.\n";
  }
  const std::string flags =
      " --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 8 --epochs 1 "
      "--threads 1 --output " +
      path("skip") + " --experiment ";
  const std::string latin = write("broken.txt", text);
  fails(vitrail("train " + latin + flags + "a"), 1, "broken.txt: line 8 is not UTF-8: byte 4 of it is 0xf6");
  const Outcome skipped = vitrail("train " + latin + flags + "b --skip-broken");
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("2 lines that are not UTF-8 are left out"));
}

TEST_F(TextNewcomer, WritesSamplesWithAVocabularyThatIsLargerThanTheTokenizers) {
  ASSERT_EQ(vitrail("tokenizer train " + path("text.txt") + " --vocab-size 260 --output " + path("bpe")).status, 0);
  const Outcome outcome = vitrail("train " + path("text.txt") +
                                  " --task lm --model gpt2 --model-kwargs n_layer=1 "
                                  "n_head=2 n_embd=16 vocab_size=4000 --tokenizer " +
                                  path("bpe") + " --block-size 16 --epochs 1 --threads 1 --output " + path("large"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("samples.txt"));
}

TEST_F(TextNewcomer, ComparesRunsOfAllTasks) {
  write("speakers.tsv", "a\tder Mann\nb\tdie Frau\na\tder Hund\nb\tdie Katze\n");
  const std::string flags =
      " --model bert-tiny --model-kwargs hidden_size=16 num_attention_heads=2 "
      "num_hidden_layers=1 intermediate_size=16 --tokenizer " +
      model("predictions/tokens") + " --val-data " + path("speakers.tsv") + " --epochs 1 --threads 1 --output " +
      path("runs");
  const Outcome trained = vitrail("train " + path("speakers.tsv") + flags + " --experiment speakers");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome compared = vitrail("compare " + path("runs/speakers"));
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("best accuracy"));
  EXPECT_EQ(vitrail("eval " + path("runs/speakers") + " " + path("speakers.tsv")).status, 0);
}

TEST_F(TextNewcomer, LeavesTheTaskAwayWhereThereIsNoChoice) {
  const std::string help = " --help";
  EXPECT_THAT(vitrail("train " + path("text.txt") + " --model " + path("runs/one") + help).out,
              HasSubstr("--block-size"));
  EXPECT_THAT(vitrail("train --model transformer-small" + help).out, HasSubstr("--batch-tokens"));
  EXPECT_THAT(vitrail("train --model bert-tiny --src a --tgt b" + help).out, HasSubstr("--pool"));
  fails(vitrail("train " + path("text.txt")), 2, "of a text, say what is learned: --task lm");
  fails(vitrail("train --src a --tgt b"), 2, "vitrail train --task embed, translate have it");
}

TEST_F(TextNewcomer, IsToldWhichModelsACommandTakes) {
  for (const std::string& command :
       {"convert " + path("runs/one") + " --output " + path("x"), "positions " + path("runs/one"),
        "report " + path("runs/one") + " " + path("text.txt") + " --output " + path("x")}) {
    fails(vitrail(command), 1, "is a model of texts, but this takes models that classify or embed images");
  }
  fails(vitrail("attention " + path("runs/one") + " cat.jpg"), 2, "is a model of texts: name one by --text");
  EXPECT_THAT(vitrail("models 'gpt2*'").out, HasSubstr("gpt2-xl"));
  EXPECT_THAT(vitrail("models --names").out, HasSubstr("\nbert-base-uncased\n"));
  EXPECT_EQ(vitrail("models --json gpt2").status, 0);
}

TEST_F(TextNewcomer, MistypesNamesOfFiles) {
  const std::string embed = "embed " + model("sentences/mean") + " ";
  fails(vitrail(embed + "'two dogs' --search " + path("none.txt")), 1, "there is no file");
  fails(vitrail(embed + "--similarity 'two dogs'"), 2, "--similarity compares two texts, but one is given");
  fails(vitrail(embed + "'two dogs' --output " + path("v.csv")), 2, "does not end in .safetensors");
  EXPECT_THAT(vitrail("predict " + model("predictions/classes") + " reviews.txt").err,
              HasSubstr("note: there is no file 'reviews.txt': it is taken as a text"));
  fails(vitrail("train " + write("plain.txt", "two dogs run\na man\n") + " --task tag --model bert-tiny --tokenizer " +
                model("predictions/tokens") + " --output " + path("y")),
        1, "plain.txt: line 2 has 2 columns, but those before have 3");
}

}  // namespace
}  // namespace vitrail
