// Shards as the webdataset package writes them, and ours.
#include "vitrail/data/shards/shards.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gzip.h"
#include "tests/support/http_server.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/shards/shard_writer.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Has the program keep there what can be had again.
struct CacheIn {
  explicit CacheIn(const fs::path& folder) { setenv("VITRAIL_CACHE", folder.c_str(), 1); }
  ~CacheIn() { unsetenv("VITRAIL_CACHE"); }
  CacheIn(const CacheIn&) = delete;
  CacheIn& operator=(const CacheIn&) = delete;
};

// An image of one colour.
io::Image one_colour(std::uint8_t value) {
  io::Image image(4, 4);
  std::ranges::fill(image.pixels, value);
  return image;
}

class ShardsTest : public ::testing::Test {
 protected:
  // A shard with these files; "1.png" is an image whose pixels are 1.
  fs::path write(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) const {
    io::TarWriter tar(folder_ / name);
    for (const auto& [file, content] : files) {
      tar.add(file, io::is_image_name(file) ? io::encode_png(one_colour(static_cast<std::uint8_t>(std::stoi(content))))
                                            : bytes_of(content));
    }
    tar.commit();
    return folder_ / name;
  }
  fs::path two_shards() const {
    write("train-000000.tar", {{"cat/1.png", "1"}, {"cat/1.cls", "2\n"}, {"2.png", "2"}, {"2.cls", "0"}});
    write("train-000001.tar", {{"3.json", R"({"label": 1, "width": 4})"}, {"3.png", "3"}, {"readme", "hello"}});
    return folder_ / "train-{000000..000001}.tar";
  }
  static std::vector<std::int64_t> labels_of(const Dataset& images) {
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < images.size(); ++i) {
      labels.push_back(images.label(i));
    }
    return labels;
  }

  test::TemporaryFolder folder_;
};

TEST(ShardNames, CountListAndJoin) {
  EXPECT_THAT(shards_named("a-{08..11}.tar"), ElementsAre("a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"));
  EXPECT_THAT(shards_named("{a,b}/{1..2}.tar"), ElementsAre("a/1.tar", "a/2.tar", "b/1.tar", "b/2.tar"));
  EXPECT_THAT(shards_named("a.tar::b-{0..1}.tar"), ElementsAre("a.tar", "b-0.tar", "b-1.tar"));
  EXPECT_THAT(error_of([] { shards_named("a-{3..1}.tar"); }), HasSubstr("'{3..1}' counts from one number to a larger"));
  EXPECT_THAT(error_of([] { shards_named("a-{0..99999999999}.tar"); }), HasSubstr("at most a million shards"));
  EXPECT_THAT(error_of([] { shards_named("a-{0..999999}{0..999999}.tar"); }), HasSubstr("more than a million shards"));
}

TEST_F(ShardsTest, HaveTheClassesOfTheirSamples) {
  const std::unique_ptr<Dataset> images = open_dataset(two_shards());
  EXPECT_THAT(images->classes(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(labels_of(*images), ElementsAre(2, 0, 1));
  EXPECT_EQ(images->image(2).pixels[0], 3);
  EXPECT_EQ(images->name(0), "train-000000.tar/cat/1.png");
  EXPECT_EQ(images->passed_over(), 1);
}

TEST_F(ShardsTest, NameWhatLaterFilesReplace) {
  const fs::path shard = write(
      "twice.tar", {{"1.png", "1"}, {"1.cls", "0"}, {"2.png", "2"}, {"2.cls", "1"}, {"1.png", "3"}, {"1.cls", "1"}});
  for (int i = 0; i < 2; ++i) {  // the second time, too
    const std::unique_ptr<Dataset> images = open_dataset(shard);
    EXPECT_EQ(images->size(), 2);
    EXPECT_THAT(images->notes(),
                ElementsAre(HasSubstr("2 files left out, as later ones have the same names, such as '1.png'")));
  }
}

// Made by tools/golden/shards.py: image i has the red 20 i and the class i % 4.
TEST(WebdatasetShards, AreReadAsTheyWereWritten) {
  const fs::path folder = fs::path(VITRAIL_SOURCE_DIR) / "tests/golden/shards";
  const std::unique_ptr<Dataset> images = open_dataset(folder / "train-{000000..000002}.tar");
  ASSERT_EQ(images->size(), 9);
  EXPECT_THAT(images->classes(), ElementsAre("0", "1", "2", "3"));
  images->will_read(std::vector<std::int64_t>{7, 0, 8, 4, 0});  // advice, which changes nothing
  images->will_read({});
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(images->image(i).pixels[0], 20 * i);
    EXPECT_EQ(images->label(i), i % 4);
  }
}

TEST_F(ShardsTest, AreTakenByFolderPartListAndName) {
  two_shards();
  write("validation-0.tar", {{"9.png", "9"}, {"9.cls", "1"}});
  for (const std::string& source : {folder_.path().string(), (folder_ / "train-000000.tar").string() +
                                                                 "::" + (folder_ / "train-000001.tar").string()}) {
    EXPECT_EQ(open_dataset(source, {.split = "train"})->size(), 3) << source;
  }
  EXPECT_EQ(open_dataset(folder_.path(), {.split = "validation"})->size(), 1);
  EXPECT_EQ(open_dataset(folder_ / "train-000000.tar")->size(), 2);
  EXPECT_EQ(open_unlabeled(folder_ / "train-000001.tar")->size(), 1);
}

TEST_F(ShardsTest, MayNameTheirClasses) {
  write("a.tar", {{"1.png", "1"}, {"1.cls", "tabby cat"}, {"2.png", "2"}, {"2.cls", "dog"}});
  EXPECT_THAT(open_dataset(folder_ / "a.tar")->classes(), ElementsAre("dog", "tabby cat"));
  two_shards();
  io::write_atomically(folder_ / "classes.txt", "apple\nbear\ncat\n");
  EXPECT_THAT(open_dataset(folder_ / "train-{000000..000001}.tar")->classes(), ElementsAre("apple", "bear", "cat"));
}

TEST_F(ShardsTest, SayWhatIsWrong) {
  const fs::path source = two_shards();
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "train-{000000..000002}.tar"); }), HasSubstr("train-000002.tar"));
  EXPECT_THAT(error_of([&] { open_dataset(source, {.split = "validation"}); }),
              HasSubstr("shards that are named are of one part"));
  write("two.tar", {{"1.png", "1"}, {"1.jpg", "1"}, {"1.cls", "0"}});
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "two.tar"); }), HasSubstr("the sample '1' has two images"));
  write("none.tar", {{"1.png", "1"}, {"1.cls", "0"}, {"2.png", "2"}});
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "none.tar"); }), HasSubstr("the sample '2' has no class"));
  io::write_atomically(folder_ / "classes.txt", "apple\nbear\n");
  EXPECT_THAT(error_of([&] { open_dataset(source); }), HasSubstr("a sample has the class 2, but there are 2"));
  io::write_atomically(folder_ / "train.json", R"({"shardlist": [{"url": "train-000000.tar", "nsamples": 5}]})");
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "train.json"); }), HasSubstr("has 2 samples, but the index"));
  io::write_atomically(folder_ / "train.json",
                       R"({"shardlist": [{"url": "train-000000.tar", "nsamples": 2, "filesize": 17}]})");
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "train.json"); }), HasSubstr("says 17: it has changed since"));
  io::write_atomically(folder_ / "other.json", R"({"images": []})");
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "other.json"); }), HasSubstr("a list 'shardlist' was expected"));
  const std::string bytes = io::read_text(folder_ / "train-000000.tar");
  io::write_atomically(folder_ / "cut.tar", bytes.substr(0, 2600));
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "cut.tar"); }), HasSubstr("cut.tar: cut short"));
}

TEST_F(ShardsTest, OfOneNameLieInTwoFolders) {
  fs::create_directories(folder_ / "a");
  fs::create_directories(folder_ / "b");
  write("a/x-000000.tar", {{"1.png", "1"}, {"1.cls", "0"}});
  write("b/x-000000.tar", {{"1.png", "2"}, {"1.cls", "1"}, {"2.png", "3"}, {"2.cls", "0"}});
  io::write_atomically(folder_ / "x.json", R"({"shardlist": [{"url": "a/x-000000.tar", "nsamples": 1},
                                                             {"url": "b/x-000000.tar", "nsamples": 2}]})");
  EXPECT_THAT(labels_of(*open_dataset(folder_ / "x.json")), ElementsAre(0, 1, 0));
}

TEST_F(ShardsTest, LieBesideAnIndexThatNamesThemElsewhere) {
  two_shards();
  for (const std::string where : {"https://example.org/x/", "/nowhere/at/all/"}) {
    io::write_atomically(folder_ / "train.json",
                         fmt::format(R"({{"shardlist": [{{"url": "{0}train-000000.tar", "nsamples": 2}},
                                                        {{"url": "{0}train-000001.tar", "nsamples": 1}}]}})",
                                     where));
    EXPECT_EQ(open_dataset(folder_.path(), {.split = "train"})->size(), 3);
  }
}

TEST_F(ShardsTest, LieOnTheWebAsOnDisk) {
  const CacheIn cache(folder_ / "cache");
  const std::unique_ptr<Dataset> near = open_dataset(two_shards());
  write("folders.tar", {{"cat/1.png", "1"}, {"dog/2.png", "2"}});
  test::HttpServer server;
  for (const char* name : {"train-000000.tar", "train-000001.tar", "folders.tar"}) {
    server.put(std::string("/a/") + name, io::read_text(folder_ / name));
  }
  const std::unique_ptr<Dataset> far = open_dataset(server.url("/a/train-{000000..000001}.tar"));
  EXPECT_THAT(labels_of(*far), ElementsAre(2, 0, 1));
  for (std::int64_t i = 0; i < far->size(); ++i) {
    EXPECT_EQ(far->name(i), near->name(i));
    EXPECT_EQ(far->image(i).pixels, near->image(i).pixels);
  }
  const std::size_t asked = server.ranges().size();
  EXPECT_EQ(open_unlabeled(server.url("/a/train-{000000..000001}.tar"))->size(), 3);
  EXPECT_EQ(server.ranges().size(), asked + 1) << "for the classes that do not lie beside them";
  EXPECT_THAT(open_dataset(server.url("/a/folders.tar"))->classes(), ElementsAre("cat", "dog"));

  server.put("/a/index.json", R"({"shardlist": [{"url": "train-000000.tar", "nsamples": 2}]})");
  EXPECT_EQ(open_dataset(server.url("/a/index.json"))->size(), 2);
  const std::string more = server.url("/a/train-{000000..000002}.tar");
  EXPECT_THAT(error_of([&] { open_dataset(more); }),
              HasSubstr(server.url("/a/train-000002.tar") + " cannot be downloaded: the server answers 404"));
  EXPECT_EQ(open_dataset(more, {.skip_broken = true})->size(), 3);
  EXPECT_EQ(absolute_shards(more), more);
}

TEST_F(ShardsTest, AreLeftOutIfTheyAreBrokenAndMayBeSkipped) {
  two_shards();
  const std::string bytes = io::read_text(folder_ / "train-000000.tar");
  io::write_atomically(folder_ / "train-000002.tar", bytes.substr(0, 2600));
  const auto opened = [&](const std::string& source) {
    return open_dataset(folder_ / source, {.split = "train", .skip_broken = true});
  };
  const auto images = opened("train-{000000..000003}.tar");
  EXPECT_THAT(labels_of(*images), ElementsAre(2, 0, 1));
  EXPECT_EQ(images->image(2).pixels, one_colour(3).pixels);
  EXPECT_THAT(images->notes(), ElementsAre(HasSubstr("a shard is left out: "), HasSubstr("train-000003.tar")));
  EXPECT_THAT(error_of([&] { opened("train-{000002..000003}.tar"); }), HasSubstr("none of 2 shards can be read: "));
  // An index that names another shard, has another number of samples of one, or does not know one.
  fs::remove(folder_ / "train-000002.tar");
  const auto indexed = [&](const std::string& list) {
    io::write_atomically(folder_ / "train.json", R"({"shardlist": [)" + list + "]}");
  };
  const std::string zero = R"({"url": "train-000000.tar", "nsamples": 2})";
  const std::string one = R"({"url": "train-000001.tar", "nsamples": 1})";
  indexed(one + "," + zero + R"(, {"url": "train-000002.tar", "nsamples": 7})");
  EXPECT_THAT(error_of([&] { open_dataset(folder_.path(), {.split = "train"}); }),
              HasSubstr("names train-000002.tar, which is not there"));
  EXPECT_EQ(opened("")->size(), 3);
  indexed(zero);
  EXPECT_THAT(error_of([&] { open_dataset(folder_.path(), {.split = "train"}); }), HasSubstr("does not name"));
  EXPECT_EQ(opened("")->size(), 2);
  indexed(zero + "," + one);
  EXPECT_TRUE(opened("")->notes().empty());
}

TEST_F(ShardsTest, KeepWhereTheirSamplesLie) {
  const CacheIn cache(folder_ / "cache");
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 500; ++i) {
    files.emplace_back("a/" + std::to_string(i) + ".png", std::to_string(i % 256));
    files.emplace_back("a/" + std::to_string(i) + ".cls", std::to_string(i % 3));
  }
  files.emplace_back("readme", "hello");
  const fs::path shard = write("many-000000.tar", files);
  const auto open = [&] { return open_shards({shard}); };
  const auto same = [](const Shards& a, const Shards& b) {
    return a.passed_over == b.passed_over &&
           std::ranges::equal(a.samples, b.samples, [&](const auto& x, const auto& y) {
             const auto left = a.files[0].bytes(x.image);
             const auto right = b.files[0].bytes(y.image);
             return x.key == y.key && x.cls == y.cls && x.image.name == y.image.name && std::ranges::equal(left, right);
           });
  };
  const Shards read = open();
  ASSERT_EQ(read.samples.size(), 500);
  EXPECT_EQ(read.samples[7].cls, "1");
  EXPECT_EQ(read.passed_over, 1);
  const fs::path kept = fs::directory_iterator(folder_ / "cache" / "shards")->path();
  EXPECT_TRUE(same(open(), read));

  // It is what is kept that is read: here with another class of the first sample.
  const std::string text = io::read_text(kept);
  const std::size_t first = text.find("\ta/0.png\t0\n");
  ASSERT_NE(first, std::string::npos);
  io::write_atomically(kept, text.substr(0, first) + "\ta/0.png\t2\n" + text.substr(first + 12));
  EXPECT_EQ(open().samples[0].cls, "2");

  // What is damaged is as good as none.
  for (const std::string& damaged : {text.substr(0, text.size() / 2), text + "1\t2\tx\t0\n", std::string()}) {
    io::write_atomically(kept, damaged);
    EXPECT_TRUE(same(open(), read));
    EXPECT_EQ(io::read_text(kept), text);
  }

  // A shard that takes the place of another, with its size and its time.
  const fs::file_time_type time = fs::last_write_time(shard);
  files[1].second = "2";
  fs::rename(write("other-000000.tar", files), shard);
  fs::last_write_time(shard, time);
  EXPECT_EQ(open().samples[0].cls, "2");
}

TEST_F(ShardsTest, ThatAreCompressedAreReadEachTime) {
  const CacheIn cache(folder_ / "cache");
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 500; ++i) {
    files.emplace_back("a/" + std::to_string(i) + ".png", std::to_string(i % 256));
  }
  const fs::path shard = write("packed-000000.tar", files);
  const auto plain = io::read_bytes(shard);
  io::write_atomically(shard, test::gzip({plain.begin(), plain.end()}));
  for (int times = 0; times < 2; ++times) {
    const Shards shards = open_shards({shard});
    ASSERT_EQ(shards.samples.size(), 500);
    EXPECT_EQ(io::decode_image(shards.files[0].bytes(shards.samples[9].image), "9.png").pixels[0], 9);
  }
  EXPECT_FALSE(fs::exists(folder_ / "cache" / "shards"));
  const std::unique_ptr<Dataset> images = open_unlabeled(shard);
  images->will_read(std::vector<std::int64_t>{499, 0, 12});
  EXPECT_EQ(images->image(12).pixels[0], 12);
}

TEST_F(ShardsTest, AreWrittenAndReadAgain) {
  const std::string long_name = std::string(180, 'x') + "/1.png";
  ShardWriter writer(folder_ / "out", "train", 3000, {"apple", "bear"});
  for (int i = 0; i < 6; ++i) {
    writer.add(i == 5 ? long_name : fmt::format("a/{}.v1.png", i / 2), "png",
               io::encode_png(one_colour(static_cast<std::uint8_t>(i))), i % 2);
  }
  EXPECT_FALSE(fs::exists(folder_ / "out/train.json"));  // not before all shards are there
  EXPECT_EQ(writer.commit(), folder_ / "out/train.json");
  EXPECT_GT(writer.shards(), 1);
  for (const fs::path& source : {folder_ / "out", folder_ / "out/train.json"}) {
    const std::unique_ptr<Dataset> images = open_dataset(source, {.split = "train"});
    ASSERT_EQ(images->size(), 6);
    EXPECT_THAT(images->classes(), ElementsAre("apple", "bear"));
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(images->image(i).pixels[0], i);
      EXPECT_EQ(images->label(i), i % 2);
    }
    EXPECT_THAT(images->name(1), HasSubstr("a/0_v1-2.png"));
    EXPECT_THAT(images->name(5), HasSubstr(long_name));
    EXPECT_EQ(images->encoded(3), io::encode_png(one_colour(3)));
  }
  {
    ShardWriter unfinished(folder_ / "part", "train", 3000, {});
    for (int i = 0; i < 6; ++i) {
      unfinished.add(fmt::format("{}.png", i), "png", io::encode_png(one_colour(7)), -1);
    }
    EXPECT_GT(unfinished.shards(), 0);
    EXPECT_TRUE(fs::exists(folder_ / "part/train-000000.tar"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "part"));
  EXPECT_THAT(error_of([&] { ShardWriter again(folder_ / "out", "train", 3000, {}); }),
              HasSubstr("has shards of 'train' already"));
}

}  // namespace
}  // namespace vitrail::data
