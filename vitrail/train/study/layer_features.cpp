#include "vitrail/train/study/layer_features.h"

#include <vector>

#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t joined_layers = 4;  // of last4

// The mean [B, D] over the places of what a stage gives: a map [B, D, H, W] or [B, H, W, D], or tokens [B, N, D] whose
// first `prefix` are no places.
Tensor mean_over_places(const Tensor& x, std::int64_t prefix, bool channels_first) {
  if (x.rank() == 3) {
    return ops::mean(ops::narrow(x, 1, prefix, x.size(1) - prefix), {1});
  }
  return channels_first ? ops::mean(x, {2, 3}) : ops::mean(x, {1, 2});
}

}  // namespace

FeatureFunction layer_features(const models::Model& model, std::optional<std::int64_t> layer, const std::string& pool) {
  check(pool.empty() || pool == "token" || pool == "avg" || pool == "last4",
        "the features of a layer are pooled by token, avg or last4, not by '{}'", pool);
  const models::ImageModel* net = model.net.get();
  const auto* vit = models::body_of<models::VisionTransformer>(*net);
  const models::TokenLayout layout = net->token_layout(model.pretrained.height, model.pretrained.width);
  const bool token = pool == "token" || pool == "last4" || (pool.empty() && layout.class_token);
  check(!token || layout.class_token,
        "the model '{}' has no class token for --pool {}: --layer {} --pool avg takes the mean of a layer's places",
        model.architecture, pool, layer.value_or(-1));
  // The maps of these two families have their channels behind the rows and columns.
  const bool channels_last = model.family->name == "swin" || model.family->name == "swin_v2";
  const std::int64_t wanted = layer.value_or(-1);
  return [=, architecture = model.architecture](const Tensor& x, nn::Pass& pass) {
    nn::Recorder recorder(true, false);
    nn::Pass recording = pass;
    recording.recorder = &recorder;
    net->forward_features(x, recording);
    const nn::Records& layers = recorder.features();
    const auto count = static_cast<std::int64_t>(layers.size());
    const std::int64_t last = wanted < 0 ? count + wanted : wanted;
    check(last >= 0 && last < count, "--layer {} is none of the {} layers of '{}'", wanted, count, architecture);
    const std::int64_t first = pool == "last4" ? last - joined_layers + 1 : last;
    check(first >= 0, "--pool last4 joins four layers, and '{}' has {} up to this one", architecture, last + 1);
    std::vector<Tensor> parts;
    for (std::int64_t i = first; i <= last; ++i) {
      const Tensor& recorded = layers[static_cast<std::size_t>(i)].value;
      const Tensor value = vit == nullptr ? recorded : vit->final_norm(recorded);
      parts.push_back(ops::cast(
          token ? ops::select(value, 1, 0) : mean_over_places(value, layout.prefix, !channels_last), DType::f32));
    }
    return parts.size() == 1 ? parts.front() : ops::concat(parts, 1);
  };
}

}  // namespace vitrail::train
