#include "vitrail/train/bench/generation.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vitrail/generate/generate.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/peak.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/tensor/allocator.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/bench/memory.h"
#include "vitrail/train/run/learner.h"

namespace vitrail::train {
namespace {

// The bytes of the weights that one token needs: each is multiplied once, so there are as many as products.
double weight_bytes(const models::TextModel& model, DType dtype) {
  const models::Translator* const body = model.net->translator();
  const std::int64_t products = body != nullptr ? body->flops(0, 1) : model.net->flops(1);
  return static_cast<double>(products) * static_cast<double>(size_of(dtype));
}

// Random tokens, the same ones each time.
Tensor random_ids(std::int64_t texts, std::int64_t tokens, std::int64_t vocab_size) {
  Tensor ids = Tensor::empty({texts, tokens}, DType::i64);
  const Philox draws(0, hash("benchmark"));
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ids.data<std::int64_t>()[i] = draws.word(static_cast<std::uint64_t>(i)) % vocab_size;
  }
  return ids;
}

}  // namespace

GenerationBenchmarkResult benchmark_generation(const GenerationBenchmarkOptions& options) {
  check(options.batch_size > 0 && options.steps > 0 && options.warmup >= 0 && options.prompt_len > 0,
        "a benchmark takes at least one text, one token of a prompt and one run");
  check(options.new_tokens > 1, "the pace is that of the tokens behind the first: 'new_tokens' must be at least 2");
  GenerationBenchmarkResult result;
  const DType dtype = usable_dtype(options.dtype, &result.note);
  result.bandwidth_bytes_per_second = kernels::measure_bandwidth() * 1e9;
  Allocator::instance().trim();  // frees the memory of that measurement
  models::TextModelOptions create = options.create;
  create.weights = options.int8 ? DType::i8 : dtype;
  const models::TextModel model = models::open_text_model(options.model, create);
  const std::int64_t parameters = model.net->parameters.count();
  const models::Translator* const translates = model.net->translator();
  std::optional<models::Translation> translation;
  if (translates != nullptr) {
    const Tensor sources = random_ids(options.batch_size, options.prompt_len, translates->source_vocab_size());
    translation.emplace(*translates, models::Texts{sources}, dtype);
  }
  const models::LanguageBody& body = translation ? *translation : models::language_of(model);
  const std::int64_t given = translation ? 1 : options.prompt_len;
  const Tensor ids = random_ids(options.batch_size, given, body.vocab_size());
  std::vector<std::vector<std::int64_t>> prompts;
  prompts.reserve(static_cast<std::size_t>(options.batch_size));
  for (std::int64_t i = 0; i < options.batch_size; ++i) {
    const auto row =
        ids.span<std::int64_t>().subspan(static_cast<std::size_t>(i * given), static_cast<std::size_t>(given));
    prompts.emplace_back(row.begin(), row.end());
  }
  generate::GenerationConfig config;
  config.max_new_tokens = options.new_tokens;
  config.num_beams = options.num_beams;
  double new_seconds = 0;
  double prompt_seconds = 0;
  generate::Statistics statistics;
  for (std::int64_t run = 0; run < options.warmup + options.steps; ++run) {
    generate::generate_batch(body, prompts, config, {.dtype = dtype, .cache_dtype = options.cache_dtype}, &statistics);
    if (run >= options.warmup) {
      const bool first = run == options.warmup;
      new_seconds = first ? statistics.new_seconds : std::min(new_seconds, statistics.new_seconds);
      prompt_seconds = first ? statistics.prompt_seconds : std::min(prompt_seconds, statistics.prompt_seconds);
    }
  }
  result.peak_memory_bytes = resident_peak();
  result.bandwidth_bytes_per_second = std::max(result.bandwidth_bytes_per_second, kernels::measure_bandwidth() * 1e9);

  const double steps_per_second = static_cast<double>(options.new_tokens - 1) / new_seconds;
  result.model = model.name;
  result.dtype = options.int8 ? "int8" : std::string(name_of(dtype));
  const DType cached = options.cache_dtype.value_or(dtype);
  result.cache_dtype = cached == DType::i8 ? "int8" : std::string(name_of(cached));
  result.batch_size = options.batch_size;
  result.num_beams = options.num_beams;
  result.prompt_len = options.prompt_len;
  result.new_tokens = options.new_tokens;
  result.prompt_tokens_per_second = static_cast<double>(options.prompt_len * options.batch_size) / prompt_seconds;
  result.tokens_per_second = steps_per_second * static_cast<double>(options.batch_size);
  // The cache grows from the prompt's length to that of the whole text.
  const double full = static_cast<double>(statistics.cache_bytes);
  const double begin =
      static_cast<double>(options.prompt_len) / static_cast<double>(options.prompt_len + options.new_tokens - 1);
  result.bytes_per_token = weight_bytes(model, options.int8 ? DType::i8 : dtype) + full * (1 + begin) / 2;
  result.bandwidth_share = result.bytes_per_token * steps_per_second / result.bandwidth_bytes_per_second;
  result.cache_bytes = static_cast<std::int64_t>(statistics.cache_bytes);
  result.parameters = parameters;
  result.threads = kernels::threads();
  result.cpu = kernels::cpu_name();
  return result;
}

std::string to_json(const GenerationBenchmarkResult& result) {
  nlohmann::ordered_json json;
  json["model"] = result.model;
  json["mode"] = "generate";
  json["dtype"] = result.dtype;
  json["cache_dtype"] = result.cache_dtype;
  json["batch_size"] = result.batch_size;
  json["num_beams"] = result.num_beams;
  json["prompt_len"] = result.prompt_len;
  json["new_tokens"] = result.new_tokens;
  json["prompt_tokens_per_second"] = result.prompt_tokens_per_second;
  json["tokens_per_second"] = result.tokens_per_second;
  json["bytes_per_token"] = result.bytes_per_token;
  json["bandwidth_bytes_per_second"] = result.bandwidth_bytes_per_second;
  json["bandwidth_share"] = result.bandwidth_share;
  json["cache_bytes"] = result.cache_bytes;
  json["peak_memory_bytes"] = result.peak_memory_bytes;
  json["parameters"] = result.parameters;
  json["threads"] = result.threads;
  json["cpu"] = result.cpu;
  if (!result.note.empty()) {
    json["note"] = result.note;
  }
  return json.dump();
}

}  // namespace vitrail::train
