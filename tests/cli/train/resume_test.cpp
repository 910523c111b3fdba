// Runs that begin with a model's folder, with dropout, go on to the same bits, whatever their task.
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/support/program.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

// Files that the tasks on texts learn from, and small models of them, which are made when they are asked for.
class Resume : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    std::ofstream text(path("text.txt"));
    std::ofstream other(path("other.txt"));
    std::ofstream labels(path("labels.tsv"));
    std::ofstream tags(path("tags.conll"));
    const char* nouns[] = {"cat", "dog", "bird", "horse"};
    const char* verbs[] = {"sees", "likes", "hears"};
    for (int i = 0; i < 24; ++i) {
      const std::string first = nouns[i % 4];
      const std::string verb = verbs[i % 3];
      const std::string second = nouns[(i * 7 / 2) % 4];
      text << "the " << first << ' ' << verb << " the " << second << '\n';
      other << second << " is what the " << first << ' ' << verb << '\n';
      labels << "the " << first << ' ' << verb << '\t' << (i % 2 == 0 ? "even" : "odd") << '\n';
      tags << "the O\n" << first << " NOUN\n" << verb << " VERB\n\n";
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static Outcome run(const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
  }
  static std::string flags() { return " --sched constant --warmup-epochs 0 --threads 1 --output " + path("runs"); }
  // Trains `experiment` for an epoch, and tells the folder of its network.
  static std::string trained(const std::string& train, const std::string& experiment) {
    const Outcome outcome = run("train " + train + flags() + " --epochs 1 --experiment " + experiment);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return path("runs/" + experiment + "/best");
  }
  // A run of two epochs, and one that is resumed after the first, have the same weights.
  static void resumes_to_the_same_bits(const std::string& train, const std::string& experiment) {
    const Outcome whole = run("train " + train + flags() + " --epochs 2 --experiment " + experiment + "-whole");
    ASSERT_EQ(whole.status, 0) << whole.err;
    trained(train, experiment + "-parts");
    const Outcome resumed = run("train --resume " + path("runs/" + experiment + "-parts") + " --epochs 2");
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_EQ(io::read_bytes(path("runs/" + experiment + "-whole/last/model.safetensors")),
              io::read_bytes(path("runs/" + experiment + "-parts/last/model.safetensors")));
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(Resume, OfNetworksForQuestionsKeepsTheDropout) {
  const std::string scenes = "scenes:count=12,validation=2 --task vqa --val-split '' -b 4";
  const std::string model = trained(
      scenes + " --model vqa_small --model-kwargs img_size=64 dim=16 hidden=16 num_heads=2 vision_depth=1 depth=1",
      "vqa");
  resumes_to_the_same_bits(scenes + " --drop 0.3 --model " + model, "vqa");
}

TEST_F(Resume, OfDetectorsKeepsTheFrozenLayers) {
  resumes_to_the_same_bits("scenes:count=8,validation=2 --task detect --val-split '' -b 4 --model vitrail/scenes_detr",
                           "detect");
}

TEST_F(Resume, OfCaptionersKeepsTheSizeOfTheImages) {
  resumes_to_the_same_bits(
      "scenes:count=8,validation=2 --task caption --val-split '' -b 4 --model vitrail/cifar10_mocov3 --decoder-kwargs "
      "hidden_size=16",
      "caption");
}

TEST_F(Resume, OfLanguageModelsKeepsTheDropout) {
  const std::string text = path("text.txt") + " --task lm -b 4";
  const std::string small = " --tokenizer char --model-kwargs ";
  const std::string gpt =
      trained(text + " --model gpt2" + small + "n_embd=16 n_layer=1 n_head=2 n_positions=32", "gpt");
  resumes_to_the_same_bits(text + " --drop 0.2 --model " + gpt, "gpt");
  const std::string lstm = trained(text + " --model lstm --bptt 16" + small + "hidden_size=16", "lstm");
  resumes_to_the_same_bits(text + " --drop 0.2 --bptt 16 --model " + lstm, "lstm");
}

TEST_F(Resume, OfTranslatorsKeepsTheDropout) {
  const std::string texts =
      "--task translate --batch-tokens 200 --src " + path("text.txt") + " --tgt " + path("other.txt");
  const std::string model = trained(texts +
                                        " --vocab-size 28 --model-kwargs d_model=16 encoder_layers=1 decoder_layers=1 "
                                        "encoder_ffn_dim=32 decoder_ffn_dim=32",
                                    "translate");
  resumes_to_the_same_bits(texts + " --drop 0.2 --model " + model, "translate");
}

TEST_F(Resume, OfBertsKeepsTheDropoutInEachTask) {
  const Outcome pieces = run("tokenizer train " + path("text.txt") + " " + path("other.txt") +
                             " --model wordpiece --vocab-size 50 --output " + path("pieces"));
  ASSERT_EQ(pieces.status, 0) << pieces.err;
  const std::string model = trained(path("labels.tsv") + " --model bert-tiny --model-kwargs hidden_size=16 " +
                                        "num_attention_heads=2 intermediate_size=32 --tokenizer " + path("pieces"),
                                    "bert");
  const std::string dropped = " -b 8 --drop 0.2 --model " + model;
  resumes_to_the_same_bits(path("labels.tsv") + dropped, "classify-text");
  resumes_to_the_same_bits(path("tags.conll") + " --task tag" + dropped, "tag");
  resumes_to_the_same_bits("--task embed --src " + path("text.txt") + " --tgt " + path("other.txt") + dropped, "embed");
}

}  // namespace
}  // namespace vitrail::test
