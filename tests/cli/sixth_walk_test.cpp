// What a sixth newcomer was told wrongly or not at all, mostly about scenes, boxes, captions and questions.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SixthWalk : public Commands {
 protected:
  static Outcome train(const std::string& flags, const std::string& name) {
    return vitrail("train " + flags + " --threads 1 --output " + path("runs") + " --experiment " + name);
  }
  static std::string classifier() {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=16 embed_dim=16 depth=1 num_heads=2 "
           "-b 8 --epochs 1";
  }
  static std::string detector() {
    return " --task detect --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 "
           "encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=7 'backbone_kwargs={\"channels\": [8, 8, 16], "
           "\"stem_width\": 8}' --no-random-resize -b 8 --epochs 1";
  }
  static std::string captioner() {
    return " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs "
           "hidden_size=8 --no-aug -b 8 --epochs 1";
  }
  static std::string scenes(const std::string& name, int count) {
    EXPECT_EQ(vitrail("scenes " + path(name) + " --count " + std::to_string(count)).status, 0);
    return path(name);
  }
  // Changes a JSON file.
  template <class Change>
  static void change(const std::string& file, Change how) {
    nlohmann::json json = io::read_json(file);
    how(json);
    std::ofstream(file) << json.dump();
  }
};

TEST_F(SixthWalk, GoesOnWithScenesThatAreDrawn) {
  ASSERT_EQ(train("scenes:count=16,task=count" + classifier(), "drawn").status, 0);
  const Outcome more = vitrail("train --resume " + path("runs/drawn") + " --epochs 2");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("epoch 2/2"));
}

TEST_F(SixthWalk, TakesScenesAndTheirPartsEverywhere) {
  const Outcome captions = train("scenes:count=16" + captioner(), "parts");
  EXPECT_EQ(captions.status, 0) << captions.err;
  EXPECT_THAT(captions.out, HasSubstr("16 training and 1 validation image"));
  const std::string eval = "eval " + path("runs/parts") + " scenes:count=16";
  EXPECT_THAT(vitrail(eval + " --split val").out, HasSubstr("1 image"));
  refuses(eval + " --split quatsch", "scenes have no part 'quatsch', only train and validation");
  refuses(eval + " --split test", "scenes have no part 'test'");
  refuses("embed " + best() + " scenes:count=4,task=count --split test --output " + path("e.safetensors"),
          "scenes have no part 'test'");
  EXPECT_THAT(vitrail("predict " + best() + " scenes:count=2").out, HasSubstr("000001.png"));
}

TEST_F(SixthWalk, NamesTwoImagesAndTwoListsOfALatentSpace) {
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment ae" + small())
                .status,
            0);
  const std::string latent = "latent " + path("runs/ae");
  refuses(latent + " --between " + path("data/train/red/0.png") + " --output " + path("way.png"),
          "--between takes two images, not 1", 2);
  refuses(latent + " --direction list.txt --output " + path("way.png"), "--direction takes two lists, not 1", 2);
}

TEST_F(SixthWalk, IsToldWhatBoxesThereAre) {
  const std::string data = scenes("boxes/train", 8);
  scenes("boxes/validation", 4);
  ASSERT_EQ(train(path("boxes") + detector(), "detector").status, 0);
  const std::string run = path("runs/detector");
  refuses("eval " + run + " " + path("boxes"), "split into parts (train, validation): choose one");
  // Crowds are no objects to learn.
  fs::copy(data, path("crowds"), fs::copy_options::recursive);
  change(path("crowds/instances.json"), [](nlohmann::json& json) {
    for (nlohmann::json& object : json["annotations"]) {
      object["iscrowd"] = object["id"] == 1 ? 0 : 1;
    }
  });
  const Outcome crowds = train(path("crowds") + " --val-split ''" + detector(), "crowds");
  EXPECT_THAT(crowds.out, HasSubstr("\n1 object in the training images"));
  const Outcome same = train(data + " --val-dir " + data + detector(), "same");
  EXPECT_THAT(same.out, HasSubstr("the images to evaluate on are those to train on"));
  refuses("train " + data + " --val-split ''" + detector() + " --longest-edge 50 --shortest-edge 100 --output " +
              path("runs"),
          "--longest-edge 50 is less than the shorter side of the images, 100");
  // Two of what there should be one of.
  const auto broken = [&](const char* name, auto how) {
    fs::copy(data, path(name), fs::copy_options::recursive);
    change(path(name) + "/instances.json", how);
    return "train " + path(name) + " --val-split ''" + detector() + " --output " + path("runs");
  };
  refuses(
      broken("files", [](nlohmann::json& json) { json["images"][1]["file_name"] = json["images"][0]["file_name"]; }),
      "the file '000000.png' is that of the image 0 too");
  refuses(broken("names", [](nlohmann::json& json) { json["categories"][1]["name"] = json["categories"][0]["name"]; }),
          "the categories 1 and 2 are both called 'circle'");
}

TEST_F(SixthWalk, FinishesFilesWhoseNamesNobodyReads) {
  const std::string folder = scenes("album", 40);
  ASSERT_EQ(train(scenes("few", 4) + " --val-split ''" + detector(), "few").status, 0);
  const std::string command = std::string(VITRAIL_PROGRAM) + " detect " + path("runs/few/last") + " " + folder +
                              "/images --threshold 0 --output " + path("found") + " | head -1 >/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("found")), fs::directory_iterator()), 41);
}

TEST_F(SixthWalk, IsToldWhatPairsThereAre) {
  const std::string data = scenes("captions", 8);
  change(data + "/captions.json", [](nlohmann::json& json) {
    std::erase_if(json["annotations"].get_ref<nlohmann::json::array_t&>(),
                  [](const nlohmann::json& one) { return one["image_id"] == 3; });
  });
  const Outcome captions = train(data + " --val-split ''" + captioner(), "less");
  EXPECT_THAT(captions.out, HasSubstr("1 image without a text is left out"));
  EXPECT_THAT(captions.out, Not(HasSubstr("not images by their names")));
  change(data + "/captions.json",
         [](nlohmann::json& json) { json["annotations"][1]["id"] = json["annotations"][0]["id"]; });
  refuses("train " + data + " --val-split ''" + captioner() + " --output " + path("runs"), "is there twice");
  fs::create_directories(path("latin"));
  std::ofstream(path("latin/captions.csv")) << "path,caption\n../data/train/red/0.png,\"ein r\xF6ter Kreis\"\n";
  refuses("train " + path("latin") + " --val-split ''" + captioner() + " --output " + path("runs"),
          "the text of '../data/train/red/0.png' is not UTF-8");
  const Outcome said = vitrail("caption " + path("runs/less/last") + " " + data + "/images/000002.png --format json");
  EXPECT_EQ(nlohmann::json::parse(said.out)[0]["image_id"], 2) << said.err;
}

TEST_F(SixthWalk, IsToldWhatANetworkForQuestionsKeeps) {
  scenes("vqa/train", 8);
  scenes("vqa/validation", 4);
  const std::string vqa =
      " --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=1 -b 8 --epochs 1";
  const Outcome trained = train(path("vqa") + vqa, "vqa");  // the model says which task it is
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string more =
      "train " + path("vqa") + " --task vqa --model " + path("runs/vqa") + " --output " + path("runs");
  for (const char* flag : {"--model-kwargs dim=8", "--img-size 32", "--attn-norm sigmoid"}) {
    refuses(more + " " + flag, "has no effect with a folder as --model", 2);
  }
  refuses("eval " + path("runs/vqa") + " " + path("vqa"), "split into parts (train, validation): choose one");
  std::ofstream(path("questions.csv")) << "path,question,answer\ndata/train/red/0.png,what is it?,a unicorn\n";
  EXPECT_THAT(vitrail("eval " + path("runs/vqa") + " " + path("questions.csv")).out, HasSubstr("loss –"));
  std::ofstream(path("empty.csv")) << "path,question,answer\ndata/train/red/0.png,,yes\n";
  refuses("eval " + path("runs/vqa") + " " + path("empty.csv"), "line 2 has no question");
  const std::string image = path("vqa/train/images/000000.png");
  refuses("ask " + path("runs/vqa") + " " + image + " 'how many birds?' --layer 7 --output " + path("asked"), "layer");
  EXPECT_FALSE(fs::exists(path("asked")));
}

TEST_F(SixthWalk, IsToldOfFramesAndNumbers) {
  for (const char* name : {"a/1/x0.png", "a/1/x1.png", "a/1/mask.png", "b/2/x0.png", "b/2/x1.png", "b/2/mask.png"}) {
    fs::create_directories(fs::path(path(std::string("frames/") + name)).parent_path());
    fs::copy(path("data/train/red/0.png"), path(std::string("frames/") + name));
  }
  const Outcome trained = train(path("frames") + " --task frames --frames 'x*.png' --val-dir " + path("frames") +
                                    " --model gru_rows --img-size 16 "
                                    "--model-kwargs hidden_size=8 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2 "
                                    "--epochs 1",
                                "frames");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome as_trained = vitrail("eval " + path("runs/frames") + " " + path("frames"));
  EXPECT_EQ(as_trained.status, 0) << as_trained.err;
  EXPECT_THAT(as_trained.err, HasSubstr("takes the frames 'x*.png' alone, as in training"));
  EXPECT_EQ(vitrail("eval " + path("runs/frames") + " " + path("frames") + " --frames '*'").err, "");
  // Folders that are called by numbers.
  for (const char* name : {"0", "1"}) {
    fs::create_directories(path(std::string("numbers/") + name));
    fs::copy(path("data/train/red/0.png"), path(std::string("numbers/") + name + "/0.png"));
  }
  EXPECT_THAT(
      vitrail("eval " + best() + " " + path("numbers")).err,
      HasSubstr("its classes are numbers, which are taken for places among the 2 classes that are expected: 0 is"));
}

TEST_F(SixthWalk, ComparesAndResumesByTheRightWords) {
  const Outcome dino = vitrail("pretrain dino " + path("data/train") +
                               " --model vit_tiny_patch16_224 --model-kwargs "
                               "img_size=32 patch_size=16 embed_dim=16 depth=1 num_heads=2 --batch-size 8 --out-dim 16 "
                               "--epochs 3 --threads 1 --output " +
                               path("runs") + " --experiment 'a dino'");
  ASSERT_EQ(dino.status, 0) << dino.err;
  EXPECT_THAT(vitrail("compare '" + path("runs/a dino") + "'").out, HasSubstr("(epoch 3)"));
  EXPECT_THAT(vitrail("help").out, HasSubstr("Examples:"));
  EXPECT_THAT(vitrail("help train").out, HasSubstr("--epochs"));
}

}  // namespace
}  // namespace vitrail::test
