// What the tests of commands look at: a folder, images of two classes, drawn scenes, and a run on the images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/random.h"

namespace vitrail::test {

namespace fs = std::filesystem;

// A folder to work in, which all tests of a suite share.
class InAFolder : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = new TemporaryFolder; }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  // Writes a file, and says where it lies.
  static std::string write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }
  // Changes a JSON file.
  template <class Change>
  static void change_json(const std::string& file, Change how) {
    nlohmann::json json = io::read_json(file);
    how(json);
    std::ofstream(file) << json.dump();
  }

  // A command fails with this status, and says this.
  static void refuses(const std::string& arguments, const std::string& message, int status = 1) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(message)) << arguments;
  }
  // A command has failed with this status, has said this, and has printed nothing.
  static void fails(const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
  // What a command prints that succeeds.
  static std::string printed(const std::string& command) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 0) << command << ": " << outcome.err;
    return outcome.out;
  }
  // What a command prints with --json.
  static nlohmann::json json_of(const std::string& command) {
    return nlohmann::json::parse(printed(command + " --json"));
  }
  // A command that knows the checkpoints of the sources.
  static Outcome with_shipped(const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
  }

  static std::string golden_model(const std::string& name) { return golden_path("models/" + name).string(); }
  // A copy of a golden model, of which the config.json says `key` too.
  static std::string golden_with(const std::string& golden, const std::string& name, const std::string& key,
                                 const std::string& value) {
    fs::copy(golden_path("models/" + golden), path(name), fs::copy_options::recursive);
    nlohmann::json config = io::read_json(path(name + "/config.json"));
    config[key] = value;
    write(name + "/config.json", config.dump());
    return path(name);
  }

  // Flags of a model that is trained in moments.
  static std::string small() {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 num_heads=3 "
           "--threads 1 --no-aug -b 8";
  }
  // Flags of a smaller one, whose run is path("runs/NAME").
  static std::string small_run(const std::string& name) {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3 "
           "--epochs 1 -b 8 --no-aug --threads 1 --output " +
           path("runs") + " --experiment " + name;
  }
  // Flags of a run of one epoch, which is FOLDER/NAME.
  static std::string run_flags(const std::string& folder, const std::string& name) {
    return " --output " + folder + " --experiment " + name + " --epochs 1";
  }
  static std::string small_captioner() {
    return " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru --decoder-kwargs "
           "hidden_size=8 --no-aug -b 8";
  }
  // Flags of models that learn from all of some scenes.
  static std::string scenes_captioner() { return small_captioner() + " --val-split ''"; }
  static std::string scenes_detector() {
    return " --task detect --model detr_scenes --no-random-resize -b 8 --val-split ''";
  }
  // A training for one epoch; its run is path("runs/NAME").
  static Outcome train(const std::string& data, const std::string& name, const std::string& flags = small()) {
    return vitrail("train " + data + " --epochs 1 --output " + path("runs") + " --experiment " + name + flags);
  }
  // A training of any task; its run is path("runs/NAME").
  static Outcome train_task(const std::string& arguments, const std::string& name) {
    return vitrail("train " + arguments + " --threads 1 --output " + path("runs") + " --experiment " + name);
  }
  // A training of any task for one epoch.
  static Outcome train_epoch(const std::string& arguments, const std::string& name) {
    return train_task(arguments + " --epochs 1", name);
  }
  // What a run says that goes on for a second epoch.
  static Outcome go_on(const std::string& run) {
    return vitrail("train --resume " + path("runs/" + run) + " --epochs 2");
  }

  // Draws scenes, and says where they lie.
  static std::string scenes(const std::string& name, int count) {
    EXPECT_EQ(vitrail("scenes " + path(name) + " --count " + std::to_string(count)).status, 0);
    return path(name);
  }
  // Scenes as a/x.png, b/x.png and x-2.png.
  static void make_scenes(const std::string& folder) {
    ASSERT_EQ(vitrail("scenes " + path(folder) + " --count 3").status, 0);
    for (const auto& [from, to] : {std::pair{"0", "a/x"}, std::pair{"1", "b/x"}, std::pair{"2", "x-2"}}) {
      const fs::path file = path(folder + "/" + to + ".png");
      fs::create_directories(file.parent_path());
      fs::copy_file(path(folder + "/images/00000" + from + ".png"), file);
    }
  }

  static std::string lines_of(std::initializer_list<const char*> lines) {
    std::string text;
    for (const char* line : lines) {
      text += std::string(line) + "\n";
    }
    return text;
  }
  static std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) {
      all += text;
    }
    return all;
  }
  // Documents of numbered words.
  static std::string words(int first, int count) {
    std::string text;
    for (int i = first; i < first + count; ++i) {
      text += "word " + std::to_string(i % 7) + " of " + std::to_string(i % 5) + (i % 4 == 3 ? "\n\n" : " and ");
    }
    return text;
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

// Eight drawn scenes, and four others.
class OnScenes : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    scenes("scenes", 8);
    EXPECT_EQ(vitrail("scenes " + path("others") + " --count 4 --start 100").status, 0);
  }
};

// Two classes of 16 images of 16 x 16 in each of two parts: reddish or bluish noise.
class OnImages : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    for (const std::string split : {"train", "validation"}) {
      for (const int label : {0, 1}) {
        const fs::path place = *folder_ / "data/" / split / (label == 0 ? "blue" : "red");
        fs::create_directories(place);
        for (int i = 0; i < 16; ++i) {
          io::write_png(place / (std::to_string(i) + ".png"), image(label, i));
        }
      }
    }
  }

  static io::Image image(int label, int i) {
    io::Image image(16, 16);
    const Philox philox(7, static_cast<std::uint64_t>(i));
    for (std::int64_t p = 0; p < 16 * 16 * 3; ++p) {
      const bool own = p % 3 == (label == 0 ? 2 : 0);  // the blue or the red byte of a pixel
      image.pixels[static_cast<std::size_t>(p)] =
          static_cast<std::uint8_t>((own ? 120 : 40) + philox.word(static_cast<std::uint64_t>(p)) % 64);
    }
    return image;
  }
  // A copy of the data under another name, to be changed; its path.
  static std::string copy_of_data(const std::string& name) {
    fs::copy(path("data"), path(name), fs::copy_options::recursive);
    return path(name);
  }
  // A copy of the data, with a broken image in `part`.
  static std::string data_with_broken(const std::string& name, const std::string& part) {
    if (!fs::exists(path(name))) {
      copy_of_data(name);
      write(name + "/" + part + "/red/bad.png", "no image");
    }
    return path(name);
  }
  // A run of one epoch on the data.
  static void run(const std::string& name, const std::string& flags = "") {
    const Outcome outcome = vitrail("train " + path("data") + small() + " --epochs 1 --output " + path("runs") +
                                    " --experiment " + name + " " + flags);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
};

// A training run on the images, which is what takes time: only for tests that look at it.
class Commands : public OnImages {
 protected:
  static void SetUpTestSuite() {
    OnImages::SetUpTestSuite();
    trained_ = vitrail("train " + path("data") + " --output " + path("runs") +
                       " --experiment one --epochs 3 --lr 1e-2" + small());
  }
  static std::string best() { return path("runs/one/best"); }

  static inline Outcome trained_;
};

// What may stand in place of the last of `words`, with its help: a line "WORD\tHELP" each.
inline std::vector<std::pair<std::string, std::string>> completed(const std::string& words) {
  std::istringstream lines(vitrail("completion fish -- " + words).out);
  std::vector<std::pair<std::string, std::string>> found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    found.emplace_back(line.substr(0, tab), tab == std::string::npos ? "" : line.substr(tab + 1));
  }
  return found;
}

}  // namespace vitrail::test
