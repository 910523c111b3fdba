// vitrail predict and others on texts: how they are named, and what becomes of them.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class TextsToPredict : public InAFolder {};

TEST_F(TextsToPredict, AreSaidToBeLeftOutOrCut) {
  const Outcome two = vitrail("predict " + golden_model("predictions/classes") + " 'two dogs' '' --threads 1");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("two dogs:"));
  EXPECT_THAT(two.err, HasSubstr("1 empty line left out"));
  refuses("predict " + golden_model("predictions/classes") + " ''", "there are no texts");
  const std::string longer = "'[MASK] " + repeated("dogs ", 600) + "'";
  const Outcome masked = vitrail("fill-mask " + golden_model("predictions/fill_mask") + " " + longer);
  EXPECT_EQ(masked.status, 1);
  EXPECT_THAT(masked.err, HasSubstr("the model is made for at most 20: --truncate cuts it"));
  EXPECT_EQ(vitrail("fill-mask " + golden_model("predictions/fill_mask") + " " + longer + " --truncate").status, 0);
}

TEST_F(TextsToPredict, LoseLinesThatAreNotUtf8IfAsked) {
  const std::string texts = write("latin.txt", "two dogs\nB\xe4r\nsnow\n");
  for (const std::string name : {"classes", "tokens"}) {
    const std::string command = "predict " + golden_model("predictions/" + name) + " " + texts + " --threads 1";
    refuses(command, "latin.txt: line 2 is not UTF-8: byte 2 of it is 0xe4");
    const Outcome skipped = vitrail(command + " --skip-broken");
    EXPECT_EQ(skipped.status, 0) << skipped.err;
    EXPECT_THAT(skipped.err, HasSubstr("1 line that is not UTF-8 is left out"));
    EXPECT_EQ(skipped.out, vitrail("predict " + golden_model("predictions/" + name) + " 'two dogs' snow").out);
  }
  const Outcome embedded =
      vitrail("embed " + golden_model("sentences/mean") + " " + texts + " --json --skip-broken --threads 1");
  EXPECT_EQ(embedded.status, 0) << embedded.err;
  EXPECT_THAT(embedded.err, HasSubstr("1 line that is not UTF-8 is left out"));
  const Outcome learned =
      vitrail("tokenizer train " + texts + " --vocab-size 258 --skip-broken --output " + path("bpe"));
  EXPECT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.err, HasSubstr("1 line that is not UTF-8 is left out"));
}

TEST_F(TextsToPredict, AreNotReadByTheTokenizerOfALargerModel) {
  const auto widen = [](const std::string& name) {
    fs::copy(golden_path("models/predictions/" + name), path(name), fs::copy_options::recursive);
    nlohmann::json tokenizer = io::read_json(path(name + "/tokenizer.json"));
    nlohmann::json& vocab = tokenizer["model"]["vocab"];
    vocab["more"] = vocab.size();
    vocab["most"] = vocab.size();
    write(name + "/tokenizer.json", tokenizer.dump());
    return path(name);
  };
  const std::string said = "tokens, but the model knows ";
  refuses("predict " + widen("classes") + " dogs", said);
  refuses("predict " + widen("tokens") + " dogs", said);
  refuses("fill-mask " + widen("fill_mask") + " '[MASK]'", said);
  refuses("eval " + path("classes") + " " + write("labelled.tsv", "O\tdogs\n"), said);
}

TEST_F(TextsToPredict, MayBeAFileOfWords) {
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

TEST_F(TextsToPredict, HaveNoneOfTheSpecialTokensBeyondTheModel) {
  const auto with_token = [](const std::string& name, bool special) {
    fs::copy(golden_path("models/predictions/tokens"), path(name), fs::copy_options::recursive);
    nlohmann::json tokenizer = io::read_json(path(name + "/tokenizer.json"));
    nlohmann::json token = tokenizer["added_tokens"].back();
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
  EXPECT_EQ(nlohmann::json::parse(vitrail("eval " + with_token("special", true) + rest).out)["loss"],
            nlohmann::json::parse(usual.out)["loss"]);
  refuses("attention " + with_token("plain", false) + " --text snow --output " + path("seen"),
          "the tokenizer has 72 tokens, but the model knows 71");
}

TEST_F(TextsToPredict, AreTakenForNamesOfFiles) {
  const std::string embed = "embed " + golden_model("sentences/mean") + " ";
  fails(vitrail(embed + "'two dogs' --search " + path("none.txt")), 1, "there is no file");
  fails(vitrail(embed + "--similarity 'two dogs'"), 2, "--similarity compares two texts, but one is given");
  fails(vitrail(embed + "'two dogs' --output " + path("v.csv")), 2, "does not end in .safetensors");
  EXPECT_THAT(vitrail("predict " + golden_model("predictions/classes") + " reviews.txt").err,
              HasSubstr("note: there is no file 'reviews.txt': it is taken as a text"));
  fails(vitrail("train " + write("plain.txt", "two dogs run\na man\n") + " --task tag --model bert-tiny --tokenizer " +
                golden_model("predictions/tokens") + " --output " + path("y")),
        1, "plain.txt: line 2 has 2 columns, but those before have 3");
}

}  // namespace
}  // namespace vitrail::test
