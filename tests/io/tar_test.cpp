#include "vitrail/io/tar.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::io {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Files = std::vector<std::pair<std::string, std::string>>;

Files files_in(const Tar& tar) {
  Files files;
  for (const TarEntry& entry : tar.entries()) {
    const auto bytes = tar.bytes(entry);
    files.emplace_back(entry.name, std::string(bytes.begin(), bytes.end()));
  }
  return files;
}

Files parse_tar(const std::string& archive) {
  const std::shared_ptr<const void> none;
  return files_in(Tar::parse({reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size()}, none, "a.tar"));
}

std::string tar_complaint(const std::string& archive) {
  return error_of([&] { parse_tar(archive); });
}

// A header block with a right checksum.
struct Header {
  std::string name = "file";
  char type = '0';
  std::string size = "0";
  std::string magic = std::string("ustar\0", 6) + "00";
  std::string prefix = {};
  std::string link = {};

  std::string block(int checksum_error = 0) const {
    std::string bytes(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { bytes.replace(at, text.size(), text); };
    put(0, name);
    put(124, size);
    put(148, "        ");
    bytes[156] = type;
    put(157, link);
    put(257, magic);
    put(345, prefix);
    int sum = checksum_error;
    for (const char byte : bytes) {
      sum += static_cast<unsigned char>(byte);
    }
    put(148, fmt::format("{:06o}", sum) + '\0');
    return bytes;
  }
};

std::string padded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512, '\0');
  return data;
}

std::string file(const std::string& name, const std::string& data, char type = '0') {
  char size[12];
  std::snprintf(size, sizeof size, "%o", static_cast<unsigned>(data.size()));
  return Header{name, type, size}.block() + padded(data);
}

std::string pax(const std::string& records) { return file("pax", records, 'x'); }

const std::string end_mark(1024, '\0');

TEST(Tar, ReadsWhatPythonWrote) {
  const std::string x(512, 'x');
  EXPECT_THAT(
      files_in(Tar::open(test::golden_path("io/ustar.tar"))),
      ElementsAre(Pair("cat/empty.txt", ""), Pair("cat/block.txt", x), Pair("cat/link.txt", "replaced"),
                  Pair(std::string(90, 'p') + "/" + std::string(90, 'q'), "long name"), Pair("cat/1.txt", "replaced")));
  std::string longest;
  for (int i = 0; i < 9; ++i) {
    longest += "a-folder-with-a-rather-long-name/";
  }
  for (const char* kind : {"io/gnu.tar", "io/pax.tar"}) {
    EXPECT_THAT(
        files_in(Tar::open(test::golden_path(kind))),
        ElementsAre(Pair("cat/empty.txt", ""), Pair("cat/block.txt", x), Pair(longest + "long.txt", "long name"),
                    Pair("größe/ß.txt", "süß"), Pair("cat/1.txt", "replaced")))
        << kind;
  }
}

TEST(Tar, MayEndWithoutItsMark) {
  EXPECT_THAT(parse_tar(file("a", "1")), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(parse_tar(file("a", "1") + std::string(512, '\0')), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(parse_tar(file("a", "1") + end_mark + "what follows does not matter"), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(tar_complaint(file("a", "12").substr(0, 514)), HasSubstr("cut short")) << "so may further files be";
  EXPECT_THAT(parse_tar(end_mark), IsEmpty());
}

TEST(Tar, MakesNamesPlain) {
  EXPECT_THAT(parse_tar(file("./a//b/./c", "1") + file("/etc/passwd", "2") + file("...", "3")),
              ElementsAre(Pair("a/b/c", "1"), Pair("etc/passwd", "2"), Pair("...", "3")));
  EXPECT_EQ(tar_complaint(file("a/../../b", "")),
            "a.tar: the name 'a/../../b' of the entry at byte 0 leads out of the archive");
  EXPECT_THAT(tar_complaint(file("..", "")), EndsWith("leads out of the archive"));
  EXPECT_THAT(tar_complaint(file("./", "", '7')), "no error");  // a folder
  EXPECT_EQ(tar_complaint(file("", "")), "a.tar: the entry at byte 0 has no name");
}

TEST(Tar, PassesOverWhatIsNoFile) {
  std::string archive = file("folder/", "") + file("old folder/", "", '\0');
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    archive += Header{"link", type, "777"}.block();  // links keep the size of their target, but have no data
  }
  archive += file("unknown", "passed over", 'V') + file("a", "1", '\0') + file("b", "2", '7');
  EXPECT_THAT(parse_tar(archive), ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST(Tar, FollowsLinksToItsOwnFiles) {
  const auto link = [](const std::string& name, char type, const std::string& target) {
    Header header{name, type, "0"};
    header.link = target;
    return header.block();
  };
  EXPECT_THAT(parse_tar(file("b/1", "one") + link("b/2", '2', "1") + link("b/c/3", '2', "../2") +
                        link("4", '1', "./b/1") + link("early", '2', "late") + file("late", "5")),
              ElementsAre(Pair("b/1", "one"), Pair("b/2", "one"), Pair("b/c/3", "one"), Pair("4", "one"),
                          Pair("early", "5"), Pair("late", "5")));
  EXPECT_THAT(parse_tar(file("b/1", "one") + file("long", "b/1", 'K') + link("2", '1', "cut short")),
              ElementsAre(Pair("b/1", "one"), Pair("2", "one")));
  EXPECT_THAT(parse_tar(file("b/1", "one") + pax("16 linkpath=b/1\n") + link("2", '2', "cut short")),
              ElementsAre(Pair("b/1", "one"), Pair("2", "one")));
  // Links to themselves, in a circle, to nothing, out of the archive and to a folder.
  const std::string lost = link("self", '2', "self") + link("x", '2', "y") + link("y", '2', "x") +
                           link("gone", '1', "nothing") + link("out", '2', "../b/1") + link("root", '2', "/b/1") +
                           link("folder", '2', "b");
  EXPECT_THAT(parse_tar(file("b/1", "one") + lost), ElementsAre(Pair("b/1", "one")));
  const std::string archive = file("b/1", "one") + lost;
  const Tar tar = Tar::parse({reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size()}, nullptr, "a.tar");
  EXPECT_THAT(tar.lost_links(), ElementsAre("self", "x", "y", "gone", "out", "root", "folder"));
  // Of two entries with one name the later counts.
  EXPECT_THAT(parse_tar(file("a", "1") + link("b", '2', "a") + file("b", "2") + file("c", "3") + link("c", '1', "a")),
              ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "1")));
}

TEST(Tar, UsesThePrefixOfPosixOnly) {
  Header header{"name", '0', "0"};
  header.prefix = "some/folder";
  EXPECT_THAT(parse_tar(header.block()), ElementsAre(Pair("some/folder/name", "")));
  header.magic = "ustar  ";
  EXPECT_THAT(parse_tar(header.block()), ElementsAre(Pair("name", "")));
}

TEST(Tar, ReadsSizesInEveryNotation) {
  for (const std::string& size : {std::string("5"), std::string("00000000005"), std::string("         5 "),
                                  std::string("000000000005"), std::string("\x80\0\0\0\0\0\0\0\0\0\0\5", 12)}) {
    EXPECT_THAT(parse_tar(Header{"a", '0', size}.block() + padded("12345")), ElementsAre(Pair("a", "12345"))) << size;
  }
  EXPECT_THAT(parse_tar(pax("10 size=5\n") + Header{"a", '0', "0"}.block() + padded("12345")),
              ElementsAre(Pair("a", "12345")));
  for (const std::string& size :
       {std::string("8"), std::string("-1"), std::string("0x5"), std::string("5 5"), std::string("9")}) {
    EXPECT_THAT(tar_complaint(file("first", "") + Header{"a", '0', size}.block() + padded("12345")),
                EndsWith("the tar archive is damaged (the header at byte 512 has no octal number at its place 124)"));
  }
  EXPECT_THAT(tar_complaint(Header{"a", '0', std::string(12, '\xff')}.block()),
              EndsWith("negative or too large a number"));
  EXPECT_THAT(tar_complaint(Header{"a", '0', "\x80" + std::string(11, '\xff')}.block()),
              EndsWith("negative or too large a number"));
  EXPECT_THAT(tar_complaint(Header{"a", '0', std::string("\x80\0\0\0", 4) + std::string(8, '\xff')}.block()),
              EndsWith("the entry at byte 0 has 18446744073709551615 bytes, but only 0 follow"));
}

TEST(Tar, SaysWhatIsNoTar) {
  EXPECT_EQ(tar_complaint(""), "a.tar: not a tar archive: the file is empty");
  EXPECT_THAT(tar_complaint("short"), HasSubstr("not a tar archive: 5 bytes at byte 0 are no whole block"));
  EXPECT_THAT(tar_complaint(std::string(2000, 'x')), HasSubstr("not a tar archive"));
  EXPECT_EQ(tar_complaint("\x1f\x8b" + std::string(1000, 'x')),
            "a.tar: compressed with gzip: unpack it to a plain .tar first");
  EXPECT_THAT(tar_complaint("\x28\xb5\x2f\xfd" + std::string(1000, 'x')), HasSubstr("zstd"));
  EXPECT_THAT(tar_complaint(std::string("\xfd"
                                        "7zXZ\0",
                                        6) +
                            std::string(1000, 'x')),
              HasSubstr("xz"));
  EXPECT_THAT(tar_complaint("BZh9" + std::string(1000, 'x')), HasSubstr("bzip2"));
  EXPECT_EQ(tar_complaint(Header{}.block(1)),
            "a.tar: not a tar archive (the checksum of the header at byte 0 is wrong)");
  EXPECT_EQ(tar_complaint(file("a", "1") + Header{}.block(1)),
            "a.tar: the tar archive is damaged (the checksum of the header at byte 1024 is wrong)");
}

TEST(Tar, SaysWhereItIsCutShort) {
  const std::string whole = file("a", "one") + file("b", std::string(600, 'b'));
  EXPECT_EQ(tar_complaint(whole.substr(0, 1024 + 512 + 599)),
            "a.tar: cut short: the entry at byte 1024 has 600 bytes, but only 599 follow");
  EXPECT_THAT(tar_complaint(whole.substr(0, 1024 + 100)), HasSubstr("cut short: 100 bytes at byte 1024"));
  EXPECT_THAT(tar_complaint(file("", "x", 'L')), HasSubstr("belongs to no file"));
  EXPECT_THAT(tar_complaint(pax("8 size=5\n").substr(0, 600)), HasSubstr("cut short"));
}

TEST(Tar, ChecksExtensions) {
  for (const char* broken : {"x", "5", "5 a=b\n", "99 a=b\n", "6 a=b", "0 a=b\n", "2 a=b\n", "3 a", "7 abcd\n",
                             "11 size=-5\n", "11 size=5x\n", "99999999999999999999 a=b\n"}) {
    EXPECT_THAT(tar_complaint(pax(broken) + file("a", "")), EndsWith("the pax header at byte 0 is damaged")) << broken;
  }
  EXPECT_THAT(parse_tar(pax("6 a=b\n9 path=c\n") + file("a", "1") + file("d", "2")),
              ElementsAre(Pair("c", "1"), Pair("d", "2")));
  EXPECT_THAT(parse_tar(file("pax", "9 path=c\n", 'g') + file("a", "1")), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(tar_complaint(pax(std::string("10 path=\0\n", 10)) + file("a", "")), EndsWith("has a NUL byte"));
  EXPECT_THAT(tar_complaint(pax("10 path=..\n") + file("a", "")), EndsWith("is damaged"));
  EXPECT_THAT(tar_complaint(pax("11 path=..\n") + file("a", "")), EndsWith("leads out of the archive"));
  EXPECT_THAT(tar_complaint(file("", std::string(2'000'000, 'x'), 'L')), EndsWith("more than 1048576"));
  EXPECT_THAT(tar_complaint(Header{"s", 'S', "0"}.block()), HasSubstr("the file 's' at byte 0 is sparse"));
  EXPECT_THAT(tar_complaint(pax("22 GNU.sparse.major=1\n") + file("a", "")), HasSubstr("sparse"));
}

// Every cut and every changed byte ends in an Error or in files that lie inside the archive.
TEST(Tar, CanBeCutAndChangedAnywhere) {
  const std::string sound = read_text(test::golden_path("io/pax.tar"));
  for (std::size_t i = 0; i < sound.size(); i += 7) {
    tar_complaint(sound.substr(0, i));
    std::string changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    tar_complaint(changed);
  }
}

}  // namespace
}  // namespace vitrail::io
