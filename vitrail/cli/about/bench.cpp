// `vitrail bench` times training and inference of a model on this machine.
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/about/bench_comm.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/train/bench/benchmark.h"
#include "vitrail/train/bench/generation.h"
#include "vitrail/train/bench/profile_report.h"

namespace vitrail::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string mode;
  models::MaeOptions mae;
  std::optional<std::int64_t> batch_size;
  std::int64_t seq_len = 256;
  std::string lengths;
  train::GenerationBenchmarkOptions generation;
  std::int64_t steps = 10;
  std::int64_t warmup = 2;
  bool json = false;
  bool profile = false;
  std::string trace;
  std::string output;
};

// The lengths of pairs that a file has: two whole numbers a line.
std::vector<std::pair<std::int64_t, std::int64_t>> read_lengths(const std::string& file) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  std::istringstream lines(io::read_text(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    auto& [source, target] = result.emplace_back();
    check(numbers >> source >> target && (numbers >> std::ws).eof(),
          "{}: line {} is not the lengths of a pair, two whole numbers: '{}'", file, result.size(), line);
  }
  check(!result.empty(), "{} is empty: it has no lengths of pairs", file);
  return result;
}

void bench_generation(const BenchFlags& flags) {
  check_not_of_model(flags.output, flags.model);
  train::GenerationBenchmarkOptions options = flags.generation;
  options.model = flags.model.name_or_folder();
  options.create.model_kwargs = flags.model.options().model_kwargs;
  options.batch_size = flags.batch_size.value_or(1);
  options.dtype = flags.compute.apply();
  options.int8 = flags.compute.int8;
  options.steps = flags.steps;
  options.warmup = flags.warmup;
  const train::GenerationBenchmarkResult result = train::benchmark_generation(options);
  if (!flags.output.empty()) {
    io::write_atomically(flags.output, train::to_json(result) + "\n");
  }
  if (flags.json) {
    fmt::print("{}\n", train::to_json(result));
    return;
  }
  const std::string texts =
      result.num_beams > 1 ? fmt::format("{} beams", result.num_beams) : io::counted(result.batch_size, "texts");
  fmt::print("generate {}, {}, {}, {} of {}\n", result.model, texts, result.dtype,
             io::counted(result.threads, "threads"), result.cpu);
  fmt::print("  prompt      {:.1f} tokens/s, of {}\n", result.prompt_tokens_per_second, result.prompt_len);
  fmt::print("  new tokens  {:.1f} tokens/s, {} of a text\n", result.tokens_per_second, result.new_tokens);
  fmt::print("  bandwidth   {:.0f} % of the {:.1f} GB/s of this machine; {:.1f} MB a token\n",
             100 * result.bandwidth_share, result.bandwidth_bytes_per_second / 1e9, result.bytes_per_token / 1e6);
  fmt::print("  memory      {:.0f} MB at the peak, {:.1f} MB of it the cache in {}\n",
             static_cast<double>(result.peak_memory_bytes) / 1e6, static_cast<double>(result.cache_bytes) / 1e6,
             result.cache_dtype);
}

void bench(const BenchFlags& flags) {
  train::BenchmarkOptions options;
  options.model = flags.model.name_or_folder();
  options.create = flags.model.options();
  options.training = flags.mode != "infer";
  check_not_of_model(flags.output, flags.model);
  check_not_of_model(flags.trace, flags.model);
  if (flags.mode == "pretrain") {
    options.pretraining = flags.mae;
  }
  options.batch_size = flags.batch_size.value_or(16);
  options.seq_len = flags.seq_len;
  if (flags.mode == "train") {
    const bool translates =
        flags.model.kind() == models::ModelKind::texts &&
        models::open_text_model(flags.model.name_or_folder(), {.fill = nn::Fill::meta}).net->translator() != nullptr;
    check_usage(translates || flags.lengths.empty(),
                "--lengths are those of sentences and their translations, but '{}' is no translator",
                flags.model.model);
    if (translates) {
      if (!flags.batch_size && flags.lengths.empty()) {
        options.batch_size *= flags.seq_len;  // as many pairs as other models get texts
      }
      options.pair_lengths =
          flags.lengths.empty() ? std::vector{std::pair(flags.seq_len, flags.seq_len)} : read_lengths(flags.lengths);
    }
  }
  options.dtype = flags.compute.apply();
  options.int8 = flags.compute.int8;
  options.steps = flags.steps;
  options.warmup = flags.warmup;
  options.profile = flags.profile || !flags.trace.empty();
  const train::BenchmarkResult result = train::benchmark(options);
  if (!flags.trace.empty()) {
    io::write_atomically(flags.trace, train::chrome_trace(result.events));
  }
  if (!flags.output.empty()) {
    io::write_atomically(flags.output, train::to_json(result) + "\n");
  }
  if (flags.json) {
    fmt::print("{}\n", train::to_json(result));
    return;
  }
  fmt::print("{} {}, batch {}, {}, {} of {}\n", result.mode, result.model, result.batch_size, result.dtype,
             io::counted(result.threads, "threads"), result.cpu);
  fmt::print("  step        {:.1f} ms fastest, {:.1f} ms median of {}\n", result.step_ms_min, result.step_ms_median,
             result.steps);
  fmt::print("  {:<11} {:.1f}\n", result.unit + "s/s", result.units_per_second);
  fmt::print("  MFU         {:.1f} % of the {:.0f} GF/s of oneDNN's packed GEMM; {:.2f} GFLOP {} {}\n",
             100 * result.mfu, result.peak_gflops, result.flops_per_unit / 1e9, result.unit == "image" ? "an" : "a",
             result.unit);
  fmt::print("  memory      {:.0f} MB at the peak\n", static_cast<double>(result.peak_memory_bytes) / 1e6);
  if (flags.profile) {
    fmt::print(
        "\nof a step, beside {:.0f} GF/s and {:.1f} GB/s of this machine:\n{}", result.peak_gflops, result.bandwidth,
        train::profile_table(train::profile_rows(result.events, result.steps), result.peak_gflops, result.bandwidth));
  }
  if (!flags.trace.empty()) {
    fmt::print("{}: open it in ui.perfetto.dev or chrome://tracing\n", flags.trace);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("bench", "Time training, inference or generation against the machine's peak");
  const auto flags = std::make_shared<BenchFlags>();
  command
      .add_option("MODE", flags->mode,
                  "What is timed: train, infer, pretrain (of a masked autoencoder), generate (texts) or comm (messages "
                  "between the ranks that mpirun has started)")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"train", "infer", "pretrain", "generate", "comm"}));
  CLI::Option* const model =
      command.add_option("--model", flags->model.model, "Name (see: vitrail models) or model folder; not for comm")
          ->type_name("MODEL");
  add_model_changes(command, flags->model);
  command
      .add_option(
          "-b,--batch-size", flags->batch_size,
          "Images or texts a step (default: 16, and 1 to generate), or the tokens that a translator is trained on")
      ->check(at_least(1));
  command.add_option("--steps", flags->steps, "Steps that are timed")->capture_default_str()->check(at_least(1));
  command.add_option("--warmup", flags->warmup, "Steps before those that are timed")
      ->capture_default_str()
      ->check(at_least(0));
  const std::vector<CLI::Option*> of_pretraining = {
      command.add_option("--mask-ratio", flags->mae.mask_ratio, "Share of the patches that are hidden (pretrain)")
          ->check(share()),
      command.add_option("--decoder-dim", flags->mae.decoder_dim, "Width of the decoder (pretrain)")
          ->check(at_least(1)),
      command.add_option("--decoder-depth", flags->mae.decoder_depth, "Blocks of the decoder (pretrain)")
          ->check(at_least(1)),
      command.add_option("--decoder-heads", flags->mae.decoder_heads, "Heads of the decoder (pretrain)")
          ->check(at_least(1))};
  const auto tokens = [&](const char* name, std::int64_t& field, std::int64_t least, const char* help) {
    return command.add_option(name, field, help)->capture_default_str()->check(at_least(least))->type_name("N");
  };
  CLI::Option* const of_texts = tokens("--seq-len", flags->seq_len, 1, "Tokens of a text (train and infer)");
  CLI::Option* const of_pairs =
      command
          .add_option("--lengths", flags->lengths,
                      "Tokens of a source and of its translation, a pair a line, to train a translator on (default: "
                      "--seq-len both); a batch has --batch-size tokens of translations")
          ->type_name("FILE");
  const std::vector<CLI::Option*> of_generation = {
      tokens("--prompt-len", flags->generation.prompt_len, 1,
             "Tokens that are given, or that are translated (generate)"),
      tokens("--new-tokens", flags->generation.new_tokens, 2, "Tokens that are added (generate)"),
      tokens("--num-beams", flags->generation.num_beams, 1, "Beams of a beam search (generate)"),
      add_cache_flag(command, flags->generation.cache_dtype)};
  command.add_flag("--json", flags->json, "Print one JSON object");
  expect_ending(
      command.add_option("--output", flags->output, "Write the JSON object to a file")->type_name("FILE.json"),
      ".json");
  command.add_flag("--profile", flags->profile, "Print what each op takes: calls, time, GF/s and GB/s");
  command.add_option("--trace", flags->trace, "Write the ops as a timeline in Chrome's trace format")
      ->type_name("FILE.json");
  add_compute_flags_with_int8(command, flags->compute);
  add_examples(command, {"vitrail bench train --model vit_tiny_patch16_224 --batch-size 16 --amp",
                         "vitrail bench infer --model vit_base_patch16_224 --batch-size 1 --steps 20 --json",
                         "vitrail bench train --model vit_tiny_patch16_224 --profile --trace step.json",
                         "vitrail bench pretrain --model vit_small_patch16_224 --mask-ratio 0.75 --decoder-dim 192 "
                         "--decoder-depth 4 --decoder-heads 3",
                         "vitrail bench train --model gpt2 --batch-size 4 --seq-len 256 --amp",
                         "vitrail bench train --model transformer-small --lengths lengths.txt --batch-size 2600",
                         "vitrail bench generate --model gpt2 --prompt-len 32 --new-tokens 64",
                         "mpirun -n 2 vitrail bench comm --output link.json"});
  command.callback([&command, flags, model, of_pretraining, of_generation, of_texts, of_pairs] {
    if (flags->mode == "comm") {
      for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_single_name();
        check_usage(option->count() == 0 || name == "MODE" || name == "json" || name == "output" || name == "threads",
                    "{} has no effect on comm, which takes --json, --output and --threads", option->get_name());
      }
      flags->compute.apply();
      bench_comm(flags->json, flags->output);
      return;
    }
    check_usage(model->count() > 0, "--model is required");
    const auto check_unused = [&](const CLI::Option* option, bool used, const char* why) {
      check_usage(used || option->count() == 0, "{} has no effect on {}: {}", option->get_name(), flags->mode, why);
    };
    for (const CLI::Option* option : of_pretraining) {
      check_unused(option, flags->mode == "pretrain", "only pretrain has a decoder");
    }
    for (const CLI::Option* option : of_generation) {
      check_unused(option, flags->mode == "generate", "only generate continues texts");
    }
    check_unused(of_texts, flags->mode == "train" || flags->mode == "infer", "only train and infer read whole texts");
    check_unused(of_texts, flags->model.kind() == models::ModelKind::texts, "the model is one of images");
    check_unused(of_pairs, flags->mode == "train", "only train has pairs of sentences");
    if (flags->model.kind() == models::ModelKind::texts) {
      refuse_image_flags(flags->model);
    }
    if (flags->mode == "generate") {
      check_usage(!flags->profile && flags->trace.empty(), "generate takes neither --profile nor --trace");
      bench_generation(*flags);
    } else {
      bench(*flags);
    }
  });
}

}  // namespace vitrail::cli
