#include "vitrail/data/dataset.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gzip.h"
#include "tests/support/images.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/file.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NaturalOrder, IsTimms) {
  const std::vector<std::string> sorted = {"",     "1",     "01b", "2",    "10",     "a",  "A1",
                                           "a1b2", "a1b10", "a02", "a10x", "a10x/y", "ab", "b 9"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(natural_less(sorted[i], sorted[j]), i < j) << sorted[i] << " and " << sorted[j];
    }
  }
}

class OpenDataset : public ::testing::Test {
 protected:
  // An image that can be told from others by its first byte.
  void add(const std::string& name, std::uint8_t value = 0) {
    io::Image image(2, 2);
    image.pixels.assign(image.pixels.size(), value);
    const std::vector<std::uint8_t> png = io::encode_png(image);
    write(name, {png.begin(), png.end()});  // not write_png(), which waits for the disk
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::unique_ptr<Dataset> open(const std::string& name = ".", const std::string& split = "",
                                const std::vector<std::string>& classes = {}) {
    return open_dataset(folder / name, {split, classes, true});
  }
  std::string error_of(const std::string& name = ".", const DatasetOptions& options = {}) {
    return test::error_of([&] { open_dataset(folder / name, options); });
  }
  static std::vector<std::string> names(const Dataset& dataset) {
    std::vector<std::string> result;
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      result.push_back(dataset.name(i));
    }
    return result;
  }
  static std::vector<std::int64_t> labels(const Dataset& dataset) {
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      result.push_back(dataset.label(i));
    }
    return result;
  }
  test::TemporaryFolder folder;
};

TEST_F(OpenDataset, TakesFoldersForClassesInNaturalOrder) {
  add("class10/b10.png", 1);
  add("class10/B9.png", 2);
  add("class2/x.png", 3);
  add("class2/sub/y.png", 4);  // as timm: the class is the folder that the image lies in
  add(".hidden/z.png");
  write("class2/notes.txt", "no image");
  write("class2/._x.png", "what macOS leaves behind");
  const auto dataset = open();
  EXPECT_THAT(dataset->classes(), ElementsAre("class2", "class10", "sub"));
  EXPECT_THAT(names(*dataset), ElementsAre("class2/sub/y.png", "class2/x.png", "class10/B9.png", "class10/b10.png"));
  EXPECT_THAT(labels(*dataset), ElementsAre(2, 0, 1, 1));
  EXPECT_EQ(dataset->image(2).pixels[0], 2);
  EXPECT_THROW(dataset->image(4), Error);
}

TEST_F(OpenDataset, FollowsSymbolicLinksButNotInCircles) {
  add("elsewhere/cats/a.png");
  add("images/dogs/b.png");
  fs::create_directory_symlink(folder / "elsewhere/cats", folder / "images/cats");
  EXPECT_THAT(open("images")->classes(), ElementsAre("cats", "dogs"));
  fs::create_directory_symlink(folder / "images", folder / "images/dogs/again");
  EXPECT_THAT(error_of("images"), HasSubstr("contains itself"));
}

TEST_F(OpenDataset, FindsPartsByAnyOfTheirUsualNames) {
  add("photos/train/a/1.png");
  add("photos/train/b/1.png");
  add("photos/val/a/2.png");
  EXPECT_EQ(open("photos", "train")->size(), 2);
  EXPECT_EQ(open("photos", "validation")->size(), 1);
  EXPECT_THAT(error_of("photos"), HasSubstr("split into parts (train, val): choose one"));
  EXPECT_TRUE(has_parts(folder / "photos"));
  EXPECT_FALSE(has_parts(folder / "photos/train"));
  EXPECT_THAT(error_of("photos", {"test", {}, true}), HasSubstr("there is no part 'test', only train, val"));

  add("tested/train/a/1.png");
  add("tested/test/a/1.png");
  EXPECT_EQ(open("tested", "validation")->size(), 1);

  add("plain/a/1.png");
  add("plain/b/2.png");
  EXPECT_EQ(open("plain", "train")->size(), 2);
  EXPECT_THAT(error_of("plain", {"validation", {}, true}), HasSubstr("no part 'validation'"));
}

TEST_F(OpenDataset, ReadsTarArchives) {
  io::Image image(3, 2);
  const std::vector<std::uint8_t> png = io::encode_png(image);
  test::TarWriter tar;
  tar.add("./dogs/2.png", png);
  tar.add("./cats/10.png", png);
  tar.add("./cats/9.png", png);
  tar.add("./cats/._9.png", png);
  tar.add("./readme.txt", png);
  tar.add("cats/" + std::string(150, 'x') + ".png", png);
  tar.write(folder / "train.tar");
  for (const auto& dataset : {open("train.tar"), open(".", "train")}) {
    EXPECT_THAT(dataset->classes(), ElementsAre("cats", "dogs"));
    EXPECT_THAT(labels(*dataset), ElementsAre(0, 0, 0, 1));
    EXPECT_EQ(dataset->name(0), "cats/9.png");
    EXPECT_EQ(dataset->image(3).width, 3);
  }
  test::TarWriter parts;
  parts.add("photos/train/cats/1.png", png);
  parts.add("photos/test/cats/2.png", png);
  parts.add("photos/notes.txt", png);
  parts.write(folder / "photos.tar");
  EXPECT_THAT(names(*open("photos.tar", "test")), ElementsAre("photos/test/cats/2.png"));
  EXPECT_EQ(open("photos.tar", "test")->passed_over(), 1);
  EXPECT_THAT(error_of("photos.tar"), HasSubstr("choose one"));
  EXPECT_THAT(names(*open_dataset(folder / "photos.tar", {"train", {}, true, false})),
              ElementsAre("photos/train/cats/1.png"));
  test::TarWriter classes;  // of which two are called like parts
  classes.add("train/train/1.png", png);
  classes.add("train/valid/2.png", png);
  classes.add("val/train/3.png", png);
  classes.write(folder / "classes.tar");
  EXPECT_THAT(names(*open("classes.tar", "train")), ElementsAre("train/train/1.png", "train/valid/2.png"));
  EXPECT_THAT(names(*open("classes.tar", "validation")), ElementsAre("val/train/3.png"));
  classes.add("train/4.png", png);
  classes.write(folder / "loose.tar");
  EXPECT_THAT(error_of("loose.tar", {"train"}), HasSubstr("the image train/4.png lies outside of any class folder"));
  write("packed/train.tar.gz", test::gzip(io::read_text(folder / "train.tar")));
  write("packed/val.tgz", test::gzip(io::read_text(folder / "train.tar")));
  EXPECT_EQ(names(*open("packed", "train")), names(*open("train.tar")));
  EXPECT_EQ(names(*open("packed", "validation")), names(*open("packed/val.tgz")));
  EXPECT_THAT(error_of("packed"), HasSubstr("(train, val)"));
}

TEST_F(OpenDataset, ReadsTablesOfPathsAndLabels) {
  add("p/1.png", 1);
  add("p/2, too.png", 2);
  add("p/3.png", 3);
  write("plain.csv", "p/1.png,cat\r\n\"p/2, too.png\",\"a \"\"dog\"\"\"\n\np/3.png,cat");
  const auto plain = open("plain.csv");
  EXPECT_THAT(plain->classes(), ElementsAre("a \"dog\"", "cat"));
  EXPECT_THAT(labels(*plain), ElementsAre(1, 0, 1));
  EXPECT_EQ(plain->image(1).pixels[0], 2);
  EXPECT_EQ(names(*open("plain.csv", "train")), names(*plain)) << "what has no parts is all for training";
  EXPECT_THAT(error_of("plain.csv", {"validation", {}, true}),
              HasSubstr("there is no part 'validation': no column 'split'"));

  write("header.csv", "label,split,Filename\n10,train,p/1.png\n9,test,p/3.png\n");
  EXPECT_THAT(error_of("header.csv"), HasSubstr("split into parts (train, test): choose one of them"));
  EXPECT_EQ(open_unlabeled(folder / "header.csv")->size(), 2);
  write("parts.csv", "label,split,Filename\n10,train,p/1.png\n9,train,p/3.png\n");
  EXPECT_THAT(open("parts.csv")->classes(), ElementsAre("9", "10"));
  EXPECT_THAT(error_of("parts.csv", {"validation", {}, true}), HasSubstr("there is no part 'validation', only train"));
  write("head.csv", "path,label\n");
  EXPECT_THAT(error_of("head.csv"), HasSubstr("no lines below the header"));
  EXPECT_THAT(names(*open("header.csv", "test")), ElementsAre("p/3.png"));
  EXPECT_THAT(names(*open("header.csv", "validation")), ElementsAre("p/3.png")) << "the test images stand in";
  write("three.csv", "label,split,Filename\n1,train,p/1.png\n1,test,p/3.png\n1,val,\"p/2, too.png\"\n");
  EXPECT_THAT(names(*open("three.csv", "validation")), ElementsAre("p/2, too.png")) << "and not where there are others";

  write("bad.csv", "p/1.png,cat\np/4.png,cat\n");
  EXPECT_THAT(error_of("bad.csv"), HasSubstr("line 2 names the image"));
  write("ids.csv", "path , Label\np/1,cat\n");
  EXPECT_THAT(error_of("ids.csv"), HasSubstr("which does not exist (there is a 1.png: names need their endings)"));
  write("tabs.TSV", "path\tlabel\tsplit\np/1.png\tcat, or dog\ttrain\np/3.png\tfox\ttest\n");
  EXPECT_THAT(open("tabs.TSV", "train")->classes(), ElementsAre("cat, or dog"));
  write("semicolons.csv", "p/1.png;cat\np/3.png;fox, red\n");
  EXPECT_THAT(open("semicolons.csv")->classes(), ElementsAre("cat", "fox, red"));
  EXPECT_TRUE(is_table_of_images(folder / "tabs.TSV") && is_table_of_images(folder / "plain.csv"));
  write("texts.tsv", "text\tlabel\nfine\tgood\n");
  EXPECT_FALSE(is_table_of_images(folder / "texts.tsv"));
  write("metadata.csv", "file_name,text\np/1.png,\"a cat, asleep\"\n");
  EXPECT_TRUE(is_table_of_images(folder / "metadata.csv")) << "as Hugging Face's image folders have";
  write("lines.csv", "file_name;text\np/1.png;\"a cat,\nasleep\"\n");
  EXPECT_TRUE(is_table_of_images(folder / "lines.csv"));
  write("other.csv", "file_name,text\n1.txt,a cat\n");
  EXPECT_FALSE(is_table_of_images(folder / "other.csv"));
  write("wide.tsv", "p/1.png\tcat\np/3.png\tfox\tred\n");
  EXPECT_THAT(error_of("wide.tsv"), HasSubstr("a field that has a tab in it stands in double quotes"));
  write("short.csv", "p/1.png,cat\np/3.png\n");
  EXPECT_THAT(error_of("short.csv"), HasSubstr("line 2 has 1 of the 2 columns"));
  write("open.csv", "\"p/1.png,cat\n");
  EXPECT_THAT(error_of("open.csv"), HasSubstr("never closed"));
  write("words.csv", "this,that\np/1.png,cat\n");
  EXPECT_THAT(error_of("words.csv"), HasSubstr("'path' and 'label'"));
  write("empty.csv", "");
  EXPECT_THAT(error_of("empty.csv"), HasSubstr("empty"));
}

TEST_F(OpenDataset, ReadsCifarsBinaryFiles) {
  const auto record = [](std::vector<int> label, char first) {
    std::string bytes(label.begin(), label.end());
    return bytes + std::string(1024, first) + std::string(1024, '\x20') + std::string(1024, '\x30');
  };
  write("ten/data_batch_1.bin", record({7}, 1) + record({0}, 2));
  write("ten/data_batch_2.bin", record({9}, 3));
  write("ten/test_batch.bin", record({1}, 4));
  const auto training = open("ten", "train");
  EXPECT_THAT(labels(*training), ElementsAre(7, 0, 9));
  EXPECT_EQ(training->classes().size(), 10U);
  EXPECT_EQ(training->name(2), "data_batch_2.bin[0]");
  const io::Image image = training->image(2);
  EXPECT_EQ(image.width, 32);
  EXPECT_THAT(std::vector<int>(image.pixels.begin(), image.pixels.begin() + 3), ElementsAre(3, 0x20, 0x30));
  EXPECT_EQ(open("ten", "validation")->size(), 1);
  EXPECT_THAT(error_of("ten"), HasSubstr("choose one"));
  write("ten/batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  EXPECT_EQ(open("ten", "train")->classes()[7], "horse");
  EXPECT_EQ(open("ten/test_batch.bin")->label(0), 1);

  write("hundred/train.bin", record({3, 99}, 5) + record({19, 0}, 6));
  EXPECT_THAT(labels(*open("hundred")), ElementsAre(99, 0));
  write("hundred/test.bin", std::string(100, 'x'));
  EXPECT_THAT(error_of("hundred", {"test", {}, true}), HasSubstr("not a whole number of CIFAR-10 records"));
  write("bad/test_batch.bin", record({10}, 1));
  EXPECT_THAT(error_of("bad"), HasSubstr("record 0 has the label 10"));
}

TEST_F(OpenDataset, ReadsIdxFiles) {
  const auto idx = [](std::vector<int> sizes, const std::string& data) {
    std::string bytes = {0, 0, 8, static_cast<char>(sizes.size())};
    for (const int size : sizes) {
      bytes += {0, 0, static_cast<char>(size >> 8), static_cast<char>(size)};
    }
    return bytes + data;
  };
  write("train-images-idx3-ubyte", idx({2, 3, 4}, std::string(12, '\x05') + std::string(12, '\x06')));
  write("train-labels-idx1-ubyte", idx({2}, {2, 0}));
  const auto dataset = open(".", "train");
  EXPECT_THAT(labels(*dataset), ElementsAre(2, 0));
  EXPECT_THAT(dataset->classes(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(dataset->image(1).width, 4);
  EXPECT_EQ(dataset->image(1).height, 3);
  EXPECT_EQ(dataset->image(1).pixels[0], 6);
  EXPECT_EQ(open("train-images-idx3-ubyte")->size(), 2);
  EXPECT_THAT(open(".", "train", {"zero", "one", "two"})->classes(), ElementsAre("zero", "one", "two"));

  write("train-labels-idx1-ubyte", idx({3}, {2, 0, 1}));
  EXPECT_THAT(error_of(".", {"train", {}, true}), HasSubstr("3 labels for the 2 images"));
  write("train-images-idx3-ubyte", idx({2, 3, 4}, "short"));
  EXPECT_THAT(error_of(".", {"train", {}, true}), HasSubstr("24 bytes of data were expected"));
  write("train-images-idx3-ubyte", "\x1f\x8b" + std::string(30, 'x'));
  EXPECT_THAT(error_of(".", {"train", {}, true}), HasSubstr("gunzip"));
  fs::rename(folder / "train-images-idx3-ubyte", folder / "train-images-idx3-ubyte.gz");
  EXPECT_THAT(error_of(".", {"train", {}, true}), HasSubstr("gunzip"));
}

TEST_F(OpenDataset, NumbersClassesAsTheModelDoes) {
  add("a/1.png");
  add("c/1.png");
  const auto dataset = open(".", "", {"c", "b", "a"});
  EXPECT_THAT(dataset->classes(), ElementsAre("c", "b", "a"));
  EXPECT_THAT(labels(*dataset), ElementsAre(2, 0));
  EXPECT_THAT(error_of(".", {"", {"a", "b"}, true}), HasSubstr("the class 'c' is unknown"));
  const auto own = [&](const std::string& name, const std::vector<std::string>& known) {
    return open_dataset(folder / name, {.split = "", .classes = known, .or_own_classes = true})->classes();
  };
  EXPECT_THAT(own(".", {"b", "a"}), ElementsAre("a", "c"));
  EXPECT_THAT(own(".", {"c", "b", "a"}), ElementsAre("c", "b", "a"));
  // Labels that are numbers are the numbers of classes, unless one of them or of the classes has a number for a name.
  add("counts/2/1.png");
  add("counts/1/1.png");
  EXPECT_THAT(labels(*open("counts", "", {"none", "one", "two"})), ElementsAre(1, 2));
  EXPECT_THAT(own("counts", {"none", "one", "two"}), ElementsAre("1", "2")) << "not a number for each";
  EXPECT_THAT(own("counts", {"1", "2", "3"}), ElementsAre("1", "2", "3"));
  EXPECT_THAT(error_of("counts", {"", {"2", "3", "4"}, true}), HasSubstr("the class '1' is unknown"));
  EXPECT_THAT(error_of("counts", {"", {"a", "b", "9"}, true}), HasSubstr("the class '1' is unknown"));
  add("counts/0/1.png");
  EXPECT_THAT(own("counts", {"none", "one", "two"}), ElementsAre("none", "one", "two"));
}

TEST_F(OpenDataset, TakesImagesWithoutLabelsFromAnywhere) {
  add("b.png", 1);
  add("deep/er/a10.png", 2);
  add("deep/er/a9.png", 3);
  fs::create_directories(folder / "empty");
  EXPECT_THAT(error_of(), HasSubstr("no images in it"));
  DatasetOptions unlabeled_options;
  unlabeled_options.labeled = false;
  const auto dataset = open_dataset(folder.path(), unlabeled_options);
  EXPECT_THAT(names(*dataset), ElementsAre("b.png", "deep/er/a9.png", "deep/er/a10.png"));
  EXPECT_THAT(labels(*dataset), ElementsAre(0, 0, 0));
  EXPECT_EQ(dataset->classes().size(), 1U);
  EXPECT_EQ(dataset->image(1).pixels[0], 3);
  EXPECT_THAT(error_of("empty", unlabeled_options), HasSubstr("there are no images"));
}

TEST_F(OpenDataset, SaysWhatIsWrong) {
  EXPECT_THAT(error_of("nowhere"), HasSubstr("no such file or folder"));
  EXPECT_THAT(error_of(), HasSubstr("there are no images"));
  add("a/1.png");
  fs::create_directories(folder / "b");
  EXPECT_THAT(error_of(), HasSubstr("b has no images in it"));
  fs::remove_all(folder / "b");
  EXPECT_THAT(error_of(".", {"", {}, false}), HasSubstr("all images are of the class 'a'"));
  add("stray.png");
  EXPECT_THAT(error_of(), HasSubstr("stray.png lies outside of any class folder"));
  write("x.zip", "x");
  EXPECT_THAT(error_of("x.zip"), HasSubstr("not a data set"));
  for (const char* name : {"x.gz", "x.tar.xz", "x.tar.zst", "x.tar.bz2"}) {
    write(name, "x");
    EXPECT_THAT(error_of(name), HasSubstr("unpack it first")) << name;
  }
  write("x.tar.gz", "x");
  EXPECT_THAT(error_of("x.tar.gz"), HasSubstr("x.tar.gz: not a tar archive"));
  write("x.bin", "x");
  EXPECT_THAT(error_of("x.bin", {"validation", {}, true}), HasSubstr("has no 'validation' images"));
  EXPECT_THAT(error_of(".", {"validation", {}, true}),
              HasSubstr("looked for the folders validation, val, valid, eval, evaluation, dev and"));
}

TEST_F(OpenDataset, CountsFilesThatAreNotImagesByTheirNames) {
  add("a/1.png");
  add("b/1.png");
  write("a/1.txt", "");
  write("b/deep/2.gif", "");
  write("notes.md", "");
  write("b/.hidden", "");
  add("b/deep/3.png");
  EXPECT_EQ(open()->passed_over(), 3);
  EXPECT_EQ(open_unlabeled(folder / ".")->passed_over(), 3);
  EXPECT_EQ(with_unlabeled(open(), open_unlabeled(folder / "a"))->passed_over(), 4);
}

TEST_F(OpenDataset, NotesWhatMayNotBeExpected) {
  add("train/a/1.png");
  add("train/b/1.png");
  EXPECT_THAT(open(".", "train")->notes(), IsEmpty());
  add("c/1.png");
  write("docs/1.txt", "");
  const std::vector<std::string> beside = {"the images in 'c' lie beside the parts of '" + (folder / ".").string() +
                                           "' and belong to none of them"};
  EXPECT_EQ(open(".", "train")->notes(), beside);
  add("train/deep/b/2.png");
  const std::string shared = "folders of one name are one class, wherever they lie: 'b' and 'deep/b' are 'b'";
  EXPECT_THAT(open(".", "train")->notes(), ElementsAre(shared, beside[0]));
  write("train/a/1.txt", "");
  const auto training = open(".", "train");
  EXPECT_THAT(notes_of({training.get(), training.get(), nullptr}),
              ElementsAre(shared, beside[0], "2 files that are not images by their names were passed over"));
}

TEST_F(OpenDataset, HoldsALinkToNothingForABrokenImage) {
  add("a/1.png");
  fs::create_symlink("nowhere.png", folder / "a/2.png");
  const auto dataset = open();
  ASSERT_THAT(names(*dataset), ElementsAre("a/1.png", "a/2.png"));
  EXPECT_THAT(test::error_of([&] { dataset->image(1); }), HasSubstr("a/2.png"));
}

TEST_F(OpenDataset, NamesABrokenImageWhenItIsRead) {
  add("a/1.png");
  write("a/2.jpg", "\xff\xd8\xff and then nothing");
  const auto dataset = open();
  EXPECT_NO_THROW(dataset->image(0));
  try {
    dataset->image(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a/2.jpg"));
  }
}

TEST_F(OpenDataset, SpreadsImagesThatAreWhole) {
  for (int i = 0; i < 9; ++i) {
    add("a/" + std::to_string(i) + ".png");
  }
  const auto spread = [&](std::int64_t count, bool skip_broken) {
    std::vector<std::int64_t> indices;
    for_spread_images(*open(), count, skip_broken, [&](std::int64_t i, const io::Image&) { indices.push_back(i); });
    return indices;
  };
  EXPECT_THAT(spread(3, false), ElementsAre(0, 3, 6));
  EXPECT_EQ(spread(20, false).size(), 9U);
  for (const char* broken : {"a/3.png", "a/4.png", "a/8.png"}) {
    write(broken, "no image");
  }
  EXPECT_THAT(spread(3, true), ElementsAre(0, 5, 6));
  EXPECT_THAT(spread(4, true), ElementsAre(0, 2, 5, 6)) << "the next one that is whole, and each once";
  EXPECT_THAT(spread(20, true), ElementsAre(0, 1, 2, 5, 6, 7));
  EXPECT_THROW(spread(3, false), Error);
}

TEST_F(OpenDataset, KnowsImagesThatHaveNoLabels) {
  add("b.png", 1);
  add("deep/er/10.png", 2);
  add("deep/er/9.png", 3);
  write("notes/readme.txt", "no image");
  const auto folder_of = open_unlabeled(folder.path());
  ASSERT_EQ(folder_of->size(), 3);
  EXPECT_EQ(folder_of->name(2), "deep/er/10.png");
  EXPECT_EQ(folder_of->image(2).pixels[0], 2);
  EXPECT_EQ(folder_of->label(0), unlabeled);
  EXPECT_TRUE(folder_of->classes().empty());

  const std::vector<std::uint8_t> png = io::encode_png(io::Image(2, 2));
  test::TarWriter tar;
  tar.add("2.png", png);
  tar.add("train/a/1.png", png);
  tar.add("test/a/1.png", png);
  tar.write(folder / "some.tar");
  EXPECT_EQ(open_unlabeled(folder / "some.tar")->size(), 3);
  for (const char* part : {"parts/train.tar", "parts/test.tar", "parts/other.tar"}) {
    fs::create_directories(folder / "parts");
    fs::copy_file(folder / "some.tar", folder / part);
  }
  const auto parts = open_unlabeled(folder / "parts");
  ASSERT_EQ(parts->size(), 6) << "a folder without loose images is its parts";
  EXPECT_EQ(parts->name(0), "train.tar/2.png");
  EXPECT_EQ(parts->image(5).width, 2);
  write("list.csv", "path,label\nb.png,x\n");
  EXPECT_EQ(open_unlabeled(folder / "list.csv")->label(0), unlabeled);

  fs::create_directories(folder / "empty/inside");
  EXPECT_THAT(test::error_of([&] { open_unlabeled(folder / "empty"); }), HasSubstr("there are no images"));
  EXPECT_THAT(test::error_of([&] { open_unlabeled(folder / "nowhere"); }), HasSubstr("no such file or folder"));
}

TEST_F(OpenDataset, PutsImagesWithoutLabelsBehindTheOthers) {
  add("labeled/x/1.png", 1);
  add("labeled/y/1.png", 2);
  add("more/x/1.png", 3);
  const auto both = with_unlabeled(open("labeled"), open_unlabeled(folder / "more"));
  ASSERT_EQ(both->size(), 3);
  EXPECT_EQ(both->label(1), 1);
  EXPECT_EQ(both->label(2), unlabeled) << "whatever its folder is called";
  EXPECT_EQ(both->image(2).pixels[0], 3);
  EXPECT_EQ(both->classes(), (std::vector<std::string>{"x", "y"}));
  EXPECT_THROW(both->image(3), Error);
}

TEST(DemoData, IsThere) {
  const fs::path folder = fs::path(VITRAIL_SOURCE_DIR) / "data/cifar10";
  const auto training = open_dataset(folder, {"train", {}, false});
  const auto testing = open_dataset(folder, {"validation", training->classes(), false});
  EXPECT_EQ(training->size(), 5000);
  EXPECT_EQ(testing->size(), 1000);
  EXPECT_EQ(training->classes().size(), 10U);
  EXPECT_EQ(testing->name(999), "truck/0099.jpg");
  EXPECT_EQ(testing->label(999), 9);
  EXPECT_EQ(testing->image(999).width, 32);
}

}  // namespace
}  // namespace vitrail::data
