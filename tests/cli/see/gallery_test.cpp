// What a person does who wants to see what models make of images: a page of them, and the models that ship for it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/base64.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Scenes, and a detector, a captioner and a network for questions that have looked at them for a moment.
class Gallery : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    ASSERT_EQ(vitrail("scenes " + path("train") + " --count 16").status, 0);
    ASSERT_EQ(vitrail("scenes " + path("test") + " --start 100 --count 3").status, 0);
    const std::string small_resnet = R"('channels=[8,8,16]' stem_width=8)";
    train("detect",
          "detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=2 encoder_ffn_dim=32 "
          "decoder_ffn_dim=32 num_queries=7 'backbone_kwargs={\"channels\": [8, 8, 16], \"stem_width\": 8}' "
          "--no-random-resize");
    train("caption", "resnet18 --model-kwargs 'layers=[1,1,1]' output_stride=8 stem_type=deep " + small_resnet +
                         " --img-size 64 --decoder gpt2 --decoder-kwargs n_embd=16 n_layer=2 n_head=2 --no-aug");
    train("vqa", "vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 vision_depth=1 depth=2");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static void train(const std::string& task, const std::string& flags) {
    const Outcome trained =
        vitrail("train --task " + task + " " + path("train") + " --val-dir " + path("test") + " --output " +
                path("runs") + " --experiment " + task + " --epochs 1 -b 8 --threads 1 --model " + flags);
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string run(const std::string& task) { return path("runs/" + task); }
  static std::string images() { return path("test/images"); }

  // The maps and texts that a page has for its script.
  static json data_of(const std::string& page) {
    const std::string begin = "const data = ";
    const std::size_t from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find(";\n", from) - from));
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(Gallery, ShowsWhatThreeModelsSayAndWhereTheyLooked) {
  const std::string file = path("page.html");
  const Outcome made = vitrail("gallery " + images() + " --detector " + run("detect") + " --threshold 0 --captioner " +
                               run("caption") + " --scenes " + path("test") + " --vqa " + run("vqa") + " --questions " +
                               path("test") + " --ask 'is there a pink zebra?' --title 'Seen & said' --output " + file);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("3 pictures: boxes by "), HasSubstr(" of 24 answers are right")));
  const std::string page = io::read_text(file);
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>Seen &amp; said</h1>"), HasSubstr("<h2>000100.png</h2>"),
                          HasSubstr("the model has never read &#39;pink&#39; and &#39;zebra&#39;")));
  EXPECT_THAT(page, testing::ContainsRegex("is (not )?true of the scene|cannot be told whether this is true"));
  EXPECT_THAT(page, Not(HasSubstr("http")));  // nothing is taken from elsewhere

  const json data = data_of(page);
  std::map<std::string, int> kinds;
  for (const json& look : data["looks"]) {
    ++kinds[look["kind"]];
    if (!look.contains("maps")) {
      continue;
    }
    const json& names = data["names"][look["names"].get<std::size_t>()];
    const auto cells = look["rows"].get<std::size_t>() * look["columns"].get<std::size_t>();
    const std::string maps = io::decode_base64(look["maps"].get<std::string>());
    ASSERT_EQ(maps.size(), names.size() * cells);
    EXPECT_LT(look["first"], names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {  // from dark to bright, unless all places weigh the same
      const std::string map = maps.substr(i * cells, cells);
      const auto [low, high] = std::ranges::minmax(map, {}, [](char c) { return static_cast<unsigned char>(c); });
      EXPECT_TRUE(low == '\0' && (high == '\xff' || high == low)) << look["text"] << names[i];
    }
  }
  EXPECT_EQ(kinds["box"], 3 * 7);
  EXPECT_EQ(kinds["question"], 3 * 9);
  EXPECT_GE(kinds["word"], 3);

  const std::string source = "<img src=\"data:image/png;base64,";
  const std::size_t from = page.find(source) + source.size();
  const std::string png = io::decode_base64(page.substr(from, page.find('"', from) - from));
  const io::Image shown = io::decode_image({reinterpret_cast<const std::uint8_t*>(png.data()), png.size()}, "inside");
  EXPECT_EQ(shown.pixels, io::read_image(images() + "/000100.png").pixels);
}

// The names in the select are those of `vitrail attention`, and the map is the one that it writes.
TEST_F(Gallery, HasTheMapsOfAttention) {
  const std::string image = images() + "/000101.png";
  ASSERT_EQ(
      vitrail("gallery " + image + " --detector " + run("detect") + " --threshold 0 --output " + path("d.html")).status,
      0);
  ASSERT_EQ(vitrail("attention " + run("detect") + " " + image + " --output " + path("maps") + " --raw " +
                    path("maps.safetensors"))
                .status,
            0);
  const Tensor maps = io::Safetensors::open(path("maps.safetensors")).get("cross_attention.1");  // [H, Q, N]
  const json found = json::parse(vitrail("detect " + run("detect") + " " + image + " --threshold 0 --format json").out);
  const std::string page = io::read_text(path("d.html"));
  const json data = data_of(page);
  ASSERT_EQ(data["looks"].size(), found.size());
  const json& look = data["looks"][0];
  const json& names = data["names"][look["names"].get<std::size_t>()];
  const std::string values = io::decode_base64(look["maps"].get<std::string>());
  const auto place = static_cast<std::size_t>(std::ranges::find(names, json("layer 1, head 3")) - names.begin());
  ASSERT_LT(place, names.size());
  const auto cells = static_cast<std::size_t>(maps.size(2));
  bool is_there = false;  // one of the queries has this map
  for (std::int64_t q = 0; q < maps.size(1); ++q) {
    const std::vector<float> map = maps.select(0, 3).select(0, q).contiguous().values();
    const auto [low, high] = std::ranges::minmax(map);
    bool equal = true;
    for (std::size_t i = 0; i < cells; ++i) {
      const auto value = static_cast<float>(static_cast<unsigned char>(values[place * cells + i]));
      equal = equal && std::abs(value - 255 * (map[i] - low) / (high - low)) < 0.6F;
    }
    is_there = is_there || equal;
  }
  EXPECT_TRUE(is_there);
}

TEST_F(Gallery, TakesAnyOfTheModelsAlone) {
  const std::string image = images() + "/000101.png";
  const std::string out = " --output " + path("one.html");
  ASSERT_EQ(vitrail("gallery " + image + " --captioner " + run("caption") + out).status, 0);
  EXPECT_THAT(io::read_text(path("one.html")), AllOf(HasSubstr("<h3>Caption</h3>"), Not(HasSubstr("<h3>Questions"))));
  const std::string blip = golden_path("models/joint/blip_vqa").string();
  const Outcome asked =
      vitrail("gallery " + image + " --vqa " + blip + " --ask 'what is it?' --ask 'is it red?'" + out);
  ASSERT_EQ(asked.status, 0) << asked.err;
  EXPECT_THAT(asked.out, Not(HasSubstr("right")));  // nobody knows
  EXPECT_THAT(io::read_text(path("one.html")), AllOf(HasSubstr("what is it?"), HasSubstr("is it red?")));
}

TEST_F(Gallery, SaysWhatDoesNotFit) {
  const std::string image = images() + "/000100.png";
  for (const auto& [flags, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "give --detector, --captioner or --vqa"},
           {" --vqa " + run("vqa"), "give --questions DATA or --ask QUESTION"},
           {" --detector " + run("detect") + " --ask 'what?'", "are for --vqa"},
           {" --detector " + run("detect") + " --scenes " + path("test"), "judges what --captioner says"},
           {" --detector " + run("vqa"), "finds no objects: it answers questions about images; `vitrail ask` takes it"},
           {" --captioner " + run("detect"), "captions no images: it finds objects; `vitrail detect` and"},
           {" --vqa " + run("caption") + " --ask 'what?'",
            "answers no questions: it captions images; `vitrail caption` takes it"},
           {" --detector " + run("detect") + " --output page.png", "does not end in .html"},
           {" --vqa " + run("vqa") + " --questions " + path("train"), "has no question about any of these images"},
       }) {
    const Outcome outcome =
        vitrail("gallery " + image + flags +
                (flags.find("output") == std::string::npos ? " --output " + path("never.html") : ""));
    EXPECT_NE(outcome.status, 0) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << flags;
  }
  EXPECT_FALSE(fs::exists(path("never.html")));
  io::write_atomically(path("mine.html"), std::string_view("<p>mine"));
  EXPECT_THAT(vitrail("gallery " + image + " --detector " + run("detect") + " --output " + path("mine.html")).err,
              HasSubstr("mine.html' is a page that vitrail has not made"));
  EXPECT_EQ(io::read_text(path("mine.html")), "<p>mine");
}

TEST_F(Gallery, CountsCaptionsThatAreTooLong) {
  fs::create_directories(path("long"));
  fs::copy(images() + "/000100.png", path("long/a.png"), fs::copy_options::overwrite_existing);
  std::string caption;
  for (int i = 0; i < 70; ++i) {
    caption += "a red circle ";
  }
  std::ofstream(path("long/captions.csv")) << "a.png," << caption << "\na.png,a red circle\n";
  const std::string eval = "eval " + run("caption") + " " + path("long");
  EXPECT_THAT(
      vitrail(eval).out,
      HasSubstr("\n1 caption is longer than the model's 64 tokens, of which the loss is that of the beginning\n"));
  EXPECT_EQ(json::parse(vitrail(eval + " --json").out)["cut"], 1);
}

// What script/train-weights does with the three models, and what the program then does with their names.
TEST_F(Gallery, TakesModelsThatShip) {
  for (const auto& [task, layout] : std::initializer_list<std::pair<std::string, std::string>>{
           {"detect", "the layout of Hugging Face's transformers"},
           {"caption", "vitrail's own layout"},
           {"vqa", "vitrail's own layout"}}) {
    const std::string shipped = path("weights/" + task);
    const Outcome made = vitrail("convert " + run(task) + "/last --dtype bf16 --output " + shipped);
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(layout));
    const io::Safetensors halves = io::Safetensors::open(shipped + "/model.safetensors");
    const io::Safetensors full = io::Safetensors::open(run(task) + "/last/model.safetensors");
    ASSERT_EQ(halves.names(), full.names());
    for (const std::string& name : full.names()) {
      const Tensor value = full.get(name);
      EXPECT_EQ(halves.get(name).dtype(), value.dtype() == DType::f32 ? DType::bf16 : value.dtype()) << name;
      expect_close(halves.get(name), value, 1.0 / 128, name);
    }
    std::ofstream(shipped + "/card.json") << fmt::format(
        R"({{"name": "vitrail/{}", "what": "a tiny network", "data": "scenes", "data_licence": "none",
             "licence": "Apache-2.0", "command": "vitrail train", "seed": 0, "machine": "any", "hours": 0,
             "date": "2026-11-25", "accuracy": "none", "measured_by": "nothing", "limits": "knows nothing",
             "sha256": "0"}})",
        task);
    EXPECT_THAT(vitrail("convert " + run(task) + " --layout timm --output " + path("no")).err,
                HasSubstr("for which there is no layout of timm's"));
  }
  EXPECT_THAT(vitrail("convert " + run("vqa") + " --layout huggingface --output " + path("no")).err,
              HasSubstr("has vitrail's own layout, and no other"));
  EXPECT_FALSE(fs::exists(path("no")));
  const auto shipped = [](const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" + path("weights"));
  };
  const std::string image = images() + "/000100.png";
  EXPECT_THAT(shipped("models --shipped --names").out,
              AllOf(HasSubstr("vitrail/detect\n"), HasSubstr("vitrail/caption\n"), HasSubstr("vitrail/vqa\n")));
  for (const std::string command :
       {"info vitrail/detect", "info vitrail/caption", "info vitrail/vqa", "detect vitrail/detect IMAGE",
        "caption vitrail/caption IMAGE", "ask vitrail/vqa IMAGE 'is there a circle?'",
        "attention vitrail/detect IMAGE --output MAPS", "eval vitrail/detect TEST", "eval vitrail/caption TEST",
        "eval vitrail/vqa TEST"}) {
    std::string line = command;
    for (const auto& [word, value] : std::initializer_list<std::pair<std::string, std::string>>{
             {"IMAGE", image}, {"MAPS", path("maps")}, {"TEST", path("test")}}) {
      const std::size_t at = line.find(word);
      line = at == std::string::npos ? line : line.replace(at, word.size(), value);
    }
    const Outcome outcome = shipped(line);
    EXPECT_EQ(outcome.status, 0) << command << ": " << outcome.err;
    EXPECT_FALSE(outcome.out.empty()) << command;
  }
  const Outcome page = shipped("gallery " + image +
                               " --detector vitrail/detect --captioner vitrail/caption --vqa "
                               "vitrail/vqa --questions " +
                               path("test") + " --output " + path("shipped.html"));
  EXPECT_EQ(page.status, 0) << page.err;
}

class GalleryOfScenes : public OnScenes {};

TEST_F(GalleryOfScenes, AsksQuestionsOfTheirOwnImages) {
  make_scenes("asked");
  const std::string questions = write(
      "asked/q.csv", "path,question,answer\na/x.png,how many birds are there?,1\nb/x.png,is there a giraffe?,yes\n");
  const auto gallery = [&](const std::string& images) {
    return with_shipped("gallery " + images + " --vqa vitrail/scenes_vqa --threads 1 --questions " + questions +
                        " --output " + path("asked/g.html"));
  };
  const std::string both = path("asked/a/x.png") + " " + path("asked/b/x.png");
  EXPECT_THAT(gallery(both).out,
              AllOf(HasSubstr("of 1 answers are right"), HasSubstr("1 question the model could not")));
  fs::create_directories(path("asked/c"));
  fs::copy_file(path("asked/a/x.png"), path("asked/c/x.png"));
  const Outcome other = gallery(path("asked/c/x.png") + " " + path("asked/x-2.png"));
  EXPECT_THAT(other.err, AllOf(HasSubstr("it is not clear which image"), HasSubstr("has no question about any of")));
}

TEST_F(GalleryOfScenes, AsksTheQuestionsOfAPart) {
  ASSERT_EQ(
      train(path("scenes"), "vqa",
            " --task vqa --model vqa_small --model-kwargs channels=[8,8,16] dim=16 num_heads=2 vision_depth=1 depth=1 "
            "-b 8 --val-split '' --threads 1")
          .status,
      0);
  write("scenes/q.csv",
        "path,question,answer,split\nimages/000000.png,is there a bird?,yes,train\n"
        "images/000000.png,how many birds are there?,1,val\n");
  const std::string gallery = "gallery " + path("scenes/images/000000.png") + " --vqa " + path("runs/vqa") +
                              " --questions " + path("scenes/q.csv") + " --threads 1 --output " + path("g.html");
  refuses(gallery, "choose one of them");
  EXPECT_THAT(vitrail(gallery + " --split validation").out, HasSubstr("of 1 answers are right"));
}

TEST_F(GalleryOfScenes, RefusesFlagsThatDoNothing) {
  ASSERT_EQ(train_epoch(path("scenes") + scenes_captioner(), "gallery").status, 0);
  const std::string gallery = "gallery " + path("scenes/images/000001.png") + " --captioner " + path("runs/gallery") +
                              " --output " + path("g.html");
  refuses(gallery + " --threshold 0.1", "--threshold is for the boxes of --detector", 2);
  refuses(gallery + " --scenes " + path("others"), "knows none of these images");
  EXPECT_EQ(vitrail(gallery + " --scenes " + path("scenes")).status, 0);
}

}  // namespace
}  // namespace vitrail::test
