#include "vitrail/train/captions/captions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/pairs/counted_captions.h"
#include "vitrail/data/scenes/truth.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/train/guided_attention.h"

namespace vitrail::train {
namespace {

using Ids = CaptionTokens::Ids;

// What the tokenizer makes of a text without the tokens that are none of its words.
std::string text_of(std::int64_t start, std::int64_t end, const text::Tokenizer& tokenizer, Ids ids) {
  std::erase_if(ids, [&](std::int64_t id) { return id == end || id == start || !tokenizer.has(id); });
  return tokenizer.decode(ids);
}

// Texts as they are read, from the token that begins one on, and the token that follows each of theirs.
struct Reading {
  Reading(const models::Captioner& model, std::span<const Ids* const> texts) {
    models::TextRow read;
    Ids following;
    for (const Ids* const ids : texts) {
      Ids text = {model.start};
      text.insert(text.end(), ids->begin(), ids->end());
      read.add(text);
      following.insert(following.end(), ids->begin(), ids->end());
      following.push_back(model.end);
    }
    row = read.texts();
    next = Tensor::from(following, {std::ssize(following)});
  }

  models::Texts row;
  Tensor next;
};

}  // namespace

CaptionTokens::CaptionTokens(const std::vector<std::vector<std::string>>& texts, const text::Tokenizer& tokenizer,
                             std::int64_t longest)
    : unknown(tokenizer) {
  const text::Tokenizer uncut = tokenizer.with_truncation(std::nullopt);  // so that what is too long can be counted
  std::unordered_map<std::string, Ids> known;
  ids.reserve(texts.size());
  for (const std::vector<std::string>& own : texts) {
    std::vector<Ids>& of_image = ids.emplace_back();
    of_image.reserve(own.size());
    for (const std::string& text : own) {
      const auto [it, is_new] = known.try_emplace(text);
      if (is_new) {
        try {
          it->second = uncut.encode(text, false).ids;
        } catch (const Error& error) {
          fail("the caption '{}': {}", text, error.what());
        }
        unknown.add(it->second);
        cut += std::ssize(it->second) > longest ? 1 : 0;
        it->second.resize(static_cast<std::size_t>(std::min(std::ssize(it->second), longest)));
      }
      of_image.push_back(it->second);
    }
  }
  different = std::ssize(known);
}

Tensor caption_loss(const models::Captioner& model, const Tensor& x, std::span<const Ids* const> texts, nn::Pass& pass,
                    float smoothing) {
  const Reading reading(model, texts);
  const Tensor logits = model.logits(x, reading.row, pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), reading.next, smoothing);
}

// The map is one of texts side by side, whose padding is left out of both losses.
Tensor guided_caption_loss(const models::Captioner& model, const Tensor& x, std::span<const Ids* const> texts,
                           const std::vector<const std::vector<bool>*>& targets, float coef, nn::Pass& pass,
                           float smoothing) {
  const Reading reading(model, texts);
  const Tensor real = models::places_side_by_side(reading.row);
  const std::string layer = model.cross_attention().back();
  nn::Recorder recorder(std::vector{layer});
  pass.recorder = &recorder;
  const Tensor logits = model.logits(x, {.ids = models::ids_side_by_side(reading.row)}, pass);
  pass.recorder = nullptr;
  const Tensor looked = ops::mean(recorder.attention().at(layer).value, {1});  // [S, texts of an image · N, M]
  std::vector<std::vector<bool>> of_tokens;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    of_tokens.insert(of_tokens.end(), texts[i]->size() + 1, *targets[i]);
  }
  const auto of_real = [&](const Tensor& all) {
    return ops::index_select(ops::reshape(all, {-1, all.size(2)}), 0, real);
  };
  return ops::cross_entropy(of_real(logits), reading.next, smoothing) +
         attention_loss(of_real(looked), of_tokens) * coef;
}

std::int64_t most_new_tokens(const models::Captioner& model, std::int64_t wanted) {
  return std::min(wanted, model.max_positions() - 1);
}

CaptionOptions caption_options(const models::Captioner& model, std::int64_t num_beams, std::int64_t max_new_tokens,
                               DType dtype) {
  CaptionOptions options;
  options.config.eos_token_id = {model.end};
  options.config.num_beams = num_beams;
  options.config.max_new_tokens = most_new_tokens(model, max_new_tokens);
  options.generate.dtype = dtype;
  return options;
}

CaptionOptions caption_options(const models::Captioner& model, const std::string& source, DType dtype,
                               std::vector<std::string>* said) {
  CaptionOptions options;
  generate::GenerationConfig& c = options.config;
  if (!model.generation_config.empty()) {
    c = generate::parse_generation_config(model.generation_config, source, said);
  }
  // Where transformers' file says the first token, but none that ends a text, none does.
  const bool says_tokens = c.decoder_start_token_id || c.bos_token_id;
  if (model.fixed_tokens || (c.eos_token_id.empty() && !says_tokens)) {
    c.eos_token_id = {model.end};
  }
  c.max_new_tokens = most_new_tokens(model, c.says_length ? c.most_new_tokens(1) : usual_caption_tokens);
  if (!c.says_beams && !c.do_sample) {
    c.num_beams = usual_caption_beams;
  }
  options.generate.dtype = dtype;
  return options;
}

std::string usual_generation_config(const models::Captioner& model) {
  const nlohmann::ordered_json usual = {{"num_beams", usual_caption_beams},
                                        {"max_length", most_new_tokens(model, usual_caption_tokens) + 1}};
  return usual.dump(2) + "\n";
}

std::vector<std::vector<Caption>> captions_of(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                              const Tensor& x, const CaptionOptions& options) {
  const autograd::NoGrad no_grad;
  const models::Captioning writing(model, x, options.generate.dtype);
  const std::vector<Ids> prompts(static_cast<std::size_t>(x.size(0)), Ids{model.start});
  std::vector<std::vector<Caption>> result;
  result.reserve(prompts.size());
  for (auto& sequences : generate::generate_batch(writing, prompts, options.config, options.generate)) {
    std::vector<Caption>& own = result.emplace_back();
    own.reserve(sequences.size());
    for (generate::Sequence& sequence : sequences) {
      own.push_back(
          {text_of(model.start, model.end, tokenizer, sequence.ids), std::move(sequence.ids), sequence.score});
    }
  }
  return result;
}

std::vector<std::string> caption(const models::Captioner& model, const text::Tokenizer& tokenizer, const Tensor& x,
                                 const CaptionOptions& options) {
  std::vector<std::string> result;
  result.reserve(static_cast<std::size_t>(x.size(0)));
  for (std::vector<Caption>& own : captions_of(model, tokenizer, x, options)) {
    result.push_back(std::move(own.front().text));
  }
  return result;
}

bool is_exact(const models::Captioner& model, const text::Tokenizer& tokenizer, const std::string& said,
              const std::vector<CaptionTokens::Ids>& captions) {
  return std::ranges::any_of(captions,
                             [&](const Ids& ids) { return text_of(model.start, model.end, tokenizer, ids) == said; });
}

Tensor prepared(const models::PretrainedConfig& how, const std::vector<io::Image>& images) {
  const data::Transform transform = data::eval_transform(how);
  const Shape shape = transform.shape();
  Tensor x = Tensor::empty(shape.inserted(0, std::ssize(images)));
  for (std::int64_t i = 0; i < std::ssize(images); ++i) {
    transform.apply(images[static_cast<std::size_t>(i)], 0, 0, 0, x.data<float>() + i * shape.numel());
  }
  return x;
}

namespace {

// How captions of how many there are do.
class CountTally {
 public:
  void add(const std::string& said, const std::vector<std::int64_t>& counts, const std::vector<std::string>& classes) {
    ++captions_;
    const auto told = data::counts_of_caption(said, classes);
    right_ += told == counts ? 1 : 0;
    for (std::size_t i = 0; told && i < counts.size(); ++i) {
      error_ += static_cast<double>(std::abs((*told)[i] - counts[i]));
      ++numbers_;
    }
  }
  CaptionEvaluation::Counting counting() const {
    return {100 * static_cast<double>(right_) / static_cast<double>(captions_),
            numbers_ == 0 ? std::nan("") : error_ / static_cast<double>(numbers_)};
  }

 private:
  std::int64_t captions_ = 0;
  std::int64_t right_ = 0;
  std::int64_t numbers_ = 0;
  double error_ = 0;
};

}  // namespace

CaptionEvaluation evaluate_captions(const models::Captioner& model, const text::Tokenizer& tokenizer,
                                    const data::CaptionedImages& pairs, const EvaluateOptions& options,
                                    const CaptionOptions& how, std::int64_t longest) {
  const autograd::NoGrad no_grad;
  const CaptionTokens captions(pairs.texts, tokenizer, most_new_tokens(model, longest));
  data::Loader loader(*pairs.images, data::eval_transform(model.image_model.pretrained), loading(options));
  CaptionEvaluation result;
  result.cut = captions.cut;
  result.unknown = captions.unknown.note("the captions");
  std::int64_t tokens = 0;
  std::int64_t right = 0;
  std::int64_t holding = 0;
  CountTally counting;
  std::vector<std::string> candidates;
  std::vector<std::vector<std::string>> references;
  const auto judge = [&](const data::Batch& batch, dist::Packer& packer) {
    packer.put_all(batch.indices);
    packer.put_texts(caption(model, tokenizer, batch.x, how));
    std::vector<const Ids*> first;
    for (const std::int64_t index : batch.indices) {
      first.push_back(&captions.ids[static_cast<std::size_t>(index)].front());
    }
    nn::Pass pass{.dtype = options.dtype};
    packer.put(static_cast<double>(caption_loss(model, batch.x, first, pass).item()));
    return std::ssize(batch.indices);
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const auto indices = unpacker.get_all<std::int64_t>();
    const std::vector<std::string> said = unpacker.get_texts();
    std::int64_t own_tokens = 0;
    for (std::size_t i = 0; i < said.size(); ++i) {
      const auto index = static_cast<std::size_t>(indices[i]);
      const std::vector<Ids>& own = captions.ids[index];
      candidates.push_back(text::caption_tokenized(said[i]));
      std::vector<std::string>& of_image = references.emplace_back();
      for (const std::string& text : pairs.texts[index]) {
        of_image.push_back(text::caption_tokenized(text));
      }
      if (!pairs.scenes.empty()) {
        holding += data::caption_truth(said[i], pairs.scenes[index]).truth == data::SceneTruth::holds;
      }
      if (!pairs.counts.empty()) {
        counting.add(said[i], pairs.counts[index], pairs.counted);
      }
      own_tokens += std::ssize(own.front()) + 1;
      right += is_exact(model, tokenizer, said[i], own) ? 1 : 0;
    }
    result.loss += unpacker.get<double>() * static_cast<double>(own_tokens);
    tokens += own_tokens;
    result.count += std::ssize(said);
  };
  result.broken = share_batches<data::Batch>(loader, sharing(options, pairs.images->size()), judge, take);
  loader.check_any(result.count, "evaluate");
  result.loss /= static_cast<double>(tokens);
  result.exact = 100 * static_cast<double>(right) / static_cast<double>(result.count);
  result.scores = text::caption_scores(candidates, references);
  if (!pairs.scenes.empty()) {
    result.truth = 100 * static_cast<double>(holding) / static_cast<double>(result.count);
  }
  if (!pairs.counts.empty()) {
    result.counting = counting.counting();
  }
  return result;
}

}  // namespace vitrail::train
