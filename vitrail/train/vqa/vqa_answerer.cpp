#include "vitrail/train/vqa/vqa_answerer.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/vqa/gradient_weighted.h"
#include "vitrail/train/vqa/on_target.h"

namespace vitrail::train {

void VqaAnswerer::guide_attention(double weight) {
  check(model_.net->config().kind == models::VqaConfig::Kind::cross,
        "--attn-loss-coef is for networks whose question looks at the picture in layers of its own, such as vqa_small, "
        "not for '{}'",
        model_.name);
  attention_weight_ = weight;
}

Tensor VqaAnswerer::loss(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                         nn::Pass& pass) const {
  if (attention_weight_ == 0) {
    return answer_loss(model_.net->forward(input_of(batch), pass), asked, answers_);
  }
  const std::string layer = model_.net->last_picture_attention();
  nn::Recorder recorder(std::vector{layer});
  pass.recorder = &recorder;
  const Tensor logits = model_.net->forward(input_of(batch), pass);
  pass.recorder = nullptr;
  const Tensor guided =
      question_attention_loss(recorder.attention().at(layer).value, batch, asked, model_.net->config().side());
  return answer_loss(logits, asked, answers_) + guided * static_cast<float>(attention_weight_);
}

Answerer::Said VqaAnswerer::say(const data::QuestionBatch& batch, const std::vector<const data::Question*>& asked,
                                DType dtype) const {
  nn::Pass pass{.dtype = dtype};
  const Tensor logits = model_.net->forward(input_of(batch), pass);
  Said said;
  // What has no known answer has a target of zeros, which adds nothing to the sum.
  said.loss = static_cast<double>(answer_loss(logits, asked, answers_).item()) * static_cast<double>(asked.size());
  const Tensor best = ops::argmax(logits, 1);
  said.answers.reserve(asked.size());
  for (std::size_t b = 0; b < asked.size(); ++b) {
    said.answers.push_back(model_.answers[static_cast<std::size_t>(best.data<std::int64_t>()[b])]);
  }
  return said;
}

AnsweredQuestion VqaAnswerer::answer_one(const Tensor& x, const std::string& question, const text::Encoding& encoding,
                                         const AskOptions& options) const {
  const models::Vqa& net = *model_.net;
  const models::VqaConfig& c = net.config();
  const Tensor ids = Tensor::from(encoding.ids, {1, std::ssize(encoding.ids)});
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
      result.best.push_back({model_.answers[i], values[i]});
    }
    return static_cast<std::int64_t>(order.front());
  };
  if (options.maps && c.kind == models::VqaConfig::Kind::cross) {
    autograd::Tape tape;
    input.score_bias = score_leaf(1, c.num_heads, ids.size(1), c.patches());
    const Tensor logits = net.forward(input, pass);
    tape.backward(ops::sum(ops::narrow(logits, 1, tell(logits), 1)));
    result.weighted = gradient_weighted(input.score_bias).select(0, 0);
    net.parameters.zero_grad();
  } else {
    const autograd::NoGrad no_grad;
    tell(net.forward(input, pass));
  }
  if (options.maps) {
    for (const Tensor& map : net.picture_attention(recorder)) {
      result.maps.push_back(map.select(0, 0).contiguous());
    }
    result.words = c.kind == models::VqaConfig::Kind::one ? std::vector{question} : encoding.tokens;
    result.grid = {c.side(), c.side()};
  }
  return result;
}

void VqaAnswerer::write(const std::filesystem::path& folder) const {
  models::write_vqa(model_, folder);
  tokenizer().save(folder);
}

}  // namespace vitrail::train
