#include "vitrail/train/study/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/loader.h"
#include "vitrail/dist/packed.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/train/finite.h"
#include "vitrail/train/image_options.h"
#include "vitrail/train/study/confusion.h"

namespace vitrail::train {
namespace {

// The judgement of one row of logits by its label.
struct Verdict {
  std::int64_t predicted = 0;
  std::int64_t rank = 0;  // the number of classes that are more likely than the label
  double loss = 0;
};

Verdict judge(const float* logits, std::int64_t num_classes, std::int64_t label) {
  Verdict verdict;
  const float own = logits[label];
  float largest = logits[0];
  for (std::int64_t c = 1; c < num_classes; ++c) {
    if (logits[c] > largest) {
      largest = logits[c];
      verdict.predicted = c;
    }
  }
  double sum = 0;
  for (std::int64_t c = 0; c < num_classes; ++c) {
    sum += std::exp(static_cast<double>(logits[c]) - static_cast<double>(largest));
    // Of equal logits the first wins, as in argmax. If the logit of the label is NaN, every class is ahead of it.
    verdict.rank += logits[c] > own || (logits[c] == own && c < label) || std::isnan(own) ? 1 : 0;
  }
  verdict.loss = std::log(sum) + static_cast<double>(largest) - static_cast<double>(own);
  return verdict;
}

// Sums the verdicts on several rows, and returns their means.
class Tally {
 public:
  void add(const Verdict& verdict) {
    right_ += verdict.rank < 1 ? 1 : 0;
    among_five_ += verdict.rank < 5 ? 1 : 0;
    loss_ += verdict.loss;
    ++count_;
  }
  Accuracy accuracy() const {
    const auto count = static_cast<double>(count_);
    return {loss_ / count, 100.0 * static_cast<double>(right_) / count,
            100.0 * static_cast<double>(among_five_) / count};
  }

 private:
  std::int64_t right_ = 0;
  std::int64_t among_five_ = 0;
  std::int64_t count_ = 0;
  double loss_ = 0;
};

// What has come of the images of an evaluation, each in turn.
struct Judged {
  std::vector<std::int64_t> indices;  // in the data set
  std::vector<std::int64_t> labels;
  std::vector<Verdict> verdicts;  // on its logits, and on those of each head if there are several
};

// Images [B, C, H, W], mirrored left to right.
Tensor mirrored(const Tensor& x) {
  Tensor result = x.contiguous().clone();
  const std::int64_t width = x.size(3);
  float* row = result.data<float>();
  for (std::int64_t i = 0; i < x.numel() / width; ++i, row += width) {
    std::reverse(row, row + width);
  }
  return result;
}

// Images [B, C, H, W], moved by so many pixels to the right and down; what comes in is mirrored at the border.
Tensor shifted(const Tensor& x, std::int64_t by) {
  const Tensor from = x.contiguous();
  Tensor result = Tensor::empty(x.shape());
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  const auto source = [](std::int64_t at, std::int64_t size) {
    return at < 0 ? std::min(-at, size - 1) : (at >= size ? std::max(2 * size - 2 - at, std::int64_t{0}) : at);
  };
  for (std::int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane) {
    const float* in = from.data<float>() + plane * height * width;
    float* out = result.data<float>() + plane * height * width;
    for (std::int64_t i = 0; i < height; ++i) {
      const float* row = in + source(i - by, height) * width;
      for (std::int64_t j = 0; j < width; ++j) {
        *out++ = row[source(j - by, width)];
      }
    }
  }
  return result;
}

// The logits of each head for a batch of images. If `tta` is 2, they are averaged with those of their mirror images; if
// it is 6, half of that comes from both views of the images moved by a pixel along the diagonal, either way
// (airbench94).
std::vector<Tensor> augmented_forward(const Forward& forward, const Tensor& x, DType dtype, std::int64_t tta) {
  const autograd::NoGrad no_grad;
  nn::Pass pass;
  pass.dtype = dtype;
  std::vector<Tensor> heads = forward(x, pass);
  const auto add = [&](const Tensor& view, float share) {
    const std::vector<Tensor> others = forward(view, pass);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      heads[h] = heads[h] * (1 - share) + others[h] * share;
    }
  };
  if (tta >= 2) {
    add(mirrored(x), 0.5F);
  }
  if (tta == 6) {
    float weight = 0.5F;  // what the views so far have in the end: half the first two, an eighth each other
    for (const std::int64_t by : {1, -1}) {
      const Tensor view = shifted(x, by);
      for (const Tensor& one : {view, mirrored(view)}) {
        weight += 0.125F;
        add(one, 0.125F / weight);
      }
    }
  }
  for (Tensor& head : heads) {
    head = head.contiguous();
  }
  return heads;
}

}  // namespace

BatchSharing sharing(const EvaluateOptions& options, std::int64_t total) {
  return {options.ranks, options.progress, total};
}

EvaluateOptions evaluation_options(const ImageTaskOptions& options, const Work& work) {
  EvaluateOptions result;
  result.batch_size = options.validation_batch_size.value_or(options.batch_size);
  result.dtype = work.dtype;
  result.workers = static_cast<int>(options.workers);
  result.skip_broken = options.skip_broken;
  result.ranks = work.ranks;
  result.progress = [advance = work.advance](std::int64_t done, std::int64_t) { advance(done); };
  return result;
}

std::vector<FigureKind> accuracy_figures() {
  const auto accuracy = [](const char* name, const char* label) {
    return accuracy_figure(name, label, "% of the images");
  };
  return {accuracy("top1", "top-1"), accuracy("top5", "top-5"), loss_figure("cross-entropy")};
}

void check_tta(std::int64_t tta) {
  check(tta == 0 || tta == 2 || tta == 6,
        "--tta takes 0 (the image alone), 2 (and its mirror image) or 6 (both also moved by a pixel), not {}", tta);
}

std::int64_t Evaluation::class_count(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t c = 0; c < num_classes(); ++c) {
    sum += confusion[static_cast<std::size_t>(label * num_classes() + c)];
  }
  return sum;
}

double Evaluation::class_accuracy(std::int64_t label) const {
  const std::int64_t all = class_count(label);
  const std::int64_t right = confusion[static_cast<std::size_t>(label * (num_classes() + 1))];
  return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : 100.0 * static_cast<double>(right) / static_cast<double>(all);
}

data::LoaderOptions loading(const EvaluateOptions& options) {
  data::LoaderOptions result;
  result.batch_size = options.batch_size;
  result.workers = options.workers;
  result.skip_broken = options.skip_broken;
  return result;
}

data::LoaderOptions loading(const models::Model& model, const EvaluateOptions& options) {
  data::LoaderOptions result = loading(options);
  result.num_classes = model.net->num_classes();
  return result;
}

Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options) {
  data::Loader loader(dataset, data::eval_transform(model.pretrained), loading(model, options));
  const Forward forward = [&](const Tensor& x, nn::Pass& pass) { return model.net->forward_heads(x, pass); };
  return evaluate(model, dataset, loader, forward, options);
}

Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, data::Loader& loader,
                    const Forward& forward, const EvaluateOptions& options) {
  check_tta(options.tta);
  const std::int64_t num_classes = model.net->num_classes();
  const auto data_classes = static_cast<std::int64_t>(dataset.classes().size());
  check(num_classes > 0, "the model '{}' has no classifier to evaluate (num_classes is 0)", model.architecture);
  check(data_classes <= num_classes, "the images are of {}, but the model tells only {} apart",
        io::counted(data_classes, "classes"), num_classes);
  const models::ProblemType type = model.pretrained.problem_type;
  check(type == models::ProblemType::single_label_classification,
        "the classes of the model '{}' do not exclude each other (its 'problem_type' is '{}'), but each image has one "
        "label",
        model.architecture, models::name_of(type));
  Evaluation result;
  result.classes = class_names(model);
  for (std::size_t i = 0; i < dataset.classes().size() && model.pretrained.label_names.empty(); ++i) {
    result.classes[i] = dataset.classes()[i];
  }
  result.confusion.resize(static_cast<std::size_t>(num_classes * num_classes));
  const autograd::NoGrad no_grad;
  const auto began = std::chrono::steady_clock::now();
  Judged judged;
  const auto judge_batch = [&](const data::Batch& batch, dist::Packer& packer) {
    const std::vector<Tensor> heads = augmented_forward(forward, batch.x, options.dtype, options.tta);
    const bool several = heads.size() > 1;
    const Tensor logits = several ? (heads[0] + heads[1]) * 0.5F : heads[0];
    check_finite(logits);
    std::vector<std::int64_t> labels;
    std::vector<Verdict> verdicts;
    for (std::int64_t i = 0; i < logits.size(0); ++i) {
      const std::int64_t label = batch.labels.data<std::int64_t>()[i];
      labels.push_back(label);
      verdicts.push_back(judge(logits.data<float>() + i * num_classes, num_classes, label));
      for (std::size_t h = 0; several && h < heads.size(); ++h) {
        verdicts.push_back(judge(heads[h].data<float>() + i * num_classes, num_classes, label));
      }
    }
    packer.put_all(batch.indices);
    packer.put_all(labels);
    packer.put_all(verdicts);
    return logits.size(0);
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(judged.indices, unpacker.get_all<std::int64_t>());
    append(judged.labels, unpacker.get_all<std::int64_t>());
    append(judged.verdicts, unpacker.get_all<Verdict>());
  };
  result.broken = share_batches<data::Batch>(loader, sharing(options, dataset.size()), judge_batch, take);
  result.count = std::ssize(judged.labels);
  loader.check_any(result.count, "evaluate");
  const std::size_t each = judged.labels.empty() ? 1 : judged.verdicts.size() / judged.labels.size();
  std::vector<Tally> tallies(each);
  for (std::size_t i = 0; i < judged.verdicts.size(); ++i) {
    tallies[i % each].add(judged.verdicts[i]);
  }
  for (std::size_t i = 0; i < judged.labels.size(); ++i) {
    const std::int64_t predicted = judged.verdicts[i * each].predicted;
    ++result.confusion[static_cast<std::size_t>(judged.labels[i] * num_classes + predicted)];
    result.predictions.push_back(predicted);
  }
  static_cast<Accuracy&>(result) = tallies.front().accuracy();
  for (std::size_t h = 1; h < each; ++h) {
    result.heads.push_back(tallies[h].accuracy());
  }
  result.indices = std::move(judged.indices);
  result.seconds = seconds_since(began);
  result.images_per_second = static_cast<double>(result.count) / result.seconds;
  return result;
}

std::string confusion_svg(const Evaluation& evaluation) {
  Confusion confusion(evaluation.classes);
  confusion.counts = evaluation.confusion;
  return confusion_svg(confusion, "images");
}

Tensor predict(const models::Model& model, const std::vector<io::Image>& images, DType dtype, std::int64_t batch_size,
               std::int64_t tta) {
  check_tta(tta);
  check(batch_size > 0, "the batch size must be at least 1, but is {}", batch_size);
  const std::int64_t num_classes = model.net->num_classes();
  check(num_classes > 0, "the model '{}' has no classifier to predict with (num_classes is 0)", model.architecture);
  const data::Transform transform = data::eval_transform(model.pretrained);
  const auto count = static_cast<std::int64_t>(images.size());
  const Forward forward = [&](const Tensor& x, nn::Pass& pass) { return std::vector{model.net->forward(x, pass)}; };
  Tensor result = Tensor::empty({count, num_classes});
  for (std::int64_t begin = 0; begin < count; begin += batch_size) {
    const std::int64_t size = std::min(batch_size, count - begin);
    const Shape shape = transform.shape();
    Tensor x = Tensor::empty(shape.inserted(0, size));
    for (std::int64_t i = 0; i < size; ++i) {
      transform.apply(images[static_cast<std::size_t>(begin + i)], 0, 0, 0, x.data<float>() + i * shape.numel());
    }
    const Tensor logits = augmented_forward(forward, x, dtype, tta).front();
    check_finite(logits);
    result.narrow(0, begin, size).copy_from(models::class_scores(model.pretrained.problem_type, logits));
  }
  return result;
}

std::vector<std::string> class_names(const models::Model& model) {
  std::vector<std::string> names = model.pretrained.label_names;
  for (auto i = static_cast<std::int64_t>(names.size()); i < model.net->num_classes(); ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

}  // namespace vitrail::train
