#include "vitrail/data/sequences/sequences.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/data/sequences/sequence_loader.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using Labels = SequenceOptions::Labels;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An image of one gray value.
void write_frame(const fs::path& path, int value) {
  fs::create_directories(path.parent_path());
  io::Image image(4, 4);
  std::fill(image.pixels.begin(), image.pixels.end(), static_cast<std::uint8_t>(value));
  io::write_png(path, image);
}

// Two cows of 3 and 12 frames and a cup of 2, whose gray values are 10 · its number + their own.
void write_herd(const fs::path& folder) {
  int number = 0;
  for (const auto& [name, frames] : {std::pair("cow/1", 3), {"cow/2", 12}, {"cup/1", 2}}) {
    for (int i = 0; i < frames; ++i) {
      write_frame(folder / name / (std::to_string(i) + ".png"), 20 * number + i);
    }
    ++number;
  }
}

std::vector<std::string> names_of(const Sequences& data) {
  std::vector<std::string> names;
  for (const Sequence& sequence : data.sequences) {
    names.push_back(sequence.name);
  }
  return names;
}

TEST(Sequences, AreFoldersOfFramesInClassFolders) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  const Sequences data = open_sequences(folder.path());
  EXPECT_THAT(names_of(data), ElementsAre("cow/1", "cow/2", "cup/1"));
  EXPECT_THAT(data.classes, ElementsAre("cow", "cup"));
  EXPECT_EQ(data.sequences[2].label, 1);
  // 2.png comes before 10.png.
  std::vector<int> values;
  for (const std::int64_t frame : data.sequences[1].frames) {
    values.push_back(data.images->image(frame).pixels[0] - 20);
  }
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_TRUE(data.angles.empty());

  const Sequences few = open_sequences(folder.path(), {.split = "", .classes = {"cup", "cow"}, .frames = "1*.png"});
  EXPECT_EQ(few.sequences[1].frames.size(), 3);  // 1, 10 and 11
  EXPECT_EQ(few.sequences[2].label, 0);
  // A folder of frames is a sequence, too, where no class is wanted.
  const Sequences one =
      open_sequences(folder / "cow/2", {.split = "", .labels = Labels::none, .classes = {}, .frames = ""});
  EXPECT_THAT(names_of(one), ElementsAre((folder / "cow/2").string()));
}

TEST(Sequences, AreRowsOfATable) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  std::ofstream(folder / "frames.csv") << "sequence,path,label,angle\n"
                                          "a,cow/1/1.png,walks,-90\n"
                                          "b,cup/1/0.png,stands,10\n"
                                          "a,cow/1/0.png,walks,370.5\n";
  const Sequences data = open_sequences(folder / "frames.csv");
  EXPECT_THAT(names_of(data), ElementsAre("a", "b"));
  EXPECT_THAT(data.classes, ElementsAre("stands", "walks"));
  EXPECT_THAT(data.sequences[0].frames, ElementsAre(0, 2));
  EXPECT_THAT(data.angles, ElementsAre(-90, 10, 370.5));
  EXPECT_EQ(data.images->name(2), "cow/1/0.png");
  EXPECT_EQ(data.images->image(0).pixels[0], 1);
}

TEST(Sequences, AreRowsOfAPartOfATable) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  const std::string rows =
      "sequence,path,label,split\na,cow/1/1.png,walks,train\nb,cup/1/0.png,stands,test\na,cow/1/0.png,walks,";
  std::ofstream(folder / "frames.csv") << rows << "train\n";
  EXPECT_THAT(error_of([&] { open_sequences(folder / "frames.csv"); }),
              HasSubstr("split into parts (train, test): choose one of them"));
  SequenceOptions none;
  none.labels = Labels::none;
  EXPECT_EQ(open_sequences(folder / "frames.csv", none).sequences.size(), 2U) << "nothing is measured";
  SequenceOptions frames;
  frames.split = "validation";  // the test images stand in
  frames.labels = Labels::frames;
  frames.classes = {"walks", "stands"};
  const Sequences part = open_sequences(folder / "frames.csv", frames);
  EXPECT_THAT(names_of(part), ElementsAre("b"));
  EXPECT_THAT(part.frame_labels, ElementsAre(1));
  EXPECT_THAT(part.parts, ElementsAre("test", "train"));
  std::ofstream(folder / "frames.csv") << rows << "test\n";
  EXPECT_THAT(error_of([&] { open_sequences(folder / "frames.csv", frames); }),
              HasSubstr("line 4 puts the sequence 'a' into the part 'test', but an earlier line into 'train'"));
}

TEST(Sequences, SayWhatIsWrong) {
  const test::TemporaryFolder folder;
  write_herd(folder / "herd");
  const auto table = [&](const std::string& text, SequenceOptions options = {}) {
    std::ofstream(folder / "frames.csv") << text;
    return error_of([&] { open_sequences(folder / "frames.csv", options); });
  };
  SequenceOptions frames;
  frames.labels = Labels::frames;
  EXPECT_THAT(error_of([&] { open_sequences(folder / "nowhere"); }), HasSubstr("no such file or folder"));
  EXPECT_THAT(error_of([&] { open_sequences(folder / "nowhere.csv"); }), HasSubstr("no such file or folder"));
  EXPECT_THAT(error_of([&] { open_sequences(folder / "herd", frames); }), HasSubstr("column 'label' of a .csv"));
  EXPECT_THAT(error_of([&] { open_sequences(folder / "herd/cow/1"); }), HasSubstr("lies outside of any class folder"));
  SequenceOptions pattern;
  pattern.frames = "view-*";
  EXPECT_THAT(error_of([&] { open_sequences(folder / "herd", pattern); }),
              HasSubstr("no image has a name that matches"));
  EXPECT_THAT(table("path,label\nherd/cow/1/0.png,a\n"), HasSubstr("must name the columns"));
  EXPECT_THAT(table("path,sequence\n"), HasSubstr("a line for each frame"));
  EXPECT_THAT(table("path,sequence,label\nherd/cow/1/0.png,a,x\nherd/cow/1/1.png,a,y\n"),
              HasSubstr("line 3 gives the sequence 'a' the class 'y', but an earlier line the class 'x'"));
  EXPECT_THAT(table("path,sequence\nherd/cow/1/0.png,a\n"), HasSubstr("a column 'label' says it"));
  EXPECT_THAT(table("path,sequence,angle\nherd/cow/1/0.png,a,north\n"), HasSubstr("line 2 has the angle 'north'"));
  EXPECT_THAT(table("path,sequence,label\nherd/cow/9.png,a,x\n"), HasSubstr("which does not exist"));
  EXPECT_THAT(table("path,sequence,label\nherd/cow/1/0.png,a\n"), HasSubstr("line 2 has 2 of the 3 columns"));
  EXPECT_THAT(table("path,sequence,label\nherd/cow/1/0.png,a,x\n", pattern),
              HasSubstr("no image has a name that matches"));
}

TEST(Sequences, TakesThoseFramesOfATableThatMatchThePattern) {
  const test::TemporaryFolder folder;
  write_herd(folder / "herd");
  std::ofstream(folder / "frames.csv") << "path,sequence,label\nherd/cow/1/0.png,a,x\nherd/cow/1/1.png,a,x\n";
  SequenceOptions pattern;
  pattern.frames = "1.*";
  const Sequences found = open_sequences(folder / "frames.csv", pattern);
  ASSERT_EQ(found.sequences.size(), 1);
  EXPECT_THAT(found.sequences[0].frames, ElementsAre(0));
  EXPECT_EQ(found.images->name(0), "herd/cow/1/1.png");
}

// The gray values of the frames of a batch, before normalization.
std::vector<int> values_of(const SequenceBatch& batch) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < batch.x.size(0); ++i) {
    values.push_back(static_cast<int>(std::lround((batch.x.select(0, i).values()[0] * 0.5F + 0.5F) * 255)));
  }
  return values;
}

ImageConfig config_of_frames() {
  ImageConfig config;
  config.height = config.width = 4;
  config.crop_pct = 1;
  return config;
}

TEST(SequenceLoader, GivesFramesOneAfterTheOther) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  const Sequences data = open_sequences(folder.path());
  SequenceLoaderOptions options;
  options.batch_size = 2;
  SequenceLoader loader(data, {0, 2}, eval_transform(config_of_frames()), options);
  SequenceBatch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_THAT(batch.sequences, ElementsAre(0, 2));
  EXPECT_THAT(batch.lengths.span<std::int64_t>(), ElementsAre(3, 2));
  EXPECT_THAT(values_of(batch), ElementsAre(0, 1, 2, 40, 41));
  EXPECT_THAT(batch.places, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_FALSE(loader.next(batch));
}

TEST(SequenceLoader, TakesPartsOfLongSequencesAndTurnsCircles) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  const Sequences data = open_sequences(folder.path());
  for (const bool circular : {false, true}) {
    SequenceLoaderOptions options;
    options.max_frames = 5;
    options.circular = circular;
    options.workers = 2;
    SequenceLoader loader(data, {1}, eval_transform(config_of_frames()), options);
    std::set<std::int64_t> starts;
    bool turned = false;
    for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
      loader.start_epoch(epoch);
      SequenceBatch batch;
      ASSERT_TRUE(loader.next(batch));
      ASSERT_EQ(batch.x.size(0), 5);
      const std::vector<int> values = values_of(batch);
      for (std::size_t t = 0; t < 5; ++t) {
        EXPECT_EQ(batch.places[t], (batch.places[0] + static_cast<std::int64_t>(t)) % 12);
        EXPECT_EQ(values[t], 20 + batch.places[t]);
      }
      starts.insert(batch.places[0]);
      turned = turned || batch.places[4] < batch.places[0];
    }
    EXPECT_EQ(starts.size(), circular ? 12 : 8);
    EXPECT_EQ(turned, circular);
  }
}

TEST(SequenceLoader, LeavesOutSequencesWithABrokenFrame) {
  const test::TemporaryFolder folder;
  write_herd(folder.path());
  std::ofstream(folder / "cow/2/3.png") << "no image";
  const Sequences data = open_sequences(folder.path());
  SequenceLoaderOptions options;
  options.batch_size = 3;
  options.skip_broken = true;
  SequenceLoader loader(data, {0, 1, 2}, eval_transform(config_of_frames()), options);
  SequenceBatch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_THAT(batch.sequences, ElementsAre(0, 2));
  EXPECT_THAT(values_of(batch), ElementsAre(0, 1, 2, 40, 41));
  EXPECT_EQ(batch.frames.size(), 5);
  EXPECT_EQ(loader.broken().size(), 1);
  options.skip_broken = false;
  SequenceLoader strict(data, {0, 1, 2}, eval_transform(config_of_frames()), options);
  EXPECT_THAT(error_of([&] { strict.next(batch); }), HasSubstr("3.png"));
}

}  // namespace
}  // namespace vitrail::data
