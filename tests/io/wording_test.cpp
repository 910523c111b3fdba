#include "vitrail/io/wording.h"

#include <gtest/gtest.h>

namespace vitrail::io {
namespace {

TEST(Wording, CountsThings) {
  EXPECT_EQ(counted(0, "epochs"), "0 epochs");
  EXPECT_EQ(counted(1, "epochs"), "1 epoch");
  EXPECT_EQ(counted(2, "epochs"), "2 epochs");
  EXPECT_EQ(counted(1, "batches"), "1 batch");
  EXPECT_EQ(counted(1, "classes"), "1 class");
  EXPECT_EQ(counted(1, "images"), "1 image");
  EXPECT_EQ(counted(1, "queries"), "1 query");
  EXPECT_EQ(counted(-1, "layers"), "-1 layers");
}

TEST(Wording, CapitalizesTheFirstLetter) {
  EXPECT_EQ(capitalized("images a batch"), "Images a batch");
  EXPECT_EQ(capitalized("FLOPs"), "FLOPs");
  EXPECT_EQ(capitalized("2 images"), "2 images");
  EXPECT_EQ(capitalized(""), "");
}

TEST(Wording, BreaksLinesBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(wrapped("ÄÖÜ ß", 5), "ÄÖÜ ß") << "letters are counted, not bytes";
  EXPECT_EQ(wrapped("reconstruction of it", 4), "reconstruction\nof\nit");
  EXPECT_EQ(wrapped("", 4), "");
}

TEST(Wording, KeepsToOneLine) {
  EXPECT_EQ(on_one_line("a\nb\tc\r\x1b[2J\x7f é.png"), "a\\nb\\tc\\r\\x1b[2J\\x7f é.png");
  EXPECT_EQ(lower_case("Photo.JPEG É"), "photo.jpeg É");
}

}  // namespace
}  // namespace vitrail::io
