#include "vitrail/explain/drawing/drawing.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "vitrail/explain/overlay.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::explain {
namespace {

// The image as text: '#' for a dark pixel and '.' for a white one, in rows from the top.
std::string pattern(const io::Image& image) {
  std::string text;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      text += image.at(x, y)[0] < 128 ? '#' : '.';
    }
    text += '\n';
  }
  return text;
}

io::Image written(const std::string& text, std::int64_t scale = 1) {
  io::Image image = white_image(text_width(text, scale), letter_height * scale);
  draw_text(image, 0, 0, text, scale);
  return image;
}

TEST(Drawing, WritesLetters) {
  EXPECT_EQ(pattern(written("h0")),
            "#......###..\n"
            "#.....#...#.\n"
            "####..#..##.\n"
            "#...#.#.#.#.\n"
            "#...#.##..#.\n"
            "#...#.#...#.\n"
            "#...#..###..\n"
            "............\n");
  const io::Image large = written("h0", 3);
  const io::Image small = written("h0");
  for (std::int64_t y = 0; y < large.height; ++y) {
    for (std::int64_t x = 0; x < large.width; ++x) {
      ASSERT_EQ(large.at(x, y)[0], small.at(x / 3, y / 3)[0]) << x << "," << y;
    }
  }
}

TEST(Drawing, HasALetterOfItsOwnForEachCharacterOfAscii) {
  std::set<std::string> seen;
  for (char letter = ' '; letter <= '~'; ++letter) {
    EXPECT_TRUE(seen.insert(pattern(written(std::string(1, letter)))).second) << letter;
  }
  EXPECT_EQ(pattern(written("я")), pattern(written("?"))) << "one letter for two bytes";
}

TEST(Drawing, WritesTheLettersOfLatinAlphabets) {
  EXPECT_EQ(pattern(written("üÄç")),
            ".#.#...#.#........\n"
            ".......###........\n"
            "#...#.#...#..###..\n"
            "#...#.#...#.#...#.\n"
            "#...#.#####.#.....\n"
            "#..##.#...#.#...#.\n"
            ".##.#.#...#..###..\n"
            "..............#...\n");
  std::set<std::string> seen;
  const std::u32string all =
      U"aàáâãäåāăąbcçćčdďđeèéêëēęěfghiìíîïıjkķlļłmnñńňoòóôõöøőpqrřsśšşßtťuùúûüůűvwxyýÿzźżžæœ"
      U"AÀÁÂÃÄÅĀĂĄBCÇĆČDĎEÈÉÊËĒĘĚIÌÍÎÏİNÑŃŇOÒÓÔÕÖØŐRŘSŚŠŞTŤUÙÚÛÜŮŰYÝŸZŹŻŽÆŒŁ…°";
  for (const char32_t letter : all) {
    const std::string text = text::to_utf8(letter);
    EXPECT_TRUE(seen.insert(pattern(written(text))).second) << text;
    EXPECT_NE(pattern(written(text)), pattern(written("?"))) << text;
  }
  EXPECT_EQ(pattern(written("a\u0308")), pattern(written("ä"))) << "a letter and a mark";
  EXPECT_EQ(pattern(written("„a–b“")), pattern(written("\"a-b\"")));
  EXPECT_EQ(text_width("läuft", 2), 5 * 2 * letter_width);
  EXPECT_EQ(pattern(written("\xff")), pattern(written("?"))) << "what is no UTF-8";
}

TEST(Drawing, LeavesOutWhatLiesOutside) {
  io::Image image = white_image(6, 4);
  draw_text(image, -6, -2, "HHH", 1);
  EXPECT_EQ(pattern(image), "#...#.\n#####.\n#...#.\n#...#.\n");
  EXPECT_THROW(paste(image, io::Image(2, 2), 5, 0), Error);
}

TEST(Drawing, BreaksACaptionIntoLines) {
  const io::Image image = captioned(io::Image(200, 10), "more than thirty letters are two lines", 1);
  EXPECT_EQ(image.width, 200);
  EXPECT_EQ(image.height, 10 + 2 + 2 * (letter_height + 2));
  EXPECT_EQ(image.at(0, image.height - 10)[0], 0) << "the image begins below";
  EXPECT_EQ(image.at(199, image.height - 11)[0], 255);
  EXPECT_EQ(captioned(io::Image(5, 10), "twelve words", 2).width, 12 * 2 * letter_width) << "wider than the image";
}

TEST(Drawing, MagnifiesWithinBounds) {
  EXPECT_EQ(zoom_to_be_seen(16, 16), 14);
  EXPECT_EQ(zoom_to_be_seen(30, 20), 12);
  EXPECT_EQ(zoom_to_be_seen(640, 480), 1);
  EXPECT_EQ(zoom_to_be_seen(1, 300), 5) << "8 x 224 pixels at most";
  EXPECT_EQ(zoom_to_be_seen(5000, 1), 1);
  const io::Image thin = fit_for_sheet(io::Image(1, 5000));
  EXPECT_EQ(thin.width, 1);
  EXPECT_EQ(thin.height, 1024);
  const io::Image photograph = fit_for_sheet(io::Image(4096, 3072));
  EXPECT_EQ(photograph.width, 1024);
  EXPECT_EQ(photograph.height, 768);
}

TEST(Sheet, HasLabels) {
  const io::Image dark(50, 20);
  const io::Image result = sheet({{dark, dark}, {dark}}, {.rows = {"a", "row b"}, .columns = {"1", "2"}}, 4);
  const std::int64_t left = 2 * (5 * letter_width + 2);
  const std::int64_t top = 2 * (letter_height + 2);
  EXPECT_EQ(result.width, left + 104);
  EXPECT_EQ(result.height, top + 44);
  EXPECT_EQ(result.at(left, top)[0], 0);
  EXPECT_EQ(result.at(left - 1, top)[0], 255);
  EXPECT_EQ(result.at(result.width - 1, result.height - 1)[0], 255) << "no fourth image";
  // The label of the second column stands in the middle above it.
  io::Image label = white_image(2 * letter_width, 2 * letter_height);
  draw_text(label, 0, 0, "2", 2);
  io::Image there = white_image(label.width, label.height);
  for (std::int64_t y = 0; y < there.height; ++y) {
    std::copy_n(result.at(left + 54 + 25 - letter_width, 2 + y), 3 * there.width, there.at(0, y));
  }
  EXPECT_EQ(pattern(there), pattern(label));
  // A wide label makes the letters smaller; a wrong number of them is an error.
  EXPECT_EQ(sheet({{dark}}, {.rows = {}, .columns = {"eight..."}}).height, 20 + letter_height + 2);
  const io::Image zoomed = sheet({{dark}}, {.rows = {}, .columns = {"nine....."}});  // 54 pixels
  EXPECT_EQ(zoomed.width, 100);
  EXPECT_EQ(zoomed.height, 40 + letter_height + 2);
  EXPECT_EQ(zoomed.at(99, zoomed.height - 1)[0], 0);
  const io::Image padded = sheet({{io::Image(1, 5000)}}, {.rows = {}, .columns = {"nine....."}});
  EXPECT_EQ(padded.width, 54);
  EXPECT_EQ(padded.height, 5000 + letter_height + 2);
  EXPECT_EQ(padded.at(26, padded.height - 1)[0], 0) << "in the middle";
  EXPECT_THROW(sheet({{dark}}, {.rows = {}, .columns = {"1", "2"}}), Error);
  EXPECT_THROW(sheet({{dark}}, {.rows = {"1", "2"}, .columns = {}}), Error);
}

}  // namespace
}  // namespace vitrail::explain
