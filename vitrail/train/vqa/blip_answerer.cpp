#include "vitrail/train/vqa/blip_answerer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/generate/generate.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/vqa/gradient_weighted.h"

namespace vitrail::train {
namespace {

using models::Blip;

// The most tokens of an answer with [DEC] and [SEP]: transformers' default of max_length, of which all but [SEP] are
// read.
std::int64_t longest_answer(const models::BlipConfig& config) {
  return std::min<std::int64_t>(20, config.text.max_positions + 1);
}

generate::GenerationConfig answering(const models::BlipConfig& config) {
  generate::GenerationConfig how;
  how.eos_token_id = {config.sep_token_id};
  how.pad_token_id = config.pad_token_id;
  how.max_new_tokens = longest_answer(config) - 1;
  return how;
}

}  // namespace

Tensor written_loss(const Blip& net, const Blip::Context& context, const WrittenAnswers& answers, nn::Pass& pass) {
  const models::BlipDecoder& decoder = net.decoder();
  const Tensor logits = decoder.logits({answers.read, answers.lengths, {}},
                                       decoder.text().remember(context.states, context.lengths, answers.rows), pass);
  const Tensor chosen = ops::gather(ops::log_softmax(logits, 2), 2, answers.next.unsqueeze(2));
  return ops::sum(chosen * answers.shares.unsqueeze(2)) * -1.0F;
}

BlipAnswerer::BlipAnswerer(models::BlipModel model, text::Tokenizer tokenizer)
    : Answerer(std::move(tokenizer)), model_(std::move(model)) {
  models::check_vocabulary(text::ordinary_tokens(this->tokenizer()), model_.net->config().text.vocab_size);
}

// The different answers that people gave and the model can write, as tokens.
std::vector<BlipAnswerer::Share> BlipAnswerer::shares(const data::Question& question) const {
  std::map<std::string, float> counts;
  for (const std::string& answer : question.answers) {
    counts[answer] += 1;
  }
  const std::optional<std::int64_t> unknown = text::unknown_token(tokenizer());
  std::vector<Share> result;
  float all = 0;
  for (const auto& [answer, count] : counts) {
    std::vector<std::int64_t> ids = tokenizer().encode(answer, false).ids;
    const bool known = !unknown || std::ranges::find(ids, *unknown) == ids.end();
    if (known && !ids.empty() && std::ssize(ids) <= longest_answer(model_.net->config()) - 2) {
      result.push_back({std::move(ids), count});
      all += count;
    }
  }
  for (Share& one : result) {
    one.share /= all;
  }
  return result;
}

WrittenAnswers BlipAnswerer::written(const std::vector<const data::Question*>& asked) const {
  const models::BlipConfig& c = model_.net->config();
  std::vector<Share> all;
  std::vector<std::int64_t> rows;
  std::int64_t longest = 1;
  for (std::size_t b = 0; b < asked.size(); ++b) {
    for (Share& one : shares(*asked[b])) {
      longest = std::max(longest, std::ssize(one.ids) + 1);
      rows.push_back(static_cast<std::int64_t>(b));
      all.push_back(std::move(one));
    }
  }
  const std::int64_t count = std::ssize(all);
  WrittenAnswers written{.rows = Tensor::from(rows, {count}),
                         .read = Tensor::full({count, longest}, static_cast<float>(c.pad_token_id), DType::i64),
                         .lengths = Tensor::empty({count}, DType::i64),
                         .next = Tensor::full({count, longest}, static_cast<float>(c.pad_token_id), DType::i64),
                         .shares = Tensor::zeros({count, longest})};
  for (std::int64_t a = 0; a < count; ++a) {
    const Share& one = all[static_cast<std::size_t>(a)];
    const std::int64_t length = std::ssize(one.ids) + 1;
    std::int64_t* const read = written.read.data<std::int64_t>() + a * longest;
    std::int64_t* const next = written.next.data<std::int64_t>() + a * longest;
    read[0] = c.bos_token_id;
    std::ranges::copy(one.ids, read + 1);
    std::ranges::copy(one.ids, next);
    next[length - 1] = c.sep_token_id;
    written.lengths.data<std::int64_t>()[a] = length;
    std::fill_n(written.shares.data<float>() + a * longest, length, one.share);
  }
  return written;
}

Blip::Context BlipAnswerer::context(const data::QuestionBatch& batch, nn::Pass& pass) const {
  const Blip& net = *model_.net;
  return net.question_states({batch.ids, batch.lengths, {}}, net.image_states(batch.x, pass), pass, batch.rows);
}

Tensor BlipAnswerer::loss(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                          nn::Pass& pass) const {
  return written_loss(*model_.net, context(batch, pass), written(asked), pass) *
         (1.0F / static_cast<float>(asked.size()));
}

Answerer::Said BlipAnswerer::say(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                                 DType dtype) const {
  const Blip& net = *model_.net;
  nn::Pass pass{.dtype = dtype};
  const Blip::Context about = context(batch, pass);
  const models::BlipWriting writing(net, about, dtype);
  const std::vector<std::vector<std::int64_t>> starts(asked.size(), {net.config().bos_token_id});
  Said said;
  for (const auto& written : generate::generate_batch(writing, starts, answering(net.config()), {.dtype = dtype})) {
    said.answers.push_back(text_of(written.front().ids));
  }
  const WrittenAnswers right = written(asked);
  said.loss = right.rows.numel() > 0 ? static_cast<double>(written_loss(net, about, right, pass).item()) : 0;
  return said;
}

AnsweredQuestion BlipAnswerer::answer_one(const Tensor& x, const std::string& /*question*/,
                                          const text::Encoding& encoding, const AskOptions& options) const {
  const Blip& net = *model_.net;
  const models::VitConfig& vision = net.config().vision;
  const models::Texts asked{Tensor::from(encoding.ids, {1, std::ssize(encoding.ids)}), {}, {}};
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
      result.best.push_back({text_of(sequence.ids), std::exp(sequence.score)});
      given = given.empty() ? sequence.ids : given;
    }
  }
  if (!options.maps) {
    return result;
  }
  result.words = encoding.tokens;
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
  sources.back().bias = score_leaf(1, net.config().text.num_heads, asked.ids.size(1), patches + 1);
  const Blip::Context context{net.question()(asked, sources, false, again), {}};
  std::vector<std::int64_t> read = start;
  read.insert(read.end(), given.begin(), given.end() - 1);
  const Tensor logits = net.logits({Tensor::from(read, {1, std::ssize(read)}), {}, {}}, context, again);
  tape.backward(
      ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), Tensor::from(given, {std::ssize(given)})) * -1.0F);
  result.weighted = of_patches(gradient_weighted(sources.back().bias).select(0, 0));
  net.parameters.zero_grad();
  return result;
}

std::string BlipAnswerer::text_of(std::vector<std::int64_t> ids) const {
  std::erase_if(ids, [&](std::int64_t id) { return !tokenizer().has(id); });
  return data::plain_answer(tokenizer().decode(ids));
}

void BlipAnswerer::write(const std::filesystem::path& folder) const {
  models::write_blip(model_, folder);
  tokenizer().save(folder);
}

}  // namespace vitrail::train
