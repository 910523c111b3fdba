// `vitrail scale` says how fast several ranks would train together, before there are any.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/about/bench_comm.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/kind.h"
#include "vitrail/train/bench/scaling.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ScaleFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::int64_t batch_size = 16;
  std::int64_t seq_len = 256;
  std::int64_t steps = 10;
  std::int64_t accumulated = 1;
  std::int64_t bucket_mb = 4;
  std::string grad_dtype = "f32";
  std::vector<std::int64_t> ranks = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  std::vector<double> gigabits = {1, 10, 25, 100};
  double latency_us = 30;
  double message_us = 5;
  double cpu_ns = 1;
  std::string comm;
  bool json = false;
};

struct Named {
  std::string name;
  train::Fabric fabric;
};

std::vector<Named> fabrics(const ScaleFlags& flags) {
  if (!flags.comm.empty()) {
    return {{"measured", read_fabric(flags.comm)}};
  }
  std::vector<Named> result;
  for (const double gigabits : flags.gigabits) {
    result.push_back({fmt::format("{:g} Gb/s", gigabits),
                      {flags.latency_us * 1e-6, flags.message_us * 1e-6, gigabits * 1e9 / 8, flags.cpu_ns * 1e-9}});
  }
  return result;
}

Json scaling_json(const train::MeasuredStep& step, const ScaleFlags& flags, const std::vector<Named>& all) {
  Json buckets = Json::array();
  for (const train::MeasuredStep::Bucket& bucket : step.buckets) {
    buckets.push_back({{"bytes", bucket.bytes}, {"ready", bucket.ready}});
  }
  Json json = {{"model", flags.model.model},
               {"batch_size", flags.batch_size},
               {"dtype", step.dtype},
               {"threads", step.threads},
               {"cpu", step.cpu},
               {"compute_ms", Json::array()},
               {"update_ms", 1e3 * step.update},
               {"buckets", buckets},
               {"links", Json::array()}};
  for (const double seconds : step.compute) {
    json["compute_ms"].push_back(1e3 * seconds);
  }
  for (const auto& [name, fabric] : all) {
    Json rows = Json::array();
    for (const std::int64_t ranks : flags.ranks) {
      const train::Prediction p =
          predict(step, fabric, {ranks, flags.accumulated, flags.grad_dtype == "bf16" ? 0.5 : 1.0});
      rows.push_back({{"ranks", ranks},
                      {"step_ms", 1e3 * p.seconds},
                      {"exposed_ms", 1e3 * p.exposed},
                      {step.unit + "s_per_second", p.units_per_second},
                      {"efficiency", p.efficiency}});
    }
    json["links"].push_back({{"link", name}, {"mb_per_second", fabric.bytes_per_second / 1e6}, {"rows", rows}});
  }
  return json;
}

void print_scaling(const train::MeasuredStep& step, const ScaleFlags& flags, const Json& json) {
  double bytes = 0;
  for (const train::MeasuredStep::Bucket& bucket : step.buckets) {
    bytes += bucket.bytes;
  }
  fmt::print("{}, batch {} a rank, {}, {} of {}\n", flags.model.model, flags.batch_size, step.dtype,
             io::counted(step.threads, "threads"), step.cpu);
  fmt::print("  one rank    {:.1f} ms forward and backward, {:.1f} ms update; {:.1f} MB of gradients in {}\n\n",
             1e3 * step.compute[step.compute.size() / 2], 1e3 * step.update, bytes / 1e6,
             io::counted(std::ssize(step.buckets), "buckets"));
  fmt::print("{:>6}", "ranks");
  for (const Json& link : json["links"]) {
    fmt::print("{:>24}", link["link"].get<std::string>());
  }
  fmt::print("\n{:>6}", "");
  for (std::size_t i = 0; i < json["links"].size(); ++i) {
    fmt::print("{:>16}{:>8}", step.unit + "s/s", "of all");
  }
  fmt::print("\n");
  for (std::size_t row = 0; row < flags.ranks.size(); ++row) {
    fmt::print("{:>6}", flags.ranks[row]);
    for (const Json& link : json["links"]) {
      const Json& one = link["rows"][row];
      fmt::print("{:>16.1f}{:>6.0f} %", one[step.unit + "s_per_second"].get<double>(),
                 100 * one["efficiency"].get<double>());
    }
    fmt::print("\n");
  }
}

void scale(const ScaleFlags& flags) {
  const std::vector<Named> all = fabrics(flags);
  train::BenchmarkOptions options;
  options.model = flags.model.name_or_folder();
  options.create = flags.model.options();
  options.batch_size = flags.batch_size;
  options.seq_len = flags.seq_len;
  options.steps = flags.steps;
  options.dtype = flags.compute.apply();
  const train::MeasuredStep step = train::measure_step(options, flags.bucket_mb << 20);
  const Json json = scaling_json(step, flags, all);
  flags.json ? print_json(json) : print_scaling(step, flags, json);
}

}  // namespace

void add_scale(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "scale", "Say how fast several ranks would train: a step is measured here, the network between them assumed");
  const auto flags = std::make_shared<ScaleFlags>();
  command.add_option("--model", flags->model.model, "Name (see: vitrail models) or model folder")
      ->required()
      ->type_name("MODEL");
  add_model_changes(command, flags->model);
  command.add_option("-b,--batch-size", flags->batch_size, "Images or texts of a rank's batch")
      ->capture_default_str()
      ->check(at_least(1));
  CLI::Option* const of_texts = command.add_option("--seq-len", flags->seq_len, "Tokens of a text")
                                    ->capture_default_str()
                                    ->type_name("N")
                                    ->check(at_least(1));
  command.add_option("--grad-accum-steps", flags->accumulated, "Batches of each rank in an update")
      ->capture_default_str()
      ->check(at_least(1));
  command.add_option("--grad-dtype", flags->grad_dtype, "In what gradients travel: f32 or bf16")
      ->capture_default_str()
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
  command.add_option("--bucket-mb", flags->bucket_mb, "Gradients that travel together")
      ->capture_default_str()
      ->type_name("MB")
      ->check(CLI::Range(1, 1024));
  command.add_option("--ranks", flags->ranks, "Numbers of ranks, one a machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  CLI::Option* const comm =
      command.add_option("--comm", flags->comm, "The network as `vitrail bench comm --output` has measured it")
          ->type_name("FILE.json");
  const auto assumed = [&](const char* name, auto& field, const char* help, const char* unit) {
    command.add_option(name, field, help)->capture_default_str()->type_name(unit)->check(positive())->excludes(comm);
  };
  assumed("--gbps", flags->gigabits, "Rates of the links in Gb/s, each way", "RATE");
  assumed("--latency-us", flags->latency_us, "What a small message takes", "US");
  assumed("--message-us", flags->message_us, "What each of many small messages takes", "US");
  assumed("--cpu-ns", flags->cpu_ns, "The processor's work for a byte that is sent while another is received", "NS");
  command.add_option("--steps", flags->steps, "Steps that are measured: the slowest of them make the stragglers")
      ->capture_default_str()
      ->check(at_least(1));
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail scale --model vit_base_patch16_224 --batch-size 8 --amp",
                         "vitrail scale --model vit_tiny_patch16_224 --amp --gbps 1 2.5 10 --grad-dtype bf16",
                         "vitrail scale --model vit_tiny_patch16_224 --threads 1 --amp --comm link.json --ranks 1 2"});
  command.callback([flags, of_texts] {
    check_usage(of_texts->count() == 0 || flags->model.kind() == models::ModelKind::texts,
                "--seq-len has no effect: '{}' is no model of texts", flags->model.model);
    scale(*flags);
  });
}

}  // namespace vitrail::cli
