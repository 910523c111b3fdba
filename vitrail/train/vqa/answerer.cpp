#include "vitrail/train/vqa/answerer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/transforms.h"
#include "vitrail/generate/generate.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/unknown.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using models::Blip;

constexpr std::int64_t longest_answer = 20;  // tokens, transformers' default of max_length

Tensor prepared(const io::Image& image, const models::PretrainedConfig& how) {
  const Tensor x = data::eval_transform(how)(image);
  return x.reshape(x.shape().inserted(0, 1));
}

// Zeros that are added to scores [1, H, N, M], and whose gradient is asked for.
Tensor score_leaf(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  Tensor zeros = Tensor::zeros({1, heads, queries, keys});
  autograd::require_grad(zeros);
  return zeros;
}

// What raises the answer, over all heads: [N, M].
Tensor raised(const Tensor& gradient) {
  return ops::sum(ops::clamp(gradient.detach(), 0, std::numeric_limits<float>::max()), {0, 1});
}

generate::GenerationConfig answering(const models::BlipConfig& config) {
  generate::GenerationConfig how;
  how.eos_token_id = {config.sep_token_id};
  how.pad_token_id = config.pad_token_id;
  how.max_new_tokens = longest_answer - 1;
  return how;
}

std::string answer_text(const text::Tokenizer& tokenizer, std::vector<std::int64_t> ids) {
  std::erase_if(ids, [&](std::int64_t id) { return !tokenizer.has(id); });
  return data::plain_answer(tokenizer.decode(ids));
}

}  // namespace

Answerer::Answerer(const fs::path& folder) {
  if (models::is_vqa_folder(folder)) {
    vqa_ = models::load_vqa(folder);
  } else {
    blip_ = models::load_blip(folder);
  }
  tokenizer_ = text::load_tokenizer(models::shipped_or(folder));
}

void Answerer::prepare_images(const data::ImageOverrides& overrides) {
  data::apply(overrides, vqa_ ? vqa_->pretrained : blip_->pretrained);
}

AnsweredQuestion Answerer::answer(const io::Image& image, const std::string& question,
                                  const AskOptions& options) const {
  const std::vector<std::string> unknown = text::unknown_words(*tokenizer_, question);
  check(unknown.empty(), "the model has never read {} of the question \"{}\"", io::quoted_list(unknown, "and"),
        question);
  const text::Encoding encoding = tokenizer_->encode(question);
  const std::int64_t most = vqa_ ? vqa_->net->config().max_positions : blip_->net->config().text.max_positions;
  check(std::ranges::find(encoding.special, false) != encoding.special.end(), "the question is empty");
  check(std::ssize(encoding.ids) <= most, "the question has {} tokens, but the model is made for at most {}",
        encoding.ids.size(), most);
  return vqa_ ? of_vqa(prepared(image, vqa_->pretrained), encoding, question, options)
              : of_blip(prepared(image, blip_->pretrained), encoding, options);
}

AnsweredQuestion Answerer::of_vqa(const Tensor& x, const text::Encoding& question, const std::string& text,
                                  const AskOptions& options) const {
  const models::Vqa& net = *vqa_->net;
  const models::VqaConfig& c = net.config();
  const Tensor ids = Tensor::from(question.ids, {1, std::ssize(question.ids)});
  models::VqaInput input{x, {ids, {}, {}}, {}, {}};
  nn::Recorder recorder(false, options.maps);
  nn::Pass pass{.dtype = options.dtype, .recorder = &recorder};
  AnsweredQuestion result;
  const auto tell = [&](const Tensor& logits) {
    const Tensor probabilities = ops::softmax(logits.detach(), 1);
    const std::vector<float> values = probabilities.values();
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return values[i]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(options.best)));
    for (const std::size_t i : order) {
      result.best.push_back({vqa_->answers[i], values[i]});
    }
    return static_cast<std::int64_t>(order.front());
  };
  if (options.maps && c.kind == models::VqaConfig::Kind::cross) {
    autograd::Tape tape;
    input.score_bias = score_leaf(c.num_heads, ids.size(1), c.patches());
    const Tensor logits = net.forward(input, pass);
    tape.backward(ops::sum(ops::narrow(logits, 1, tell(logits), 1)));
    result.weighted = raised(autograd::grad(input.score_bias));
    net.parameters.zero_grad();
  } else {
    const autograd::NoGrad no_grad;
    tell(net.forward(input, pass));
  }
  if (options.maps) {
    for (const Tensor& map : net.picture_attention(recorder)) {
      result.maps.push_back(map.select(0, 0).contiguous());
    }
    result.words = c.kind == models::VqaConfig::Kind::one ? std::vector{text} : question.tokens;
    result.grid = {c.side(), c.side()};
  }
  return result;
}

AnsweredQuestion Answerer::of_blip(const Tensor& x, const text::Encoding& question, const AskOptions& options) const {
  const Blip& net = *blip_->net;
  const models::VitConfig& vision = net.config().vision;
  const models::Texts asked{Tensor::from(question.ids, {1, std::ssize(question.ids)}), {}, {}};
  const std::vector<std::int64_t> start = {net.config().bos_token_id};
  AnsweredQuestion result;
  nn::Recorder recorder(false, options.maps);
  nn::Pass pass{.dtype = options.dtype, .recorder = &recorder};
  std::vector<std::int64_t> given;
  {
    const autograd::NoGrad no_grad;
    const Blip::Context context = net.context(x, asked, pass);
    generate::GenerationConfig how = answering(net.config());
    how.num_beams = std::max<std::int64_t>(options.best, 3);
    how.num_return_sequences = options.best;
    how.length_penalty = 0;  // the score is then the log of the probability
    const models::BlipWriting writing(net, context, options.dtype);
    const auto written = generate::generate_batch(writing, {start}, how, {.dtype = options.dtype});
    for (const generate::Sequence& sequence : written.front()) {
      result.best.push_back({answer_text(*tokenizer_, sequence.ids), std::exp(sequence.score)});
      given = given.empty() ? sequence.ids : given;
    }
  }
  if (!options.maps) {
    return result;
  }
  result.words = question.tokens;
  result.grid = {vision.img_size[0] / vision.patch_size[0], vision.img_size[1] / vision.patch_size[1]};
  const std::int64_t patches = result.grid[0] * result.grid[1];
  // Without the class token, which lies nowhere.
  const auto of_patches = [&](const Tensor& map) {
    return map.narrow(static_cast<int>(map.rank()) - 1, 1, patches).contiguous();
  };
  for (std::int64_t i = 0; i < net.config().text.depth; ++i) {
    result.maps.push_back(
        of_patches(recorder.attention().at(net.question().cross_attention_name(i)).value.select(0, 0)));
  }
  autograd::Tape tape;
  nn::Pass again{.dtype = options.dtype};
  models::BlipText::Sources sources = net.question().remember(net.image_states(x, again));
  sources.back().bias = score_leaf(net.config().text.num_heads, asked.ids.size(1), patches + 1);
  const Blip::Context context{net.question()(asked, sources, false, again), {}};
  std::vector<std::int64_t> read = start;
  read.insert(read.end(), given.begin(), given.end() - 1);
  const Tensor logits = net.logits({Tensor::from(read, {1, std::ssize(read)}), {}, {}}, context, again);
  tape.backward(
      ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), Tensor::from(given, {std::ssize(given)})) * -1.0F);
  result.weighted = of_patches(raised(autograd::grad(sources.back().bias)));
  net.parameters.zero_grad();
  return result;
}

AnswerEvaluation Answerer::evaluate(const data::ImageQuestions& questions, const EvaluateOptions& options) const {
  return vqa_ ? evaluate_answers(*vqa_, *tokenizer_, questions, options) : evaluate_blip(questions, options);
}

AnswerEvaluation Answerer::evaluate_blip(const data::ImageQuestions& questions, const EvaluateOptions& options) const {
  const autograd::NoGrad no_grad;
  const Blip& net = *blip_->net;
  const data::QuestionTokens tokens = tokens_of(questions, *tokenizer_, net.config().text.max_positions);
  const auto loader = data::question_loader(*questions.images, tokens, data::eval_transform(blip_->pretrained),
                                            {.images = loading(options), .per_image = 0});
  AnswerEvaluation result;
  result.loss = std::nan("");
  AnswerTally tally;
  loader->start_epoch(0);
  for (data::QuestionBatch batch; loader->next(batch);) {
    nn::Pass pass{.dtype = options.dtype};
    const models::Texts asked{batch.ids, batch.lengths, {}};
    const Tensor image = net.image_states(batch.x, pass);
    const Tensor states = net.question()(asked, net.question().remember(image, {}, batch.rows), false, pass);
    const models::BlipWriting writing(net, {states, batch.lengths}, options.dtype);
    const std::vector<std::vector<std::int64_t>> starts(batch.places.size(), {net.config().bos_token_id});
    const auto written = generate::generate_batch(writing, starts, answering(net.config()), {.dtype = options.dtype});
    const std::vector<const data::Question*> own = questions_of(batch, questions);
    result.unknown_words += with_unknown_words(batch, *tokenizer_);
    for (std::size_t b = 0; b < own.size(); ++b) {
      tally.add(*own[b], answer_text(*tokenizer_, written[b].front().ids));
    }
    result.images += std::ssize(batch.indices);
    if (options.progress) {
      options.progress(result.images, questions.images->size());
    }
  }
  loader->check_any(result.images, "evaluate");
  result.broken = loader->broken();
  tally.finish(result);
  return result;
}

bool answers_questions(const fs::path& folder) {
  return models::is_vqa_folder(folder) || models::is_blip_folder(folder);
}

}  // namespace vitrail::train
