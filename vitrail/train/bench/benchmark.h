/// \file
/// Benchmarks of training and inference, compared with the peak of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::train {

/// Calls from within each step of training, which then updates the weights after backward, as several ranks do.
struct StepWatch {
  std::function<void(const nn::ParameterStore&)> begins;
  std::function<void(const autograd::Slot&)> complete;  ///< the gradient of a parameter is complete
  std::function<void()> computed;                       ///< backward has ended
  std::function<void()> updated;
};

/// Options of benchmark().
struct BenchmarkOptions {
  std::string model = "vit_tiny_patch16_224";  ///< of images, or a language model
  models::CreateOptions create;                ///< model_kwargs, num_classes …

  /// If set, a step of a masked autoencoder around `model` is timed; needs `training`.
  std::optional<models::MaeOptions> pretraining = std::nullopt;
  bool training = true;  ///< time a whole step: forward, loss, backward, AdamW; else a forward pass
  std::int64_t batch_size = 16;
  std::int64_t seq_len = 256;  ///< tokens of each text of a batch, for a language model
  /// For training a translator: the tokens of sources and their translations, with their ends. A batch has the first of
  /// them, over again if need be, with `batch_size` tokens of translations or a few less.
  std::vector<std::pair<std::int64_t, std::int64_t>> pair_lengths = {};
  DType dtype = DType::f32;
  std::int64_t steps = 10;                        ///< steps that are timed
  std::int64_t warmup = 2;                        ///< steps before these
  bool int8 = false;                              ///< quantize the model first, activations by token; inference only
  bool profile = false;                           ///< record the time of each op
  std::optional<StepWatch> watch = std::nullopt;  ///< of training
};

/// The result of benchmark().
struct BenchmarkResult {
  std::string model;
  std::string mode;   ///< "train", "infer" or "pretrain"
  std::string dtype;  ///< the dtype it ran in: "f32", "bf16", or "int8" if linear maps did
  std::int64_t batch_size = 0;
  std::int64_t steps = 0;
  double step_ms_min = 0;
  double step_ms_median = 0;
  std::string unit = "image";   ///< what the next two count: "image", "sentence" or "token"
  double units_per_second = 0;  ///< at the median step
  std::int64_t seq_len = 0;     ///< tokens of a sentence
  double flops_per_unit = 0;    ///< 2 · multiply-accumulates of the products; in training, three times that
  double peak_gflops = 0;       ///< of packed GEMM in this dtype, measured in this run: of a fixed size or the model's
  double mfu = 0;               ///< model FLOPs utilisation: FLOP/s of the fastest step / peak
  std::int64_t peak_memory_bytes = 0;  ///< peak resident memory of the process so far
  std::int64_t peak_tensor_bytes = 0;  ///< peak memory of tensors while the steps ran
  std::int64_t parameters = 0;
  int threads = 0;
  std::string cpu;
  std::vector<Profile::Event> events;  ///< of the timed steps, if options.profile
  double bandwidth = 0;                ///< memory bandwidth in GB/s, measured in this run if options.profile
  std::string note;                    ///< a sentence if it did not run as asked (no bf16 on this CPU)
};

/// Times a model on random images and labels, or a model of texts on random tokens.
BenchmarkResult benchmark(const BenchmarkOptions& options);
/// The duration in milliseconds of the fastest of several forward passes of a model over `batch_size` random images.
double fastest_forward_ms(const models::Model& model, std::int64_t batch_size, DType dtype);
/// The result as a JSON object: {"model", …, "step_ms": {"min", "median"}, "images_per_second", "flops_per_image" (or
/// "tokens_per_second", "flops_per_token"; of an encoder of texts "sentences_per_second", "flops_per_sentence" and
/// "tokens_per_second"), "peak_gflops", "mfu", "peak_memory_bytes", "peak_tensor_bytes",
/// "parameters", "threads", "cpu"}. With a profile it also has "bandwidth_gbs" and "profile", a list of {"op", "phase",
/// "calls", "ms", "share", "gflops", "gbs"}.
std::string to_json(const BenchmarkResult& result);

}  // namespace vitrail::train
