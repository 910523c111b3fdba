#include "vitrail/train/study/frames.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/charts/chart.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/study/confusion.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {
namespace {

using Kind = models::FrameTarget::Kind;

double in_turn(double degrees) {
  const double rest = std::fmod(degrees, 360.0);
  return rest < 0 ? rest + 360 : rest;
}

std::vector<double> angles_in(const data::SequenceBatch& batch, const data::Sequences& data) {
  std::vector<double> angles;
  std::size_t row = 0;
  const auto* lengths = batch.lengths.data<std::int64_t>();
  for (std::size_t b = 0; b < batch.sequences.size(); ++b) {
    for (std::int64_t t = 0; t < lengths[b]; ++t, ++row) {
      angles.push_back(angle_of(data, batch.sequences[b], batch.frames[row], batch.places[row]));
    }
  }
  return angles;
}

// The classes that the outputs are compared with: of the sequences, of the frames, or the bins of their angles.
std::vector<std::int64_t> classes_in(const data::SequenceBatch& batch, const data::Sequences& data,
                                     const models::FrameTarget& target) {
  std::vector<std::int64_t> classes;
  if (target.kind == Kind::sequence) {
    for (const std::int64_t sequence : batch.sequences) {
      classes.push_back(data.sequences[static_cast<std::size_t>(sequence)].label);
    }
  } else if (target.kind == Kind::frames) {
    for (const std::int64_t frame : batch.frames) {
      classes.push_back(data.frame_labels[static_cast<std::size_t>(frame)]);
    }
  } else {
    for (const double angle : angles_in(batch, data)) {
      classes.push_back(std::llround(angle / 360 * static_cast<double>(target.bins)) % target.bins);
    }
  }
  return classes;
}

// The angles that outputs [N, 2] or [N, bins] say.
std::vector<double> predicted_angles(const Tensor& outputs, const models::FrameTarget& target) {
  std::vector<double> angles;
  if (target.bins > 0) {
    const Tensor bins = ops::argmax(outputs, 1);
    for (const std::int64_t bin : bins.span<std::int64_t>()) {
      angles.push_back(360.0 * static_cast<double>(bin) / static_cast<double>(target.bins));
    }
    return angles;
  }
  const std::vector<float> y = outputs.values();
  for (std::size_t i = 0; i < y.size(); i += 2) {
    angles.push_back(
        in_turn(std::atan2(static_cast<double>(y[i + 1]), static_cast<double>(y[i])) * 180 / std::numbers::pi));
  }
  return angles;
}

// The predictions for the sequences of a batch.
std::vector<FramePrediction> predictions_of(const Tensor& outputs, const data::SequenceBatch& batch,
                                            const data::Sequences& data, const models::FrameTarget& target,
                                            bool labeled) {
  const bool angles = target.kind == Kind::angle;
  const std::vector<double> found = angles ? predicted_angles(outputs, target) : std::vector<double>();
  const std::vector<double> truth = angles && labeled ? angles_in(batch, data) : std::vector<double>();
  const Tensor best = angles ? Tensor() : ops::argmax(outputs, 1);
  const Tensor probabilities = angles ? Tensor() : ops::softmax(outputs, 1);
  const std::vector<std::int64_t> classes =
      !angles && labeled ? classes_in(batch, data, target) : std::vector<std::int64_t>();
  std::vector<FramePrediction> result;
  std::int64_t first = 0;
  for (std::size_t b = 0; b < batch.sequences.size(); ++b) {
    const std::int64_t count = batch.lengths.data<std::int64_t>()[b];
    const std::int64_t row = target.each_frame() ? first : static_cast<std::int64_t>(b);
    const std::int64_t rows = target.each_frame() ? count : 1;
    const auto part = [](const auto& all, std::int64_t begin, std::int64_t size) {
      using Values = std::decay_t<decltype(all)>;
      return all.empty() ? Values() : Values(all.begin() + begin, all.begin() + begin + size);
    };
    FramePrediction prediction;
    prediction.sequence = batch.sequences[b];
    prediction.frames = part(batch.frames, first, count);
    prediction.angles = part(found, first, angles ? count : 0);
    prediction.true_angles = part(truth, first, angles ? count : 0);
    prediction.true_classes = part(classes, row, rows);
    if (!angles) {
      const auto values = best.span<std::int64_t>();
      prediction.classes.assign(values.begin() + row, values.begin() + row + rows);
      prediction.probabilities = probabilities.narrow(0, row, rows).contiguous();
    }
    result.push_back(std::move(prediction));
    first += count;
  }
  return result;
}

// The share of right classes in per cent, or the mean error of angles in degrees.
double main_figure(const std::vector<FramePrediction>& predictions, bool angles) {
  double sum = 0;
  std::size_t count = 0;
  for (const FramePrediction& p : predictions) {
    for (std::size_t i = 0; i < p.true_angles.size(); ++i) {
      sum += angle_between(p.angles[i], p.true_angles[i]);
    }
    for (std::size_t i = 0; i < p.true_classes.size(); ++i) {
      sum += p.classes[i] == p.true_classes[i] ? 100 : 0;
    }
    count += angles ? p.true_angles.size() : p.true_classes.size();
  }
  return sum / static_cast<double>(count);
}

Confusion confusion_of(const FrameEvaluation& evaluation, const std::vector<std::string>& classes) {
  Confusion confusion(classes);
  for (const FramePrediction& p : evaluation.predictions) {
    confusion.add(Tensor::from(p.classes, {std::ssize(p.classes)}), p.true_classes);
  }
  return confusion;
}

void put_prediction(dist::Packer& packer, const FramePrediction& prediction) {
  packer.put(prediction.sequence);
  packer.put_all(prediction.frames);
  packer.put_all(prediction.angles);
  packer.put_all(prediction.true_angles);
  packer.put_all(prediction.classes);
  packer.put_all(prediction.true_classes);
  packer.put(prediction.probabilities.defined());
  if (prediction.probabilities.defined()) {
    packer.put_tensor(prediction.probabilities);
  }
}

FramePrediction get_prediction(dist::Unpacker& unpacker) {
  FramePrediction prediction;
  prediction.sequence = unpacker.get<std::int64_t>();
  prediction.frames = unpacker.get_all<std::int64_t>();
  prediction.angles = unpacker.get_all<double>();
  prediction.true_angles = unpacker.get_all<double>();
  prediction.classes = unpacker.get_all<std::int64_t>();
  prediction.true_classes = unpacker.get_all<std::int64_t>();
  if (unpacker.get<bool>()) {
    prediction.probabilities = unpacker.get_tensor();
  }
  return prediction;
}

}  // namespace

data::SequenceOptions sequence_options(const models::FrameTarget& target, const std::vector<std::string>& classes) {
  using Labels = data::SequenceOptions::Labels;
  data::SequenceOptions options;
  options.labels = target.kind == Kind::sequence ? Labels::sequences
                   : target.kind == Kind::frames ? Labels::frames
                                                 : Labels::if_any;
  options.classes = target.kind == Kind::angle ? std::vector<std::string>() : classes;
  return options;
}

double angle_of(const data::Sequences& data, std::int64_t sequence, std::int64_t frame, std::int64_t place) {
  if (!data.angles.empty()) {
    return in_turn(data.angles[static_cast<std::size_t>(frame)]);
  }
  const auto steps = std::ssize(data.sequences[static_cast<std::size_t>(sequence)].frames);
  return 360.0 * static_cast<double>(place) / static_cast<double>(steps);
}

double angle_between(double a, double b) {
  const double difference = in_turn(a - b);
  return std::min(difference, 360 - difference);
}

Tensor frame_loss(const Tensor& outputs, const data::SequenceBatch& batch, const data::Sequences& data,
                  const models::FrameTarget& target, float smoothing) {
  if (target.kind == Kind::angle && target.bins == 0) {
    std::vector<float> points;
    for (const double angle : angles_in(batch, data)) {
      points.push_back(static_cast<float>(std::cos(angle * std::numbers::pi / 180)));
      points.push_back(static_cast<float>(std::sin(angle * std::numbers::pi / 180)));
    }
    return ops::multiply(ops::mse_loss(outputs, Tensor::from(points, outputs.shape())), 2);  // of both numbers together
  }
  const std::vector<std::int64_t> classes = classes_in(batch, data, target);
  return ops::cross_entropy(outputs, Tensor::from(classes, {std::ssize(classes)}), smoothing);
}

std::vector<FigureKind> frame_figures(const models::FrameTarget& target) {
  if (target.kind == Kind::angle) {
    return {FigureKind{.name = "error",
                       .label = "error",
                       .unit = "degrees",
                       .decimals = 1,
                       .chart = "Error of the angle",
                       .axis = "degrees, the mean of all frames"},
            loss_figure(target.bins > 0 ? "cross-entropy" : "squared distance")};
  }
  return {FigureKind{.name = "accuracy",
                     .label = "accuracy",
                     .unit = "%",
                     .decimals = 2,
                     .higher_is_better = true,
                     .chart = "Accuracy",
                     .axis = target.each_frame() ? "% of the frames" : "% of the sequences",
                     .axis_max = 100},
          loss_figure("cross-entropy")};
}

FrameEvaluation run_frames(const models::FrameNetwork& model, const data::Sequences& data,
                           const std::vector<std::int64_t>& numbers, const FrameRunOptions& options) {
  const autograd::NoGrad no_grad;
  data::SequenceLoaderOptions loading;
  loading.batch_size = options.batch_size;
  loading.workers = options.workers;
  loading.skip_broken = options.skip_broken;
  loading.circular = options.turned;
  data::SequenceLoader loader(data, numbers, data::eval_transform(model.encoder.pretrained), loading);
  FrameEvaluation result;
  LossMean loss;
  const auto judge = [&](const data::SequenceBatch& batch, dist::Packer& packer) {
    nn::Pass pass{.dtype = options.dtype};
    const Tensor outputs = model.outputs(batch.x, batch.lengths, pass);
    packer.put(options.labeled ? static_cast<double>(frame_loss(outputs, batch, data, model.target).item()) : 0.0);
    packer.put(outputs.size(0));
    const auto predictions = predictions_of(outputs, batch, data, model.target, options.labeled);
    packer.put(std::ssize(predictions));
    for (const FramePrediction& prediction : predictions) {
      put_prediction(packer, prediction);
    }
    return std::ssize(predictions);
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const auto of_batch = unpacker.get<double>();
    loss.add({of_batch, unpacker.get<std::int64_t>()});
    for (auto left = unpacker.get<std::ptrdiff_t>(); left > 0; --left) {
      result.predictions.push_back(get_prediction(unpacker));
    }
  };
  const auto progress = [&](std::int64_t done, std::int64_t) {
    if (options.progress) {
      options.progress(done);
    }
  };
  result.broken =
      share_batches<data::SequenceBatch>(loader, {options.ranks, progress, std::ssize(numbers)}, judge, take);
  loader.check_any(std::ssize(result.predictions), "read");
  if (options.labeled) {
    const std::vector<FigureKind> kinds = frame_figures(model.target);
    result.figures = {{kinds[0].name, main_figure(result.predictions, model.target.kind == Kind::angle)},
                      {"loss", loss.mean()}};
  }
  return result;
}

std::vector<ClassError> errors_by_class(const FrameEvaluation& evaluation, const data::Sequences& data) {
  std::vector<ClassError> result;
  for (const std::string& name : data.classes) {
    result.push_back({name, 0, 0});
  }
  if (result.empty()) {
    return result;
  }
  for (const FramePrediction& p : evaluation.predictions) {
    ClassError& own = result[static_cast<std::size_t>(data.sequences[static_cast<std::size_t>(p.sequence)].label)];
    for (std::size_t i = 0; i < p.true_angles.size(); ++i) {
      own.error += angle_between(p.angles[i], p.true_angles[i]);
      ++own.frames;
    }
  }
  std::erase_if(result, [](const ClassError& one) { return one.frames == 0; });
  for (ClassError& one : result) {
    one.error /= static_cast<double>(one.frames);
  }
  return result;
}

std::string frames_svg(const FrameEvaluation& evaluation, const data::Sequences& data,
                       const models::FrameTarget& target) {
  if (target.kind != Kind::angle) {
    return confusion_svg(confusion_of(evaluation, target.classes), target.each_frame() ? "frames" : "sequences");
  }
  std::map<std::int64_t, io::Series> by_class;
  for (const FramePrediction& p : evaluation.predictions) {
    const std::int64_t label = data.sequences[static_cast<std::size_t>(p.sequence)].label;
    io::Series& dots = by_class[label];
    dots.name = label == data::unlabeled ? "" : data.classes[static_cast<std::size_t>(label)];
    dots.points = true;
    for (std::size_t i = 0; i < p.true_angles.size(); ++i) {
      for (const double y : {p.angles[i], std::nan("")}) {  // dots without lines between them
        dots.x.push_back(p.true_angles[i]);
        dots.y.push_back(y);
      }
    }
  }
  io::LineChart chart;
  chart.title = "Angles of frames";
  chart.x_label = "true angle, degrees";
  chart.y_label = "predicted angle, degrees";
  chart.y_min = 0;
  chart.y_max = 360;
  chart.series.emplace_back();
  chart.series.back().x = {0, 360};
  chart.series.back().y = {0, 360};
  chart.series.back().faint = true;
  for (auto& [label, series] : by_class) {
    chart.series.push_back(std::move(series));
  }
  return io::line_charts_svg({chart}, 560, 480);
}

}  // namespace vitrail::train
