#include "vitrail/models/mlp/linear_classifier.h"

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mlp/families.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

LinearClassifierConfig read_linear_classifier(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  LinearClassifierConfig c;
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, largest_size});
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  f.finish();
  return c;
}

std::string_view linear_classifier_table() {
  return R"(
linear (linear_classifier)
  untrained: size=32 crop_pct=1
)";
}

}  // namespace

LinearClassifier::LinearClassifier(const nn::Scope& scope, const LinearClassifierConfig& config) : config_(config) {
  const double pixels = static_cast<double>(config_.in_chans) * static_cast<double>(config_.img_size[0]) *
                        static_cast<double>(config_.img_size[1]);
  check(pixels <= largest_size, "an image of {}x{} pixels in {} channels has more numbers than a layer can take",
        config_.img_size[1], config_.img_size[0], config_.in_chans);
  if (config_.num_classes > 0) {
    head_.emplace(scope / "head", num_features(), config_.num_classes);
  }
}

Tensor LinearClassifier::forward_features(const Tensor& x, nn::Pass& /*pass*/) const {
  const Shape expected = {config_.in_chans, config_.img_size[0], config_.img_size[1]};
  check(x.rank() == 4 && x.shape().removed(0) == expected, "the model takes images [B, {}, {}, {}], not {}",
        config_.in_chans, config_.img_size[0], config_.img_size[1], x.shape());
  return ops::reshape(x, {x.size(0), 1, num_features()});
}

Tensor LinearClassifier::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  const Tensor pixels = ops::select(features, 1, 0);
  const Tensor kept = nn::Dropout{static_cast<float>(config_.drop_rate)}(pixels, pass);
  return head_ && !pre_logits ? (*head_)(kept) : kept;  // in f32 whatever the pass's dtype is
}

constinit const Family linear_classifier_family = {.name = "linear_classifier",
                                                   .table = linear_classifier_table,
                                                   .build = build<LinearClassifier, read_linear_classifier>};

}  // namespace vitrail::models
