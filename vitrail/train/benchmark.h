// How fast a model trains or infers here, against what the machine can do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/models/mae.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::train {

struct BenchmarkOptions {
  std::string model = "vit_tiny_patch16_224";
  models::CreateOptions create;  // model_kwargs, num_classes …
  // A step of a masked autoencoder around `model`, with `training`.
  std::optional<models::MaeOptions> pretraining = std::nullopt;
  bool training = true;  // a whole step: forward, loss, backward, AdamW; else a forward pass
  std::int64_t batch_size = 16;
  DType dtype = DType::f32;
  std::int64_t steps = 10;  // timed ones
  std::int64_t warmup = 2;  // before them
  bool int8 = false;        // quantize the model first, activations by token; inference only
  bool profile = false;     // record what each op takes
};

struct BenchmarkResult {
  std::string model;
  std::string mode;   // "train", "infer" or "pretrain"
  std::string dtype;  // what it ran in: "f32", "bf16", or "int8" where linear maps did
  std::int64_t batch_size = 0;
  std::int64_t steps = 0;
  double step_ms_min = 0;
  double step_ms_median = 0;
  double images_per_second = 0;        // at the median step
  double flops_per_image = 0;          // 2 · multiply-accumulates of the products, three times that in training
  double peak_gflops = 0;              // of packed GEMM in that dtype, measured in this run
  double mfu = 0;                      // model FLOPs utilisation of the fastest step: its FLOP/s over the peak's
  std::int64_t peak_memory_bytes = 0;  // most resident memory of the process so far
  std::int64_t peak_tensor_bytes = 0;  // most in tensors at once, while the steps ran
  std::int64_t parameters = 0;
  int threads = 0;
  std::string cpu;
  std::vector<Profile::Event> events;  // of the timed steps, if they were to be recorded
  double bandwidth = 0;                // of memory in GB/s, measured in this run for their sake
  std::string note;                    // a sentence if it did not run as asked (no bf16 here)
};

// On random pictures and labels.
BenchmarkResult benchmark(const BenchmarkOptions& options);
// Milliseconds of the fastest of some forward passes of a model over `batch_size` random pictures.
double fastest_forward_ms(const models::Model& model, std::int64_t batch_size, DType dtype);
// As a JSON object: {"model", …, "step_ms": {"min", "median"}, "images_per_second", "flops_per_image", "peak_gflops",
// "mfu", "peak_memory_bytes", "peak_tensor_bytes", "parameters", "threads", "cpu"}; of a profile also "bandwidth_gbs"
// and "profile", a list of {"op", "phase", "calls", "ms", "share", "gflops", "gbs"}.
std::string to_json(const BenchmarkResult& result);

}  // namespace vitrail::train
