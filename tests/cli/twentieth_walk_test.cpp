// What a twentieth newcomer would stumble on, who brings tables.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class TwentiethWalk : public Commands {};

TEST_F(TwentiethWalk, EvaluatesOnTheRowsThatATableCallsValid) {
  std::string table = "path,label,is_valid\n";
  for (const char* color : {"red", "blue"}) {
    for (int i = 0; i < 16; ++i) {
      table += "data/train/" + std::string(color) + "/" + std::to_string(i) + ".png," + color + "," +
               (i < 4 ? "True" : "False") + "\n";
    }
  }
  write("valid.csv", table);
  EXPECT_THAT(train(path("valid.csv"), "valid").out, HasSubstr("24 training and 8 validation images"));
  std::string plain = "path,label\n";
  for (const char* color : {"red", "blue"}) {
    for (int i = 0; i < 16; ++i) {
      plain += "data/train/" + std::string(color) + "/" + std::to_string(i) + ".png," + color + "\n";
    }
  }
  write("plain.csv", plain);
  EXPECT_THAT(train(path("plain.csv"), "plain").out, HasSubstr("29 training and 3 validation images"));
  EXPECT_THAT(vitrail("info " + path("valid.csv")).out, AllOf(HasSubstr("train"), HasSubstr("validation")));
  fs::create_directories(path("parted"));
  fs::copy(path("data/train"), path("parted/training"), fs::copy_options::recursive);
  fs::copy(path("data/validation"), path("parted/testing"), fs::copy_options::recursive);
  EXPECT_THAT(train(path("parted"), "parted").out, HasSubstr("32 training and 32 validation images"));
}

TEST_F(TwentiethWalk, LearnsTheTextsOfATable) {
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

TEST_F(TwentiethWalk, LearnsNoNumbersAsClasses) {
  std::string table = "text;label\n";
  for (int i = 0; i < 30; ++i) {
    table += "text " + std::to_string(i) + ";" + std::to_string(i / 10) + "." + std::to_string(i % 10) + "\n";
  }
  write("scores.csv", table);
  refuses("train " + path("scores.csv") + " --task classify-text --model " +
              golden_path("models/predictions/classes").string() + " --output " + path("runs"),
          "the labels are 30 different numbers, such as '1.5', where classes were expected");
}

TEST_F(TwentiethWalk, LabelsTheWordsOfAFileOfThem) {
  write("tagged.txt", "two B-animal\ndogs O\n\nsnow O\n");
  write("words.txt", "two dogs\nsnow\n");
  const std::string command = "predict " + golden_path("models/predictions/tokens").string() + " ";
  const Outcome plain = vitrail(command + path("words.txt"));
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(vitrail(command + path("tagged.txt")).out, plain.out);
  write("other.txt", "two of\ndogs and\n");
  const Outcome others = vitrail(command + path("other.txt"));
  EXPECT_NE(others.out, plain.out) << "texts, whose last words are no labels";
  EXPECT_THAT(others.err, HasSubstr("each line is taken as a text: were they words with labels, 'of'"));
  write("unknown.txt", "two B-animal\ndogs B-machine\n\nsnow O\n");
  EXPECT_EQ(vitrail(command + path("unknown.txt")).out, plain.out) << "one label alone is none of the model's";
  write("words.conllu", "# sent_id = 1\n1\ttwo\ttwo\tNUM\t_\t_\t0\t_\t_\t_\n");
  refuses(command + path("words.conllu"), "line 1 is CoNLL-U's");
}

TEST_F(TwentiethWalk, SaysThatPaddingIsLookedAt) {
  const std::string input = path("ids.safetensors");
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 5, 6, 0}, {2, 3})}});
  const std::string command = "forward " + golden_path("models/predictions/classes").string() + " --input " + input +
                              " --output " + path("out.safetensors");
  EXPECT_THAT(vitrail(command).err, HasSubstr("end in the token for padding (0)"));
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 5, 6, 0}, {2, 3})},
                               {"attention_mask", Tensor::from<std::int64_t>({1, 1, 1, 1, 1, 0}, {2, 3})}});
  EXPECT_THAT(vitrail(command).err, Not(HasSubstr("padding")));
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 0, 5, 6}, {2, 3})}});
  EXPECT_THAT(vitrail(command).err, HasSubstr("begin with the token for padding (0)"));
}

TEST_F(TwentiethWalk, KnowsSpecialTokensBeyondTheModelThatNoTextHas) {
  const auto with_token = [](const std::string& name, bool special) {
    fs::copy(golden_path("models/predictions/tokens"), path(name), fs::copy_options::recursive);
    Json tokenizer = io::read_json(path(name + "/tokenizer.json"));
    Json token = tokenizer["added_tokens"].back();
    token["id"] = 71;
    token["content"] = "<more>";
    token["special"] = special;
    tokenizer["added_tokens"].push_back(token);
    write(name + "/tokenizer.json", tokenizer.dump());
    return path(name);
  };
  write("tags.conll", "two B-animal\ndogs O\n\nsnow O\n");
  const std::string rest = " " + path("tags.conll") + " --json --threads 1";
  const Outcome usual = vitrail("eval " + golden_path("models/predictions/tokens").string() + rest);
  EXPECT_EQ(usual.status, 0) << usual.err;
  EXPECT_EQ(Json::parse(vitrail("eval " + with_token("special", true) + rest).out)["loss"],
            Json::parse(usual.out)["loss"]);
  refuses("attention " + with_token("plain", false) + " --text snow --output " + path("seen"),
          "the tokenizer has 72 tokens, but the model knows 71");
}

TEST_F(TwentiethWalk, TakesAnswersForNoBoxes) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  fs::create_directories(path("vqa"));
  fs::copy(path("scenes/images"), path("vqa/images"));
  fs::copy(path("scenes/vqa_questions.json"), path("vqa/questions.json"));
  fs::copy(path("scenes/vqa_annotations.json"), path("vqa/annotations.json"));
  EXPECT_THAT(vitrail("info " + path("vqa")).out, AllOf(HasSubstr("--task vqa"), Not(HasSubstr("boxes"))));
}

TEST_F(TwentiethWalk, NamesWhatIsMissing) {
  refuses("predict nix.jpg", "there is no image 'nix.jpg'");
  refuses("attention " + best() + " --text ''", "there is no text in it", 2);
  refuses("probe " + path("data") + " " + path("data"),
          "is a folder: a file of features by `vitrail embed` was expected");
  refuses("attention " + best() + " " + path("data") + " --output " + path("seen"), "that is a folder");
}

}  // namespace
}  // namespace vitrail::test
