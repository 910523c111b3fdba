#include "vitrail/train/study/features.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {
namespace {

// A list of strings that the metadata of a file holds as JSON; empty if it does not.
std::vector<std::string> list_in(const io::Safetensors& file, const std::string& key) {
  const auto it = file.metadata().find(key);
  if (it == file.metadata().end()) {
    return {};
  }
  const nlohmann::json list = io::parse_json(it->second, file.source() + ": " + key);
  const bool strings =
      list.is_array() && std::ranges::all_of(list, [](const nlohmann::json& item) { return item.is_string(); });
  check(strings, "{}: '{}' in the metadata is not a list of strings", file.source(), key);
  return list.get<std::vector<std::string>>();
}

// The features of a model that gives them in place of logits.
FeatureFunction own_features(const models::Model& model) {
  return [&net = *model.net](const Tensor& x, nn::Pass& pass) { return net.forward(x, pass); };
}

Features embed_by(const models::Model& model, const data::Dataset& dataset, const data::Transform& transform,
                  const FeatureFunction& function, const EvaluateOptions& options) {
  data::Loader loader(dataset, transform, loading(model, options));
  const auto checked = [&](const Tensor& x, nn::Pass& pass) {
    Tensor features = function(x, pass);
    check(features.rank() == 2, "the model '{}' gives features {} instead of [B, D]: choose how they are pooled",
          model.architecture, features.shape());
    return features;
  };
  return embed_batches(loader, dataset, checked, options);
}

// The largest label and one more. Throws Error if an image has none.
std::int64_t labels_below(const Features& features, const char* which) {
  std::int64_t largest = -1;
  const Tensor labels = features.labels.contiguous();
  for (const std::int64_t label : labels.span<std::int64_t>()) {
    check(label >= 0, "a {} image has no label: features cannot be judged by it", which);
    check(label < (1 << 24), "a {} image has the label {}", which, label);
    largest = std::max(largest, label);
  }
  return largest + 1;
}

// The first row of x [N, D] that holds NaN or infinity.
std::optional<std::int64_t> row_not_finite(const Tensor& x) {
  const Tensor whole = x.contiguous();
  const std::span<const float> values = whole.span<float>();
  const auto it = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return it == values.end() ? std::nullopt : std::optional((it - values.begin()) / x.size(1));
}

void check_all_finite(const Features& features) {
  if (const std::optional<std::int64_t> row = row_not_finite(features.x)) {
    fail("the features of image {}{} hold NaN or infinity", *row,
         features.names.empty() ? "" : fmt::format(" ('{}')", features.names[static_cast<std::size_t>(*row)]));
  }
}

// What features say of `name`; nothing if they do not say it.
std::optional<std::string> fact(const Features& features, const std::string& name) {
  const auto it = features.facts.find(name);
  return it == features.facts.end() ? std::nullopt : std::optional(it->second);
}

// Whether both say something of `name`, and not the same.
bool differ(const Features& training, const Features& test, const std::string& name) {
  const std::optional<std::string> a = fact(training, name);
  const std::optional<std::string> b = fact(test, name);
  return a && b && *a != *b;
}

// Whether one of both has the pooling of its classifier, which may or may not be the one that the other names.
bool may_pool_alike(const Features& training, const Features& test) {
  return fact(training, "pool") == "" || fact(test, "pool") == "";
}

// Whether one of both counts its layer from the end, as whose number the other's may or may not be the same layer.
bool may_be_one_layer(const Features& training, const Features& test) {
  const auto from_end = [](const Features& one) { return fact(one, "layer").value_or("").starts_with('-'); };
  return from_end(training) != from_end(test) && fact(training, "layer") != "" && fact(test, "layer") != "";
}

void check_of_one_model(const Features& training, const Features& test) {
  for (const char* name : {"layer", "pool"}) {
    check(!differ(training, test, name) || (name == std::string_view("pool") && may_pool_alike(training, test)) ||
              (name == std::string_view("layer") && may_be_one_layer(training, test)),
          "the training features have the {} '{}', but the test features '{}': they cannot be compared", name,
          fact(training, name).value_or(""), fact(test, name).value_or(""));
  }
  check(
      !differ(training, test, "weights"),
      "the training features are of '{}', but the test features of '{}' with other weights: they are not of one model",
      fact(training, "model").value_or("a model"), fact(test, "model").value_or("a model"));
}

}  // namespace

Features embed_batches(data::Loader& loader, const data::Dataset& dataset, const FeatureFunction& function,
                       const EvaluateOptions& options) {
  const autograd::NoGrad no_grad;
  Features result;
  result.classes = dataset.classes();
  std::vector<std::int64_t> labels;
  const auto judge = [&](const data::Batch& batch, dist::Packer& packer) {
    nn::Pass pass;
    pass.dtype = options.dtype;
    packer.put_tensor(ops::cast(function(batch.x, pass), DType::f32));
    packer.put_all(batch.indices);
    return std::ssize(batch.indices);
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const Tensor features = unpacker.get_tensor();
    if (!result.x.defined()) {
      result.x = Tensor::empty({dataset.size(), features.size(1)});
    }
    result.x.narrow(0, std::ssize(labels), features.size(0)).copy_from(features);
    const auto indices = unpacker.get_all<std::int64_t>();
    if (const std::optional<std::int64_t> row = row_not_finite(features)) {
      fail("the features of '{}' hold NaN or infinity", dataset.name(indices[static_cast<std::size_t>(*row)]));
    }
    for (const std::int64_t index : indices) {
      labels.push_back(dataset.label(index));
      result.names.push_back(dataset.name(index));
      result.indices.push_back(index);
    }
  };
  result.broken = share_batches<data::Batch>(loader, sharing(options, dataset.size()), judge, take);
  const auto count = std::ssize(labels);
  if (count == 0 && options.may_be_none) {
    return result;
  }
  loader.check_any(count, "look at");
  result.x = result.x.narrow(0, 0, count);
  result.labels = Tensor::from(labels, {count});
  return result;
}

Features embed(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options) {
  return embed(model, dataset, data::eval_transform(model.pretrained), options);
}

Features embed(const models::Model& model, const data::Dataset& dataset, const data::Transform& transform,
               const EvaluateOptions& options) {
  check(model.net->num_classes() == 0, "the model '{}' has a classifier, whose logits are no features",
        model.architecture);
  return embed_by(model, dataset, transform, own_features(model), options);
}

Features embed(const models::Model& model, const data::Dataset& dataset, const FeatureFunction& function,
               const EvaluateOptions& options) {
  return embed_by(model, dataset, data::eval_transform(model.pretrained), function, options);
}

std::int64_t classes_of(const Features& training, const Features& test) {
  check(training.x.size(1) == test.x.size(1),
        "the training features are of width {}, but the test features of {}: they are not of one model",
        training.x.size(1), test.x.size(1));
  check(training.classes.empty() || test.classes.empty() || training.classes == test.classes,
        "the training and test features are of images of different classes, or in a different order of them");
  check_of_one_model(training, test);
  check_all_finite(training);
  check_all_finite(test);
  return std::max({labels_below(training, "training"), labels_below(test, "test"), std::ssize(training.classes)});
}

std::vector<std::string> differences(const Features& training, const Features& test) {
  std::vector<std::string> result;
  const auto has = [](const Features& one, std::int64_t label) {
    const auto labels = one.labels.span<std::int64_t>();
    return std::ranges::find(labels, label) != labels.end();
  };
  std::vector<std::string> unknown;
  for (std::int64_t c = 0; c < std::ssize(test.classes); ++c) {
    if (has(test, c) && !has(training, c)) {
      unknown.push_back(test.classes[static_cast<std::size_t>(c)]);
    }
  }
  if (!unknown.empty()) {
    result.push_back(fmt::format("no training image is of {}, so that none of the test images of {} can be told",
                                 io::quoted_list(unknown, "or"), unknown.size() == 1 ? "it" : "these"));
  }
  if (differ(training, test, "pool")) {
    result.push_back(fmt::format(
        "{} are pooled by '{}', and the {} as their classifier does: unless that is the same, they cannot be compared",
        fact(training, "pool") == "" ? "the test features" : "the training features",
        fact(training, "pool") == "" ? *fact(test, "pool") : *fact(training, "pool"),
        fact(training, "pool") == "" ? "training features" : "test features"));
  }
  if (differ(training, test, "layer")) {
    result.push_back(
        fmt::format("the training features are of the layer {}, the test features of {}: unless that is the same, they "
                    "cannot be compared",
                    *fact(training, "layer"), *fact(test, "layer")));
  }
  std::vector<std::string> prepared;
  for (const char* name : {"input_size", "image_processor", "crop_pct", "crop_mode", "interpolation", "mean", "std"}) {
    if (differ(training, test, name)) {
      prepared.push_back(fmt::format("{} is {} and {}", name, *fact(training, name), *fact(test, name)));
    }
  }
  const auto by_processor = [](const Features& one) { return fact(one, "image_processor").has_value(); };
  const auto by_crop = [](const Features& one) { return fact(one, "crop_pct").has_value(); };
  if ((by_processor(training) && by_crop(test)) || (by_crop(training) && by_processor(test))) {
    prepared.push_back(
        fmt::format("the {} features' are by an image processor of transformers, the others by a crop_pct",
                    by_processor(training) ? "training" : "test"));
  }
  if (!prepared.empty()) {
    result.push_back(fmt::format("the images of the training and test features were prepared differently: {}",
                                 fmt::join(prepared, ", ")));
  }
  return result;
}

void save_features(const std::filesystem::path& path, const Features& features,
                   std::map<std::string, std::string> facts) {
  std::vector<std::string> names;
  std::ranges::transform(features.names, std::back_inserter(names), io::as_utf8);
  facts["names"] = nlohmann::json(names).dump();
  facts["classes"] = nlohmann::json(features.classes).dump();
  io::save_safetensors(path, {{"features", features.x}, {"labels", features.labels}}, facts);
}

Features load_features(const std::filesystem::path& path) {
  check(!std::filesystem::is_directory(path), "'{}' is a folder: a file of features by `vitrail embed` was expected",
        path.string());
  const io::Safetensors file = io::Safetensors::open(path);
  for (const char* name : {"features", "labels"}) {
    check(file.contains(name), "{}: there is no tensor '{}'; a file made by vitrail embed was expected", file.source(),
          name);
  }
  Features result;
  result.x = file.get("features");
  result.labels = file.get("labels");
  check(result.x.rank() == 2 && (result.x.dtype() == DType::f32 || result.x.dtype() == DType::bf16) &&
            result.x.numel() > 0,
        "{}: features are {} {}, expected f32 or bf16 [N, D]", file.source(), name_of(result.x.dtype()),
        result.x.shape());
  check(result.labels.dtype() == DType::i64 && result.labels.shape() == Shape{result.x.size(0)},
        "{}: labels are {} {}, expected i64 [{}]", file.source(), name_of(result.labels.dtype()), result.labels.shape(),
        result.x.size(0));
  result.x = ops::cast(result.x, DType::f32);
  result.facts.insert(file.metadata().begin(), file.metadata().end());
  for (const char* name : {"names", "classes"}) {
    result.facts.erase(name);
  }
  result.names = list_in(file, "names");
  result.classes = list_in(file, "classes");
  if (const auto part = file.metadata().find("split"); part != file.metadata().end()) {
    result.part = part->second;
  }
  check(result.names.empty() || std::ssize(result.names) == result.x.size(0), "{}: {} names for {} images",
        file.source(), result.names.size(), result.x.size(0));
  return result;
}

}  // namespace vitrail::train
