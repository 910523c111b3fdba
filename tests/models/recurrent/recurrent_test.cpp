#include "vitrail/models/recurrent/recurrent.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::models {
namespace {

using test::error_of;
using test::expect_close;
using test::TemporaryFolder;
using ::testing::HasSubstr;

nn::RecurrentConfig config_of(nn::RecurrentKind kind) {
  nn::RecurrentConfig config;
  config.kind = kind;
  config.input_size = 3;
  config.hidden_size = 4;
  config.num_layers = 2;
  config.bidirectional = true;
  return config;
}

TEST(RecurrentModel, ComesBackFromItsFolder) {
  const TemporaryFolder folder;
  std::vector<nn::RecurrentConfig> configs;
  for (const auto kind :
       {nn::RecurrentKind::rnn, nn::RecurrentKind::lstm, nn::RecurrentKind::gru, nn::RecurrentKind::mut1,
        nn::RecurrentKind::mut2, nn::RecurrentKind::mut3, nn::RecurrentKind::nas}) {
    configs.push_back(config_of(kind));
    configs.back().input_projection = kind == nn::RecurrentKind::mut1 || kind == nn::RecurrentKind::mut2;
    configs.back().proj_size = configs.back().has_memory() ? 2 : 0;
  }
  configs[0].relu = true;
  configs[1].forget_bias = true;
  configs[1].dropout = 0.1F;
  configs[2].reset_after = false;
  configs[2].batch_first = false;
  configs[5].bias = false;
  for (const nn::RecurrentConfig& config : configs) {
    const std::string name(nn::name_of(config.kind));
    const RecurrentModel model(config, {.seed = 7});
    EXPECT_FALSE(is_recurrent_folder(folder / name));
    save_recurrent(model, folder / name);
    EXPECT_TRUE(is_recurrent_folder(folder / name));
    const auto loaded = load_recurrent(folder / name);
    EXPECT_EQ(loaded->network.config.dropout, config.dropout);
    EXPECT_EQ(loaded->network.config.batch_first, config.batch_first);
    const Tensor x = test::random_tensor({3, 3, 3});
    nn::Pass pass;
    expect_close(loaded->network(x, pass).output, model.network(x, pass).output, 0, name);
  }
}

TEST(RecurrentModel, KnowsItsLayers) {
  const RecurrentModel model(config_of(nn::RecurrentKind::gru));
  EXPECT_EQ(model.depth(), 2);
  EXPECT_EQ(model.layer_of("weight_ih_l0"), 1);
  EXPECT_EQ(model.layer_of("bias_hh_l1_reverse"), 2);
}

TEST(RecurrentModel, SaysWhatIsWrongWithAFolder) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& config) {
    io::write_atomically(folder / "config.json", config);
    return error_of([&] { load_recurrent(folder.path()); });
  };
  save_recurrent(RecurrentModel(config_of(nn::RecurrentKind::lstm)), folder.path());
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3})"), HasSubstr("'hidden_size'"));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 4, "num_layer": 2})"),
              HasSubstr("unknown key 'num_layer' (did you mean 'num_layers'?)"));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 4, "reset_after": true})"),
              HasSubstr("unknown key 'reset_after'"));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 1000000})"),
              HasSubstr("'weight_ih_l0' is [16, 3], but by "));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 4, "num_layers": 3,
                        "bidirectional": true})"),
              HasSubstr("there is no tensor 'weight_ih_l2'"));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 4, "bidirectional": true})"),
              HasSubstr("the model has no parameter 'weight_ih_l1'"));
  EXPECT_THAT(error(R"({"architecture": "lstm", "input_size": 3, "hidden_size": 4, "proj_size": 9})"),
              HasSubstr("proj_size must lie in 0 … 3, not be 9"));
  EXPECT_THAT(error(R"({"architecture": "lstn", "input_size": 3, "hidden_size": 4})"),
              HasSubstr("unknown recurrent network 'lstn'"));
  EXPECT_FALSE(is_recurrent_folder(folder.path()));
}

}  // namespace
}  // namespace vitrail::models
