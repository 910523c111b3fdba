#include "vitrail/train/tasks/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/features.h"
#include "vitrail/ops/products/linear.h"

namespace vitrail::train {
namespace {

// The weight [C, D] and bias [C] of a head that is one linear map; the bias may be undefined.
struct LinearHead {
  Tensor weight;
  Tensor bias;
};

std::optional<LinearHead> linear_head(const models::ImageModel& net) {
  LinearHead head;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (!net.is_head(parameter.name)) {
      continue;
    }
    Tensor& place = parameter.name.ends_with(".weight") ? head.weight : head.bias;
    if (place.defined() || parameter.value.rank() != (parameter.name.ends_with(".weight") ? 2 : 1)) {
      return std::nullopt;
    }
    place = parameter.value;
  }
  const Shape wanted = {net.num_classes(), net.num_features()};
  return head.weight.defined() && head.weight.shape() == wanted ? std::optional(head) : std::nullopt;
}

// Whether the logits of the model are just the linear map of its features: they are not if it scales them, for
// instance.
bool agrees(const models::Model& model, const models::Model& trunk, const LinearHead& head) {
  const autograd::NoGrad no_grad;
  const data::ImageConfig& image = model.pretrained;
  const Tensor x = Tensor::empty({1, image.channels, image.height, image.width});
  const Philox draws(0, hash("probe"));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = draws.normal(static_cast<std::uint64_t>(i));
  }
  nn::Pass pass;
  const std::vector<float> whole = model.net->forward(x, pass).values();
  const Tensor features = trunk.net->forward(x, pass);
  if (features.rank() != 2) {
    return false;
  }
  const std::vector<float> parts = ops::linear(features, head.weight, head.bias).values();
  return std::ranges::equal(whole, parts,
                            [](float a, float b) { return std::abs(a - b) <= 1e-3F * (1 + std::abs(a)); });
}

}  // namespace

Probe::Probe(const models::Model& model, models::Model trunk, const Tensor& weight, const Tensor& bias)
    : model_(model), trunk_(std::move(trunk)), weight_(weight), bias_(bias) {}

std::unique_ptr<Probe> Probe::make(const models::Model& model) {
  const auto head = linear_head(*model.net);
  if (!head) {
    return nullptr;
  }
  models::Model trunk = models::without_head(model);
  if (!agrees(model, trunk, *head)) {
    return nullptr;
  }
  return std::unique_ptr<Probe>(new Probe(model, std::move(trunk), head->weight, head->bias));
}

void Probe::Part::compute(const models::Model& trunk, const data::Dataset& dataset, const data::Transform& transform,
                          const EvaluateOptions& options) {
  features = embed(trunk, dataset, transform, options);
  rows.assign(static_cast<std::size_t>(dataset.size()), -1);
  for (std::size_t row = 0; row < features.indices.size(); ++row) {
    rows[static_cast<std::size_t>(features.indices[row])] = static_cast<std::int64_t>(row);
  }
}

data::Loader::Fill Probe::Part::fill() const {
  return [this](const data::Loader::Sample& sample, float* out) {
    const std::int64_t row = rows[static_cast<std::size_t>(sample.index)];
    check(row >= 0, "the image is broken");
    const std::int64_t width = features.x.size(1);
    std::copy_n(features.x.data<float>() + row * width, width, out);
  };
}

void Probe::compute(const data::Dataset& training, const data::Transform& transform, const data::Dataset* validation,
                    const EvaluateOptions& options, const std::function<void(std::int64_t done)>& advance) {
  EvaluateOptions first = options;
  first.progress = [&](std::int64_t done, std::int64_t) { advance(done); };
  EvaluateOptions second = options;
  second.progress = [&](std::int64_t done, std::int64_t) { advance(training.size() + done); };
  training_.compute(trunk_, training, transform, first);
  if (validation != nullptr) {
    validation_.compute(trunk_, *validation, data::eval_transform(model_.pretrained), second);
  }
  trunk_ = {};
}

std::unique_ptr<data::Loader> Probe::training_loader(const data::Dataset& training,
                                                     const data::LoaderOptions& options) const {
  return std::make_unique<data::Loader>(training, Shape{weight_.size(1)}, training_.fill(), options);
}

Forward Probe::forward() const {
  return [this](const Tensor& x, nn::Pass&) { return std::vector{ops::linear(x, weight_, bias_)}; };
}

Evaluation Probe::evaluate(const data::Dataset& validation, const EvaluateOptions& options) const {
  data::Loader loader(validation, Shape{weight_.size(1)}, validation_.fill(), loading(model_, options));
  return train::evaluate(model_, validation, loader, forward(), options);
}

}  // namespace vitrail::train
