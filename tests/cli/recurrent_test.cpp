// vitrail forward, on a folder with torch's weights.
#include <gmock/gmock.h>

#include "tests/support/program.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

TEST(RecurrentForward, GivesTorchsNumbers) {
  const TemporaryFolder folder;
  const io::Safetensors golden_file = golden("nn/recurrent.safetensors");
  const std::string prefix = "packed_lstm.";
  io::NamedTensors weights;
  for (const std::string& name : golden_file.names()) {
    if (name.starts_with(prefix + "p.")) {
      weights.emplace_back(name.substr(prefix.size() + 2), golden_file.get(name));
    }
  }
  io::save_safetensors(folder / "model.safetensors", weights);
  io::write_atomically(folder / "config.json",
                       R"({"architecture": "lstm", "input_size": 4, "hidden_size": 6, "num_layers": 2, "bias": true,
                           "batch_first": true, "dropout": 0.0, "bidirectional": true, "proj_size": 0})");
  io::NamedTensors input;
  for (const char* name : {"x", "h_0", "c_0", "lengths"}) {
    input.emplace_back(name, golden_file.get(prefix + name));
  }
  io::save_safetensors(folder / "x.safetensors", input);
  const std::string command = "forward " + folder.path().string() + " --input " + (folder / "x.safetensors").string() +
                              " --output " + (folder / "y.safetensors").string();
  const Outcome outcome = vitrail(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output           f32 [4, 7, 12]"));
  const io::Safetensors result = io::Safetensors::open(folder / "y.safetensors");
  expect_close(result.get("output"), golden_file.get(prefix + "y"), 1e-5);
  expect_close(result.get("h_n"), golden_file.get(prefix + "h_n"), 1e-5);
  expect_close(result.get("c_n"), golden_file.get(prefix + "c_n"), 1e-5);

  EXPECT_THAT(vitrail(command + " --features").err, HasSubstr("is a recurrent network: it takes no"));
  io::save_safetensors(folder / "x.safetensors", {{"y", random_tensor({1, 2, 4})}});
  EXPECT_THAT(vitrail(command).err, HasSubstr("there is no tensor 'x'; expected x f32 [B, T, 4]"));
  io::save_safetensors(folder / "x.safetensors", {{"x", random_tensor({1, 2, 5})}});
  EXPECT_THAT(vitrail(command).err,
              HasSubstr("the input of a recurrent network must be [batch, time, 4] f32 or bf16, not [1, 2, 5] f32"));
}

}  // namespace
}  // namespace vitrail::test
