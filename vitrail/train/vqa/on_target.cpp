#include "vitrail/train/vqa/on_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/pairs/question_batches.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/train/guided_attention.h"
#include "vitrail/train/vqa/answers.h"
#include "vitrail/train/vqa/gradient_weighted.h"

namespace vitrail::train {
namespace {

using Kind = models::VqaConfig::Kind;

// Which patches of a network's grid a question is about, whose image has this width and height.
std::vector<bool> target_of(const data::Question& question, std::int64_t side,
                            const std::array<std::int64_t, 2>& size) {
  std::vector<data::Box> boxes = question.about;
  std::ranges::transform(boxes, boxes.begin(), [&](const data::Box& box) {
    return box.scaled(1 / static_cast<double>(size[0]), 1 / static_cast<double>(size[1]));
  });
  return touched_patches(boxes, {side, side});
}

// The sum of the rows `begin` … of words [N, M] that are real, as a map [M].
std::vector<double> over_words(const float* rows, std::int64_t begin, std::int64_t end, std::int64_t patches) {
  std::vector<double> sum(static_cast<std::size_t>(patches));
  for (std::int64_t n = begin; n < end; ++n) {
    for (std::int64_t m = 0; m < patches; ++m) {
      sum[static_cast<std::size_t>(m)] += static_cast<double>(rows[n * patches + m]);
    }
  }
  return sum;
}

}  // namespace

Tensor question_attention_loss(const Tensor& map, const data::QuestionBatch& batch,
                               const std::vector<const data::Question*>& questions, std::int64_t side) {
  const std::int64_t count = batch.ids.size(0);
  const Tensor words = ops::reshape(ops::mean(map, {1}), {count, batch.ids.size(1), map.size(3)});
  std::vector<std::vector<bool>> targets;
  targets.reserve(questions.size());
  for (std::size_t b = 0; b < questions.size(); ++b) {
    const std::int64_t image = batch.rows.data<std::int64_t>()[b];
    targets.push_back(target_of(*questions[b], side, batch.sizes[static_cast<std::size_t>(image)]));
  }
  return attention_loss(ops::select(words, 1, 0), targets);
}

std::vector<OnTarget> attention_on_target(const models::VqaModel& model, const text::Tokenizer& tokenizer,
                                          const data::ImageQuestions& all, const EvaluateOptions& options) {
  const models::Vqa& net = *model.net;
  const models::VqaConfig& c = net.config();
  data::ImageQuestions questions = all;
  for (auto& own : questions.questions) {
    std::erase_if(own, [](const data::Question& question) { return question.about.empty(); });
  }
  if ((c.kind != Kind::cross && c.kind != Kind::joint && c.kind != Kind::one) || questions.count() == 0) {
    return {};
  }
  const std::int64_t patches = c.patches();
  const data::QuestionTokens tokens = tokens_of(questions, tokenizer, c.max_positions);
  const auto loader = data::question_loader(*questions.images, tokens, data::eval_transform(model.pretrained),
                                            {.images = loading(options), .per_image = 0});
  std::vector<OnTarget> result;
  const auto counted_in = [&](const std::string& map) -> OnTarget& {
    const auto it = std::ranges::find(result, map, &OnTarget::map);
    return it != result.end() ? *it : result.emplace_back(OnTarget{map, {}, {}});
  };
  std::int64_t images = 0;
  loader->start_epoch(0);
  for (data::QuestionBatch batch; loader->next(batch);) {
    images += std::ssize(batch.indices);
    if (options.progress) {
      options.progress(images, questions.images->size());
    }
    const std::vector<const data::Question*> asked = questions_of(batch, questions);
    if (asked.empty()) {
      continue;
    }
    nn::Recorder recorder(false, true);
    nn::Pass pass{.dtype = options.dtype, .recorder = &recorder};
    models::VqaInput input = input_of(batch);
    const std::int64_t words = batch.ids.size(1);
    Tensor weighted;
    Tensor best;
    if (c.kind == Kind::cross) {
      autograd::Tape tape;
      input.score_bias = score_leaf(std::ssize(asked), c.num_heads, words, patches);
      const Tensor logits = net.forward(input, pass);
      tape.backward(ops::sum(ops::amax(logits, {1})));
      best = ops::argmax(logits.detach(), 1);
      weighted = gradient_weighted(input.score_bias);
      net.parameters.zero_grad();
    } else {
      const autograd::NoGrad no_grad;
      best = ops::argmax(net.forward(input, pass), 1);
    }
    std::vector<Tensor> maps;
    for (const Tensor& map : net.picture_attention(recorder)) {
      maps.push_back(ops::mean(map, {1}).contiguous());  // [B, words, patches]
    }
    for (std::size_t b = 0; b < asked.size(); ++b) {
      const data::Question& question = *asked[b];
      const std::string& given = model.answers[static_cast<std::size_t>(best.data<std::int64_t>()[b])];
      if (data::vqa_accuracy(question.answers, given) < 1) {
        continue;
      }
      const std::int64_t row = batch.rows.data<std::int64_t>()[b];
      const io::Image image = questions.images->image(batch.indices[static_cast<std::size_t>(row)]);
      const std::vector<bool> target = target_of(question, c.side(), {image.width, image.height});
      const double chance = static_cast<double>(std::ranges::count(target, true)) / static_cast<double>(target.size());
      const auto take = [&](const std::string& name, const Tensor& map, std::int64_t from, std::int64_t to) {
        const auto own = static_cast<std::int64_t>(b) * map.size(1) * patches;
        const std::vector<double> sum = over_words(map.data<float>() + own, from, to, patches);
        const auto most = static_cast<std::size_t>(std::ranges::max_element(sum) - sum.begin());
        OnTarget& counts = counted_in(name);
        for (TargetCount* count : {&counts.all, &counts.types[question.type]}) {
          ++count->count;
          count->hits += target[most] ? 1 : 0;
          count->chance += chance;
        }
      };
      const std::int64_t length = batch.lengths.data<std::int64_t>()[b];
      for (std::size_t layer = 0; layer < maps.size(); ++layer) {
        const bool single = maps[layer].size(1) == 1;
        take(fmt::format("layer {}", layer), maps[layer], 0, single ? 1 : length);
        if (!single) {
          take(fmt::format("layer {}, [CLS]", layer), maps[layer], 0, 1);
        }
      }
      if (weighted.defined()) {
        take("gradient-weighted", weighted, 0, length);
      }
    }
  }
  return result;
}

std::string on_target_table(const std::vector<OnTarget>& maps) {
  if (maps.empty()) {
    return "";
  }
  const auto share = [](const TargetCount& count) {
    return count.count == 0
               ? std::string("–")
               : fmt::format("{:.1f}", 100 * static_cast<double>(count.hits) / static_cast<double>(count.count));
  };
  const auto chance = [](const TargetCount& count) {
    return fmt::format("{:.1f}", 100 * count.chance / static_cast<double>(std::max<std::int64_t>(count.count, 1)));
  };
  std::string text = fmt::format(
      "of right answers, % whose most looked-at patch touches what the question is about:\n"
      "  {:<18} {:>10}",
      "", "all");
  for (const auto& [type, count] : maps.front().types) {
    text += fmt::format(" {:>10}", type);
  }
  for (const OnTarget& map : maps) {
    text += fmt::format("\n  {:<18} {:>10}", map.map, share(map.all));
    for (const auto& [type, count] : map.types) {
      text += fmt::format(" {:>10}", share(count));
    }
  }
  text += fmt::format("\n  {:<18} {:>10}", "a patch by chance", chance(maps.front().all));
  for (const auto& [type, count] : maps.front().types) {
    text += fmt::format(" {:>10}", chance(count));
  }
  return text + "\n";
}

}  // namespace vitrail::train
