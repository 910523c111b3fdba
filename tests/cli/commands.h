// A data set and a run on it, which the tests of commands look at.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/support/program.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"

namespace vitrail::test {

namespace fs = std::filesystem;

// Two classes of 16 images of 16 x 16: reddish or bluish noise. One training run that all tests look at.
class Commands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    for (const std::string split : {"train", "validation"}) {
      for (const int label : {0, 1}) {
        const fs::path place = *folder_ / "data/" / split / (label == 0 ? "blue" : "red");
        fs::create_directories(place);
        for (int i = 0; i < 16; ++i) {
          io::write_png(place / (std::to_string(i) + ".png"), image(label, i));
        }
      }
    }
    trained_ = vitrail("train " + path("data") + " --output " + path("runs") +
                       " --experiment one --epochs 3 --lr 1e-2" + small());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
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
  // Flags of a model that is trained in moments.
  static std::string small() {
    return " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 num_heads=3 "
           "--threads 1 --no-aug -b 8";
  }
  // A training for one epoch; its run is path("runs/NAME").
  static Outcome train(const std::string& data, const std::string& name, const std::string& flags = small()) {
    return vitrail("train " + data + " --epochs 1 --output " + path("runs") + " --experiment " + name + flags);
  }
  // A copy of the data under another name, to be changed; its path.
  static std::string copy_of_data(const std::string& name) {
    fs::copy(path("data"), path(name), fs::copy_options::recursive);
    return path(name);
  }
  // Writes a file, and says where it lies.
  static std::string write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }
  // A command fails with this status, and says this.
  static void refuses(const std::string& arguments, const std::string& message, int status = 1) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(message)) << arguments;
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string best() { return path("runs/one/best"); }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline Outcome trained_;
};

}  // namespace vitrail::test
