// Computing in bf16.
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Precision : public Commands {};

TEST_F(Precision, IsTakenByEitherName) {
  const std::string command = "predict " + best() + " " + path("data/validation/red/3.png") + " --format json";
  const std::string full = vitrail(command).out;
  const std::string low = vitrail(command + " --amp").out;
  EXPECT_EQ(vitrail(command + " --dtype bf16").out, low);
  EXPECT_EQ(vitrail(command + " --amp --amp-dtype float32").out, full);
  EXPECT_EQ(vitrail(command + " --dtype f32").out, full);
  EXPECT_EQ(vitrail(command + " --amp --dtype f32").status, 2);
  const std::string train =
      "train " + path("data") + " --model " + best() + " --epochs 1 -b 8 --output " + path("runs");
  ASSERT_EQ(vitrail(train + " --experiment amp --amp").status, 0);
  ASSERT_EQ(vitrail(train + " --experiment dtype --dtype bf16").status, 0);
  EXPECT_EQ(io::read_bytes(path("runs/amp/last/model.safetensors")),
            io::read_bytes(path("runs/dtype/last/model.safetensors")));
  EXPECT_THAT(io::read_text(path("runs/dtype/config.toml")), HasSubstr("amp = true\n"));
}

TEST_F(Precision, WithoutBf16IsSaidToBeF32) {
  const std::string photo = path("data/validation/red/3.png");
  const Outcome plain = vitrail("predict " + best() + " " + photo + " --json", "", "ONEDNN_MAX_CPU_ISA=AVX2");
  const Outcome low = vitrail("predict " + best() + " " + photo + " --json --amp", "", "ONEDNN_MAX_CPU_ISA=AVX2");
  EXPECT_THAT(low.err, HasSubstr("no bf16 instructions: running in float32"));
  EXPECT_EQ(low.out, plain.out);
}

}  // namespace
}  // namespace vitrail::test
