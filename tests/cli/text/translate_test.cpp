// `vitrail train --task translate` and `vitrail translate`, as a person types them.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Translating : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    write("train.de", repeated("der Hund\ndie Katze\nder Hund und die Katze\ndie Katze und der Hund\n", 40));
    write("train.en", repeated("the dog\nthe cat\nthe dog and the cat\nthe cat and the dog\n", 40));
    trained_ = vitrail("train --task translate --src " + path("train.de") + " --tgt " + path("train.en") +
                       " --val-src " + path("train.de") + " --val-tgt " + path("train.en") +
                       " --vocab-size 30 --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 "
                       "encoder_ffn_dim=64 decoder_ffn_dim=64 --batch-tokens 200 --epochs 12 --val-interval 12 --lr "
                       "5e-3 --warmup-steps 20 --model-ema-decay 0.9 --drop 0 --threads 1 --output " +
                       path("runs") + " --experiment one");
  }
  static Outcome translate(const std::string& arguments, const std::string& input = "") {
    return vitrail("translate " + path("runs/one") + " " + arguments + " --threads 1", input);
  }

  static inline Outcome trained_;
};

TEST_F(Translating, TranslatesLinesInTheirOrder) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out, HasSubstr("by 5 beams, BLEU "));
  const std::string text = "der Hund\n\ndie Katze und der Hund\r\ndie Katze";
  const Outcome outcome = translate("", text);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "the dog\n\nthe cat and the dog\nthe cat\n");
  EXPECT_THAT(outcome.err, HasSubstr("num_beams 5"));
  std::ofstream(path("text.de")) << text;
  EXPECT_EQ(translate(path("text.de") + " --num-beams 1 -b 1").out, outcome.out);
  EXPECT_THAT(translate(path("text.de") + " --num-beams 1 --length-penalty 3 --penalty wu").err,
              HasSubstr("note: without --num-beams, --length-penalty, --penalty changes nothing"));
  EXPECT_EQ(translate(path("text.de") + " --penalty wu --length-penalty 0.6").out, outcome.out);
}

TEST_F(Translating, LosesNothingInInt8) {
  const std::string quantize = "quantize " + path("runs/one") + " --threads 1 --output ";
  const std::string pairs = " --src " + path("train.de") + " --tgt " + path("train.en");
  EXPECT_EQ(vitrail(quantize + path("none") + " --eval " + path("train.de")).status, 2);
  const Outcome outcome = vitrail(quantize + path("small") + pairs);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("BLEU            100.00, was 100.00: +0.00"));
  EXPECT_EQ(vitrail("translate " + path("small") + " --threads 1", "die Katze\n").out, "the cat\n");
}

TEST_F(Translating, TakesBrokenLinesForEmptyOnesIfAsked) {
  const Outcome outcome = translate("--skip-broken", "die Katze\nsch\xf6n\ndie Katze");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "the cat\n\nthe cat\n");
  EXPECT_THAT(outcome.err, HasSubstr("note: 1 line that is not UTF-8 is taken for an empty one\n"));
  const std::string broken = write("broken.de", "die Katze\nB\xe4r\n");
  const std::string quantize = "quantize " + path("runs/one") + " --threads 1 --output " + path("whole") + " --src " +
                               broken + " --tgt " + write("whole.en", "the cat\nbear\n");
  refuses(quantize, "broken.de: line 2 is not UTF-8");
  const Outcome whole = vitrail(quantize + " --skip-broken");
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.err, HasSubstr("1 pair with a line that is not UTF-8 is left out"));
}

TEST_F(Translating, GivesSeveralTranslationsAndAlignments) {
  const Outcome best = translate("--n-best 2 --alignment", "\ndie Katze\n");
  ASSERT_EQ(best.status, 0) << best.err;
  EXPECT_THAT(best.out, StartsWith("0 |||  ||| 0.0000 ||| \n1 ||| the cat ||| -"));
  const Outcome outcome = translate("--json --alignment", "die Katze");
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["source"], "die Katze");
  EXPECT_EQ(json["tokens"].back(), "</s>");
  const nlohmann::json& translation = json["translations"][0];
  EXPECT_EQ(translation["text"], "the cat");
  EXPECT_EQ(translation["ids"].size(), translation["alignment"].size());
  EXPECT_EQ(translation["tokens"].back(), "</s>");
  EXPECT_LT(translation["score"].get<double>(), 0);
}

TEST_F(Translating, IsEvaluated) {
  const std::string data = " --src " + path("train.de") + " --tgt " + path("train.en") + " --threads 1";
  const Outcome outcome = vitrail("eval " + path("runs/one") + data);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("BLEU 100.00 "));
  EXPECT_THAT(outcome.out, HasSubstr("160 pairs"));
  EXPECT_THAT(outcome.out, HasSubstr("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"));
  const nlohmann::json json =
      nlohmann::json::parse(vitrail("eval " + path("runs/one") + data + " --num-beams 1 --json").out);
  EXPECT_NEAR(json["bleu"].get<double>(), 100, 1e-9);
  EXPECT_EQ(json["num_beams"], 1);
  EXPECT_GT(json["loss"].get<double>(), 0);
}

TEST_F(Translating, TakesATableOfPairs) {
  std::ifstream german(path("train.de"));
  std::ifstream english(path("train.en"));
  std::ofstream table(path("pairs.tsv"));
  for (std::string a, b; std::getline(german, a) && std::getline(english, b);) {
    table << a << "\t" << b << "\n";
  }
  table.close();
  const auto trained = [](const std::string& data, const std::string& name) {
    const Outcome outcome = vitrail("train " + data + " --task translate --vocab-size 30 --model-kwargs d_model=16 " +
                                    "encoder_layers=1 decoder_layers=1 encoder_ffn_dim=16 decoder_ffn_dim=16 " +
                                    "--batch-tokens 400 --epochs 3 --checkpoint-hist 2 --threads 1 --output " +
                                    path("runs") + " --experiment " + name);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::ifstream weights(path("runs/" + name + "/last/model.safetensors"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(weights), {});
  };
  const std::string by_lines = trained("--src " + path("train.de") + " --tgt " + path("train.en"), "by-lines");
  EXPECT_GT(by_lines.size(), 1000U);
  EXPECT_TRUE(trained(path("pairs.tsv") + " --val-src " + path("pairs.tsv"), "by-table") == by_lines);

  EXPECT_FALSE(std::filesystem::exists(path("runs/by-table/epochs/0001")));
  const std::string soup = "soup " + path("runs/by-table/epochs/0002") + " " + path("runs/by-table/epochs/0003");
  EXPECT_EQ(vitrail(soup + " --output " + path("average")).status, 0);
  EXPECT_EQ(vitrail("translate " + path("average") + " --threads 1", "die Katze\n").status, 0);

  const auto loss = [](const std::string& data) {
    const Outcome outcome = vitrail("eval " + path("runs/one") + " --threads 1 --num-beams 1 --json " + data);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["loss"].get<double>();
  };
  const double expected = loss("--src " + path("train.de") + " --tgt " + path("train.en"));
  EXPECT_EQ(loss(path("pairs.tsv")), expected);
  EXPECT_EQ(loss("--src " + path("pairs.tsv")), expected);
}

TEST_F(Translating, SaysWhatIsWrong) {
  const auto fails = [](const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  };
  fails(translate("--num-beams 2 --n-best 3", "x"), 2, "--n-best 3 must not be more than --num-beams 2");
  fails(translate("", "ja\nsch\xf6n"), 1, "standard input: line 2 is not UTF-8: byte 4 of it is 0xf6");
  fails(translate("nowhere.de"), 1, "nowhere.de");
  fails(vitrail("translate gpt2"), 1, "is the name of a model, whose weights are random");
  fails(vitrail("translate " + path("nowhere")), 1, "nowhere");
  fails(vitrail("eval " + path("runs/one") + " --src " + path("train.de")), 2, "is evaluated on --src and --tgt");
  fails(vitrail("eval " + path("runs/one")), 2, "a translator is evaluated on --src and --tgt");
  fails(vitrail("eval " + path("runs/one") + " x --src a --tgt b"), 2, "give DATA, or --src and --tgt, not both");
  fails(vitrail("train --task translate"), 2, "translate wants --src and --tgt");
}

class PairsOfLines : public InAFolder {};

TEST_F(PairsOfLines, ThatAreTooLongAreLeftOut) {
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

class TablesOfPairs : public InAFolder {};

TEST_F(TablesOfPairs, KeepToTheirParts) {
  std::string rows = "source,target,split\n";
  for (int i = 0; i < 40; ++i) {
    rows += "eins zwei drei vier " + std::to_string(i) + ",one two three four " + std::to_string(i) +
            (i < 30 ? ",Train\n" : ",test\n");
  }
  const std::string file = write("pairs.csv", rows);
  const std::string translator =
      " --task translate --model gru_seq2seq --model-kwargs hidden_size=16 --vocab-size 30 "
      "--epochs 1 --threads 1 --output " +
      path("runs");
  const Outcome trained = vitrail("train " + file + translator + " --experiment pairs");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err,
              AllOf(HasSubstr("30 training pairs"), HasSubstr("its part 'train' is learnt, and not test")));
  const Outcome judged = vitrail("train " + file + translator + " --experiment judged --val-src " + file);
  EXPECT_THAT(judged.out + judged.err, HasSubstr("30 training pairs of lines with")) << judged.err;
  EXPECT_THAT(judged.out + judged.err, HasSubstr(", 10 to evaluate on"));
  EXPECT_EQ(json_of("eval " + path("runs/pairs") + " " + file + " --split test")["pairs"], 10);
  const std::string whole = write("whole.csv", "source,target\nmorgen,tomorrow\n");
  refuses("eval " + path("runs/pairs") + " " + whole + " --split test", "no column 'split' says which pairs it has");
  refuses("eval " + path("runs/pairs") + " " + file, "split into parts (train, test): choose one of them");
  EXPECT_THAT(vitrail("info " + file).out,
              AllOf(HasSubstr("translations"), HasSubstr("30 line pairs"), HasSubstr("--task translate")));
  // Objects, as Hugging Face writes them.
  std::string objects;
  for (int i = 0; i < 20; ++i) {
    objects += R"({"translation": {"de": "eins zwei drei vier )" + std::to_string(i) +
               R"(", "en": "one two three four )" + std::to_string(i) + R"("}, "split": ")" +
               (i < 15 ? "train" : "validation") + "\"}\n";
  }
  const Outcome of_objects = vitrail("train " + write("pairs.jsonl", objects) + translator +
                                     " --experiment objects --val-src " + path("pairs.jsonl"));
  EXPECT_THAT(of_objects.out + of_objects.err, AllOf(HasSubstr("15 training pairs"), HasSubstr(", 5 to evaluate on")));
  EXPECT_THAT(vitrail("info " + path("pairs.jsonl")).out, HasSubstr("15 line pairs"));
  EXPECT_THAT(
      vitrail("info " + write("labels.csv", "text,label,source,target\na day,good,web,x\na night,bad,web,y\n")).out,
      HasSubstr("--task classify-text"));
  refuses("train " + write("odd.jsonl", objects + "{\"src\": \"a\", \"tgt\": \"b\"}\n") + translator,
          "line 21 has no 'split', but the lines before it have one");
}

}  // namespace
}  // namespace vitrail::test
