#include "vitrail/train/bench/benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/peak.h"
#include "vitrail/models/quantize.h"
#include "vitrail/tensor/allocator.h"
#include "vitrail/train/bench/profile_report.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/tasks/loss.h"
#include "vitrail/train/tasks/pretrain_mae.h"

namespace vitrail::train {
namespace {

// A batch with normally distributed pixels, and labels that go through the classes in turn.
data::Batch random_batch(const models::Model& model, std::int64_t batch_size) {
  data::Batch batch;
  batch.x = Tensor::empty(models::input_shape(model).inserted(0, batch_size));
  const Philox draws(0, hash("benchmark"));
  const std::span<float> pixels = batch.x.span<float>();
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = draws.normal(i);
  }
  batch.labels = Tensor::empty({batch_size}, DType::i64);
  for (std::int64_t i = 0; i < batch_size; ++i) {
    batch.labels.data<std::int64_t>()[i] = i % std::max<std::int64_t>(model.net->num_classes(), 1);
  }
  return batch;
}

// The durations of the timed steps in milliseconds, sorted; steps that warm up come before. The events of the timed
// steps go to `events`.
std::vector<double> times(const BenchmarkOptions& options, const std::function<void(std::int64_t)>& step,
                          std::vector<Profile::Event>& events) {
  std::vector<double> result;
  std::optional<Profile> profile;
  for (std::int64_t i = 0; i < options.warmup + options.steps; ++i) {
    if (options.profile && i == options.warmup) {
      profile.emplace();
    }
    const auto begin = std::chrono::steady_clock::now();
    step(i);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    if (i >= options.warmup) {
      result.push_back(passed.count());
    }
  }
  if (profile) {
    events = profile->events();
  }
  std::ranges::sort(result);
  return result;
}

std::vector<double> time_training(const BenchmarkOptions& options, models::Model& model, DType dtype,
                                  const data::Batch& batch, std::vector<Profile::Event>& events) {
  check(options.pretraining || model.net->num_classes() > 0,
        "the model '{}' has no classifier to train (num_classes is 0)", model.architecture);
  RunOptions training;  // AdamW with its defaults; the learning rate is small, so that random labels do no harm
  training.lr = 1e-5;
  training.epochs = 1;
  training.schedule.sched = "none";
  Learner learner(training, *model.net, options.warmup + options.steps, dtype);
  const Loss loss = [&](nn::Pass& pass) {
    return options.pretraining ? masked_autoencoding_loss(*models::masked_autoencoder(model), batch.x, pass)
                               : batch_loss(*model.net, batch, pass, {});
  };
  const auto step = [&](std::int64_t number) { learner.step(loss, static_cast<std::uint64_t>(number), number); };
  return times(options, step, events);
}

std::vector<double> time_inference(const BenchmarkOptions& options, const models::Model& model, DType dtype,
                                   const data::Batch& batch, std::vector<Profile::Event>& events) {
  const autograd::NoGrad no_grad;
  const auto step = [&](std::int64_t) {
    nn::Pass pass;
    pass.dtype = dtype;
    model.net->forward(batch.x, pass);
  };
  return times(options, step, events);
}

// The matrix peak in GF/s: of a product of a fixed size, or of the model's largest linear map with the tokens of a
// batch if that is faster. Maps of the head, which see one row an image, do not count.
double measure_peak(const models::Model& model, DType dtype, std::int64_t batch_size) {
  Shape largest;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Shape& shape = parameter.value.shape();
    const bool linear = shape.rank() == 2 || (shape.rank() == 4 && shape[2] * shape[3] == 1);
    if (linear && parameter.name.ends_with("weight") && !model.net->is_head(parameter.name) &&
        (largest.rank() == 0 || shape.numel() > largest.numel())) {
      largest = shape;
    }
  }
  double peak = kernels::measure_peak_gflops(dtype);
  if (largest.rank() > 0) {
    const models::TokenLayout layout = model.net->token_layout(model.pretrained.height, model.pretrained.width);
    const std::int64_t rows = batch_size * (layout.prefix + layout.rows * layout.columns);
    peak = std::max(peak, kernels::measure_peak_gflops(dtype, std::max<std::int64_t>(rows, 1), largest[1], largest[0]));
  }
  return peak;
}

std::int64_t resident_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

BenchmarkResult benchmark(const BenchmarkOptions& options) {
  check(options.batch_size > 0 && options.steps > 0 && options.warmup >= 0,
        "a benchmark takes at least one image and one step, not a batch of {}, {} steps and {} before them",
        options.batch_size, options.steps, options.warmup);
  BenchmarkResult result;
  const DType dtype = usable_dtype(options.dtype, &result.note);
  models::Model model = options.pretraining
                            ? models::open_masked_autoencoder(options.model, options.create, *options.pretraining)
                            : models::open_model(options.model, options.create);
  if (options.int8) {
    check(!options.training, "int8 is for inference: a model is trained in f32 or bf16");
    model = models::quantize(model);
  }
  const bool int8 = models::is_quantized(*model.net);
  if (int8 && !kernels::has_int8()) {
    result.note = "this CPU has no int8 instructions: the products run in float32";
  }
  const DType product = int8 ? DType::i8 : dtype;
  const data::Batch batch = random_batch(model, options.batch_size);
  // The peak of the machine is measured before and after, as other programs slow it down, and nothing makes it faster.
  result.peak_gflops = measure_peak(model, product, options.batch_size);
  Allocator::instance().trim();  // frees the memory of that measurement
  Allocator::instance().reset_peak();
  const std::vector<double> milliseconds = options.training
                                               ? time_training(options, model, dtype, batch, result.events)
                                               : time_inference(options, model, dtype, batch, result.events);
  result.peak_tensor_bytes = static_cast<std::int64_t>(Allocator::instance().statistics().peak);
  result.peak_memory_bytes = resident_peak();
  result.peak_gflops = std::max(result.peak_gflops, measure_peak(model, product, options.batch_size));
  if (options.profile) {
    result.bandwidth = kernels::measure_bandwidth();
  }

  result.model = model.architecture;
  result.mode = options.pretraining ? "pretrain" : options.training ? "train" : "infer";
  result.dtype = int8 ? "int8" : std::string(name_of(dtype));
  result.batch_size = options.batch_size;
  result.steps = options.steps;
  result.step_ms_min = milliseconds.front();
  const std::size_t half = milliseconds.size() / 2;
  result.step_ms_median =
      milliseconds.size() % 2 == 1 ? milliseconds[half] : (milliseconds[half - 1] + milliseconds[half]) / 2;
  result.images_per_second = 1e3 * static_cast<double>(options.batch_size) / result.step_ms_median;
  const std::int64_t forward_flops = options.pretraining
                                         ? models::masked_autoencoder(model)->pretraining_flops()
                                         : model.net->flops(model.pretrained.height, model.pretrained.width);
  result.flops_per_image = 2.0 * static_cast<double>(forward_flops) * (options.training ? 3 : 1);
  result.mfu = result.flops_per_image * static_cast<double>(options.batch_size) / (result.step_ms_min * 1e-3) /
               (result.peak_gflops * 1e9);
  result.parameters = model.net->parameters.count();
  result.threads = kernels::threads();
  result.cpu = kernels::cpu_name();
  return result;
}

double fastest_forward_ms(const models::Model& model, std::int64_t batch_size, DType dtype) {
  BenchmarkOptions options;
  options.warmup = 3;
  options.steps = 10;
  std::vector<Profile::Event> none;
  return time_inference(options, model, dtype, random_batch(model, batch_size), none).front();
}

std::string to_json(const BenchmarkResult& result) {
  nlohmann::ordered_json json;
  json["model"] = result.model;
  json["mode"] = result.mode;
  json["dtype"] = result.dtype;
  json["batch_size"] = result.batch_size;
  json["steps"] = result.steps;
  json["step_ms"] = {{"min", result.step_ms_min}, {"median", result.step_ms_median}};
  json["images_per_second"] = result.images_per_second;
  json["flops_per_image"] = result.flops_per_image;
  json["peak_gflops"] = result.peak_gflops;
  json["mfu"] = result.mfu;
  json["peak_memory_bytes"] = result.peak_memory_bytes;
  json["peak_tensor_bytes"] = result.peak_tensor_bytes;
  json["parameters"] = result.parameters;
  json["threads"] = result.threads;
  json["cpu"] = result.cpu;
  if (!result.events.empty()) {
    json["bandwidth_gbs"] = result.bandwidth;
    for (const ProfileRow& row : profile_rows(result.events, result.steps)) {
      json["profile"].push_back({{"op", row.op},
                                 {"phase", name_of(row.phase)},
                                 {"calls", row.calls},
                                 {"ms", 1e3 * row.seconds},
                                 {"share", row.share},
                                 {"gflops", 1e-9 * row.flops / row.seconds},
                                 {"gbs", 1e-9 * row.bytes / row.seconds}});
    }
  }
  if (!result.note.empty()) {
    json["note"] = result.note;
  }
  return json.dump();
}

}  // namespace vitrail::train
