#include "vitrail/train/tasks/frames.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/train/ranked.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/study/frames.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

// Turntables: six things of each of two classes, a bright spot on whose rim goes round in eight steps. The classes
// differ in the colour of the spot.
void write_turntables(const fs::path& folder) {
  constexpr int rim[8][2] = {{7, 3}, {6, 6}, {3, 7}, {1, 6}, {0, 3}, {1, 1}, {3, 0}, {6, 1}};
  for (int c = 0; c < 2; ++c) {
    for (int object = 0; object < 6; ++object) {
      const fs::path place = folder / (c == 0 ? "red" : "green") / std::to_string(object);
      fs::create_directories(place);
      for (int t = 0; t < 8; ++t) {
        Draws draws(Philox(7, static_cast<std::uint64_t>(1000 * c + 100 * object + t)));
        io::Image image(8, 8);
        for (std::uint8_t& sample : image.pixels) {
          sample = static_cast<std::uint8_t>(draws.integer(0, 60));
        }
        image.pixels[static_cast<std::size_t>((rim[t][1] * 8 + rim[t][0]) * 3 + c)] = 255;
        io::write_png(place / (std::to_string(t) + ".png"), image);
      }
    }
  }
}

FrameTaskOptions tiny_frames(const fs::path& folder) {
  if (!fs::exists(folder / "data")) {
    write_turntables(folder / "data");
  }
  FrameTaskOptions options;
  options.data_dir = (folder / "data").string();
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.val_share = 0.34;
  options.circular = true;
  options.model = "linear";
  options.img_size = 8;
  options.cell = "gru";
  options.cell_kwargs = R"({"hidden_size": 24})";
  options.batch_size = 4;
  options.epochs = 3;
  options.lr = 1e-2;
  options.images.crop_pct = 1;
  options.augment.no_aug = true;
  options.threads = 1;
  return options;
}

TEST(LearningFromFrames, TellsTheAngleOfEach) {
  for (const std::int64_t bins : {0, 8}) {
    const test::TemporaryFolder folder;
    FrameTaskOptions options = tiny_frames(folder.path());
    options.target = "angle";
    options.angle_bins = bins;
    options.epochs = 60;
    options.val_interval = 60;
    const FitResult result = fit(options);
    EXPECT_LT(result.figure("error"), 25) << bins;
    const std::string picture = io::read_text(result.folder / "angles.svg");
    EXPECT_THAT(picture, HasSubstr("predicted angle, degrees"));
    EXPECT_THAT(picture, HasSubstr("green"));

    const auto model = models::load_frame_network(result.folder / "best");
    EXPECT_EQ(model->target.bins, bins);
    const data::Sequences all = data::open_sequences(options.data_dir, sequence_options(model->target, {}));
    const FrameEvaluation again = run_frames(*model, all, {0, 3, 11}, {.batch_size = 2});
    ASSERT_EQ(again.predictions.size(), 3);
    EXPECT_EQ(again.predictions[2].sequence, 11);
    EXPECT_EQ(again.predictions[2].angles.size(), 8);
    EXPECT_EQ(again.predictions[2].true_angles[1], 45);
    EXPECT_LT(figure(again.figures, "error"), 25);
    EXPECT_EQ(errors_by_class(again, all).size(), 2);
  }
}

TEST(LearningFromFrames, TellsTheClassOfASequence) {
  const test::TemporaryFolder folder;
  FrameTaskOptions options = tiny_frames(folder.path());
  options.epochs = 30;
  options.val_interval = 30;
  options.cell = "lstm";
  options.cell_kwargs = R"({"hidden_size": 16, "bidirectional": true})";
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("accuracy"), 90);
  EXPECT_TRUE(fs::exists(result.folder / "confusion.svg"));
}

TEST(LearningFromFrames, TellsTheClassOfEachFrameOfATable) {
  const test::TemporaryFolder folder;
  FrameTaskOptions options = tiny_frames(folder.path());
  std::ofstream table(folder / "frames.csv");
  table << "path,sequence,label,split\n";
  for (const char* color : {"red", "green"}) {
    for (int object = 0; object < 6; ++object) {
      for (int t = 0; t < 8; ++t) {
        table << "data/" << color << "/" << object << "/" << t << ".png," << color << object << ","
              << (t < 4 ? "below" : "above") << "," << (object < 4 ? "train" : "test") << "\n";
      }
    }
  }
  table.close();
  options.data_dir = (folder / "frames.csv").string();
  options.val_split = "test";
  options.target = "frames";
  options.max_frames = 5;
  options.circular = false;
  options.epochs = 40;
  options.val_interval = 40;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("accuracy"), 90);
  EXPECT_EQ(models::load_frame_network(result.folder / "best")->target.classes,
            (std::vector<std::string>{"above", "below"}));
}

TEST(LearningFromFrames, ResumesToTheSameBits) {
  const test::TemporaryFolder folder;
  FrameTaskOptions options = tiny_frames(folder.path());
  options.target = "angle";
  options.drop = 0.2;
  options.augment.no_aug = false;
  options.max_frames = 6;
  options.cell_kwargs = R"({"hidden_size": 8, "num_layers": 2, "bidirectional": true})";
  options.experiment = "whole";
  fit(options);
  options.experiment = "stopped";
  test::fit_in_two_parts(options, 3);
  const auto checksum = [&](const char* run) {
    return weights_checksum(*models::load_frame_network(fs::path(options.output) / run / "last"));
  };
  EXPECT_EQ(checksum("whole"), checksum("stopped"));
}

TEST(LearningFromFrames, HoldsOutWholeSequencesOfEachClass) {
  const test::TemporaryFolder folder;
  const FrameTaskOptions options = tiny_frames(folder.path());
  const std::unique_ptr<Task> task = options.make("");
  EXPECT_THAT(task->summary()[1], HasSubstr("8 training and 4 validation sequences, of 2 classes"));
}

TEST(LearningFromFrames, SaysWhatCannotBe) {
  const test::TemporaryFolder folder;
  const FrameTaskOptions good = tiny_frames(folder.path());
  const auto error = [&](auto&& change) {
    FrameTaskOptions options = good;
    change(options);
    return error_of([&] {
      validate(options);
      options.make("");
    });
  };
  EXPECT_THAT(error([](FrameTaskOptions& o) { o.target = "angles"; }), HasSubstr("--target"));
  EXPECT_THAT(error([](FrameTaskOptions& o) { o.angle_bins = 1; }), HasSubstr("at least 2"));
  EXPECT_THAT(error([](FrameTaskOptions& o) { o.cell_kwargs = R"({"hiden_size": 3})"; }),
              HasSubstr("did you mean 'hidden_size'"));
  EXPECT_THAT(error([](FrameTaskOptions& o) { o.target = "frames"; }), HasSubstr("column 'label' of a .csv"));
  EXPECT_THAT(error([](FrameTaskOptions& o) { o.data_dir += "/red"; }), HasSubstr("has no class"));
  EXPECT_THAT(error([](FrameTaskOptions& o) {
                o.target = "angle";
                o.augment.no_aug = false;
                o.augment.hflip = 0.5;
              }),
              HasSubstr("mirrored"));
  fs::rename(folder / "data/green", folder / "green");
  EXPECT_THAT(error([](FrameTaskOptions&) {}), HasSubstr("all sequences have the label 'red'"));
}

TEST(Angles, GoRound) {
  EXPECT_DOUBLE_EQ(angle_between(10, 350), 20);
  EXPECT_DOUBLE_EQ(angle_between(-90, 90), 180);
  data::Sequences data;
  data.sequences = {{"a", 0, {0, 1, 2, 3}}};
  EXPECT_DOUBLE_EQ(angle_of(data, 0, 2, 3), 270);
  data.angles = {0, 0, -30, 0};
  EXPECT_DOUBLE_EQ(angle_of(data, 0, 2, 3), 330);
}

TEST(LearningFromFrames, SharesItsEvaluation) {
  const test::TemporaryFolder folder;
  test::expect_shared_evaluations(tiny_frames(folder.path()));
}

}  // namespace
}  // namespace vitrail::train
