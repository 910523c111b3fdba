// Language models: the texts that they learn, and how they are evaluated on others.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numbers>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/language_model.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Language : public InAFolder {
 protected:
  static inline const std::string mark = "\xef\xbb\xbf";  // of the order of bytes
  // Flags of a small language model and its place.
  static std::string language(const std::string& name, const std::string& flags = "") {
    return " --task lm --model lstm --model-kwargs hidden_size=16 --block-size 8 --epochs 1 --threads 1 --output " +
           path("runs") + " --experiment " + name + " " + flags;
  }
};

TEST_F(Language, LearnsTheTextsOfATable) {
  write("plain.txt", "it is so, and so\n\nno, not so\n");
  write("texts.csv", "id,text\n1,\"it is so, and so\"\n2,\"no, not so\n\"\n");
  write("texts.jsonl", "{\"text\": \"it is so, and so\", \"meta\": {\"id\": 1}}\n{\"text\": \"no, not so\\n\"}\n");
  const auto learn = [](const std::string& name) {
    return vitrail(
        "train " + path(name) +
        " --task lm --tokenizer char --model-kwargs n_layer=1 n_head=1 n_embd=8 --block-size 4 --val-share 0 "
        "-b 2 --epochs 1 --threads 1 --output " +
        path("runs") + " --experiment " + name.substr(name.rfind('.') + 1));
  };
  for (const char* name : {"plain.txt", "texts.csv", "texts.jsonl"}) {
    const Outcome trained = learn(name);
    EXPECT_EQ(trained.status, 0) << trained.err;
  }
  const std::string weights = io::read_text(path("runs/txt/last/model.safetensors"));
  EXPECT_EQ(io::read_text(path("runs/csv/last/model.safetensors")), weights);
  EXPECT_EQ(io::read_text(path("runs/jsonl/last/model.safetensors")), weights);
  EXPECT_THAT(vitrail("info " + path("texts.csv")).out, HasSubstr("--task lm"));
  write("other.csv", "title,body\na,b\n");
  EXPECT_THAT(learn("other.csv").err, HasSubstr("the first line must name the column 'text', but has 'title', 'body'"));
  for (const char* name : {"plain.txt", "texts.csv", "texts.jsonl"}) {
    ASSERT_EQ(
        vitrail("tokenizer train " + path(name) + " --vocab-size 262 --output " + path(std::string("pieces-") + name))
            .status,
        0);
  }
  const std::string pieces = io::read_text(path("pieces-plain.txt/tokenizer.json"));
  EXPECT_EQ(io::read_text(path("pieces-texts.csv/tokenizer.json")), pieces);
  EXPECT_EQ(io::read_text(path("pieces-texts.jsonl/tokenizer.json")), pieces);
}

TEST_F(Language, ReadsTextsOfWindows) {
  std::string lines;
  std::string windows = mark;
  for (int i = 0; i < 30; ++i) {
    lines += "one two three\n";
    windows += "one two three\r\n";
  }
  const std::string train = "train " + write("lines.txt", lines) + language("lines", "--tokenizer char");
  ASSERT_EQ(vitrail(train).status, 0);
  const std::string run = path("runs/lines");
  EXPECT_EQ(json_of("eval " + run + " " + write("windows.txt", windows))["loss"],
            json_of("eval " + run + " " + path("lines.txt"))["loss"]);
  const std::string prompts = write("prompts.txt", mark + "one\n");
  EXPECT_THAT(vitrail("generate " + run + " --prompts " + prompts + " --max-new-tokens 2 --seed 0").out,
              StartsWith("one"));
  EXPECT_EQ(vitrail("tokenizer encode " + run + "/best --input " + prompts).out,
            vitrail("tokenizer encode " + run + "/best --input " + write("plain.txt", "one\n")).out);
  EXPECT_EQ(vitrail("tokenizer encode " + run + "/best -", mark + "one\n").out,
            vitrail("tokenizer encode " + run + "/best -", "one\n").out);
  refuses("train " + path("lines.txt") + language("x", "--tokenizer char --grad-checkpointing"),
          "--grad-checkpointing has no effect on 'lstm', a recurrent network");
}

TEST_F(Language, LeavesLinesOutThatAreNotUtf8) {
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

TEST_F(Language, SaysWhichBatchesAreLeftOut) {
  std::ofstream(path("blocks.txt")) << words(0, 60);
  const Outcome outcome =
      vitrail("train " + path("blocks.txt") + " --task lm --tokenizer char --model gpt2 --model-kwargs n_layer=1 " +
              "n_embd=8 n_head=1 --block-size 32 -b 7 --epochs 1 --threads 1 --output " + path("runs") +
              " --experiment blocks");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("each epoch leaves out"), HasSubstr("blocks, which do not fill a batch of 7")));
}

TEST_F(Language, EvaluatesAllOfATextInATrainingAsAfterIt) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "line " + std::to_string(i * i) + "\n";
  }
  std::ofstream(path("lines.txt")) << text;
  std::ofstream(path("judged.txt")) << text.substr(0, 100);
  const Outcome trained =
      vitrail("train " + path("lines.txt") + " --val-data " + path("judged.txt") +
              " --task lm --model gpt2 --model-kwargs n_layer=1 n_head=2 n_embd=16 --drop 0 " +
              "--block-size 60 -b 2 --epochs 1 --threads 1 --output " + path("runs") + " --experiment text");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome judged = vitrail("eval " + path("runs/text") + " " + path("judged.txt") + " --json --threads 1");
  ASSERT_EQ(judged.status, 0) << judged.err;
  double loss = 0;
  std::ifstream metrics(path("runs/text/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    loss = record.contains("perplexity") ? record["loss"].get<double>() : loss;
  }
  EXPECT_NEAR(nlohmann::json::parse(judged.out).at("loss").get<double>(), loss, 1e-5);
}

TEST_F(Language, CountsCharactersAndNotTokensThatStandForThem) {
  const std::string text = write("lm/train.txt", repeated("der Hund ist da\n", 40));
  const std::string other = write("lm/other.txt", repeated("der Zar ißt Eis\n", 20));
  const Outcome run = vitrail("train --task lm " + text + " --val-data " + other +
                              " --model gpt2 --model-kwargs n_layer=1 n_embd=8 n_head=1 --tokenizer char --block-size "
                              "16 -b 4 --epochs 1 --threads 1 --output " +
                              path("runs") + " --experiment lm");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("other.txt: 60 of 320 tokens are [UNK]"));
  const std::string metrics = io::lines_of(io::read_text(path("runs/lm/metrics.jsonl"))).back();
  const nlohmann::json judged =
      nlohmann::json::parse(vitrail("eval " + path("runs/lm") + " " + other + " --json --threads 1").out);
  EXPECT_NEAR(nlohmann::json::parse(metrics).at("bits_per_character").get<double>(), judged.at("bits_per_character"),
              0.02);
}

// The first character of a document is not predicted, and counts as the mean of the others.
TEST_F(Language, CountsCharactersOfDocumentsAsThoseOfBlocks) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += std::string(1, static_cast<char>('a' + i % 26)) + "bc" + std::string(static_cast<std::size_t>(i % 5), 'd') +
            "\n\n";
  }
  const std::string file = write("letters.txt", text);
  ASSERT_EQ(vitrail("train " + file + language("documents", "--documents --tokenizer char")).status, 0);
  const nlohmann::json documents = json_of("eval " + path("runs/documents") + " " + file);
  EXPECT_NEAR(documents["bits_per_character"], documents["loss"].get<double>() / std::numbers::ln2, 1e-9);
  EXPECT_EQ(documents["tokens"], static_cast<std::int64_t>(text.size()) - 40);
  // The same run, read in blocks.
  const Outcome blocks = vitrail("eval " + path("runs/documents") + " " + file + " --no-documents");
  EXPECT_THAT(blocks.out, HasSubstr("in blocks of 1024"));
  const Outcome by_position = vitrail("eval " + path("runs/documents") + " " + file + " --by-position --block-size 8");
  EXPECT_EQ(by_position.status, 0) << by_position.err;
  EXPECT_THAT(by_position.err, HasSubstr("in blocks, not document by document as in its training"));
  EXPECT_THAT(by_position.err, HasSubstr("note: the model has learnt these, all but a share of 0.1"));
}

class LanguageOfDocuments : public InAFolder {};

TEST_F(LanguageOfDocuments, IsEvaluatedAsItWasLearned) {
  std::ofstream(path("learned.txt")) << words(0, 60);
  std::ofstream(path("judged.txt")) << words(3, 30);
  const Outcome trained =
      vitrail("train " + path("learned.txt") + " --val-data " + path("judged.txt") +
              " --task lm --documents --tokenizer char --model gpt2 --model-kwargs n_layer=1 n_embd=8 n_head=1 " +
              "--block-size 32 -b 4 --epochs 1 --threads 1 --output " + path("runs") + " --experiment documents");
  ASSERT_EQ(trained.status, 0) << trained.err;
  std::string last;
  std::ifstream metrics(path("runs/documents/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    last = line;
  }
  const Outcome judged = vitrail("eval " + path("runs/documents") + " " + path("judged.txt") + " --json --threads 1");
  ASSERT_EQ(judged.status, 0) << judged.err;
  EXPECT_THAT(judged.err, HasSubstr("as in its training (--no-documents: in blocks)"));
  EXPECT_NEAR(nlohmann::json::parse(judged.out)["loss"].get<double>(),
              nlohmann::json::parse(last)["loss"].get<double>(), 1e-5);
  const std::string latin = write("latin.txt", "B\xe4r\n" + io::read_text(path("judged.txt")));
  for (const std::string way : {" --documents", " --no-documents"}) {
    const std::string eval = "eval " + path("runs/documents") + way + " --json --threads 1 ";
    refuses(eval + latin, "is not UTF-8");
    const Outcome skipped = vitrail(eval + latin + " --skip-broken");
    EXPECT_THAT(skipped.err, HasSubstr("1 line that is not UTF-8 is left out")) << way;
    EXPECT_EQ(nlohmann::json::parse(skipped.out)["loss"],
              nlohmann::json::parse(printed(eval + path("judged.txt")))["loss"]);
  }
  refuses("eval " + path("runs/documents") + " " + path("judged.txt") + " --documents --stride 8",
          "are for texts in blocks", 2);
}

class LanguageBesideImages : public Commands {};

TEST_F(LanguageBesideImages, EvaluatesDocumentsAsItDoesBlocks) {
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

class LanguageSamples : public LanguageModel {};

TEST_F(LanguageSamples, AreWrittenWithALargerVocabulary) {
  ASSERT_EQ(vitrail("tokenizer train " + path("text.txt") + " --vocab-size 260 --output " + path("bpe")).status, 0);
  const Outcome outcome = vitrail("train " + path("text.txt") +
                                  " --task lm --model gpt2 --model-kwargs n_layer=1 "
                                  "n_head=2 n_embd=16 vocab_size=4000 --tokenizer " +
                                  path("bpe") + " --block-size 16 --epochs 1 --threads 1 --output " + path("large"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("samples.txt"));
}

}  // namespace
}  // namespace vitrail::test
