// `vitrail bench` times training and inference of a model on this machine.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/bench/benchmark.h"
#include "vitrail/train/bench/profile_report.h"

namespace vitrail::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string mode;
  models::MaeOptions mae;
  std::int64_t batch_size = 16;
  std::int64_t steps = 10;
  std::int64_t warmup = 2;
  bool int8 = false;
  bool json = false;
  bool profile = false;
  std::string trace;
  std::string output;
};

void bench(const BenchFlags& flags) {
  train::BenchmarkOptions options;
  options.model = flags.model.name_or_folder();
  options.create = flags.model.options();
  options.training = flags.mode != "infer";
  if (flags.mode == "pretrain") {
    options.pretraining = flags.mae;
  }
  options.batch_size = flags.batch_size;
  options.dtype = flags.compute.apply();
  options.int8 = flags.int8;
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
  fmt::print("  images/s    {:.1f}\n", result.images_per_second);
  fmt::print("  MFU         {:.1f} % of the {:.0f} GF/s of oneDNN's packed GEMM; {:.2f} GFLOP an image\n",
             100 * result.mfu, result.peak_gflops, result.flops_per_image / 1e9);
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
  CLI::App& command = *app.add_subcommand("bench", "Time a training step or a forward pass against the machine's peak");
  const auto flags = std::make_shared<BenchFlags>();
  command.add_option("MODE", flags->mode, "What is timed: train, infer, or pretrain (of a masked autoencoder)")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"train", "infer", "pretrain"}));
  command.add_option("--model", flags->model.model, "Name (see: vitrail models) or model folder")
      ->required()
      ->type_name("MODEL");
  add_model_changes(command, flags->model);
  command.add_option("-b,--batch-size", flags->batch_size, "Images a step")->capture_default_str()->check(at_least(1));
  command.add_option("--steps", flags->steps, "Steps that are timed")->capture_default_str()->check(at_least(1));
  command.add_option("--warmup", flags->warmup, "Steps before those that are timed")
      ->capture_default_str()
      ->check(at_least(0));
  command.add_flag("--int8", flags->int8, "Quantize the model's linear maps first; the rest runs as --amp says");
  const std::vector<CLI::Option*> of_pretraining = {
      command.add_option("--mask-ratio", flags->mae.mask_ratio, "Share of the patches that are hidden (pretrain)")
          ->check(share()),
      command.add_option("--decoder-dim", flags->mae.decoder_dim, "Width of the decoder (pretrain)")
          ->check(at_least(1)),
      command.add_option("--decoder-depth", flags->mae.decoder_depth, "Blocks of the decoder (pretrain)")
          ->check(at_least(1)),
      command.add_option("--decoder-heads", flags->mae.decoder_heads, "Heads of the decoder (pretrain)")
          ->check(at_least(1))};
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.add_option("--output", flags->output, "Write the JSON object to a file")->type_name("FILE.json");
  command.add_flag("--profile", flags->profile, "Print what each op takes: calls, time, GF/s and GB/s");
  command.add_option("--trace", flags->trace, "Write the ops as a timeline in Chrome's trace format")
      ->type_name("FILE.json");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail bench train --model vit_tiny_patch16_224 --batch-size 16 --amp",
                         "vitrail bench infer --model vit_base_patch16_224 --batch-size 1 --steps 20 --json",
                         "vitrail bench train --model vit_tiny_patch16_224 --profile --trace step.json",
                         "vitrail bench pretrain --model vit_small_patch16_224 --mask-ratio 0.75 --decoder-dim 192 "
                         "--decoder-depth 4 --decoder-heads 3"});
  command.callback([flags, of_pretraining] {
    for (const CLI::Option* option : of_pretraining) {
      check_usage(flags->mode == "pretrain" || option->count() == 0,
                  "{} has no effect on {}: only pretrain has a decoder", option->get_name(), flags->mode);
    }
    bench(*flags);
  });
}

}  // namespace vitrail::cli
