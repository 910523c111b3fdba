#include "vitrail/train/bench/benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/boxes/box_batches.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/peak.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/allocator.h"
#include "vitrail/tensor/median.h"
#include "vitrail/train/bench/memory.h"
#include "vitrail/train/bench/profile_report.h"
#include "vitrail/train/detection/criterion.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/study/evaluate_translation.h"
#include "vitrail/train/tasks/loss.h"
#include "vitrail/train/tasks/pretrain_mae.h"

namespace vitrail::train {
namespace {

// What is timed, and how much work a step of it is.
struct Subject {
  std::string model;
  const nn::Network* net = nullptr;
  std::string unit;
  double units = 0;       // of a step
  double flops = 0;       // of a forward pass of a step: 2 · multiply-accumulates of its products
  std::int64_t rows = 0;  // of its linear maps
  std::function<void(std::int64_t)> step;
  std::shared_ptr<void> owner = nullptr;  // of what the step uses
};

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

// A text of random tokens for each sample, and the tokens that follow them.
std::pair<Tensor, Tensor> random_texts(std::int64_t batch_size, std::int64_t length, std::int64_t vocabulary) {
  const Philox draws(0, hash("benchmark"));
  const Tensor ids = Tensor::empty({batch_size, length}, DType::i64);
  const Tensor next = Tensor::empty({batch_size, length}, DType::i64);
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ids.data<std::int64_t>()[i] = draws.word(static_cast<std::uint64_t>(i)) % vocabulary;
    next.data<std::int64_t>()[i] = draws.word(static_cast<std::uint64_t>(i) + 1) % vocabulary;
  }
  return {ids, next};
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

// A step of training by AdamW with its defaults; the learning rate is small, so that random labels do no harm.
std::function<void(std::int64_t)> training_step(nn::Network& net, const BenchmarkOptions& options, DType dtype,
                                                const Loss& loss) {
  RunOptions training;
  training.lr = 1e-5;
  training.epochs = 1;
  training.schedule.sched = "none";
  const auto learner = std::make_shared<Learner>(training, net, options.warmup + options.steps, dtype);
  if (!options.watch) {
    return [learner, loss](std::int64_t number) { learner->step(loss, static_cast<std::uint64_t>(number), number); };
  }
  return [learner, loss, &net, watch = *options.watch](std::int64_t number) {
    watch.begins(net.parameters);
    learner->accumulate(loss, static_cast<std::uint64_t>(number), 1,
                        [&](autograd::Slot& leaf) { watch.complete(leaf); });
    watch.computed();
    learner->update(number);
    watch.updated();
  };
}

Subject image_subject(const BenchmarkOptions& options, DType dtype) {
  const auto model = std::make_shared<models::Model>(
      options.pretraining ? models::open_masked_autoencoder(options.model, options.create, *options.pretraining)
                          : models::open_model(options.model, options.create));
  if (options.int8) {
    check(!options.training, "int8 is for inference: a model is trained in f32 or bf16");
    *model = models::quantize(*model);
  }
  const std::int64_t height = model->pretrained.height, width = model->pretrained.width;
  const std::int64_t forward =
      options.pretraining ? models::masked_autoencoder(*model)->pretraining_flops() : model->net->flops(height, width);
  const models::TokenLayout layout = model->net->token_layout(height, width);
  const auto count = static_cast<double>(options.batch_size);
  Subject subject{.model = model->architecture,
                  .net = model->net.get(),
                  .unit = "image",
                  .units = count,
                  .flops = 2.0 * static_cast<double>(forward) * count,
                  .rows = options.batch_size * (layout.prefix + layout.rows * layout.columns),
                  .step = {},
                  .owner = model};
  const data::Batch batch = random_batch(*model, options.batch_size);
  if (!options.training) {
    subject.step = [model, batch, dtype](std::int64_t) {
      const autograd::NoGrad no_grad;
      nn::Pass pass{.dtype = dtype};
      model->net->forward(batch.x, pass);
    };
    return subject;
  }
  check(options.pretraining || model->net->num_classes() > 0,
        "the model '{}' has no classifier to train (num_classes is 0)", model->architecture);
  const bool pretrains = options.pretraining.has_value();
  subject.step = training_step(*model->net, options, dtype, [model, batch, pretrains](nn::Pass& pass) {
    return pretrains ? masked_autoencoding_loss(*models::masked_autoencoder(*model), batch.x, pass)
                     : batch_loss(*model->net, batch, pass, {});
  });
  return subject;
}

// Pairs of random tokens with the lengths that the options name, in one batch.
std::vector<TokenPair> random_pairs(const BenchmarkOptions& options, const models::Translator& body) {
  check(!options.pair_lengths.empty(),
        "a translator is trained on pairs of sentences: the lengths of some are to be given");
  const Philox draws(0, hash("benchmark"));
  std::uint64_t drawn = 0;
  const auto text = [&](std::int64_t length, std::int64_t vocabulary) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(length));
    std::ranges::generate(ids, [&] { return draws.word(drawn++) % vocabulary; });
    return ids;
  };
  std::vector<TokenPair> pairs;
  std::int64_t tokens = 0;
  for (std::size_t i = 0;; ++i) {
    const auto [source, target] = options.pair_lengths[i % options.pair_lengths.size()];
    check(source > 0 && target > 0, "a pair of {} and {} tokens cannot be learned from", source, target);
    const std::int64_t longest = std::max(source, target);
    check(longest <= body.max_positions(), "a text of {} tokens is longer than the {} positions of '{}'", longest,
          body.max_positions(), options.model);
    tokens += target;
    if (tokens > options.batch_size && !pairs.empty()) {
      return pairs;
    }
    pairs.push_back({text(source, body.source_vocab_size()), text(target, body.target_vocab_size())});
  }
}

// A step of training a translator, as the task of translation takes it.
Subject translator_subject(const BenchmarkOptions& options, const std::shared_ptr<models::TextModel>& model,
                           DType dtype) {
  const models::Translator& body = models::translator_of(*model);
  const std::vector<TokenPair> pairs = random_pairs(options, body);
  std::vector<const TokenPair*> all;
  double products = 0;
  for (const TokenPair& pair : pairs) {
    all.push_back(&pair);
    products += static_cast<double>(body.flops(std::ssize(pair.source), std::ssize(pair.target)));
  }
  const PairBatch batch = batch_of(all, {}, usual_row_unit);
  constexpr float smoothing = 0.1F;
  return {
      .model = model->name,
      .net = model->net.get(),
      .unit = "token",
      .units = static_cast<double>(batch.tokens),
      .flops = 2 * products,
      .rows = batch.tokens,
      .step = training_step(*model->net, options, dtype,
                            [&body, batch](nn::Pass& pass) { return translation_loss(body, batch, pass, smoothing); }),
      .owner = model};
}

// The loss of what the heads of a network say of random texts, against random labels: a sum of cross-entropies.
Tensor loss_of_heads(const models::TextNetwork& net, const Tensor& ids, const Tensor& labels, nn::Pass& pass) {
  Tensor sum;
  for (const auto& [name, logits] : net.run({.input_ids = ids}, pass)) {
    const std::int64_t classes = logits.size(-1);
    const Tensor own = Tensor::empty({logits.numel() / classes}, DType::i64);
    std::transform(labels.data<std::int64_t>(), labels.data<std::int64_t>() + own.numel(), own.data<std::int64_t>(),
                   [&](std::int64_t label) { return label % classes; });
    const Tensor loss = ops::cross_entropy(ops::reshape(logits, {-1, classes}), own);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

// Whether it is an encoder that gives states alone, which are learned by guessing masked words.
bool has_no_head(const models::TextModel& model) {
  const auto* const encoder = dynamic_cast<const models::EncoderNetwork*>(model.net.get());
  return encoder != nullptr && encoder->classifier() == nullptr && !encoder->heads.masked;
}

Subject text_subject(const BenchmarkOptions& options, DType dtype) {
  check(!options.pretraining, "'{}' is a language model: it is no masked autoencoder's encoder", options.model);
  check(!options.int8 || !options.training, "int8 is for inference: a model is trained in f32 or bf16");
  models::TextModelOptions create{.model_kwargs = options.create.model_kwargs};
  create.weights = options.int8 ? std::optional(DType::i8) : std::nullopt;
  const auto model = std::make_shared<models::TextModel>(models::open_text_model(options.model, create));
  if (options.training && has_no_head(*model)) {
    create.architecture = models::architecture_for(options.model, "ForMaskedLM");
    *model = models::open_text_model(options.model, create);
  }
  if (options.training && model->net->translator() != nullptr) {
    return translator_subject(options, model, dtype);
  }
  const models::TextShape shape = model->net->shape();
  check(options.seq_len <= shape.max_positions,
        "texts of {} tokens are longer than the {} positions of '{}' (--seq-len)", options.seq_len, shape.max_positions,
        model->name);
  const std::int64_t tokens = options.batch_size * options.seq_len;
  const bool continues = model->net->language() != nullptr;
  Subject subject{
      .model = model->name,
      .net = model->net.get(),
      .unit = continues ? "token" : "sentence",
      .units = static_cast<double>(continues ? tokens : options.batch_size),
      .flops = 2.0 * static_cast<double>(model->net->flops(options.seq_len)) * static_cast<double>(options.batch_size),
      .rows = tokens,
      .step = {},
      .owner = model};
  const auto [ids, next] = random_texts(options.batch_size, options.seq_len, shape.vocab_size);
  if (!options.training) {
    const bool translates = model->net->translator() != nullptr;
    subject.step = [model, translates, ids = ids, next = next, dtype](std::int64_t) {
      const autograd::NoGrad no_grad;
      nn::Pass pass{.dtype = dtype};
      model->net->run({.input_ids = ids, .decoder_input_ids = translates ? next : Tensor()}, pass);
    };
    return subject;
  }
  subject.step = training_step(*model->net, options, dtype, [model, ids = ids, next = next](nn::Pass& pass) {
    return loss_of_heads(*model->net, ids, next, pass);
  });
  return subject;
}

// A detector on images of 4:3, whose shorter side is --img-size or the model's own; in training with ten objects an
// image, a loss for each layer of the decoder, and a backbone that has learnt before.
Subject detector_subject(const BenchmarkOptions& options, DType dtype) {
  check(!options.pretraining && !options.int8, "a detector is timed in f32 or bf16, in training or inference");
  nlohmann::json kwargs = nlohmann::json::parse(options.create.model_kwargs);
  const nlohmann::json img_size = kwargs.contains("img_size") ? kwargs["img_size"] : nlohmann::json();
  kwargs.erase("img_size");
  const std::vector<std::string> labels(static_cast<std::size_t>(options.create.num_classes.value_or(91)), "object");
  const bool folder = models::kind_of(options.model) == models::ModelKind::detector;
  const auto detector = std::make_shared<models::Detector>(
      folder ? models::load_detector(options.model)
             : models::create_detector(options.model, {.labels = labels}, kwargs.dump()));
  if (img_size.is_number_integer()) {  // --img-size
    img_size.get_to(detector->images.shortest_edge);
    detector->images.longest_edge = 2 * detector->images.shortest_edge;
  }
  const auto [width, height] =
      data::detector_size(640, 480, detector->images.shortest_edge, detector->images.longest_edge);
  const nn::Size2 grid = detector->net->grid(height, width);
  const auto count = static_cast<double>(options.batch_size);
  Subject subject{.model = options.model,
                  .net = detector->net.get(),
                  .unit = "image",
                  .units = count,
                  .flops = 2.0 * static_cast<double>(detector->net->flops(height, width)) * count,
                  .rows = options.batch_size * grid[0] * grid[1],
                  .step = {},
                  .owner = detector};
  Tensor x = Tensor::empty({options.batch_size, detector->net->config().backbone.in_chans, height, width});
  const Philox draws(0, hash("benchmark"));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = draws.normal(static_cast<std::uint64_t>(i));
  }
  if (!options.training) {
    subject.step = [detector, x, dtype](std::int64_t) {
      const autograd::NoGrad no_grad;
      nn::Pass pass{.dtype = dtype};
      detector->net->forward({x, {}}, pass);
    };
    return subject;
  }
  detector->net->freeze_backbone();
  std::vector<ObjectSet> targets(static_cast<std::size_t>(options.batch_size));
  Draws boxes(Philox(0, hash("boxes")));
  for (ObjectSet& target : targets) {
    for (int i = 0; i < 10; ++i) {
      target.labels.push_back(boxes.integer(0, detector->net->config().num_labels));
      target.boxes.push_back(data::centred_box(boxes.uniform(0.3, 0.7), boxes.uniform(0.3, 0.7),
                                               boxes.uniform(0.1, 0.5), boxes.uniform(0.1, 0.5)));
    }
  }
  subject.step = training_step(*detector->net, options, dtype, [detector, x, targets](nn::Pass& pass) {
    return set_loss(detector->net->forward_layers({x, {}}, pass), targets).loss;
  });
  return subject;
}

// Whether a model is a detector, by its name or its folder.
bool is_detector(const std::string& model) {
  return models::is_detector_name(model) || models::kind_of(model) == models::ModelKind::detector;
}

// The matrix peak in GF/s: of a product of a fixed size, or of the largest linear map of the subject with the rows of a
// step if that is faster. Maps of the head of images, which see one row an image, do not count.
double measure_peak(const Subject& subject, DType dtype) {
  Shape largest;
  for (const nn::Parameter& parameter : subject.net->parameters.all()) {
    const Shape& shape = parameter.value.shape();
    const bool linear = shape.rank() == 2 || (shape.rank() == 4 && shape[2] * shape[3] == 1);
    if (linear && parameter.name.ends_with("weight") && !subject.net->is_head(parameter.name) &&
        (largest.rank() == 0 || shape.numel() > largest.numel())) {
      largest = shape;
    }
  }
  double peak = kernels::measure_peak_gflops(dtype);
  if (largest.rank() > 0) {
    const std::int64_t rows = std::max<std::int64_t>(subject.rows, 1);
    peak = std::max(peak, kernels::measure_peak_gflops(dtype, rows, largest[1], largest[0]));
  }
  return peak;
}

}  // namespace

BenchmarkResult benchmark(const BenchmarkOptions& options) {
  check(options.batch_size > 0 && options.steps > 0 && options.warmup >= 0,
        "a benchmark takes at least one image and one step, not a batch of {}, {} steps and {} before them",
        options.batch_size, options.steps, options.warmup);
  BenchmarkResult result;
  const DType dtype = usable_dtype(options.dtype, &result.note);
  const bool text = models::names_text_model(options.model);
  const Subject subject = text                         ? text_subject(options, dtype)
                          : is_detector(options.model) ? detector_subject(options, dtype)
                                                       : image_subject(options, dtype);
  const bool int8 = models::is_quantized(*subject.net);
  if (int8 && !kernels::has_int8()) {
    result.note = "this CPU has no instructions for int8: the products are of pairs of 16 bits";
  }
  const DType product = int8 ? DType::i8 : dtype;
  // The peak of the machine is measured before and after, as other programs slow it down, and nothing makes it faster.
  result.peak_gflops = measure_peak(subject, product);
  Allocator::instance().trim();  // frees the memory of that measurement
  Allocator::instance().reset_peak();
  const std::vector<double> milliseconds = times(options, subject.step, result.events);
  result.peak_tensor_bytes = static_cast<std::int64_t>(Allocator::instance().statistics().peak);
  result.peak_memory_bytes = resident_peak();
  result.peak_gflops = std::max(result.peak_gflops, measure_peak(subject, product));
  if (options.profile) {
    result.bandwidth = kernels::measure_bandwidth();
  }

  result.model = subject.model;
  result.mode = options.pretraining ? "pretrain" : options.training ? "train" : "infer";
  result.dtype = int8 ? "int8" : std::string(name_of(dtype));
  result.batch_size = options.batch_size;
  result.steps = options.steps;
  result.step_ms_min = milliseconds.front();
  result.step_ms_median = median(milliseconds);
  result.unit = subject.unit;
  result.units_per_second = 1e3 * subject.units / result.step_ms_median;
  result.seq_len = subject.unit == "sentence" ? options.seq_len : 0;
  const double flops = subject.flops * (options.training ? 3 : 1);
  result.flops_per_unit = flops / subject.units;
  result.mfu = flops / (result.step_ms_min * 1e-3) / (result.peak_gflops * 1e9);
  result.parameters = subject.net->parameters.count();
  result.threads = kernels::threads();
  result.cpu = kernels::cpu_name();
  return result;
}

double fastest_forward_ms(const models::Model& model, std::int64_t batch_size, DType dtype) {
  BenchmarkOptions options;
  options.warmup = 3;
  options.steps = 10;
  const data::Batch batch = random_batch(model, batch_size);
  const autograd::NoGrad no_grad;
  std::vector<Profile::Event> none;
  return times(
             options,
             [&](std::int64_t) {
               nn::Pass pass{.dtype = dtype};
               model.net->forward(batch.x, pass);
             },
             none)
      .front();
}

std::string to_json(const BenchmarkResult& result) {
  nlohmann::ordered_json json;
  json["model"] = result.model;
  json["mode"] = result.mode;
  json["dtype"] = result.dtype;
  json["batch_size"] = result.batch_size;
  json["steps"] = result.steps;
  json["step_ms"] = {{"min", result.step_ms_min}, {"median", result.step_ms_median}};
  json[result.unit + "s_per_second"] = result.units_per_second;
  if (result.unit == "sentence") {
    json["tokens_per_second"] = result.units_per_second * static_cast<double>(result.seq_len);
  }
  json["flops_per_" + result.unit] = result.flops_per_unit;
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
