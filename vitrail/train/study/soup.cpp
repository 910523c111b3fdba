#include "vitrail/train/study/soup.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "vitrail/io/safetensors.h"
#include "vitrail/kernels/optimizer.h"
#include "vitrail/models/quantize.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/embedding_file.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

models::Model load_ingredient(const fs::path& folder) {
  models::Model model = models::load_model(folder);
  check(!models::is_quantized(*model.net), "the weights of '{}' are in int8 and cannot be averaged", folder.string());
  return model;
}

models::TextModel load_text_ingredient(const fs::path& folder) {
  models::TextModel model = models::load_text_model(folder);
  check(std::ranges::none_of(model.net->parameters.all(), [](const nn::Parameter& p) { return p.held.has_value(); }),
        "the weights of '{}' are in int8 and cannot be averaged", folder.string());
  return model;
}

void check_alike(const nn::Network& soup, const fs::path& first, const nn::Network& model, const fs::path& folder) {
  const auto& ours = soup.parameters.all();
  const auto& theirs = model.parameters.all();
  const auto [a, b] = std::ranges::mismatch(ours, theirs, [](const nn::Parameter& x, const nn::Parameter& y) {
    return x.name == y.name && x.value.shape() == y.value.shape() && x.value.dtype() == y.value.dtype();
  });
  check(a == ours.end() && b == theirs.end(), "'{}' and '{}' differ in '{}' and cannot be averaged", folder.string(),
        first.string(), a != ours.end() ? a->name : b->name);
}

void check_alike(const models::Model& soup, const fs::path& first, const models::Model& model, const fs::path& folder) {
  check(model.architecture == soup.architecture,
        "'{}' is of {}, but '{}' of {}: only models of one kind can be averaged", folder.string(), model.architecture,
        first.string(), soup.architecture);
  check(model.pretrained.label_names == soup.pretrained.label_names,
        "'{}' and '{}' are for different classes and cannot be averaged", folder.string(), first.string());
  check_alike(*soup.net, first, *model.net, folder);
}

// Computes soup = soup + share (model - soup) in place.
void stir_in(const nn::Network& soup, const nn::Network& model, double share) {
  const auto& ours = soup.parameters.all();
  const auto& theirs = model.parameters.all();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].value.dtype() == DType::f32) {
      kernels::lerp(ours[i].value.data<float>(), theirs[i].value.data<float>(), static_cast<float>(share),
                    ours[i].value.numel());
      ours[i].value.touch();
    }
  }
}

io::NamedTensors copy_of_weights(const models::Model& model) {
  io::NamedTensors result;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    result.emplace_back(parameter.name, parameter.value.clone());
  }
  return result;
}

void put_back(const models::Model& model, const io::NamedTensors& weights) {
  const auto& parameters = model.net->parameters.all();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].value.copy_from(weights[i].second);
    parameters[i].value.touch();
  }
}

}  // namespace

std::string note_of_preparations(const std::vector<fs::path>& folders) {
  models::CreateOptions look;
  look.fill = nn::Fill::meta;
  const models::PretrainedConfig first = models::load_model(folders.front(), look).pretrained;
  for (const fs::path& folder : folders) {
    const std::string difference = difference_of_preparation(models::load_model(folder, look).pretrained, first);
    if (!difference.empty()) {
      return fmt::format("images are prepared for '{}' otherwise than for '{}', as which the average does it: {}",
                         folder.string(), folders.front().string(), difference);
    }
  }
  return "";
}

models::Model uniform_soup(const std::vector<fs::path>& folders) {
  check(!folders.empty(), "a soup needs at least one model");
  models::Model soup = load_ingredient(folders.front());
  for (std::size_t i = 1; i < folders.size(); ++i) {
    const models::Model model = load_ingredient(folders[i]);
    check_alike(soup, folders.front(), model, folders[i]);
    stir_in(*soup.net, *model.net, 1.0 / static_cast<double>(i + 1));
  }
  return soup;
}

models::TextModel uniform_text_soup(const std::vector<fs::path>& folders) {
  check(!folders.empty(), "a soup needs at least one model");
  models::TextModel soup = load_text_ingredient(folders.front());
  const std::optional<text::Tokenizer> first = text::tokenizer_in(folders.front());
  for (std::size_t i = 1; i < folders.size(); ++i) {
    const models::TextModel model = load_text_ingredient(folders[i]);
    check(model.config == soup.config,
          "the config.json of '{}' and '{}' differ: only models of one kind can be averaged", folders[i].string(),
          folders.front().string());
    check_alike(*soup.net, folders.front(), *model.net, folders[i]);
    const std::optional<text::Tokenizer> tokenizer = text::tokenizer_in(folders[i]);
    check(!tokenizer || !first || text::have_the_same_tokens(*tokenizer, *first),
          "the tokenizers of '{}' and '{}' differ: what one model has learnt of a token says nothing of another's",
          folders[i].string(), folders.front().string());
    stir_in(*soup.net, *model.net, 1.0 / static_cast<double>(i + 1));
  }
  return soup;
}

GreedySoup greedy_soup(const std::vector<fs::path>& folders, const Evaluate& evaluate) {
  check(!folders.empty(), "a soup needs at least one model");
  GreedySoup result;
  for (const fs::path& folder : folders) {
    const models::Model model = load_ingredient(folder);
    if (result.ingredients.empty()) {
      result.model = load_ingredient(folder);
    }
    check_alike(result.model, folders.front(), model, folder);
    result.ingredients.push_back({folder, evaluate(model).top1, false, 0});
  }
  std::ranges::stable_sort(result.ingredients, std::ranges::greater(), &GreedySoup::Ingredient::top1);
  double used = 0;
  for (GreedySoup::Ingredient& next : result.ingredients) {
    if (used == 0) {
      result.model = load_ingredient(next.folder);
      result.top1 = next.with_top1 = next.top1;
      next.used = true;
      used = 1;
      continue;
    }
    const io::NamedTensors before = copy_of_weights(result.model);
    stir_in(*result.model.net, *load_ingredient(next.folder).net, 1.0 / (used + 1));
    next.with_top1 = evaluate(result.model).top1;
    next.used = next.with_top1 >= result.top1;
    if (next.used) {
      result.top1 = next.with_top1;
      ++used;
    } else {
      put_back(result.model, before);
    }
  }
  return result;
}

}  // namespace vitrail::train
