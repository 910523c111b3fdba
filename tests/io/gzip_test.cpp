#include "vitrail/io/gzip.h"

#include <fstream>

#include <gmock/gmock.h>

#include "tests/data/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gzip.h"
#include "vitrail/io/tar.h"

namespace vitrail::io {
namespace {

using test::error_of;
using test::gzip;
using ::testing::HasSubstr;

class Gzip : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string complaint(const std::string& name, const std::string& bytes) const {
    return error_of([&] { unpack_gzip(write(name, bytes)); });
  }
  static std::string text_of(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

  test::TemporaryFolder folder_;
};

TEST_F(Gzip, IsUnpackedOnceForAllWhoAskMeanwhile) {
  std::string text;
  for (std::int64_t i = 0; i < 300'000; ++i) {
    text += std::to_string(i * 7919);
  }
  const auto path = write("text.gz", gzip(text));
  std::vector<std::pair<std::filesystem::path, std::size_t>> told;
  on_unpacking([&](const std::filesystem::path& file, std::size_t bytes) { told.emplace_back(file, bytes); });
  const auto first = unpack_gzip(path);
  EXPECT_TRUE(text_of(*first) == text);
  EXPECT_EQ(unpack_gzip(path), first);
  EXPECT_THAT(told, ::testing::ElementsAre(::testing::Pair(path, std::filesystem::file_size(path))));
  on_unpacking({});
  const auto other = unpack_gzip(write("other.gz", gzip("other")));
  EXPECT_EQ(text_of(*other), "other");
}

TEST_F(Gzip, MayHaveSeveralMembersAndZerosBehindThem) {
  EXPECT_EQ(text_of(*unpack_gzip(write("two.gz", gzip("one ") + gzip("two") + std::string(700, '\0')))), "one two");
  EXPECT_EQ(text_of(*unpack_gzip(write("none.gz", gzip("")))), "");
}

TEST_F(Gzip, ThatIsDamagedIsNamed) {
  const std::string whole = gzip("a text that is long enough to be cut anywhere, with numbers: 1 2 3 4 5 6 7 8 9");
  for (std::size_t length = 2; length < whole.size(); ++length) {
    EXPECT_THAT(complaint("cut.gz", whole.substr(0, length)), HasSubstr("cut.gz: cut short")) << length;
  }
  std::string wrong = whole;
  wrong[wrong.size() - 6] = static_cast<char>(wrong[wrong.size() - 6] + 1);  // a byte of the checksum
  EXPECT_THAT(complaint("wrong.gz", wrong), HasSubstr("wrong.gz: the gzip file is damaged"));
  EXPECT_THAT(complaint("more.gz", whole + "more"), HasSubstr("more.gz: the gzip file is damaged"));
}

TEST_F(Gzip, ThatUnpacksToFarTooMuchIsRefused) {
  EXPECT_THAT(complaint("bomb.gz", gzip(std::string((std::size_t{256} << 20) + 1, '\0'))),
              HasSubstr("bomb.gz: unpacks to more than 100 times its size"));
}

TEST_F(Gzip, HoldsATarByAnyOfItsNames) {
  test::TarWriter tar;
  const std::vector<std::uint8_t> content = {1, 2, 3};
  tar.add("a/b.bin", content);
  tar.write(folder_ / "plain.tar");
  const std::string packed = gzip(read_text(folder_ / "plain.tar"));
  for (const char* name : {"x.tar.gz", "x.tgz", "X.TGZ", "gzipped.tar"}) {
    EXPECT_TRUE(is_tar_name(name)) << name;
    const Tar opened = Tar::open(write(name, packed));
    ASSERT_EQ(opened.entries().size(), 1U) << name;
    EXPECT_EQ(opened.entries()[0].name, "a/b.bin");
    EXPECT_EQ(opened.bytes(opened.entries()[0])[2], 3);
  }
  for (const char* name : {"x.gz", "tar", "x.tar.xz"}) {
    EXPECT_FALSE(is_tar_name(name)) << name;
  }
}

}  // namespace
}  // namespace vitrail::io
