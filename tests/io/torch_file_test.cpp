#include "vitrail/io/torch_file.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using test::error_of;
using test::golden_path;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

StoredTensors open_golden(const std::string& name) { return open_torch_file(golden_path("io/torch/" + name)); }

// What is said about a file of tests/golden/io/torch.
std::string torch_complaint(const std::string& name) {
  return error_of([&] { open_golden(name); });
}

StoredTensors parse_torch(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return parse_torch_file({reinterpret_cast<const std::uint8_t*>(owner->data()), owner->size()}, owner, "file");
}

// Expects the tensors that torch.load gave, to the bit.
void expect_tensors(const std::string& file, const std::string& reference) {
  const StoredTensors actual = open_golden(file);
  const Safetensors expected = test::golden("io/torch/" + reference + ".safetensors");
  EXPECT_THAT(actual.names(), UnorderedElementsAreArray(expected.names())) << file;
  for (const std::string& name : expected.names()) {
    if (name == "i16") {  // a dtype that Tensor does not have
      EXPECT_EQ(actual.shape(name), expected.shape(name));
      EXPECT_THAT(error_of([&] { actual.get(name); }), HasSubstr("'i16' has the dtype I16, which is not supported"));
      continue;
    }
    const Tensor a = actual.get(name).contiguous();
    const Tensor e = expected.get(name).contiguous();
    EXPECT_EQ(a.dtype(), e.dtype()) << file << ": " << name;
    ASSERT_EQ(a.shape(), e.shape()) << file << ": " << name;
    EXPECT_EQ(actual.shape(name), e.shape()) << file << ": " << name;
    EXPECT_TRUE(e.bytes() == 0 || std::memcmp(a.raw(), e.raw(), e.bytes()) == 0) << file << ": " << name;
  }
}

TEST(TorchFile, HasTheTensorsOfTorchLoad) {
  for (const char* name : {"dtypes", "views"}) {
    expect_tensors(std::string(name) + ".bin", name);
    expect_tensors(std::string(name) + "_legacy.bin", name);
  }
}

TEST(TorchFile, KeepsTheOrderOfTheStateDict) {
  EXPECT_THAT(open_golden("model_key.pth").names(),
              ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                          "1.num_batches_tracked"));
}

TEST(TorchFile, FindsTheWeightsInTheCheckpointOfATraining) {
  expect_tensors("training.pth", "training");  // below "state_dict", with wrapped names
  expect_tensors("model_key.pth", "training");
}

TEST(TorchFile, SharesTheMemoryOfTheFile) {
  const StoredTensors file = open_golden("views.bin");
  EXPECT_EQ(file.get("base").raw(), file.get("base").raw());
  EXPECT_EQ(file.get("narrow").raw(), file.get("base").raw() + (60 + 20) * sizeof(float));
  EXPECT_NE(file.get("transposed").raw(), file.get("transposed").raw());
}

TEST(TorchFile, ReadsTheFieldsOfZip64) {
  EXPECT_THAT(open_golden("zip64.bin").get("weight").values(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TorchFile, RunsNothingAndNamesWhatWantsToRun) {
  for (const char* name : {"command.bin", "command_legacy.bin", "command.pkl"}) {
    EXPECT_THAT(torch_complaint(name), AllOf(HasSubstr(name), HasSubstr("asks for Python's posix.system"),
                                             HasSubstr("nothing of it was run")));
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/vitrail-was-here"));
  EXPECT_THAT(torch_complaint("module.bin"), HasSubstr("torch.nn.modules.linear.Linear"));
  EXPECT_THAT(torch_complaint("sparse.bin"), HasSubstr("torch._utils._rebuild_sparse_tensor"));
  EXPECT_THAT(torch_complaint("unsigned.bin"), HasSubstr("torch._utils._rebuild_tensor_v3"));
  EXPECT_THAT(torch_complaint("protocol4.bin"), HasSubstr("the opcode FRAME (0x95)"));
}

TEST(TorchFile, SaysWhatItHoldsInsteadOfWeights) {
  EXPECT_THAT(torch_complaint("tensor.bin"), EndsWith("it holds an object, and not a dict of tensors"));
  EXPECT_THAT(torch_complaint("list.bin"), EndsWith("it holds a list, and not a dict of tensors"));
  EXPECT_THAT(torch_complaint("other_key.bin"), HasSubstr("'net' is a dict, and not a tensor: the weights must be"));
  EXPECT_THAT(torch_complaint("number_key.bin"), HasSubstr("a name in its dict of tensors is a whole number"));
  EXPECT_THAT(torch_complaint("program.bin"), HasSubstr("a program of torch.jit.save"));
  EXPECT_THAT(torch_complaint("no_pickle.bin"), HasSubstr("a ZIP archive without a data.pkl"));
  EXPECT_THAT(error_of([] { open_golden("complex.bin").get("weight"); }),
              HasSubstr("dtype C64, which is not supported"));
  EXPECT_THAT(error_of([] { parse_torch("version https://git-lfs"); }),
              HasSubstr("file: not a file of torch.save: it begins neither"));
  EXPECT_THAT(error_of([] { parse_torch(""); }), HasSubstr("not a file of torch.save"));
}

TEST(TorchFile, SaysWhatIsDamaged) {
  EXPECT_THAT(torch_complaint("compressed.bin"), HasSubstr("data.pkl' is compressed in the ZIP archive"));
  EXPECT_THAT(torch_complaint("big_endian.bin"), HasSubstr("a machine with another order of bytes"));
  EXPECT_THAT(torch_complaint("no_storage.bin"), EndsWith("the storage '0' is missing"));
  EXPECT_THAT(torch_complaint("short_storage.bin"),
              EndsWith("the storage '0' should have 6 elements of F32, but has 23 bytes"));
}

// The opcodes of a text, of a whole number, and of a tuple.
std::string text(const std::string& value) {
  return "X" + std::string{static_cast<char>(value.size()), 0, 0, 0} + value;
}
std::string number(std::int32_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return "J" + bytes;
}
std::string tuple(const std::vector<std::string>& items) {
  std::string pickle = "(";
  for (const std::string& item : items) {
    pickle += item;
  }
  return pickle + "t";
}
std::string numbers(const std::vector<std::int32_t>& values) {
  std::vector<std::string> items;
  for (const std::int32_t value : values) {
    items.push_back(number(value));
  }
  return tuple(items);
}

// A storage of two floats, and a tensor of it.
std::string storage(std::int32_t numel = 2, const std::string& type = "torch\nFloatStorage",
                    const std::string& part = "N") {
  return tuple({text("storage"), "c" + type + "\n", text("0"), text("cpu"), number(numel), part}) + "Q";
}
std::string tensor(std::int32_t offset, const std::vector<std::int32_t>& sizes,
                   const std::vector<std::int32_t>& strides, const std::string& of = storage()) {
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         tuple({of, number(offset), numbers(sizes), numbers(strides), "N", "N"}) + "R";
}
std::string dict_of(const std::string& tensor) { return "}" + text("w") + tensor + "s"; }

// The bytes of a file in the older format with one storage of two floats.
struct Legacy {
  std::string magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  std::string version = number(1001);
  std::string machine = "}" + text("little_endian") + "\x88s";
  std::string value = dict_of(tensor(0, {2}, {1}));
  std::string keys = "]" + text("0") + "a";
  std::string data = std::string("\2\0\0\0\0\0\0\0\0\0\0\x3f\0\0\0\x40", 16);

  std::string bytes() const {
    std::string file;
    for (const std::string& pickle : {magic, version, machine, value, keys}) {
      file += "\x80\2" + pickle + ".";
    }
    return file + data;
  }
};

std::string legacy_complaint(const Legacy& file) {
  return error_of([&] { parse_torch(file.bytes()); });
}
// What is said about a value without storages.
std::string value_complaint(const std::string& value) {
  Legacy file;
  file.value = value;
  file.keys = "]";
  file.data = "";
  return legacy_complaint(file);
}
std::string tensor_complaint(const std::string& tensor) {
  Legacy file;
  file.value = dict_of(tensor);
  return legacy_complaint(file);
}

TEST(TorchFile, ChecksThatTensorsLieInTheirStorage) {
  EXPECT_THAT(parse_torch(Legacy().bytes()).get("w").values(), ElementsAre(0.5F, 2));
  const auto beyond = [](const char* where) {
    return HasSubstr(std::string(where) + " lies beyond its storage of 2 elements");
  };
  EXPECT_THAT(tensor_complaint(tensor(1, {2}, {1})), beyond("'w' of shape [2] and strides [1] from element 1 on"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {2})), beyond("strides [2] from element 0 on"));
  EXPECT_THAT(tensor_complaint(tensor(3, {0}, {1})), beyond("from element 3 on"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2, 2, 2, 2, 2}, {1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30})),
              beyond("on"));
  EXPECT_THAT(tensor_complaint(tensor(2, {}, {})), beyond("from element 2 on"));
  EXPECT_EQ(tensor_complaint(tensor(2, {0, 5}, {7, 9})), "no error");
  EXPECT_EQ(tensor_complaint(tensor(1, {}, {})), "no error");
  EXPECT_THAT(tensor_complaint(tensor(0, {1 << 10, 1 << 11}, {0, 0})),
              HasSubstr("repeats the 2 elements of its storage"));
  EXPECT_THAT(tensor_complaint(tensor(0, {1 << 30, 1 << 30, 1 << 30}, {0, 0, 0})), HasSubstr("is too large"));
  EXPECT_THAT(tensor_complaint(tensor(0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {})), HasSubstr("9 dimensions"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {})), HasSubstr("1 sizes and 0 strides"));
  EXPECT_THAT(tensor_complaint(tensor(0, {-2}, {1})), HasSubstr("must be whole numbers, and not negative"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {-1})), HasSubstr("must be whole numbers, and not negative"));
  EXPECT_THAT(tensor_complaint(tensor(-1, {2}, {1})), HasSubstr("is not made of a storage"));
}

TEST(TorchFile, ChecksWhatTensorsAndStoragesAreMadeOf) {
  EXPECT_THAT(value_complaint(dict_of(tensor(0, {2}, {1}, "N"))), HasSubstr("'w' is not made of a storage"));
  EXPECT_THAT(value_complaint(dict_of("ctorch._utils\n_rebuild_parameter\n)R")),
              HasSubstr("the parameter 'w' has no data"));
  EXPECT_THAT(value_complaint(dict_of("ctorch\nSize\n)R")), HasSubstr("'w' is an object, and not a tensor"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}, "NQ")), HasSubstr("refers to something outside that is no storage"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}, storage(-1))), HasSubstr("that is no storage"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}, storage(3))),
              HasSubstr("should have 3 elements of F32, but has 8 bytes"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}, storage(2, "torch\nSize"))),
              HasSubstr("a storage cannot be a torch.Size"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}, storage(2, "torch\nFloatStorage", numbers({0})))),
              HasSubstr("'0' is a part of another one"));
  EXPECT_THAT(tensor_complaint(tensor(0, {2}, {1}) + "s" + text("w") + tensor(0, {1}, {1})),
              HasSubstr("'w' is there twice"));
}

TEST(TorchFile, ChecksThePartsOfTheOlderFormat) {
  const auto with = [](std::string Legacy::*part, const std::string& value) {
    Legacy file;
    file.*part = value;
    return legacy_complaint(file);
  };
  EXPECT_THAT(with(&Legacy::magic, number(7)), HasSubstr("a pickle, but not one of torch.save"));
  EXPECT_THAT(with(&Legacy::version, number(1002)), HasSubstr("that is not 1001"));
  EXPECT_THAT(with(&Legacy::machine, "}" + text("little_endian") + "\x89s"), HasSubstr("another order of bytes"));
  EXPECT_THAT(with(&Legacy::keys, "N"), HasSubstr("the list of its storages is missing"));
  EXPECT_THAT(with(&Legacy::keys, "]"), HasSubstr("the storage '0' is missing"));
  EXPECT_THAT(with(&Legacy::keys, "]" + text("1") + "a"), HasSubstr("a storage that no tensor has"));
  EXPECT_THAT(with(&Legacy::data, "\2"), HasSubstr("cut short: the storage '0' is missing"));
  EXPECT_THAT(with(&Legacy::data, std::string("\2\0\0\0\0\0\0\0\0\0\0\0", 12)),
              HasSubstr("should have 2 of F32, but only 4"));
  EXPECT_THAT(with(&Legacy::data, std::string(8, '\xff')), HasSubstr("but only 0 bytes follow"));
  EXPECT_THAT(value_complaint("}" + text("model") + "]s"), HasSubstr("its 'model' is a list"));
}

// Every file that is cut short or has another byte is an Error, or has tensors that can be read.
TEST(TorchFile, CanBeCutAndChangedAnywhere) {
  for (const std::string& bytes : {read_text(golden_path("io/torch/small.bin")), Legacy().bytes()}) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_NE(error_of([&] { parse_torch(bytes.substr(0, i)); }), "no error") << i;
      for (const int change : {1, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ change);
        try {
          const StoredTensors file = parse_torch(changed);
          for (const std::string& name : file.names()) {
            EXPECT_EQ(file.get(name).shape(), file.shape(name));
          }
        } catch (const Error&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::io
