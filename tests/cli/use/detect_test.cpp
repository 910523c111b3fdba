// What a person does who has images with boxes: trains a detector, measures it, and looks at what it finds.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Scenes, and a detector that has looked at them for a moment.
class Detect : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    EXPECT_EQ(vitrail("scenes " + path("train") + " --count 24").status, 0);
    EXPECT_EQ(vitrail("scenes " + path("test") + " --start 100 --count 6").status, 0);
    trained_ = vitrail("train --task detect " + path("train") + " --val-dir " + path("test") + " --output " +
                       path("runs") + " --experiment one --epochs 2" + small());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string small() {
    return " --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=2 encoder_ffn_dim=32 "
           "decoder_ffn_dim=32 num_queries=7 'backbone_kwargs={\"channels\": [8, 8, 16], \"stem_width\": 8}' "
           "--no-random-resize -b 4 --threads 1";
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string run() { return path("runs/one"); }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline Outcome trained_;
};

TEST_F(Detect, TrainsOnCocoAndDrawsWhatItFinds) {
  EXPECT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out, HasSubstr("4 classes: circle, square, triangle, bird"));
  EXPECT_THAT(trained_.out, HasSubstr("batch norms of the backbone trained"));
  EXPECT_THAT(trained_.out, HasSubstr("AP50 0.0"));
  EXPECT_TRUE(fs::exists(run() + "/detections.png"));
  EXPECT_THAT(io::read_text(run() + "/matching/index.html"), HasSubstr("\"records\":2"));
  EXPECT_TRUE(fs::exists(run() + "/matching/3.png"));
  EXPECT_EQ(io::read_json(run() + "/best/preprocessor_config.json")["size"]["shortest_edge"], 64);
  const Outcome more = vitrail("train --resume " + run() + " --epochs 3");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("epoch 3/3"));
  EXPECT_THAT(io::read_text(run() + "/matching/index.html"), HasSubstr("\"records\":3"));
  const Outcome compared = vitrail("compare " + run());
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("detr_scenes"));
}

// transformers refuses a folder whose weights of the matching and the loss are no whole numbers.
TEST_F(Detect, WritesTheWeightsOfItsLossAsTransformersTakesThem) {
  const auto config = io::read_json(run() + "/best/config.json");
  for (const char* key : {"class_cost", "bbox_cost", "giou_cost", "bbox_loss_coefficient", "giou_loss_coefficient"}) {
    EXPECT_TRUE(config.at(key).is_number_integer()) << key;
  }
  EXPECT_EQ(config["giou_cost"], 2);
  EXPECT_EQ(config["eos_coefficient"], 0.1);
  const Outcome half = vitrail("train --task detect " + path("train") + " --val-split '' --output " + path("runs") +
                               " --experiment half --epochs 1 --giou-loss-coef 2.5 --set-cost-class 3" + small());
  ASSERT_EQ(half.status, 0) << half.err;
  EXPECT_THAT(half.out, HasSubstr("transformers takes whole numbers alone for giou_loss_coefficient 2.5"));
  const auto written = io::read_json(path("runs/half/best/config.json"));
  EXPECT_FALSE(written.contains("giou_loss_coefficient"));
  EXPECT_EQ(written["class_cost"], 3);
  EXPECT_EQ(written["vitrail"]["giou_loss_coefficient"], 2.5);
  const Outcome next =
      vitrail("train --task detect " + path("train") + " --val-split '' --output " + path("runs") +
              " --experiment next --epochs 1 -b 8 --no-random-resize --threads 1 --model " + path("runs/half/best"));
  EXPECT_THAT(next.out, HasSubstr("class_cost 3 and not 1, giou_loss_coefficient 2.5 and not 2"));
}

TEST_F(Detect, IsCalledAfterTheDetectorThatItStartsFrom) {
  const Outcome outcome = vitrail("train --task detect " + path("train") + " --val-split '' --output " + path("runs") +
                                  " --experiment tuned --epochs 1 -b 8 --threads 1 --no-random-resize --model "
                                  "detr_resnet18 --initial-checkpoint " +
                                  run() + "/best");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(run() + "/best, 0."));
  EXPECT_THAT(outcome.out, HasSubstr("--model 'detr_resnet18' has no effect: "));
  const Outcome resumed = vitrail("train --resume " + path("runs/tuned") + " --epochs 2");
  EXPECT_THAT(resumed.out, HasSubstr(run() + "/best, 0.")) << resumed.err;
}

TEST_F(Detect, RefusesCrowdsAlone) {
  auto file = io::read_json(path("train/instances.json"));
  for (auto& annotation : file["annotations"]) {
    annotation["iscrowd"] = 1;
  }
  io::write_atomically(path("train/crowds.json"), file.dump());
  EXPECT_THAT(vitrail("train --task detect " + path("train/crowds.json") + " --val-split '' --output " + path("runs") +
                      " --experiment crowds --epochs 1" + small())
                  .err,
              HasSubstr("there is no box to learn from"));
}

TEST_F(Detect, IsMeasuredByCocosFigures) {
  const nlohmann::json figures =
      nlohmann::json::parse(vitrail("eval " + run() + " " + path("test") + " --json --output " + path("report")).out);
  EXPECT_EQ(figures["count"], 6);
  EXPECT_EQ(figures["classes"].size(), 4);
  EXPECT_EQ(figures["classes"][3]["name"], "bird");
  EXPECT_EQ(figures["APl"], -1);  // none is larger than 96 x 96 pixels
  const nlohmann::json results = io::read_json(path("report/detections.json"));
  EXPECT_EQ(results.size(), 6 * 7);
  EXPECT_EQ(results[0]["image_id"], 100);
  EXPECT_TRUE(fs::exists(path("report/detections.png")));
  EXPECT_EQ(io::read_image(path("report/queries.png")).width, 10 + 7 * 130);  // a square for each query
  EXPECT_EQ(vitrail("eval " + run() + " --data " + path("test") + " --metric coco --json").out,
            vitrail("eval " + run() + " " + path("test") + " --json").out);
  EXPECT_THAT(vitrail("eval " + run() + " " + path("test")).out, HasSubstr("AR100"));
  EXPECT_THAT(vitrail("eval " + run() + " " + path("test") + " --tta 2").err,
              HasSubstr("finds objects: it takes no --tta"));
}

TEST_F(Detect, FindsObjectsInImages) {
  const std::string image = path("test/images/000100.png");
  const std::string detect = "detect " + run() + " " + image + " --threshold 0 ";
  const nlohmann::json found = nlohmann::json::parse(vitrail(detect + "--format json").out);
  EXPECT_EQ(found.size(), 7);
  EXPECT_EQ(found[0]["file_name"], image);
  EXPECT_GE(found[0]["score"], found[1]["score"]);
  EXPECT_THAT(vitrail(detect + "--format csv").out, StartsWith("file,label,score,x,y,width,height\n" + image + ","));
  EXPECT_THAT(vitrail(detect + "--output " + path("found")).out, HasSubstr(path("found") + ": the images with boxes"));
  EXPECT_EQ(io::read_image(path("found/000100.png")).width, 256);
  EXPECT_EQ(io::read_json(path("found/detections.json")), found);
  EXPECT_THAT(vitrail("detect " + run() + " " + image + " --threshold 1").out,
              HasSubstr(image + ": nothing with 100 % or more"));
}

TEST_F(Detect, ShowsWhereItLooked) {
  const std::string attention =
      "attention " + run() + " " + path("test/images/000100.png") + " --output " + path("maps");
  const Outcome all = vitrail(attention + " --raw " + path("maps.safetensors"));
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("for the likeliest box in"));
  const io::Safetensors raw = io::Safetensors::open(path("maps.safetensors"));
  EXPECT_EQ(raw.get("cross_attention.1").shape(), (Shape{8, 7, 64}));
  EXPECT_EQ(raw.get("encoder_attention.0").shape(), (Shape{8, 64, 64}));
  const io::Image of_all = io::read_image(path("maps/sheet.png"));
  EXPECT_THAT(vitrail(attention + " --query-box 3").out, HasSubstr("Where the decoder looked for box 3 of"));
  const io::Image of_box = io::read_image(path("maps/sheet.png"));
  EXPECT_GT(of_box.width, of_all.width);  // a column for each of eight heads
  EXPECT_THAT(vitrail(attention + " --point 63,0 --head 1").out, HasSubstr("row 0, column 7 of 8 x 8 features"));
  EXPECT_LT(io::read_image(path("maps/sheet.png")).width, of_box.width);
  for (const auto& [flags, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {" --query-box 8", "there is no box 8"},
           {" --point 64,0", "--point '64,0' is no place in an image of 64 x 64 pixels"},
           {" --point 1", "expected X,Y"},
           {" --query-box 1 --layer 2", "there is no layer 2: there are 2"},
           {" --query-box 1 --point 1,1", "give --query-box or --point, not both"},
           {" --layer 1", "--layer and --head want --query-box or --point beside them"},
           {" --query 1,1", "--query, --method, --threshold and --masks have no effect on it"},
       }) {
    EXPECT_THAT(vitrail(attention + flags).err, HasSubstr(words)) << flags;
  }
}

// A picture one pixel wide was magnified until it had 224: gigabytes, and a file that no PNG can be.
TEST_F(Detect, ShowsWhereItLookedInAThinImage) {
  const std::string thin = path("thin.png");
  io::write_png(thin, io::Image(1, 5000));
  const std::string attention = "attention " + run() + " " + thin + " --output " + path("thin");
  for (const char* flags : {"", " --point 0,4999", " --query-box 1"}) {
    const Outcome outcome = vitrail(attention + flags);
    EXPECT_EQ(outcome.status, 0) << flags << outcome.err;
    const io::Image sheet = io::read_image(path("thin/sheet.png"));
    EXPECT_LT(sheet.width * sheet.height, 4'000'000) << flags;
    EXPECT_EQ(io::read_image(path("thin/image.png")).height, 1024);
  }
}

TEST_F(Detect, RunsOnTensors) {
  const std::string model = golden_path("models/detection/detr").string();
  const io::Safetensors golden = io::Safetensors::open(model + "/expected.safetensors");
  const Outcome outcome = vitrail("forward " + model + " --input " + model + "/expected.safetensors --output " +
                                  path("forward.safetensors") + " --features --attention");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const io::Safetensors made = io::Safetensors::open(path("forward.safetensors"));
  for (const std::string name : {"logits", "pred_boxes", "decoder.0", "decoder.1", "encoder_attention.1",
                                 "cross_attention.0", "cross_attention.1"}) {
    expect_close(made.get(name), golden.get(name), 2e-5, name);
  }
  EXPECT_THAT(vitrail("info " + model).out, HasSubstr("circle, square, bird"));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info " + model + " --json").out)["num_queries"], 6);
}

TEST_F(Detect, StartsFromADetectorOfOtherClasses) {
  const std::string cells = path("cells");
  fs::create_directories(cells + "/Annotations");
  fs::create_directories(cells + "/JPEGImages");
  for (const std::string name : {"a", "b", "c", "d"}) {
    fs::copy(path("train/images/00000") + std::string(1, static_cast<char>('0' + name[0] - 'a')) + ".png",
             cells + "/JPEGImages/" + name + ".png");
    std::ofstream(cells + "/Annotations/" + name + ".xml")
        << "<annotation><filename>" << name << ".png</filename><object><name>cell</name><bndbox><xmin>4</xmin><ymin>4"
        << "</ymin><xmax>30</xmax><ymax>30</ymax></bndbox></object></annotation>";
  }
  const Outcome outcome = vitrail("train --task detect " + cells + " --val-split '' --model " + run() +
                                  " --epochs 1 -b 2 --threads 1 --output " + path("runs") + " --experiment cells");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the classes of '" + run() +
                                     "/best' are others: the classifier of the queries "
                                     "begins anew"));
  EXPECT_THAT(outcome.out, HasSubstr("batch norms of the backbone frozen, with its first layers"));
}

TEST_F(Detect, NamesTheRightCommand) {
  const std::string image = path("test/images/000100.png");
  EXPECT_THAT(vitrail("predict " + run() + " " + image).err,
              HasSubstr("finds objects, but this takes models that classify or embed images: `vitrail detect` and"));
  EXPECT_THAT(vitrail("detect " + golden_path("models/text/bert_bare").string() + " " + image).err,
              HasSubstr("finds no objects: it is a model of texts; "));
  EXPECT_THAT(
      vitrail("detect vitrail/cifar10_vit " + image).err,
      AllOf(HasSubstr("'vitrail/cifar10_vit' finds no objects: 'vitrail train --task detect' makes a model that "
                      "does; "),
            HasSubstr("'vitrail predict'")));
  EXPECT_THAT(vitrail("detect " + golden_path("models/joint/blip_vqa").string() + " " + image).err,
              HasSubstr("finds no objects: it answers questions about images; `vitrail ask` takes it"));
  EXPECT_THAT(vitrail("train --task detect " + path("train") + " --val-split '' --num-classes 91" + small()).err,
              HasSubstr("--num-classes is 91, but " + path("train") + " declares 4 classes, with ids up to 4: "));
  EXPECT_THAT(vitrail("train --task detect " + path("test/images") + " --val-split ''" + small()).err,
              HasSubstr("there are no images with boxes"));
  EXPECT_THAT(vitrail("train --task detect " + path("train") + " --val-split '' --model detr_scene").err,
              HasSubstr("did you mean 'detr_scenes'"));
}

class DetectorData : public OnImages {
 protected:
  static std::string detector() {
    return " --task detect --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 "
           "encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=7 'backbone_kwargs={\"channels\": [8, 8, 16], "
           "\"stem_width\": 8}' --no-random-resize -b 8 --epochs 1";
  }
};

TEST_F(DetectorData, SaysWhatBoxesThereAre) {
  const std::string data = scenes("boxes/train", 8);
  scenes("boxes/validation", 4);
  ASSERT_EQ(train_task(path("boxes") + detector(), "detector").status, 0);
  const std::string run = path("runs/detector");
  refuses("eval " + run + " " + path("boxes"), "split into parts (train, validation): choose one");
  // Crowds are no objects to learn.
  fs::copy(data, path("crowds"), fs::copy_options::recursive);
  change_json(path("crowds/instances.json"), [](nlohmann::json& json) {
    for (nlohmann::json& object : json["annotations"]) {
      object["iscrowd"] = object["id"] == 1 ? 0 : 1;
    }
  });
  const Outcome crowds = train_task(path("crowds") + " --val-split ''" + detector(), "crowds");
  EXPECT_THAT(crowds.out, HasSubstr("\n1 object in the training images"));
  const Outcome same = train_task(data + " --val-dir " + data + detector(), "same");
  EXPECT_THAT(same.out, HasSubstr("the images to evaluate on are those to train on"));
  refuses("train " + data + " --val-split ''" + detector() + " --longest-edge 50 --shortest-edge 100 --output " +
              path("runs"),
          "--longest-edge 50 is less than the shorter side of the images, 100");
  // Two of what there should be one of.
  const auto broken = [&](const char* name, auto how) {
    fs::copy(data, path(name), fs::copy_options::recursive);
    change_json(path(name) + "/instances.json", how);
    return "train " + path(name) + " --val-split ''" + detector() + " --output " + path("runs");
  };
  refuses(
      broken("files", [](nlohmann::json& json) { json["images"][1]["file_name"] = json["images"][0]["file_name"]; }),
      "the file '000000.png' is that of the image 0 too");
  refuses(broken("names", [](nlohmann::json& json) { json["categories"][1]["name"] = json["categories"][0]["name"]; }),
          "the categories 1 and 2 are both called 'circle'");
}

TEST_F(DetectorData, IsDrawnThoughNobodyReadsTheNames) {
  const std::string folder = scenes("album", 40);
  ASSERT_EQ(train_task(scenes("few", 4) + " --val-split ''" + detector(), "few").status, 0);
  const std::string command = std::string(VITRAIL_PROGRAM) + " detect " + path("runs/few/last") + " " + folder +
                              "/images --threshold 0 --output " + path("found") + " | head -1 >/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("found")), fs::directory_iterator()), 41);
}

TEST_F(DetectorData, IsNotDrawnOverAnotherPicture) {
  make_scenes("drawn");
  const std::string detect = "detect vitrail/scenes_detr --threads 1 ";
  const std::string x = path("drawn/a/x.png") + " " + path("drawn/b/x.png");
  const std::string out = path("drawn/out");
  ASSERT_EQ(with_shipped(detect + x + " " + path("drawn/x-2.png") + " --output " + out).status, 0);
  for (const char* name : {"x.png", "x-2.png", "x-2-2.png"}) {
    EXPECT_TRUE(fs::exists(fs::path(out) / name)) << name;
  }
  EXPECT_THAT(with_shipped(detect + path("drawn/a/x.png") + " --output " + out).err,
              HasSubstr("has 2 other pictures that were there before"));
  const Outcome counted = with_shipped(detect + x + " --format json");
  EXPECT_THAT(counted.err, HasSubstr("image_id counts the images from 1"));
  const Outcome named = with_shipped(detect + path("drawn/images/000002.png") + " --format json");
  EXPECT_EQ(named.err, "");
  EXPECT_EQ(nlohmann::json::parse(named.out).at(0).at("image_id"), 2);
}

class DetectorOfCategories : public OnImages {};

TEST_F(DetectorOfCategories, GivesTheirIds) {
  fs::create_directories(path("boxes"));
  nlohmann::json coco = {{"categories", {{{"id", 3}, {"name", "blue"}}, {{"id", 17}, {"name", "red"}}}}};
  for (const int i : {0, 1}) {
    const std::string name = std::to_string(i) + ".png";
    fs::copy_file(path(i == 0 ? "data/train/blue/0.png" : "data/train/red/0.png"), path("boxes/" + name));
    coco["images"].push_back({{"id", i}, {"file_name", name}, {"width", 16}, {"height", 16}});
    coco["annotations"].push_back({{"id", i + 1},
                                   {"image_id", i},
                                   {"category_id", i == 0 ? 3 : 17},
                                   {"bbox", {2, 2, 9, 9}},
                                   {"area", 81},
                                   {"iscrowd", 0}});
  }
  std::ofstream(path("boxes/instances.json")) << coco.dump();
  const Outcome trained = vitrail(
      "train " + path("boxes") + " --task detect --model detr_scenes --shortest-edge 16 --longest-edge 32 " +
      "--num-queries 2 --epochs 1 -b 2 --val-split '' --threads 1 --output " + path("runs") + " --experiment d");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome found =
      vitrail("detect " + path("runs/d") + " " + path("boxes/0.png") + " --threshold 0 --format json --threads 1");
  ASSERT_EQ(found.status, 0) << found.err;
  const nlohmann::json objects = nlohmann::json::parse(found.out);
  ASSERT_FALSE(objects.empty());
  for (const nlohmann::json& object : objects) {
    EXPECT_EQ(object.at("category_id"), object.at("category") == "blue" ? 3 : 17);
  }
}

class DetectorOfScenes : public OnScenes {};

TEST_F(DetectorOfScenes, KeepsTheImagesThatItDrawsOn) {
  fs::create_directories(path("own"));
  fs::copy_file(path("scenes/images/000000.png"), path("own/a.png"));
  const std::string before = io::read_text(path("own/a.png"));
  ASSERT_EQ(train(path("scenes"), "drawing",
                  " --task detect --model detr_scenes --no-random-resize -b 8 --val-split '' --threads 1")
                .status,
            0);
  const std::string detect = "detect " + path("runs/drawing") + " ";
  refuses(detect + path("own") + " --output " + path("own/."),
          "a.png' lies in the folder that the pictures are drawn into");
  refuses(detect + path("own/a.png") + " --output " + path("own"), "choose another --output");
  fs::copy_file(path("own/a.png"), path("own/a.JPG"));
  refuses(detect + path("own/a.JPG") + " --output " + path("own"), "a.png' lies in the folder");
  EXPECT_EQ(io::read_text(path("own/a.png")), before);
  EXPECT_EQ(vitrail(detect + path("own") + " --output " + path("own/drawn")).status, 0);
}

TEST_F(DetectorOfScenes, SaysThatNothingWasFound) {
  ASSERT_EQ(train_epoch(path("scenes") + scenes_detector(), "detector").status, 0);
  const Outcome looked = vitrail("attention " + path("runs/detector") + " " + path("scenes/images/000000.png") +
                                 " --output " + path("looked"));
  EXPECT_THAT(looked.out, HasSubstr("found nothing with 70 % or more")) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr("the likeliest box"));
}

}  // namespace
}  // namespace vitrail::test
