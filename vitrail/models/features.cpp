#include "vitrail/models/features.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace vitrail::models {
namespace {

// The model created anew with `num_classes` classes: its classifier is new, all other weights are copied.
Model with_classes(const Model& model, std::int64_t num_classes, const std::string& pool) {
  check(model.family->build != nullptr, "'{}' is a model of the kind {}, which has no classifier", model.architecture,
        model.family->name);
  nn::StoreOptions store = model.net->parameters.options();
  store.fill = nn::Fill::leave;
  nlohmann::json arguments = nlohmann::json::parse(model.arguments);
  arguments["num_classes"] = num_classes;
  if (!pool.empty()) {
    arguments["global_pool"] = pool;
    if (!model.family->fc_norm.empty()) {
      arguments[std::string(model.family->fc_norm)] = model.net->parameters.find("fc_norm.weight") != nullptr;
    }
  }
  const auto build = [&] {
    try {
      return build_model(model.architecture, arguments,
                         pool.empty() ? "the model with another classifier"
                                      : fmt::format("{} pooled by '{}'", model.architecture, pool),
                         store);
    } catch (const Error& error) {
      check(std::string_view(error.what()).find("unknown key 'global_pool'") == std::string_view::npos,
            "{} pools in one way alone: it takes no pooling '{}'", model.architecture, pool);
      throw;
    }
  };
  Model result = build();
  keep_drop_rates(result, nlohmann::json::parse(model.model_args));
  for (const nn::Parameter& parameter : result.net->parameters.all()) {
    if (result.net->is_head(parameter.name)) {
      continue;
    }
    const nn::Parameter* own = model.net->parameters.find(parameter.name);
    check(own != nullptr && own->value.shape() == parameter.value.shape(),
          "the features by global_pool '{}' need '{}' {}, which the model '{}' does not have", pool, parameter.name,
          parameter.value.shape(), model.architecture);
    parameter.value.copy_from(own->value.detach());
    parameter.value.touch();
  }
  renew_classifier(result);
  result.pretrained = model.pretrained;
  result.pretrained.forget_classes();
  return result;
}

}  // namespace

Model without_head(const Model& model, const std::string& pool) { return with_classes(model, 0, pool); }

void reset_classifier(Model& model, std::int64_t num_classes, const std::string& global_pool) {
  check(num_classes >= 0, "a classifier has 0 classes (none) or more, not {}", num_classes);
  model = with_classes(model, num_classes, global_pool);
}

void renew_classifier(const Model& model) {
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (model.net->is_head(parameter.name)) {
      model.net->parameters.initialize(parameter.name);
    }
  }
}

bool let_take_any_size(const std::string& source, CreateOptions& options) {
  CreateOptions asked = options;
  asked.fill = nn::Fill::meta;
  if (open_model(source, asked).net->takes_any_size()) {
    return true;
  }
  nlohmann::json arguments = nlohmann::json::parse(options.model_kwargs);
  arguments["dynamic_img_size"] = true;
  asked.model_kwargs = arguments.dump();
  try {
    open_model(source, asked);
  } catch (const Error&) {
    return false;
  }
  options.model_kwargs = asked.model_kwargs;
  return true;
}

namespace {

// The tokens of an image; none if it is too small for the network's convolutions.
TokenLayout layout_if_any(const ImageModel& model, std::int64_t height, std::int64_t width) {
  try {
    return model.token_layout(height, width);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

nn::Size2 pixels_left_out(const Model& model) {
  const auto behind_patches = [](std::int64_t pixels, const auto& patches) {
    std::int64_t side = 1;
    while (side < pixels && patches(side) == 0) {
      ++side;
    }
    // Where the patches are not simply cut out one after the other, others look at what is behind the last.
    const bool are_cut = patches(side) == 1 && patches(2 * side - 1) == 1 && patches(2 * side) == 2;
    return are_cut ? pixels - patches(pixels) * side : 0;
  };
  const PretrainedConfig& image = model.pretrained;
  const auto rows = [&](std::int64_t height) { return layout_if_any(*model.net, height, image.width).rows; };
  const auto columns = [&](std::int64_t width) { return layout_if_any(*model.net, image.height, width).columns; };
  return {behind_patches(image.height, rows), behind_patches(image.width, columns)};
}

std::int64_t patch_side(const ImageModel& model) {
  constexpr std::int64_t largest = 256;
  // A stem of convolutions makes a token also of a smaller image than its patch, but not many of as many.
  constexpr std::int64_t many = 2 * largest;
  for (std::int64_t side = 1; side <= largest; ++side) {
    const TokenLayout one = layout_if_any(model, side, side);
    if (one.rows > 0 || one.columns > 0) {
      check(one.rows == one.columns, "the model's patches are not squares");
      if (layout_if_any(model, many * side, side).rows == many) {
        return side;
      }
    }
  }
  fail("the model's patches are larger than {} pixels", largest);
}

}  // namespace vitrail::models
