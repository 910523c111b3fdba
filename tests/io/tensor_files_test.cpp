#include "vitrail/io/tensor_files.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using test::error_of;
using test::golden_path;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OpenTensors, TellsFormatsByHowFilesBegin) {
  const TemporaryFolder folder;
  for (const auto& [golden, name] : {std::pair("io/dtypes.safetensors", "a.pth"),
                                     {"io/torch/dtypes.bin", "b.safetensors"},
                                     {"io/torch/dtypes_legacy.bin", "c"}}) {
    std::filesystem::copy_file(golden_path(golden), folder / name);
    EXPECT_EQ(open_tensors(folder / name).shape("f32"), Shape({3, 5}));
  }
  write_atomically(folder / "text.bin", std::string_view("1234567"));
  EXPECT_THAT(error_of([&] { open_tensors(folder / "text.bin"); }),
              HasSubstr("text.bin: not a safetensors file, nor one of torch.save"));
  write_atomically(folder / "lfs", std::string_view("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
  EXPECT_THAT(error_of([&] { open_tensors(folder / "lfs"); }), HasSubstr("lfs: the pointer of Git LFS to a file that"));
}

// A checkpoint in two files.
class Shards : public testing::Test {
 protected:
  Shards() {
    save_safetensors(folder_ / "1.safetensors", {{"a", Tensor::full({2}, 1)}, {"b", Tensor::full({3}, 2)}});
    std::filesystem::copy_file(golden_path("io/torch/small.bin"), folder_ / "2.bin");
    write_index(
        R"({"metadata": {"total_size": 44}, "weight_map": {"weight": "2.bin", "b": "1.safetensors", "a": "1.safetensors"}})");
  }
  void write_index(std::string_view text) const { write_atomically(index(), text); }
  std::filesystem::path index() const { return folder_ / "model.safetensors.index.json"; }
  std::string complaint() const {
    return error_of([&] { open_shards(index()); });
  }
  std::string complaint(std::string_view text) const {
    write_index(text);
    return complaint();
  }
  TemporaryFolder folder_;
};

TEST_F(Shards, AreReadAsOne) {
  const StoredTensors tensors = open_shards(index());
  EXPECT_THAT(tensors.names(), ElementsAre("a", "b", "weight"));
  EXPECT_THAT(tensors.get("a").values(), ElementsAre(1, 1));
  EXPECT_THAT(tensors.get("b").values(), ElementsAre(2, 2, 2));
  EXPECT_EQ(tensors.shape("weight"), Shape({2, 3}));
  EXPECT_EQ(tensors.source(), index().string());
}

TEST_F(Shards, MustBeThereAndWhole) {
  write_atomically(folder_ / "1.safetensors", std::string_view(read_text(folder_ / "1.safetensors")).substr(0, 100));
  EXPECT_THAT(complaint(), AllOf(HasSubstr("1.safetensors"), HasSubstr("cut short")));
  std::filesystem::remove(folder_ / "1.safetensors");
  EXPECT_THAT(complaint(), HasSubstr("index.json: the file '1.safetensors' is missing, which has the tensor 'a'"));
}

TEST_F(Shards, MustHaveTheirTensors) {
  EXPECT_THAT(complaint(R"({"weight_map": {"c": "1.safetensors"}})"),
              HasSubstr("the tensor 'c' should be in '1.safetensors', which does not have it"));
}

TEST_F(Shards, MustLieInTheFolder) {
  for (const char* name : {"", "/etc/passwd", "../1.safetensors", "..", "x/1.safetensors"}) {
    EXPECT_THAT(complaint(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", name)),
                HasSubstr(fmt::format("'{}' is not the name of a file beside it", name)));
  }
  EXPECT_THAT(complaint(R"({"weight_map": {"a": 1}})"), HasSubstr("'weight_map' must name the file of the tensor 'a'"));
  EXPECT_THAT(complaint(R"({"weight_map": {}})"), HasSubstr("'weight_map' must name a file for each tensor"));
  EXPECT_THAT(complaint(R"({"weight_map": []})"), HasSubstr("'weight_map' must name a file for each tensor"));
  EXPECT_THAT(complaint("{}"), HasSubstr("weight_map"));
}

}  // namespace
}  // namespace vitrail::io
