/// \file
/// Benchmarks of language models that continue texts, compared with the bandwidth of the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::train {

/// Options of benchmark_generation().
struct GenerationBenchmarkOptions {
  /// The name of a language model or a translator, which then has random weights, or its folder.
  std::string model = "gpt2";
  models::TextModelOptions create;
  std::int64_t batch_size = 1;   ///< texts at once, of one prompt
  std::int64_t prompt_len = 32;  ///< tokens, of a translator those of the source
  std::int64_t new_tokens = 64;
  std::int64_t num_beams = 1;
  DType dtype = DType::f32;
  bool int8 = false;                                ///< linear maps in int8
  std::optional<DType> cache_dtype = std::nullopt;  ///< of kept keys and values; unset: dtype
  std::int64_t steps = 5;                           ///< runs that are timed
  std::int64_t warmup = 1;                          ///< runs before these
};

/// The result of benchmark_generation().
struct GenerationBenchmarkResult {
  std::string model;
  std::string dtype;
  std::string cache_dtype;
  std::int64_t batch_size = 0;
  std::int64_t num_beams = 0;
  std::int64_t prompt_len = 0;
  std::int64_t new_tokens = 0;
  double prompt_tokens_per_second = 0;  ///< of the fastest run
  double tokens_per_second = 0;         ///< of the fastest run, all texts together; beams count as one text
  double bytes_per_token = 0;           ///< that a step reads: the weights, and the cache at its mean length
  /// What the memory gives, measured before and after: a step of bytes_per_token cannot be faster.
  double bandwidth_bytes_per_second = 0;
  /// The share of that which the fastest run used: bytes_per_token · steps per second / bandwidth.
  double bandwidth_share = 0;
  std::int64_t cache_bytes = 0;        ///< of keys and values at the end
  std::int64_t peak_memory_bytes = 0;  ///< peak resident memory of the process so far
  std::int64_t parameters = 0;
  int threads = 0;
  std::string cpu;
  std::string note;  ///< a sentence if it did not run as asked
};

/// Times greedy search, or a beam search, from a prompt of random tokens, or of a translator from sources of random
/// tokens. No token ends a text.
GenerationBenchmarkResult benchmark_generation(const GenerationBenchmarkOptions& options);
/// The result as a JSON object with the names of its fields.
std::string to_json(const GenerationBenchmarkResult& result);

}  // namespace vitrail::train
