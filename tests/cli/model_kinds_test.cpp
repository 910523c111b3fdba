// Models of another kind than a command takes.
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "tests/cli/language_model.h"
#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class ModelKinds : public Commands {};

TEST_F(ModelKinds, AreThoseThatTheDataWant) {
  const std::string table = write("labels.tsv", "pos\tgood\nneg\tbad\npos\tfine\nneg\tworse\n");
  const std::string text = write("story.txt", "once upon a time\n");
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {table + " --task classify-text --model " + golden_model("text/marian"),
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

TEST_F(ModelKinds, AreSentToTheirCommands) {
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

TEST_F(ModelKinds, AreSaidOfFolders) {
  const std::string captions =
      " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs "
      "hidden_size=8 --no-aug -b 8 --threads 1";
  ASSERT_EQ(train(path("data"), "captions", captions).status, 0);
  const std::string captioner = path("runs/captions/best");
  refuses("train " + path("data") + " --model " + captioner + " --output " + path("runs"),
          "captions images, but this takes models that classify or embed images: `vitrail caption` takes it, and "
          "`vitrail train --task caption --model` goes on with it");
  refuses("train " + path("data") + " --task caption --decoder-kwargs hidden_size=8 --model " + captioner,
          "is a captioner, which is trained as it is");
  refuses("train " + path("data") + " --task caption --decoder gru --model " + captioner,
          "--decoder has no effect with a captioner as --model", 2);
  refuses("bench infer --model " + captioner, "captions images, but this takes models");
  refuses("embed " + captioner + " " + path("data") + " --output " + path("x.safetensors"),
          "captions images, but this takes models");
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 2").status, 0);
  const std::string detects = "train --task detect " + path("scenes") + " --val-split '' --model ";
  refuses(detects + captioner, "captions images, but this task takes a detector");
  refuses(detects + best(), "is a model of images, but this task takes a detector: a ResNet is given by");
  const std::string detector = golden_path("models/detection/detr").string();
  refuses("train " + path("data") + " --model " + detector,
          "finds objects, but this takes models that classify or embed");
  refuses("soup " + best() + " " + captioner + " --output " + path("soup"), "captions images: soups are made of");
  refuses("train " + path("data") + " --task caption --model gpt2",
          "'gpt2' is a model of texts, but this takes models");
}

TEST_F(ModelKinds, AreSaidOfWhatIsNoModelToo) {
  refuses("zeroshot " + best() + " " + path("data/train/red/0.png") + " --labels a,b",
          "puts images and texts in no common space: 'vitrail pretrain clip' makes a model that does");
  refuses("info https://localhost:1/photos.csv", "shards alone are read from the web");
  write("vit_tiny_patch16_224", "x");
  const fs::path here = fs::current_path();
  fs::current_path(path(""));
  EXPECT_THAT(vitrail("info vit_tiny_patch16_224").err, HasSubstr("is a file: a model is given by its name"));
  fs::current_path(here);
}

class ForeignModels : public OnImages {};

TEST_F(ForeignModels, OfVideosRunOnClipsAndRefuseImages) {
  const std::string model = golden_path("models/mvit_video_v1").string();
  const Outcome forward = vitrail("forward " + model + " --input " + model + "/expected.safetensors --output " +
                                  path("clip.safetensors") + " --features --attention");
  EXPECT_EQ(forward.status, 0) << forward.err;
  EXPECT_THAT(forward.out, HasSubstr("logits           f32 [2, 7]"));
  EXPECT_THAT(vitrail("info " + model).out, HasSubstr("3 x 4 x 32 x 32"));
  const Outcome bench = vitrail("bench train --model " + model + " --batch-size 1 --steps 1 --warmup 0");
  EXPECT_EQ(bench.status, 0) << bench.err;
  const std::string training = "train " + path("data") + " --output " + path("none") + " --batch-size 8 --model ";
  const std::string splits = " --train-split train --split validation --model ";
  for (const std::string& command :
       {"eval " + model + " " + path("data"), training + model,
        "embed " + model + " " + path("data") + " --unlabeled --output " + path("none.safetensors"),
        "knn " + path("data") + " " + path("data") + splits + model,
        training +
            "vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3 "
            "--teacher-model " +
            model}) {
    const Outcome refused = vitrail(command);
    EXPECT_EQ(refused.status, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("takes clips of 4 frames, not images")) << command;
  }
}

TEST_F(ForeignModels, OfImagesTakeNoTexts) {
  const std::string mae = golden_path("models/hf_mae").string();
  for (const std::string& command :
       {"generate " + mae + " x", "fill-mask " + mae + " x", "translate " + mae + " " + write("some.txt", "a b c d"),
        "gradients " + mae + " --text " + path("some.txt") + " --output g.svg"}) {
    refuses(command, "is no model of texts: it is a model of images");
  }
}

TEST_F(ForeignModels, OfTransformersAreNamed) {
  fs::create_directories(path("other"));
  write("other/config.json", R"({"model_type": "conditional_detr", "architectures": ["X"]})");
  const std::string fault = "other/config.json: 'model_type' is 'conditional_detr', which vitrail does not have";
  for (const char* command : {"detect", "caption", "ask", "predict"}) {
    const std::string question = std::string(command) == "ask" ? " \"what?\"" : "";
    refuses(std::string(command) + " " + path("other") + " " + path("data/train/red/0.png") + question, fault);
  }
}

class ModelsOfTexts : public LanguageModel {};

TEST_F(ModelsOfTexts, AreSaidToBeTakenByOtherCommands) {
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

}  // namespace
}  // namespace vitrail::test
