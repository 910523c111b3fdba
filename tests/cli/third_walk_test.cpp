// What further newcomers were told wrongly or not at all: data of which a part goes unseen, models for other tasks,
// results that went nowhere, values and flags that were taken for others.
#include <cstdlib>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ThirdWalk : public Commands {
 protected:
  static std::string text_model(const std::string& name) { return golden_path("models/text/" + name).string(); }
  // Trains on `data` for an epoch, as the run `name`.
  // The model of the run, of which a part is in int8.
  static std::string int8_model() {
    const std::string folder = path("int8");
    if (!fs::exists(folder)) {
      EXPECT_EQ(vitrail("quantize " + best() + " --output " + folder).status, 0);
    }
    return folder;
  }
};

TEST_F(ThirdWalk, IsToldOfImagesBesideTheParts) {
  const std::string data = path("beside");
  fs::copy(path("data"), data, fs::copy_options::recursive);
  fs::copy(path("data/train/red"), data + "/green");
  fs::create_directories(data + "/notes");
  const std::string words = "the images in 'green' lie beside the parts of '" + data + "' and belong to none of them";
  EXPECT_THAT(train(data, "beside").out, HasSubstr(words));
  EXPECT_THAT(vitrail("eval " + best() + " " + data + " --split validation").err, HasSubstr("note: " + words));
  EXPECT_THAT(trained_.out, Not(HasSubstr("beside the parts")));
}

TEST_F(ThirdWalk, IsToldOfFoldersOfOneName) {
  for (const std::string kind : {"apple", "cow"}) {
    for (const std::string number : {"01", "02"}) {
      fs::create_directories(path("nested/" + kind));
      fs::copy(path("data/train/red"), path("nested/" + kind + "/" + number));
    }
  }
  const Outcome outcome = train(path("nested"), "nested", small() + " --val-split ''");
  EXPECT_THAT(outcome.out, HasSubstr("folders of one name are one class, wherever they lie: 'apple/01' and 'cow/01' "
                                     "are '01', and so with 1 other name"));
}

TEST_F(ThirdWalk, IsToldOfPixelsThatPatchesLeaveOut) {
  const std::string flags =
      " --model vit_tiny_patch16_224 --model-kwargs patch_size=4 embed_dim=24 depth=2 num_heads=3 --threads 1 -b 8";
  EXPECT_THAT(train(path("data"), "cut", flags + " --img-size 15").out,
              HasSubstr("15x15 pixels (its patches leave out the last 3 rows and 3 columns)"));
  EXPECT_THAT(trained_.out, Not(HasSubstr("leave out")));
}

TEST_F(ThirdWalk, IsToldWhichModelTheDataWant) {
  const std::string table = write("labels.tsv", "pos\tgood\nneg\tbad\npos\tfine\nneg\tworse\n");
  const std::string text = write("story.txt", "once upon a time\n");
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {table + " --task classify-text --model " + text_model("marian"),
            "is a translator, which --task translate teaches, from --src and --tgt: this task wants an encoder"},
           {text + " --task lm --model transformer-small", "is a translator, which --task translate teaches"},
           {text + " --task classify",
            "a .txt has texts, which --task lm learns, or with labels classify-text, and classify images"},
           {table + " --model " + best(), "is no model of texts, which this task wants"},
           {table + " --model vit_tiny_patch16_224", "'vit_tiny_patch16_224' is no model of texts"},
           {text + " --task lm --model " + best(), "is no model of texts, which this task wants"},
           {"--task translate --src " + text + " --tgt " + text + " --model " + best(), "is no model of texts"},
           {path("data") + " --model bert-mini", "is a folder, but a model of texts such as 'bert-mini' learns from"},
       }) {
    const Outcome outcome = vitrail("train " + arguments + " --output " + path("none"));
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
  refuses("train " + text + " --task translate",
          "translate wants --src and --tgt, a text and its translation line by line, or a table of both", 2);
  refuses("train " + text + " --task embed",
          "embed wants --src and --tgt, sentences that belong together line by line, or a table of both", 2);
}

TEST_F(ThirdWalk, IsToldOfColumnsThatSeemSwapped) {
  std::string swapped;
  for (const std::string word : {"good", "bad", "fine", "worse", "well", "ill"}) {
    swapped += word + " weather\t" + (word.size() == 4 ? "pos" : "neg") + "\n";
  }
  const std::string table = write("swapped.tsv", swapped);
  ASSERT_EQ(
      vitrail("tokenizer train " + write("swapped.txt", swapped) + " --model wordpiece --vocab-size 40 --output " +
              path("swapped") + " --special-tokens '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'")
          .status,
      0);
  const Outcome outcome = train(table, "swapped", " --model bert-tiny --threads 1 --tokenizer " + path("swapped"));
  EXPECT_THAT(outcome.out, HasSubstr("these are only 2 different texts: are the columns of '" + table + "' swapped?"));
}

TEST_F(ThirdWalk, IsToldWhatChangesNothing) {
  const std::string table = write("table.tsv", "pos\tgood\nneg\tbad\n");
  const std::string words = write("words.conll", "Berlin B-LOC\n");
  const std::string text = write("text.txt", "a line\nand another\n");
  const std::string teacher = "train " + path("data") + small() + " --distillation-type none ";
  for (const auto& [arguments, message] : std::initializer_list<std::pair<std::string, std::string>>{
           {"train " + table + " --val-share 0 --eval-metric loss",
            "--eval-metric has no effect without texts to evaluate on (--val-share, --val-data)"},
           {"train " + words + " --val-share 0 --val-interval 2", "--val-interval has no effect"},
           {"train --task lm " + text + " --val-share 0 --validation-batch-size 2",
            "--validation-batch-size has no effect without text to evaluate on"},
           {"train --task translate --src " + text + " --tgt " + text + " --val-interval 2",
            "--val-interval has no effect without texts to evaluate on (--val-src, --val-tgt)"},
           {"train --task embed --src " + text + " --tgt " + text + " --val-share 0 --val-interval 2",
            "--val-interval has no effect without pairs to evaluate on"},
           {"train --task caption " + path("data") + " --val-split '' --eval-metric loss",
            "--eval-metric has no effect without images to evaluate on"},
           {"pretrain bert " + text + " --val-share 0 --eval-metric loss", "--eval-metric has no effect"},
           {"pretrain clip " + path("data") + " --val-share 0 --val-interval 2", "--val-interval has no effect"},
           {teacher + "--teacher-model x", "--teacher-model has no effect with --distillation-type none"},
           {teacher + "--kd-model-name x", "--kd-model-name has no effect with --distillation-type none"},
           {"tokenizer train " + text + " --output y --special-tokens --vocab-size 300",
            "--special-tokens: a value was expected, and not the flag --vocab-size"},
           {"train x --experiment --epochs 3", "--experiment: a value was expected, and not the flag --epochs"},
           {"train x --lr 1,5", "--lr: must be a number such as 1.5 or 1e-3, but is 1,5"},
           {"augment x --scale 0,5 1", "--scale: must be a number such as 1.5 or 1e-3, but is 0,5"},
           {"generate x --do-sample --seed 1,5", "--seed: must be a whole number, but is 1,5"},
           {"generate x --temperature abc", "--temperature: must be a number such as 1.5 or 1e-3, but is abc"},
           {"index " + path("data") + " --model " + best() + " --output x.csv", "'x.csv' does not end in .index"},
           {"embed " + best() + " " + path("data") + " --output x.csv", "'x.csv' does not end in .safetensors"},
           {"embed " + text_model("bert_bare") + " a --output x.csv", "'x.csv' does not end in .safetensors"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
  EXPECT_THAT(vitrail("generate " + text_model("gpt2") + " a --stop=--json").err, Not(HasSubstr("value was expected")));
}

TEST_F(ThirdWalk, IsToldWhatRecurrentNetworksDoNotHave) {
  const std::string text = write("long.txt", "to be or not to be that is the question of all of them that are there\n");
  const Outcome reader = train(text, "lstm",
                               " --task lm --model lstm --model-kwargs hidden_size=8 num_layers=1 --bptt 4 "
                               "--batch-size 2 --val-share 0 --threads 1");
  ASSERT_EQ(reader.status, 0) << reader.err;
  const Outcome slides = vitrail("generate " + path("runs/lstm") + " to --slide");
  EXPECT_EQ(slides.status, 2) << slides.err;
  EXPECT_THAT(slides.err, HasSubstr("--slide has no effect on"));
  const Outcome translator =
      train("", "seq2seq",
            " --task translate --src " + text + " --tgt " + text +
                " --model lstm_bahdanau --model-kwargs hidden_size=8 --vocab-size 20 --threads 1");
  ASSERT_EQ(translator.status, 0) << translator.err;
  const Outcome keeps = vitrail("translate " + path("runs/seq2seq") + " " + text + " --cache-dtype int8");
  EXPECT_EQ(keeps.status, 2) << keeps.err;
  EXPECT_THAT(keeps.err, HasSubstr("keeps no keys and values: it takes no --cache-dtype"));
}

TEST_F(ThirdWalk, DrawsForEachLineOfPromptsByItself) {
  const std::string text = write("hamlet.txt", "to be or not to be that is the question of all of them\n");
  const Outcome trained = train(text, "gpt",
                                " --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 32 --batch-size 2 "
                                "--val-share 0 --threads 1");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string generate = "generate " + path("runs/gpt") + " --max-new-tokens 20 --threads 1 ";
  const std::string prompts = "--prompts " + write("prompts.txt", "to\nto\n");
  const auto lines = [](const std::string& out) {
    return std::pair{out.substr(0, out.find('\n')), out.substr(out.find('\n') + 1)};
  };
  const std::string sampled = vitrail(generate + prompts + " --do-sample").out;
  ASSERT_FALSE(sampled.empty());
  EXPECT_NE(lines(sampled).first + "\n", lines(sampled).second);
  EXPECT_EQ(vitrail(generate + prompts + " --do-sample --batch-size 1").out, sampled);
  EXPECT_THAT(sampled, StartsWith(vitrail(generate + "to --do-sample").out));
  const std::string greedy = vitrail(generate + prompts).out;
  EXPECT_EQ(lines(greedy).first + "\n", lines(greedy).second);
}

// A disk that is full loses what was printed, and a reader that has gone did not want the rest.
TEST_F(ThirdWalk, IsToldOfATrainingWhoseOutputIsLost) {
  const auto status = [](const std::string& command) {
    const int all = std::system(command.c_str());
    return WIFEXITED(all) ? WEXITSTATUS(all) : -1;
  };
  const std::string errors = path("full.txt");
  const std::string train = std::string(VITRAIL_PROGRAM " train ") + path("data") + small() + " --epochs 1 --output " +
                            path("runs") + " --experiment ";
  EXPECT_EQ(status(train + "full > /dev/full 2> " + errors), 1);
  EXPECT_EQ(io::read_text(errors), "vitrail: the output could not be written\n");
  EXPECT_TRUE(fs::exists(path("runs/full/best")));
  EXPECT_EQ(status("bash -c '" + train + "pipe 2> " + errors + " | true; exit ${PIPESTATUS[0]}'"), 0);
  EXPECT_EQ(io::read_text(errors), "");
  EXPECT_TRUE(fs::exists(path("runs/pipe/best")));
}

TEST_F(ThirdWalk, IsToldOfWeightsInInt8) {
  const std::string image = path("data/train/red/3.png");
  const std::string note = "note: the weights of '" + int8_model() + "' are in int8, and --dtype is for the rest";
  EXPECT_THAT(vitrail("predict " + int8_model() + " " + image + " --dtype f32").err, HasSubstr(note));
  EXPECT_EQ(vitrail("predict " + int8_model() + " " + image).err, "");
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --dtype f32").err, "");
  EXPECT_THAT(vitrail("info " + int8_model()).out, HasSubstr("int8           13824 (13.8 k) of the parameters"));
  const auto described = nlohmann::json::parse(vitrail("info " + int8_model() + " --json").out);
  EXPECT_EQ(described["int8_parameters"], 2 * 12 * 24 * 24);  // of two blocks
  EXPECT_EQ(described["parameters"], nlohmann::json::parse(vitrail("info " + best() + " --json").out)["parameters"]);
  EXPECT_THAT(vitrail("info " + best()).out, Not(HasSubstr("int8")));
}

TEST_F(ThirdWalk, IsToldWhatToDoInstead) {
  const std::string image = path("data/train/red/3.png");
  const std::string clip = golden_path("models/joint/clip").string();
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {"eval " + clip + " " + path("data") + " --split train", "`vitrail zeroshot` tells images apart by names"},
           {"predict " + clip + " " + image, "`vitrail zeroshot` tells images apart by names"},
           {"predict " + best() + " " + image + " " + write("no.png", "no image"), "can be skipped: --skip-broken"},
           {"embed vitrail/cifar10_resnet " + path("data") + " --split train --pool last4 --output " +
                path("x.safetensors"),
            "'airbench94' has no class token for --pool last4: --layer -1 --pool avg takes the mean of a layer's"},
       }) {
    const Outcome outcome = vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
}

TEST_F(ThirdWalk, ProjectsFewFeatures) {
  const std::string features = path("few.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split validation --output " + features).status, 0);
  const std::string project = "project " + features + " --limit 13 --output " + path("few");
  const Outcome few = vitrail(project);
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.err, HasSubstr("note: of 13 features the perplexity is 4, not 30: --perplexity chooses another"));
  EXPECT_EQ(few.out, vitrail(project + " --perplexity 4").out);
  const Outcome many = vitrail(project + " --perplexity 13");
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, HasSubstr("--perplexity must be below the number of features, 13, but is 13"));
}

// A teacher may know more than its student.
TEST_F(ThirdWalk, LearnsFromATeacherOfMoreClasses) {
  const std::string data = path("three");
  fs::copy(path("data"), data, fs::copy_options::recursive);
  for (const std::string part : {"train", "validation"}) {
    fs::copy(path("data/" + part + "/red"), data + "/" + part + "/green");
  }
  ASSERT_EQ(train(data, "teacher").status, 0);
  const std::string taught = small() + " --distillation-type soft --teacher-model ";
  const Outcome student = train(path("data"), "student", taught + path("runs/teacher"));
  EXPECT_EQ(student.status, 0) << student.err;
  EXPECT_THAT(student.out, HasSubstr("soft distillation of 2 of its 3 classes"));
  const Outcome knows_less = train(data, "none", taught + best());
  EXPECT_EQ(knows_less.status, 1);
  EXPECT_THAT(knows_less.err, HasSubstr("the teacher '" + best() + "' does not know the class 'green'"));
}

}  // namespace
}  // namespace vitrail::test
