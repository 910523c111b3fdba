#include "vitrail/models/recurrent/row_network.h"

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/recurrent/families.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

RowNetworkConfig read_row_network(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  RowNetworkConfig c;
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, largest_size});
  c.rows = f.get<std::int64_t>("rows", c.rows, {1, largest_size});
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.network.bidirectional = f.get<bool>("bidirectional", false);
  read_cells(f, c.network);
  f.finish();
  return c;
}

}  // namespace

RowNetwork::RowNetwork(const nn::Scope& scope, const RowNetworkConfig& config) : path_(scope.path()), config_(config) {
  check(config_.img_size[0] % config_.rows == 0, "an image of {} rows cannot be read {} rows at a time",
        config_.img_size[0], config_.rows);
  const double numbers = static_cast<double>(config_.in_chans) * static_cast<double>(config_.rows) *
                         static_cast<double>(config_.img_size[1]);
  check(numbers <= largest_size, "{} rows of {} pixels in {} channels are more numbers than a step can read",
        config_.rows, config_.img_size[1], config_.in_chans);
  config_.network.input_size = config_.in_chans * config_.rows * config_.img_size[1];
  network_.emplace(scope / "rnn", config_.network);
  if (config_.num_classes > 0) {
    head_.emplace(scope / "head", num_features(), config_.num_classes);
  }
}

Tensor RowNetwork::forward_features(const Tensor& x, nn::Pass& pass) const {
  const Shape expected = {config_.in_chans, config_.img_size[0], config_.img_size[1]};
  check(x.rank() == 4 && x.shape().removed(0) == expected, "the model takes images [B, {}, {}, {}], not {}",
        config_.in_chans, config_.img_size[0], config_.img_size[1], x.shape());
  const std::int64_t steps = x.size(2) / config_.rows;
  const Tensor parts = ops::reshape(x, {x.size(0), x.size(1), steps, config_.rows, x.size(3)});
  const Tensor sequence = ops::reshape(ops::permute(parts, {0, 2, 1, 3, 4}), {x.size(0), steps, -1});
  const Tensor outputs = (*network_)(sequence, pass).output;
  if (pass.wants_features()) {
    pass.recorder->feature(path_.empty() ? "rnn" : path_ + ".rnn", outputs);
  }
  return outputs;
}

Tensor RowNetwork::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  const std::int64_t width = config_.network.output_size();
  Tensor y = ops::narrow(ops::select(features, 1, features.size(1) - 1), 1, 0, width);
  if (config_.network.bidirectional) {
    y = ops::concat({y, ops::narrow(ops::select(features, 1, 0), 1, width, width)}, 1);
  }
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(ops::cast(y, DType::f32), pass);
  return head_ && !pre_logits ? (*head_)(y) : y;  // the head runs in f32 whatever the pass's dtype is
}

TokenLayout RowNetwork::token_layout(std::int64_t height, std::int64_t /*width*/) const {
  return {0, height / config_.rows, 1, false};
}

std::int64_t RowNetwork::flops(std::int64_t height, std::int64_t /*width*/) const {
  return network_->flops(height / config_.rows) + (head_ ? head_->flops(1) : 0);
}

std::int64_t RowNetwork::layer_of(const std::string& parameter) const {
  return is_head(parameter) ? depth() + 1 : layer_of_recurrent(parameter);
}

namespace {

std::string_view row_network_table() {
  return R"(
gru_rows (row_network) architecture=gru hidden_size=256 num_layers=1
  untrained: size=32 crop_pct=1
lstm_rows (row_network) architecture=lstm hidden_size=256 num_layers=1
  untrained: size=32 crop_pct=1
rnn_rows (row_network) architecture=rnn hidden_size=256 num_layers=1
  untrained: size=32 crop_pct=1
)";
}

}  // namespace

constinit const Family row_network_family = {
    .name = "row_network", .table = row_network_table, .build = build<RowNetwork, read_row_network>};

}  // namespace vitrail::models
