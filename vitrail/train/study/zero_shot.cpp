#include "vitrail/train/study/zero_shot.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/loader.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

constexpr std::string_view place_of_label = "{}";

// How many keys each query finds nearer than the nearest of those that `belongs` says are its own; -1: it has none. Of
// equally near keys the first comes first.
std::vector<std::int64_t> ranks(const Tensor& queries, const Tensor& keys,
                                const std::function<bool(std::int64_t query, std::int64_t key)>& belongs) {
  constexpr std::int64_t rows = 1024;
  const std::int64_t count = keys.size(0);
  const Tensor columns = keys.transpose(0, 1);
  std::vector<std::int64_t> result;
  for (std::int64_t begin = 0; begin < queries.size(0); begin += rows) {
    const std::int64_t size = std::min(rows, queries.size(0) - begin);
    const Tensor cosines = ops::matmul(queries.narrow(0, begin, size), columns).contiguous();
    for (std::int64_t q = 0; q < size; ++q) {
      const float* row = cosines.data<float>() + q * count;
      std::int64_t own = -1;
      for (std::int64_t k = 0; k < count; ++k) {
        if (belongs(begin + q, k) && (own < 0 || row[k] > row[own])) {
          own = k;
        }
      }
      std::int64_t rank = own < 0 ? -1 : 0;
      for (std::int64_t k = 0; k < count && own >= 0; ++k) {
        rank += row[k] > row[own] || (row[k] == row[own] && k < own) ? 1 : 0;
      }
      result.push_back(rank);
    }
  }
  return result;
}

std::array<double, 3> recalls(const std::vector<std::int64_t>& ranks) {
  const auto asked = std::ranges::count_if(ranks, [](std::int64_t rank) { return rank >= 0; });
  std::array<double, 3> result = {};
  for (std::size_t i = 0; i < recall_depths.size(); ++i) {
    const auto found =
        std::ranges::count_if(ranks, [&](std::int64_t rank) { return rank >= 0 && rank < recall_depths[i]; });
    result[i] = asked == 0 ? 0 : 100 * static_cast<double>(found) / static_cast<double>(asked);
  }
  return result;
}

}  // namespace

ImageTextModel open_image_text_model(const std::filesystem::path& folder) {
  models::JointModel joint = models::load_clip(folder);
  text::Tokenizer tokenizer = load_pair_tokenizer(folder);
  models::check_vocabulary(text::ordinary_tokens(tokenizer), joint.net->config().text.vocab_size, folder.string());
  return {std::move(joint), std::move(tokenizer)};
}

text::Tokenizer load_pair_tokenizer(const std::filesystem::path& folder) {
  const text::Tokenizer tokenizer = text::load_tokenizer(folder);
  const std::filesystem::path path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) {
    return tokenizer;
  }
  const nlohmann::json json = io::read_json(path);
  io::Fields fields(json, path.string());
  std::string token;
  if (fields.kind("pad_token") == io::Kind::string) {
    token = fields.get<std::string>("pad_token");
  } else if (fields.kind("pad_token") == io::Kind::object) {
    token = fields.object("pad_token").get<std::string>("content");
  }
  const std::optional<std::int64_t> id = tokenizer.id_of(token);
  if (!id) {
    return tokenizer;
  }
  text::Padding padding;
  padding.id = *id;
  padding.token = token;
  return tokenizer.with_padding(padding);
}

PairTexts encode_pair_texts(const models::ClipModel& model, const text::Tokenizer& tokenizer,
                            std::span<const std::string> texts) {
  const text::Tokenizer whole = tokenizer.with_padding(std::nullopt).with_truncation(std::nullopt);
  const std::int64_t max_positions = model.max_positions();
  const std::int64_t padding = tokenizer.padding() ? tokenizer.padding()->id : model.config().pad_token_id;
  PairTexts result;
  for (text::Encoding& encoding : whole.encode_batch(texts, true, kernels::threads())) {
    std::vector<std::int64_t>& ids = encoding.ids;
    if (std::ssize(ids) > max_positions) {
      const std::int64_t end = ids.back();
      ids.resize(static_cast<std::size_t>(max_positions));
      ids.back() = end;
      ++result.cut;
    }
    if (model.is_siglip()) {
      ids.resize(static_cast<std::size_t>(max_positions), padding);
    }
    result.ids.push_back(std::move(ids));
  }
  return result;
}

std::string cut_note(const PairTexts& texts, std::int64_t max_positions) {
  return texts.cut == 0 ? ""
                        : fmt::format("{} of more than {} tokens {} cut", io::counted(texts.cut, "texts"),
                                      max_positions, texts.cut == 1 ? "is" : "are");
}

Tensor embed_pair_texts(const models::ClipModel& model, const PairTexts& texts, DType dtype, std::int64_t batch_size) {
  const autograd::NoGrad no_grad;
  std::vector<Tensor> parts;
  for (std::size_t begin = 0; begin < texts.ids.size(); begin += static_cast<std::size_t>(batch_size)) {
    models::TextRow row;
    const std::size_t end = std::min(texts.ids.size(), begin + static_cast<std::size_t>(batch_size));
    for (std::size_t i = begin; i < end; ++i) {
      row.add(texts.ids[i]);
    }
    nn::Pass pass{.dtype = dtype};
    parts.push_back(model.text_embeds(row.texts(), pass));
  }
  return ops::concat(parts, 0);
}

Features embed_images(const models::JointModel& model, const data::Dataset& images, const EvaluateOptions& options) {
  data::Loader loader(images, data::eval_transform(model.pretrained), loading(options));
  return embed_batches(
      loader, images, [&](const Tensor& x, nn::Pass& pass) { return model.net->image_embeds(x, pass); }, options);
}

Tensor embed_images(const models::JointModel& model, const std::vector<io::Image>& images, DType dtype) {
  const autograd::NoGrad no_grad;
  const data::Transform transform = data::eval_transform(model.pretrained);
  const Shape shape = transform.shape();
  const Tensor x = Tensor::empty(shape.inserted(0, std::ssize(images)));
  for (std::int64_t i = 0; i < std::ssize(images); ++i) {
    transform.apply(images[static_cast<std::size_t>(i)], 0, 0, 0, x.data<float>() + i * shape.numel());
  }
  nn::Pass pass{.dtype = dtype};
  return model.net->image_embeds(x, pass);
}

Tensor embed_labels(const ImageTextModel& model, const std::vector<std::string>& labels,
                    const std::vector<std::string>& templates, DType dtype, std::string* cut) {
  const autograd::NoGrad no_grad;
  check(!labels.empty(), "there are no labels to choose from");
  check(!templates.empty(), "there are no templates to put labels into");
  std::vector<std::string> texts;
  for (const std::string& label : labels) {
    check(label.find_first_not_of(" \t") != std::string::npos, "label {} of {} is empty",
          texts.size() / templates.size() + 1, labels.size());
    for (const std::string& words : templates) {
      check(words.find(place_of_label) != std::string::npos, "the template '{}' has no {{}} for the label", words);
      std::string& text = texts.emplace_back(words);
      for (std::size_t at = 0; (at = text.find(place_of_label, at)) != std::string::npos; at += label.size()) {
        text.replace(at, place_of_label.size(), label);
      }
    }
  }
  const std::int64_t longest = model.joint.net->max_positions();
  const PairTexts encoded = encode_pair_texts(*model.joint.net, model.tokenizer, texts);
  if (cut != nullptr) {
    *cut = cut_note(encoded, longest);
  }
  const Tensor vectors = embed_pair_texts(*model.joint.net, encoded, dtype);
  return ops::normalize(
      ops::mean(ops::reshape(vectors, {std::ssize(labels), std::ssize(templates), vectors.size(1)}), {1}));
}

Evaluation evaluate_zero_shot(const models::ClipModel& model, const Features& images,
                              const std::vector<std::string>& labels, const Tensor& label_vectors) {
  const autograd::NoGrad no_grad;
  const auto classes = std::ssize(labels);
  const Tensor logits = model.logits_per_image(images.x, label_vectors).contiguous();
  Evaluation result;
  result.count = logits.size(0);
  result.classes = labels;
  result.confusion.resize(static_cast<std::size_t>(classes * classes));
  result.indices = images.indices;
  result.broken = images.broken;
  std::int64_t right = 0;
  std::int64_t among_five = 0;
  for (std::int64_t i = 0; i < result.count; ++i) {
    const std::span<const float> row(logits.data<float>() + i * classes, static_cast<std::size_t>(classes));
    const std::int64_t label = images.labels.data<std::int64_t>()[i];
    const float own = row[static_cast<std::size_t>(label)];
    const auto best = std::ranges::max_element(row);
    const std::int64_t predicted = best - row.begin();
    std::int64_t rank = 0;
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const float other = row[static_cast<std::size_t>(c)];
      rank += other > own || (other == own && c < label) ? 1 : 0;
      sum += std::exp(static_cast<double>(other) - static_cast<double>(*best));
    }
    result.loss += std::log(sum) + static_cast<double>(*best) - static_cast<double>(own);
    right += rank < 1 ? 1 : 0;
    among_five += rank < 5 ? 1 : 0;
    ++result.confusion[static_cast<std::size_t>(label * classes + predicted)];
    result.predictions.push_back(predicted);
  }
  const auto count = static_cast<double>(result.count);
  result.loss /= count;
  result.top1 = 100 * static_cast<double>(right) / count;
  result.top5 = 100 * static_cast<double>(among_five) / count;
  return result;
}

Retrieval retrieval(const Tensor& images, const Tensor& texts, std::span<const std::int64_t> image_of) {
  const autograd::NoGrad no_grad;
  check(images.rank() == 2 && texts.rank() == 2 && images.size(1) == texts.size(1) &&
            texts.size(0) == std::ssize(image_of),
        "retrieval takes vectors [N, P] of images and [S, P] of texts with the image of each, not {} and {} with {}",
        images.shape(), texts.shape(), image_of.size());
  const auto own = [&](std::int64_t text) { return image_of[static_cast<std::size_t>(text)]; };
  Retrieval result;
  result.images = images.size(0);
  result.texts = texts.size(0);
  result.image_to_text =
      recalls(ranks(images, texts, [&](std::int64_t image, std::int64_t text) { return own(text) == image; }));
  result.text_to_image =
      recalls(ranks(texts, images, [&](std::int64_t text, std::int64_t image) { return own(text) == image; }));
  return result;
}

Retrieval retrieval(const models::JointModel& model, const text::Tokenizer& tokenizer, const data::TextPairs& pairs,
                    const EvaluateOptions& options, std::string* cut) {
  const Features images = embed_images(model, *pairs.images, options);
  std::vector<std::string> texts;
  std::vector<std::int64_t> image_of;
  for (std::size_t i = 0; i < images.indices.size(); ++i) {
    for (const std::string& text : pairs.texts[static_cast<std::size_t>(images.indices[i])]) {
      texts.push_back(text);
      image_of.push_back(static_cast<std::int64_t>(i));
    }
  }
  const std::int64_t longest = model.net->max_positions();
  const PairTexts encoded = encode_pair_texts(*model.net, tokenizer, texts);
  if (cut != nullptr) {
    *cut = cut_note(encoded, longest);
  }
  Retrieval result = retrieval(images.x, embed_pair_texts(*model.net, encoded, options.dtype), image_of);
  result.broken = images.broken;
  result.image_vectors = images.x;
  return result;
}

}  // namespace vitrail::train
