#include "vitrail/train/study/linear_classifier.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t judged_at_once = 4096;

// A classifier that is trained.
struct Pupil {
  Pupil(std::int64_t dim, std::int64_t classes, double rate, std::uint64_t seed)
      : store({.seed = seed}),
        weight(nn::Scope(store).parameter("weight", {classes, dim}, nn::Init::normal(0.01F))),
        bias(nn::Scope(store).parameter("bias", {classes}, nn::Init::zeros())),
        optimizer(store, {.opt = "momentum", .momentum = 0.9}, optim::one_group(store, 0)),
        lr(rate) {}
  Tensor operator()(const Tensor& x) const { return ops::linear(x, weight, bias); }

  nn::ParameterStore store;
  Tensor weight;
  Tensor bias;
  optim::Optimizer optimizer;
  double lr;
};

// The order of an epoch.
Tensor order_of(std::int64_t count, std::int64_t epoch, const LinearClassifierOptions& options) {
  Tensor order = Tensor::empty({count}, DType::i64);
  const std::span<std::int64_t> places = order.span<std::int64_t>();
  std::iota(places.begin(), places.end(), std::int64_t{0});
  if (options.shuffle) {
    Draws draws(Philox(mix(options.seed, hash("linear classifier")), static_cast<std::uint64_t>(epoch)));
    for (std::int64_t i = 0; i + 1 < count; ++i) {
      std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(draws.integer(i, count))]);
    }
  }
  return order;
}

Accuracy judge_features(const Pupil& pupil, const Features& test) {
  const autograd::NoGrad no_grad;
  const std::int64_t count = test.x.size(0);
  const std::int64_t classes = pupil.bias.size(0);
  const Tensor labels = test.labels.contiguous();
  Accuracy sum;
  for (std::int64_t begin = 0; begin < count; begin += judged_at_once) {
    const std::int64_t size = std::min(judged_at_once, count - begin);
    const Tensor logits = pupil(test.x.narrow(0, begin, size)).contiguous();
    sum.loss += static_cast<double>(ops::cross_entropy(logits, labels.narrow(0, begin, size)).item()) *
                static_cast<double>(size);
    for (std::int64_t i = 0; i < size; ++i) {
      const float* row = logits.data<float>() + i * classes;
      const std::int64_t label = labels.data<std::int64_t>()[begin + i];
      std::int64_t before = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        before += row[c] > row[label] || (row[c] == row[label] && c < label) ? 1 : 0;
      }
      sum.top1 += before < 1 ? 100 : 0;
      sum.top5 += before < 5 ? 100 : 0;
    }
  }
  const auto n = static_cast<double>(count);
  return {sum.loss / n, sum.top1 / n, sum.top5 / n};
}

}  // namespace

std::vector<LinearClassifierResult> train_linear_classifiers(const Features& training, const Features& test,
                                                             const LinearClassifierOptions& options) {
  const std::int64_t classes = classes_of(training, test);
  check(options.epochs >= 1 && options.batch_size >= 1, "epochs and the batch size must be at least 1, not {} and {}",
        options.epochs, options.batch_size);
  check(!options.lr.empty() && std::ranges::all_of(options.lr, [](double lr) { return lr > 0 && std::isfinite(lr); }),
        "a linear classifier needs learning rates above 0");
  const Tensor x = training.x.contiguous();
  const Tensor labels = training.labels.contiguous();
  const std::int64_t count = x.size(0);
  std::vector<std::unique_ptr<Pupil>> pupils;
  std::vector<LinearClassifierResult> results;
  for (const double lr : options.lr) {
    pupils.push_back(std::make_unique<Pupil>(x.size(1), classes, lr, options.seed));
    if (options.first_weight.defined()) {
      pupils.back()->weight.copy_from(options.first_weight);
      pupils.back()->bias.copy_from(options.first_bias);
    }
    LinearClassifierResult& result = results.emplace_back();
    result.lr = lr;
    result.weight = pupils.back()->weight;
    result.bias = pupils.back()->bias;
  }
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double share = static_cast<double>(epoch) / static_cast<double>(options.epochs);
    const double scale =
        static_cast<double>(std::min(options.batch_size, count)) / 256 * (1 + std::cos(std::numbers::pi * share)) / 2;
    const Tensor order = order_of(count, epoch, options);
    for (LinearClassifierResult& result : results) {
      result.train_loss = 0;
    }
    for (std::int64_t begin = 0; begin < count; begin += options.batch_size) {
      const std::int64_t size = std::min(options.batch_size, count - begin);
      const Tensor rows = order.narrow(0, begin, size);
      const Tensor batch = ops::embedding(x, rows);
      Tensor targets = Tensor::empty({size}, DType::i64);
      for (std::int64_t i = 0; i < size; ++i) {
        targets.data<std::int64_t>()[i] = labels.data<std::int64_t>()[rows.data<std::int64_t>()[i]];
      }
      for (std::size_t p = 0; p < pupils.size(); ++p) {
        autograd::Tape tape;
        const Tensor loss = ops::cross_entropy((*pupils[p])(batch), targets);
        tape.backward(loss);
        pupils[p]->optimizer.step(pupils[p]->lr * scale);
        pupils[p]->store.zero_grad();
        results[p].train_loss +=
            static_cast<double>(loss.item()) * static_cast<double>(size) / static_cast<double>(count);
      }
    }
    for (std::size_t p = 0; p < pupils.size(); ++p) {
      results[p].test = judge_features(*pupils[p], test);
      if (results[p].test.top1 > results[p].best_top1) {
        results[p].best_top1 = results[p].test.top1;
        results[p].best_epoch = epoch + 1;
      }
    }
    if (options.progress) {
      options.progress(epoch + 1, options.epochs);
    }
  }
  for (LinearClassifierResult& result : results) {
    result.weight = result.weight.detach();
    result.bias = result.bias.detach();
  }
  return results;
}

}  // namespace vitrail::train
