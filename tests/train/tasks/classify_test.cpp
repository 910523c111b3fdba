#include "vitrail/train/tasks/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::tiny_options;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The options of a run that starts from a file of noise in the place of all weights.
class InitialCheckpoint : public ::testing::Test {
 protected:
  InitialCheckpoint() : options_(tiny_options(temporary_.path())), file_(temporary_ / "weights.safetensors") {
    const std::unique_ptr<Task> task = options_.make({});
    for (const nn::Parameter& parameter : task->network().parameters.all()) {
      tensors_.emplace_back(parameter.name, test::random_tensor(parameter.value.shape(), hash(parameter.name)));
    }
    io::save_safetensors(file_, tensors_);
    options_.initial_checkpoint = file_.string();
  }

  test::TemporaryFolder temporary_;
  ClassifyOptions options_;
  fs::path file_;
  io::NamedTensors tensors_;
};

TEST_F(InitialCheckpoint, GivesEveryWeight) {
  const std::unique_ptr<Task> task = options_.make({});
  const nn::ParameterStore& parameters = task->network().parameters;
  EXPECT_EQ(parameters.all().size(), tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    expect_close(parameters.at(name).value, tensor, 0, name);
  }
  // And so does a model folder.
  task->save(temporary_ / "model");
  options_.initial_checkpoint = (temporary_ / "model").string();
  options_.seed = 5;
  EXPECT_EQ(weights_checksum(options_.make({})->network()), weights_checksum(task->network()));
}

TEST_F(InitialCheckpoint, ThatDoesNotFitHasItsFaultsListed) {
  std::erase_if(tensors_, [](const auto& entry) { return entry.first == "blocks.0.norm1.bias"; });
  tensors_.emplace_back("blocks.2.norm1.bias", Tensor::zeros({24}));
  for (auto& [name, tensor] : tensors_) {
    tensor = name == "cls_token" ? Tensor::zeros({1, 1, 23}) : tensor;
    tensor = name == "pos_embed" ? Tensor::zeros({1, 4, 24}) : tensor;
  }
  io::save_safetensors(file_, tensors_);
  EXPECT_THAT(error_of([&] { fit(options_); }),
              AllOf(HasSubstr("--initial-checkpoint: " + file_.string() + " does not fit the model:\n  "),
                    HasSubstr("there is no tensor 'blocks.0.norm1.bias'"),
                    HasSubstr("the model has no parameter 'blocks.2.norm1.bias'"),
                    HasSubstr("'cls_token' has the shape [1, 1, 23], but the model's is [1, 1, 24]"),
                    HasSubstr("'pos_embed' cannot be taken: ")));
  EXPECT_FALSE(fs::exists(temporary_ / "runs"));
}

TEST_F(InitialCheckpoint, ThatIsNotThereIsNamed) {
  options_.initial_checkpoint = (temporary_ / "nowhere").string();
  EXPECT_THAT(error_of([&] { options_.make({}); }), AllOf(HasSubstr("--initial-checkpoint: "), HasSubstr("nowhere")));
  options_.initial_checkpoint = (temporary_ / "data").string();  // a folder without a model
  EXPECT_THAT(error_of([&] { options_.make({}); }), HasSubstr("data' has no weights: neither model.safetensors nor"));
  options_.initial_checkpoint = test::golden_path("io/torch/command.bin").string();
  EXPECT_THAT(error_of([&] { options_.make({}); }),
              HasSubstr("command.bin: the pickle asks for Python's posix.system"));
}

}  // namespace
}  // namespace vitrail::train
