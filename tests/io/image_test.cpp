#include "vitrail/io/image.h"

#include <algorithm>
#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> fixture(const std::string& name) {
  return read_bytes(test::golden_path("images/decode/" + name));
}

// What decoding fails with; empty if it does not.
std::string decode_error_of(std::span<const std::uint8_t> bytes) {
  try {
    decode_image(bytes, "a.png");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class DecodeImage : public ::testing::TestWithParam<std::string> {};

TEST_P(DecodeImage, GivesPillowsPixels) {
  if (GetParam().ends_with(".webp") &&
      decode_error_of(fixture(GetParam())).find("built without WebP") != std::string::npos) {
    GTEST_SKIP() << "built without WebP";
  }
  const Image image = decode_image(fixture(GetParam()), GetParam());
  const Tensor expected = test::golden("images/decode.safetensors").get(GetParam());
  ASSERT_EQ(image.height, expected.size(0));
  ASSERT_EQ(image.width, expected.size(1));
  EXPECT_TRUE(std::ranges::equal(image.pixels, expected.span<std::uint8_t>()));
}

// Cut anywhere or with any byte changed: an image or an Error, never a crash.
TEST_P(DecodeImage, SurvivesDamage) {
  const std::vector<std::uint8_t> whole = fixture(GetParam());
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 60) {
    decode_error_of(std::span(whole).first(length));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    std::vector<std::uint8_t> damaged = whole;
    for (int change = 0; change <= i % 3; ++change) {
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    }
    decode_error_of(damaged);
  }
}

std::vector<std::string> fixture_names() {
  const Safetensors expected = test::golden("images/decode.safetensors");
  std::vector<std::string> names = expected.names();
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllKinds, DecodeImage, ::testing::ValuesIn(fixture_names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST(DecodeImageErrors, NameTheFileAndWhatIsWrong) {
  EXPECT_THAT(decode_error_of({}), HasSubstr("a.png: the file is empty"));
  const std::string text = "this is not an image";
  EXPECT_THAT(decode_error_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}),
              HasSubstr("not a JPEG, PNG or WebP image"));
  for (const char* name : {"rgb420.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const std::vector<std::uint8_t> whole = fixture(name);
    EXPECT_THAT(decode_error_of(std::span(whole).first(whole.size() * 2 / 3)), HasSubstr("truncated")) << name;
    EXPECT_THAT(decode_error_of(std::span(whole).first(30)), HasSubstr("truncated")) << name;
  }
  const std::vector<std::uint8_t> png = fixture("rgb.png");
  EXPECT_THAT(decode_error_of(std::span(png).first(png.size() / 2)), HasSubstr("truncated"));
}

TEST(DecodeImageErrors, ComeBeforeMemoryIsTakenForTheSizeThatAFileClaims) {
  std::vector<std::uint8_t> png = fixture("rgb.png");
  const auto claim = [&](std::uint32_t width, std::uint32_t height) {
    for (std::size_t i = 0; i < 4; ++i) {
      png[16 + i] = static_cast<std::uint8_t>(width >> (24 - 8 * i));
      png[20 + i] = static_cast<std::uint8_t>(height >> (24 - 8 * i));
    }
    // The checksum of the header, so that the size is what is wrong.
    std::uint32_t crc = 0xffffffffU;
    for (std::size_t i = 12; i < 29; ++i) {
      crc ^= png[i];
      for (int bit = 0; bit < 8; ++bit) {
        crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      png[29 + i] = static_cast<std::uint8_t>(~crc >> (24 - 8 * i));
    }
  };
  claim(100'000, 100'000);
  EXPECT_THAT(decode_error_of(png), HasSubstr("100000 x 100000 pixels is larger than the limit"));
  claim(13'000, 13'000);
  EXPECT_THAT(decode_error_of(png), HasSubstr("truncated"));
  claim(0, 10);
  EXPECT_THAT(decode_error_of(png), HasSubstr("a.png"));

  std::vector<std::uint8_t> jpeg = fixture("rgb420.jpg");
  const std::array<std::uint8_t, 3> frame = {0xff, 0xc0, 0x00};
  const auto at = std::ranges::search(jpeg, frame).begin();
  ASSERT_NE(at, jpeg.end());
  std::fill_n(at + 5, 4, std::uint8_t{0xf0});
  EXPECT_THAT(decode_error_of(jpeg), HasSubstr("61680 x 61680 pixels is larger than the limit"));
}

TEST(EncodePng, IsReadBackAsItWas) {
  Image image(7, 5);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(37 * i);
  }
  const test::TemporaryFolder folder;
  write_png(folder / "a.png", image);
  const Image back = read_image(folder / "a.png");
  EXPECT_EQ(back.width, 7);
  EXPECT_EQ(back.height, 5);
  EXPECT_EQ(back.pixels, image.pixels);
  EXPECT_THROW(encode_png(Image()), Error);
}

TEST(IsImageName, KnowsTheExtensionsInAnyCase) {
  EXPECT_TRUE(is_image_name("a/b.jpg"));
  EXPECT_TRUE(is_image_name("b.JPEG"));
  EXPECT_TRUE(is_image_name("b.x.Png"));
  EXPECT_TRUE(is_image_name("b.webp"));
  EXPECT_FALSE(is_image_name("b.txt"));
  EXPECT_FALSE(is_image_name("jpg"));
}

}  // namespace
}  // namespace vitrail::io
