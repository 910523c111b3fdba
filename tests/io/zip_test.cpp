#include "vitrail/io/zip.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using test::error_of;
using test::golden_path;
using ::testing::HasSubstr;

std::span<const std::uint8_t> as_bytes(const std::string& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

// An archive of torch.save and where its directory's first header and its end lie.
struct Archive {
  std::string file = read_text(golden_path("io/torch/short_storage.bin"));  // written by Python, without Zip64
  std::size_t header = file.find("PK\1\2");
  std::size_t end = file.rfind("PK\5\6");

  template <class T>
  void put(std::size_t offset, T value) {
    std::memcpy(file.data() + offset, &value, sizeof(T));
  }
  std::string complaint() const {
    return error_of([&] { read_zip(as_bytes(file), "file"); });
  }
};

TEST(Zip, ListsFilesWithTheirContent) {
  const Archive archive;
  const std::vector<ZipEntry> entries = read_zip(as_bytes(archive.file), "file");
  ASSERT_GE(entries.size(), 3U);
  EXPECT_TRUE(entries[0].name.ends_with("/data.pkl"));
  EXPECT_EQ(entries[0].bytes[0], 0x80);
  EXPECT_FALSE(entries[0].compressed);
  EXPECT_TRUE(is_zip(as_bytes(archive.file)));
  EXPECT_FALSE(is_zip({}));
}

TEST(Zip, MayHaveACommentAtItsEnd) {
  Archive archive;
  archive.put<std::uint16_t>(archive.end + 20, 7);
  EXPECT_THAT(archive.complaint(), HasSubstr("file: cut short: the ZIP archive has no directory at its end"));
  archive.file += "comment";
  EXPECT_EQ(archive.complaint(), "no error");
}

TEST(Zip, SaysWhatIsWrong) {
  const auto with = [](std::size_t Archive::*base, std::size_t offset, auto value) {
    Archive archive;
    archive.put(archive.*base + offset, value);
    return archive.complaint();
  };
  EXPECT_THAT(with(&Archive::header, 0, '?'), HasSubstr("file: the ZIP archive's directory is damaged"));
  EXPECT_THAT(with(&Archive::header, 28, std::uint16_t{0xffff}), HasSubstr("the ZIP archive's directory is damaged"));
  EXPECT_THAT(with(&Archive::header, 8, std::uint16_t{1}), HasSubstr("/data.pkl' is encrypted"));
  EXPECT_THAT(with(&Archive::header, 20, std::uint32_t{1} << 30),
              HasSubstr("data.pkl' has 1073741824 bytes from byte"));
  EXPECT_THAT(with(&Archive::header, 20, ~std::uint32_t{0}), HasSubstr("the size of 'small/data.pkl' is missing"));
  EXPECT_THAT(with(&Archive::header, 42, std::uint32_t{1}), HasSubstr("data.pkl' is not where the ZIP archive says"));
  EXPECT_THAT(with(&Archive::header, 42, std::uint32_t{1} << 31), HasSubstr("is not where the ZIP archive says"));
  EXPECT_THAT(with(&Archive::end, 12, std::uint32_t{1} << 30),
              HasSubstr("cut short: the ZIP archive's directory lies"));
  EXPECT_THAT(with(&Archive::end, 16, std::uint32_t{1} << 30),
              HasSubstr("cut short: the ZIP archive's directory lies"));
}

TEST(Zip, SaysWhatIsWrongWithTheFieldsOfZip64) {
  std::string file = read_text(golden_path("io/torch/zip64.bin"));
  const std::size_t locator = file.rfind("PK\6\7");
  ASSERT_NE(locator, std::string::npos);
  file[locator + 8] = static_cast<char>(file[locator + 8] ^ 1);
  EXPECT_THAT(error_of([&] { read_zip(as_bytes(file), "file"); }), HasSubstr("the ZIP archive's directory is damaged"));
}

}  // namespace
}  // namespace vitrail::io
