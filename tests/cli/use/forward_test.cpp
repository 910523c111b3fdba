// vitrail forward.
#include <cstdint>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Forward : public Commands {};

TEST_F(Forward, GivesLogitsFeaturesAndAttention) {
  io::save_safetensors(path("x.safetensors"), {{"x", random_tensor({3, 3, 16, 16})}});
  const Outcome outcome = vitrail("forward " + best() + " --input " + path("x.safetensors") + " --output " +
                                  path("y.safetensors") + " --features --attention");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const io::Safetensors y = io::Safetensors::open(path("y.safetensors"));
  EXPECT_EQ(y.shape("logits").str(), "[3, 2]");
  EXPECT_EQ(y.shape("features.1").str(), "[3, 17, 24]");
  EXPECT_EQ(y.shape("attention.0").str(), "[3, 3, 17, 17]");
  ASSERT_EQ(vitrail("forward " + best() + " --dtype bf16 --input " + path("x.safetensors") + " --output " +
                    path("y16.safetensors"))
                .status,
            0);
  expect_close(io::Safetensors::open(path("y16.safetensors")).get("logits"), y.get("logits"), 3e-2);
  const Outcome wrong =
      vitrail("forward " + best() + " --input " + path("y.safetensors") + " --output " + path("z.safetensors"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("'x'"));
}

TEST_F(Forward, TakesAnotherSizeAsEveryCommandDoes) {
  EXPECT_THAT(vitrail("info " + best() + " --img-size 24").out, HasSubstr("6 x 6 patches"));
  io::save_safetensors(path("x24.safetensors"), {{"x", random_tensor({1, 3, 24, 24})}});
  const Outcome forward = vitrail("forward " + best() + " --img-size 24 --input " + path("x24.safetensors") +
                                  " --output " + path("y24.safetensors"));
  EXPECT_EQ(forward.status, 0) << forward.err;
  const Outcome bench = vitrail("bench infer --model " + best() + " --img-size 24 --steps 1 --warmup 0 -b 1");
  EXPECT_EQ(bench.status, 0) << bench.err;
}

TEST_F(Forward, NamesWhatItDoesNotTake) {
  const Tensor x = Tensor::zeros({1, 3, 16, 16});
  io::save_safetensors(path("x.safetensors"), {{"x", x}, {"labels", Tensor::zeros({1})}});
  const Outcome forward = vitrail("forward " + best() + " --threads 1 --input " + path("x.safetensors") + " --output " +
                                  path("y.safetensors"));
  EXPECT_EQ(forward.status, 0) << forward.err;
  EXPECT_THAT(forward.err, HasSubstr("'labels' is no input of '" + best()));
  const std::string red = path("data/train/red/1.png");
  const std::string table = write("both.csv", red + ",red\n" + red + ",blue\n");
  EXPECT_THAT(vitrail("eval " + best() + " " + table + " --threads 1").err,
              HasSubstr("1 image under several classes, such as " + red));
  EXPECT_THAT(vitrail("scenes " + path("few") + " --count 2 --preview 9").err,
              HasSubstr("--preview 9 shows the 2 scenes that there are"));
}

class ForwardOfFolders : public InAFolder {};

TEST_F(ForwardOfFolders, SaysThatThereIsNoAttention) {
  for (const std::string& model : {golden_path("models/text/recurrent_lstm").string(), std::string("resnet18")}) {
    refuses("forward " + model + " --input " + path("nowhere.safetensors") + " --output " + path("y.safetensors") +
                " --attention",
            "has no attention to write: leave out --attention");
  }
}

TEST_F(ForwardOfFolders, SaysThatPaddingIsLookedAt) {
  const std::string input = path("ids.safetensors");
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 5, 6, 0}, {2, 3})}});
  const std::string command = "forward " + golden_path("models/predictions/classes").string() + " --input " + input +
                              " --output " + path("out.safetensors");
  EXPECT_THAT(vitrail(command).err, HasSubstr("end in the token for padding (0)"));
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 5, 6, 0}, {2, 3})},
                               {"attention_mask", Tensor::from<std::int64_t>({1, 1, 1, 1, 1, 0}, {2, 3})}});
  EXPECT_THAT(vitrail(command).err, Not(HasSubstr("padding")));
  io::save_safetensors(input, {{"input_ids", Tensor::from<std::int64_t>({5, 6, 7, 0, 5, 6}, {2, 3})}});
  EXPECT_THAT(vitrail(command).err, HasSubstr("begin with the token for padding (0)"));
}

}  // namespace
}  // namespace vitrail::test
