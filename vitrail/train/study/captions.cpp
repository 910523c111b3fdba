#include "vitrail/train/study/captions.h"

#include <algorithm>
#include <array>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/resize.h"
#include "vitrail/explain/drawing.h"
#include "vitrail/generate/generate.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

using TokenIds = std::vector<std::int64_t>;

std::int64_t tokens_of(const Captions& captions, const Tensor& labels) {
  std::int64_t total = 0;
  for (const std::int64_t label : labels.span<std::int64_t>()) {
    total += std::ssize(captions.ids[static_cast<std::size_t>(label)]) + 1;
  }
  return total;
}

}  // namespace

Captions::Captions(const std::vector<std::string>& classes, const text::Tokenizer& tokenizer, std::int64_t longest) {
  for (const std::string& name : classes) {
    try {
      ids.push_back(tokenizer.encode(name, false).ids);
    } catch (const Error& error) {
      fail("the caption '{}': {}", name, error.what());
    }
    ids.back().resize(static_cast<std::size_t>(std::min(std::ssize(ids.back()), longest)));
    texts.push_back(tokenizer.decode(ids.back()));
  }
}

Tensor caption_loss(const models::Captioner& model, const Tensor& x, const Tensor& labels, const Captions& captions,
                    nn::Pass& pass, float smoothing) {
  models::TextRow read;
  TokenIds next;
  for (const std::int64_t label : labels.span<std::int64_t>()) {
    const TokenIds& ids = captions.ids[static_cast<std::size_t>(label)];
    TokenIds text = {model.end()};
    text.insert(text.end(), ids.begin(), ids.end());
    read.add(text);
    next.insert(next.end(), ids.begin(), ids.end());
    next.push_back(model.end());
  }
  const Tensor logits = model.logits(x, read.texts(), pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), Tensor::from(next, {std::ssize(next)}),
                            smoothing);
}

std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer, const Tensor& x,
                                 const CaptionOptions& options) {
  const autograd::NoGrad no_grad;
  generate::GenerationConfig config;
  config.eos_token_id = {model.end()};
  config.num_beams = options.num_beams;
  config.max_new_tokens = options.max_new_tokens;
  const models::Captioning captioning(model, x, options.dtype);
  const std::vector<TokenIds> prompts(static_cast<std::size_t>(x.size(0)), TokenIds{model.end()});
  std::vector<std::string> result;
  for (const auto& sequences : generate::generate_batch(captioning, prompts, config, {.dtype = options.dtype})) {
    TokenIds ids = sequences.front().ids;
    std::erase_if(ids, [&](std::int64_t id) { return id == model.end() || !tokenizer.has(id); });
    result.push_back(tokenizer.decode(ids));
  }
  return result;
}

std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                 const std::vector<io::Image>& images, const CaptionOptions& options) {
  const data::Transform transform = data::eval_transform(model.image_model.pretrained);
  const Shape shape = transform.shape();
  const Tensor x = Tensor::empty(shape.inserted(0, std::ssize(images)));
  for (std::int64_t i = 0; i < std::ssize(images); ++i) {
    transform.apply(images[static_cast<std::size_t>(i)], 0, 0, 0, x.data<float>() + i * shape.numel());
  }
  return caption(model, tokenizer, x, options);
}

CaptionEvaluation evaluate_captions(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                    const data::Dataset& dataset, const EvaluateOptions& options,
                                    std::int64_t longest) {
  const autograd::NoGrad no_grad;
  const Captions captions(dataset.classes(), tokenizer, longest);
  data::LoaderOptions loading;
  loading.batch_size = options.batch_size;
  loading.workers = options.workers;
  loading.skip_broken = options.skip_broken;
  data::Loader loader(dataset, data::eval_transform(model.image_model.pretrained), loading);
  CaptionEvaluation result;
  std::int64_t tokens = 0;
  std::int64_t right = 0;
  loader.start_epoch(0);
  for (data::Batch batch; loader.next(batch);) {
    nn::Pass pass{.dtype = options.dtype};
    const std::int64_t own = tokens_of(captions, batch.labels);
    result.loss += static_cast<double>(caption_loss(model, batch.x, batch.labels, captions, pass).item()) *
                   static_cast<double>(own);
    tokens += own;
    const std::vector<std::string> said =
        caption(model, tokenizer, batch.x, {.max_new_tokens = longest + 1, .dtype = options.dtype});
    for (std::size_t i = 0; i < said.size(); ++i) {
      const std::int64_t label = batch.labels.data<std::int64_t>()[i];
      right += said[i] == captions.texts[static_cast<std::size_t>(label)] ? 1 : 0;
    }
    result.count += std::ssize(said);
    if (options.progress) {
      options.progress(result.count, dataset.size());
    }
  }
  loader.check_any(result.count, "evaluate");
  result.loss /= static_cast<double>(tokens);
  result.exact = 100 * static_cast<double>(right) / static_cast<double>(result.count);
  result.broken = loader.broken();
  return result;
}

io::Image caption_sheet(const models::Captioner& model, const text::Tokenizer& tokenizer, const data::Dataset& dataset,
                        std::int64_t most, DType dtype) {
  constexpr std::int64_t side = 128;  // of an image
  constexpr std::int64_t cell = side + 16;
  constexpr std::int64_t columns = 5;
  constexpr std::int64_t bar = 6;  // below an image, in the colour of right or wrong
  const std::int64_t count = std::min(most, dataset.size());
  std::vector<io::Image> images;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * dataset.size() / count;
    images.push_back(dataset.image(index));
    const std::int64_t label = dataset.label(index);
    names.push_back(label == data::unlabeled ? "" : dataset.classes()[static_cast<std::size_t>(label)]);
  }
  const std::vector<std::string> said = caption(model, tokenizer, images, {.num_beams = 3, .dtype = dtype});
  const std::int64_t height = cell + bar + 2 * explain::letter_height;
  io::Image sheet = explain::white_image(columns * cell, (count + columns - 1) / columns * height);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t left = i % columns * cell + 8;
    const std::int64_t top = i / columns * height + 8;
    explain::paste(sheet, data::resize(images[at], side, side, data::Interpolation::nearest), left, top);
    const std::array<std::uint8_t, 3> color =
        said[at] == names[at] ? std::array<std::uint8_t, 3>{31, 157, 97} : std::array<std::uint8_t, 3>{228, 87, 46};
    for (std::int64_t k = 0; k < bar * side; ++k) {
      std::ranges::copy(color, sheet.at(left + k % side, top + side + k / side));
    }
    const std::int64_t scale = explain::text_width(said[at], 2) <= cell ? 2 : 1;
    explain::draw_text(sheet, left, top + side + bar + 3, said[at], scale);
  }
  return sheet;
}

}  // namespace vitrail::train
