#include "vitrail/train/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/features.h"
#include "vitrail/ops/linear.h"

namespace vitrail::train {
namespace {

// The head's weight [C, D] and bias [C], which may be undefined; nothing if the head is more than one linear map.
struct LinearHead {
  Tensor weight;
  Tensor bias;
};

std::optional<LinearHead> linear_head(const models::ImageModel& net) {
  LinearHead head;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (!net.is_classifier(parameter.name)) {
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

// Whether the head's linear map of the features is what the model computes: not if it scales its logits, for instance.
bool agrees(const models::Model& model, const models::Model& trunk, const LinearHead& head) {
  const autograd::Pause pause;
  const data::PictureConfig& picture = model.pretrained;
  const Tensor x = Tensor::empty({1, picture.channels, picture.height, picture.width});
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

Probe::Probe(const Setup& setup, models::Model trunk, const Tensor& weight, const Tensor& bias)
    : setup_(setup), trunk_(std::move(trunk)), weight_(weight), bias_(bias) {}

std::unique_ptr<Probe> Probe::make(const TrainOptions& options, const Setup& setup) {
  const bool same_pictures = options.no_aug && options.mixup == 0 && options.cutmix == 0 &&
                             options.cutmix_minmax.empty() && options.tta == 0 && setup.teacher == nullptr;
  const bool same_features =
      options.drop == 0 && options.drop_path.value_or(0) == 0 && options.model_kwargs.find("drop") == std::string::npos;
  const auto head = linear_head(*setup.model.net);
  if (!options.linear_probe || !same_pictures || !same_features || !head) {
    return nullptr;
  }
  models::Model trunk = models::without_head(setup.model);
  if (!agrees(setup.model, trunk, *head)) {
    return nullptr;
  }
  return std::unique_ptr<Probe>(new Probe(setup, std::move(trunk), head->weight, head->bias));
}

void Probe::Part::compute(const models::Model& trunk, const data::Dataset& dataset, const data::Transform& transform,
                          const EvaluateOptions& options) {
  features = embed(trunk, dataset, transform, options);
  rows.assign(static_cast<std::size_t>(dataset.size()), -1);
  for (std::size_t row = 0; row < features.indices.size(); ++row) {
    rows[static_cast<std::size_t>(features.indices[row])] = static_cast<std::int64_t>(row);
  }
}

data::Loader::Make Probe::Part::make() const {
  return [this](const data::Loader::Take& take, float* out) {
    const std::int64_t row = rows[static_cast<std::size_t>(take.index)];
    check(row >= 0, "the picture is broken");
    const std::int64_t width = features.x.size(1);
    std::copy_n(features.x.data<float>() + row * width, width, out);
  };
}

void Probe::compute(const TrainOptions& options, const EvaluateOptions& evaluation) {
  EvaluateOptions second = evaluation;
  second.progress = [&](std::int64_t done, std::int64_t) {
    evaluation.progress(setup_.training->size() + done, setup_.training->size() + setup_.validation->size());
  };
  training_.compute(trunk_, *setup_.training, training_transform(options, setup_), evaluation);
  if (setup_.validation != nullptr) {
    validation_.compute(trunk_, *setup_.validation, data::eval_transform(setup_.model.pretrained), second);
  }
  trunk_ = {};
}

std::unique_ptr<data::Loader> Probe::training_loader(const TrainOptions& options) const {
  return std::make_unique<data::Loader>(*setup_.training, Shape{weight_.size(1)}, training_.make(),
                                        training_loading(options, setup_));
}

Forward Probe::forward() const {
  return [this](const Tensor& x, nn::Pass&) { return std::vector{ops::linear(x, weight_, bias_)}; };
}

Evaluation Probe::evaluate(const EvaluateOptions& options) const {
  data::Loader loader(*setup_.validation, Shape{weight_.size(1)}, validation_.make(), loading(setup_.model, options));
  return train::evaluate(setup_.model, *setup_.validation, loader, forward(), options);
}

}  // namespace vitrail::train
