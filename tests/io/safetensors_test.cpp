#include "vitrail/io/safetensors.h"

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using test::error_of;
using test::golden;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, std::size_t data, std::uint64_t length) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data, '\1');
}
std::string file_of(const std::string& header, std::size_t data) { return file_of(header, data, header.size()); }

Safetensors parse_safetensors(const std::string& file) {
  const auto owner = std::make_shared<const std::string>(file);
  return Safetensors::parse({reinterpret_cast<const std::uint8_t*>(owner->data()), owner->size()}, owner, "file");
}

// What is said about a file with this header and so many bytes of data.
std::string safetensors_complaint(const std::string& header, std::size_t data) {
  return error_of([&] { parse_safetensors(file_of(header, data)); });
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

// The elements as they lie in memory: equal to the bit, NaN too.
std::string bytes_of(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return {reinterpret_cast<const char*>(dense.raw()), dense.bytes()};
}

TEST(Safetensors, ReadsWhatTheReferenceWrote) {
  const Safetensors file = golden("io/dtypes.safetensors");
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair("note", "a \"quoted\" line\nand another")));
  EXPECT_TRUE(file.contains("größe.0"));
  EXPECT_FALSE(file.contains("f33"));
  EXPECT_EQ(file.shape("f32"), Shape({3, 5}));
  const std::vector<float> f32 = file.get("f32").values();
  ASSERT_EQ(f32.size(), 15U);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(f32[i], static_cast<float>(i) / 8 - 1);
  }
  EXPECT_THAT(file.get("i8").span<std::int8_t>(), ElementsAre(-128, 0, 127));
  EXPECT_THAT(file.get("u8").span<std::uint8_t>(), ElementsAre(0, 1, 255));
  EXPECT_THAT(file.get("i32").span<std::int32_t>(),
              ElementsAre(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
  EXPECT_THAT(file.get("i64").span<std::int64_t>(), ElementsAre(-(1LL << 53), (1LL << 53) + 1));
  EXPECT_THAT(file.get("bool").span<bool>(), ElementsAre(true, false, true));
  EXPECT_EQ(file.get("scalar").item(), 0.1F);
  EXPECT_EQ(file.get("empty").shape(), Shape({0, 4}));
  EXPECT_EQ(file.get("bf16").dtype(), DType::bf16);
  EXPECT_EQ(file.get("bf16").values(), file.get("bf16 as f32").values());
}

TEST(Safetensors, ConvertsHalfAndDoubleToFloatToTheBit) {
  const Safetensors file = golden("io/dtypes.safetensors");
  // The last of the halves is a NaN, for which PyTorch has bits of its own.
  EXPECT_EQ(bytes_of(file.get("f16").narrow(0, 0, 9)), bytes_of(file.get("f16 as f32").narrow(0, 0, 9)));
  EXPECT_TRUE(std::isnan(file.get("f16").values().back()));
  EXPECT_EQ(bytes_of(file.get("f64")), bytes_of(file.get("f64 as f32")));
}

TEST(Safetensors, NamesTheTensorThatItCannotGive) {
  const Safetensors file = golden("io/dtypes.safetensors");
  EXPECT_THAT(error_of([&] { file.get("i16"); }),
              EndsWith("the tensor 'i16' has the dtype I16, which is not supported"));
  EXPECT_THAT(error_of([&] { file.get("f33"); }), EndsWith("dtypes.safetensors: there is no tensor 'f33'"));
  EXPECT_THAT(error_of([&] { file.shape(""); }), EndsWith("there is no tensor ''"));
}

TEST(Safetensors, ComesBackToTheBit) {
  const TemporaryFolder folder;
  Tensor special = Tensor::from(std::vector<float>{-0.0F, INFINITY, 1e-42F, -1.5F, 3, 4}, {2, 3});
  special.data<float>()[4] = std::bit_cast<float>(0x7fc12345U);
  const NamedTensors tensors = {
      {"z.special", special},
      {"transposed", special.transpose(0, 1)},
      {"bf16", Tensor::from(std::vector<bf16>{bf16(1.1F), bf16(-2.2F), bf16(3.3F)}, {3, 1})},
      {"i8", Tensor::from(std::vector<std::int8_t>{-128, 127, 3}, {3})},
      {"u8", Tensor::from(std::vector<std::uint8_t>{255}, {1, 1, 1, 1, 1, 1, 1, 1})},
      {"i32", Tensor::from(std::vector<std::int32_t>{-7}, {})},
      {"i64", Tensor::from(std::vector<std::int64_t>{1LL << 62}, {1})},
      {"bool", Tensor::full({5}, 1, DType::boolean)},
      {"empty", Tensor::empty({3, 0, 2})},
      {"a \"name\" with ü, \\ and \n", Tensor::scalar(1)},
  };
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"ключ", "\"\t"}};
  save_safetensors(folder / "x.safetensors", tensors, metadata);
  const Safetensors file = Safetensors::open(folder / "x.safetensors");
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Tensor read = file.get(name);
    EXPECT_EQ(read.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(read.shape(), tensor.shape()) << name;
    EXPECT_EQ(bytes_of(read), bytes_of(tensor)) << name;
  }
}

TEST(Safetensors, KeepsTheOrderWithinADtypeAndAlignsEveryTensor) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {{"b", Tensor::zeros({1}, DType::u8)},
                                  {"d", Tensor::zeros({3})},
                                  {"a", Tensor::zeros({1})},
                                  {"c", Tensor::zeros({1}, DType::i64)}});
  const Safetensors file = Safetensors::open(folder / "x");
  EXPECT_THAT(file.names(), ElementsAre("c", "d", "a", "b"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.get("c").raw()) % 64, 0U);
}

TEST(Safetensors, CanBeWithoutTensorsOrMetadata) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {}, {});
  const Safetensors file = Safetensors::open(folder / "x");
  EXPECT_TRUE(file.names().empty());
  EXPECT_TRUE(file.metadata().empty());
}

TEST(Safetensors, KeepsTheMappingAsLongAsATensorLives) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {{"a", Tensor::full({1000}, 7)}});
  Tensor tensor;
  {
    const Safetensors file = Safetensors::open(folder / "x");
    tensor = file.get("a");
    EXPECT_EQ(tensor.raw(), file.get("a").raw());  // both are the file's memory
  }
  std::filesystem::remove(folder / "x");
  EXPECT_EQ(tensor.values(), std::vector<float>(1000, 7));
}

TEST(Safetensors, CopiesATensorThatLiesUnaligned) {
  for (std::size_t padding = 0; padding < 8; ++padding) {
    std::string file = file_of(entry("F32", "[1]", "[0,4]") + std::string(padding, ' '), 4);
    const float value = 2.5;
    std::memcpy(file.data() + file.size() - 4, &value, 4);
    EXPECT_EQ(parse_safetensors(file).get("a").item(), 2.5F);
  }
}

TEST(Safetensors, RefusesBooleansThatAreNone) {
  std::string file = file_of(entry("BOOL", "[1]", "[0,1]"), 1);
  EXPECT_TRUE(parse_safetensors(file).get("a").data<bool>()[0]);
  file.back() = 2;
  EXPECT_EQ(error_of([&] { parse_safetensors(file).get("a"); }),
            "file: the tensor 'a' is BOOL, but holds bytes other than 0 and 1");
}

TEST(SafetensorsHeader, MustHaveALengthThatTheFileHolds) {
  EXPECT_EQ(error_of([] { parse_safetensors(""); }),
            "file: not a safetensors file: 0 bytes are less than the 8 that hold the header's length");
  EXPECT_THAT(error_of([] { parse_safetensors("1234567"); }), HasSubstr("7 bytes are less than the 8"));
  EXPECT_EQ(error_of([] { parse_safetensors(file_of("{}", 0, 3)); }),
            "file: cut short: the header should have 3 bytes, but only 2 follow its length");
  EXPECT_THAT(error_of([] { parse_safetensors(file_of("{}", 0, UINT64_MAX)); }),
              EndsWith("a header of 18446744073709551615 bytes is more than 100000000"));
  EXPECT_THAT(error_of([] { parse_safetensors(file_of("{}", 0, 100'000'001)); }), HasSubstr("is more than"));
  EXPECT_THAT(error_of([] { parse_safetensors(file_of("", 10, 0)); }), EndsWith("the header must begin with '{'"));
}

TEST(SafetensorsHeader, MustBeAJsonObject) {
  EXPECT_THAT(safetensors_complaint("[]", 0), EndsWith("the header must begin with '{'"));
  EXPECT_THAT(safetensors_complaint(" {}", 0), EndsWith("the header must begin with '{'"));
  EXPECT_THAT(safetensors_complaint("{", 0), HasSubstr("file: the header is not valid JSON: line 1, column 2"));
  EXPECT_THAT(safetensors_complaint("{}x", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(safetensors_complaint("{}{}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(safetensors_complaint("{\"a\":1e999}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(safetensors_complaint("{\"\xff\":{}}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(safetensors_complaint("{}" + std::string(3, '\0'), 0), HasSubstr("not valid JSON"));
  EXPECT_EQ(safetensors_complaint("{}   ", 0), "no error");
}

TEST(SafetensorsHeader, MayNotNest) {
  EXPECT_THAT(safetensors_complaint("{\"a\":" + std::string(1'000'000, '['), 0),
              EndsWith("the header's 'a' must be an object, but is a list"));
  std::string objects = "{\"a\":{\"shape\":";
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_THAT(safetensors_complaint(objects, 0),
              EndsWith("'shape' of the tensor 'a' must be a list, but is an object"));
  EXPECT_THAT(safetensors_complaint(entry("F32", "[[1]]", "[0,4]"), 4),
              EndsWith("must hold whole numbers only, but holds a list"));
}

TEST(SafetensorsHeader, MustGiveEachTensorItsThreeFields) {
  EXPECT_THAT(safetensors_complaint(R"({"a":7})", 0), EndsWith("the header's 'a' must be an object, but is a number"));
  EXPECT_THAT(safetensors_complaint(R"({"a":null})", 0), EndsWith("but is null"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{}})", 0), EndsWith("the tensor 'a' has no 'dtype' in the header"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{"dtype":"F32","shape":[]}})", 0),
              EndsWith("has no 'data_offsets' in the header"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{"dtype":1}})", 0),
              EndsWith("'dtype' of the tensor 'a' must be a string, but is a number"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{"shape":"x"}})", 0), EndsWith("must be a list, but is a string"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{"shape":[true]}})", 0),
              EndsWith("must hold whole numbers only, but holds a truth value"));
  EXPECT_THAT(safetensors_complaint(R"({"a":{"dtipe":"F32"}})", 0),
              EndsWith("has the unknown key 'dtipe' in the header"));
  EXPECT_THAT(safetensors_complaint(entry("F32", "[1]", "[0]"), 4), EndsWith("must be two numbers, not 1"));
  EXPECT_THAT(safetensors_complaint(entry("F32", "[1]", "[0,4,4]"), 4), EndsWith("must be two numbers, not 3"));
  EXPECT_THAT(safetensors_complaint(entry("F31", "[1]", "[0,4]"), 4),
              EndsWith("the tensor 'a' has the unknown dtype 'F31'"));
  EXPECT_THAT(safetensors_complaint(R"({"__metadata__":{"a":1}})", 0),
              EndsWith("'a' in '__metadata__' must be a string, but is a number"));
  EXPECT_THAT(safetensors_complaint(R"({"__metadata__":[]})", 0), EndsWith("must be an object, but is a list"));
}

TEST(SafetensorsHeader, MustNotRepeatAName) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(safetensors_complaint("{" + a + "," + a + "}", 1), "file: the header has the name 'a' twice");
  EXPECT_EQ(safetensors_complaint(R"({"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)" + a + "}", 1),
            "file: the header has the name 'a' twice");
  EXPECT_THAT(safetensors_complaint(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0),
              EndsWith("the tensor 'a' has the key 'dtype' twice"));
  EXPECT_THAT(safetensors_complaint(R"({"__metadata__":{"k":"1","k":"2"}})", 0),
              EndsWith("'__metadata__' has the key 'k' twice"));
  EXPECT_THAT(safetensors_complaint(R"({"__metadata__":{},"__metadata__":{}})", 0),
              EndsWith("the name '__metadata__' twice"));
}

TEST(SafetensorsHeader, MustHaveOffsetsInsideTheFile) {
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[0,2]"), 1),
              EndsWith("the tensor 'a' ends at byte 2, but the file holds 1 bytes of data"));
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[18446744073709551615,18446744073709551615]"), 1),
              HasSubstr("but the file holds"));
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[1,0]"), 1),
              EndsWith("the tensor 'a' ends (byte 0) before it begins (byte 1)"));
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[-1,0]"), 1),
              EndsWith("'data_offsets' of the tensor 'a' holds the negative number -1"));
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[0.0,1]"), 1),
              EndsWith("holds 0.0, which is not a whole number of 64 bits"));
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1]", "[0,18446744073709551616]"), 1),
              EndsWith("which is not a whole number of 64 bits"));
}

TEST(SafetensorsHeader, MustHaveShapesThatFillTheirBytes) {
  EXPECT_THAT(safetensors_complaint(entry("F32", "[1]", "[0,8]"), 8),
              EndsWith("the tensor 'a' of shape [1] and dtype F32 takes 4 bytes, but 0 to 8 are 8"));
  EXPECT_THAT(safetensors_complaint(entry("F32", "[]", "[0,0]"), 0), HasSubstr("takes 4 bytes"));
  EXPECT_THAT(safetensors_complaint(entry("F32", "[-1]", "[0,4]"), 4), HasSubstr("negative number -1"));
  EXPECT_THAT(safetensors_complaint(entry("F4", "[3]", "[0,1]"), 1), HasSubstr("takes 2 bytes"));
  EXPECT_EQ(safetensors_complaint(entry("F4", "[4]", "[0,2]"), 2), "no error");
  for (const char* shape : {"[4294967296,4294967296]", "[18446744073709551615]", "[9223372036854775808,2]",
                            "[0,4294967296,4294967296]", "[4294967296,4294967296,0]", "[2305843009213693952]"}) {
    EXPECT_THAT(safetensors_complaint(entry("F32", shape, "[0,0]"), 0), EndsWith("of the tensor 'a' is too large"))
        << shape;
  }
  EXPECT_THAT(safetensors_complaint(entry("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1),
              EndsWith("has 9 dimensions, more than 8"));
  std::string ones = "[1";
  for (int i = 0; i < 100'000; ++i) {
    ones += ",1";
  }
  EXPECT_THAT(safetensors_complaint(entry("U8", ones + "]", "[0,1]"), 1), EndsWith("is too long a list"));
}

TEST(SafetensorsHeader, MustGiveEachByteToOneTensor) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b +
           R"(},"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a + "}}";
  };
  EXPECT_EQ(safetensors_complaint(two("[0,2]", "[2,4]"), 4), "no error");
  EXPECT_EQ(safetensors_complaint(two("[0,2]", "[1,3]"), 3), "file: the tensors 'a' and 'b' overlap");
  EXPECT_EQ(safetensors_complaint(two("[0,2]", "[0,2]"), 2), "file: the tensors 'b' and 'a' overlap");
  EXPECT_EQ(safetensors_complaint(two("[0,2]", "[3,5]"), 5), "file: bytes 2 to 3 of the data belong to no tensor");
  EXPECT_EQ(safetensors_complaint(two("[1,3]", "[3,5]"), 5), "file: bytes 0 to 1 of the data belong to no tensor");
  EXPECT_EQ(safetensors_complaint(two("[0,2]", "[2,4]"), 9), "file: bytes 4 to 9 of the data belong to no tensor");
  EXPECT_EQ(safetensors_complaint("{}", 1), "file: bytes 0 to 1 of the data belong to no tensor");
}

TEST(SafetensorsHeader, IsQuotedShortlyInErrors) {
  EXPECT_LT(safetensors_complaint("{\"" + std::string(10'000, 'x') + "\":7}", 0).size(), 200U);
  EXPECT_LT(safetensors_complaint(entry(std::string(10'000, 'x'), "[]", "[0,0]"), 0).size(), 200U);
  EXPECT_LT(safetensors_complaint("{\"a\": \"" + std::string(10'000, 'x'), 0).size(), 500U);
}

// Every cut of a sound file gives an Error, and so does nearly every changed byte of the header: never anything worse.
TEST(SafetensorsHeader, CanBeCutAndChangedAnywhere) {
  const std::string sound = read_text(test::golden_path("io/dtypes.safetensors"));
  for (std::size_t length = 0; length < sound.size(); ++length) {
    EXPECT_NE(error_of([&] { parse_safetensors(sound.substr(0, length)); }), "no error") << length;
  }
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::string changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    error_of([&] {
      const Safetensors file = parse_safetensors(changed);
      for (const std::string& name : file.names()) {
        error_of([&] { file.get(name); });
      }
    });
  }
}

TEST(SaveSafetensors, RefusesNamesThatCannotBeWritten) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::scalar(1);
  const auto save = [&](const NamedTensors& tensors, const std::map<std::string, std::string>& metadata = {}) {
    return error_of([&] { save_safetensors(folder / "x", tensors, metadata); });
  };
  EXPECT_THAT(save({{"a", one}, {"a", one}}), EndsWith("the tensor's name 'a' is there twice"));
  EXPECT_THAT(save({{"__metadata__", one}}), EndsWith("is reserved"));
  EXPECT_THAT(save({{"a", Tensor()}}), EndsWith("the tensor 'a' is undefined"));
  EXPECT_THAT(save({{"\xff", one}}), EndsWith("a name or its metadata is not valid UTF-8"));
  EXPECT_THAT(save({}, {{"a", "\xc3"}}), EndsWith("not valid UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST(SaveSafetensors, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {{"a", Tensor::full({3}, 5)}});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string words = error_of([&] { save_safetensors(folder / "x", {{"a", Tensor::zeros({10'000})}}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(words, AllOf(HasSubstr("cannot write"), EndsWith("File too large")));
  EXPECT_EQ(Safetensors::open(folder / "x").get("a").values(), std::vector<float>(3, 5));
}

}  // namespace
}  // namespace vitrail::io
