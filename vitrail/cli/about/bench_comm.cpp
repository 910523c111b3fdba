#include "vitrail/cli/about/bench_comm.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/print_json.h"
#include "vitrail/dist/link.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double micro = 1e-6;
constexpr double nano = 1e-9;
constexpr double mega = 1e6;

Json link_json(const dist::Link& link, int rank) {
  return {{"rank", rank},
          {"latency_us", link.latency / micro},
          {"per_message_us", link.per_message / micro},
          {"mb_per_second", link.bytes_per_second / mega},
          {"cpu_ns_per_byte", link.cpu_per_byte / nano}};
}

// The slowest in everything, as all wait for the slowest.
train::Fabric fabric_of(const Json& links) {
  train::Fabric fabric{0, 0, 0, 0};
  for (const Json& link : links) {
    const double speed = link.at("mb_per_second").get<double>() * mega;
    fabric.latency = std::max(fabric.latency, link.at("latency_us").get<double>() * micro);
    fabric.per_message = std::max(fabric.per_message, link.at("per_message_us").get<double>() * micro);
    fabric.cpu_per_byte = std::max(fabric.cpu_per_byte, link.at("cpu_ns_per_byte").get<double>() * nano);
    fabric.bytes_per_second = fabric.bytes_per_second == 0 ? speed : std::min(fabric.bytes_per_second, speed);
  }
  return fabric;
}

void print_links(const Json& json) {
  fmt::print("{}\n{:>8}{:>14}{:>16}{:>14}{:>16}\n", io::counted(json["ranks"].get<int>(), "ranks"), "to rank",
             "latency, us", "a message, us", "MB/s each way", "CPU, ns a byte");
  for (const Json& link : json["links"]) {
    fmt::print("{:>8}{:>14.1f}{:>16.2f}{:>14.1f}{:>16.2f}\n", link["rank"].get<int>(), link["latency_us"].get<double>(),
               link["per_message_us"].get<double>(), link["mb_per_second"].get<double>(),
               link["cpu_ns_per_byte"].get<double>());
  }
  fmt::print("\nsums over all ranks, ms\n{:>8}{:>14}{:>16}{:>14}\n", "MB", "f32", "by the model", "bf16");
  for (const Json& sum : json["sums"]) {
    fmt::print("{:>8}{:>14.2f}{:>16.2f}{:>14.2f}\n", sum["mb"].get<int>(), sum["ms"].get<double>(),
               sum["model_ms"].get<double>(), sum["bf16_ms"].get<double>());
  }
}

}  // namespace

void bench_comm(bool json, const std::string& output) {
  const std::unique_ptr<dist::Communicator> ranks = dist::started_ranks();
  check(ranks->size() > 1, "what lies between ranks is measured by several of them: mpirun -n 2 vitrail bench comm");
  const std::vector<dist::Link> links = dist::measure_links(*ranks);
  Json result = {{"ranks", ranks->size()}, {"cpu", kernels::cpu_name()}, {"links", Json::array()}};
  for (std::size_t i = 0; i < links.size(); ++i) {
    result["links"].push_back(link_json(links[i], static_cast<int>(i) + 1));
  }
  const double addition = dist::measure_addition();
  result["addition_mb_per_second"] = addition / mega;
  result["sums"] = Json::array();
  for (const int mb : {1, 4, 16, 64}) {
    const double bytes = mb * mega;
    const double seconds = dist::measure_sum(*ranks, static_cast<std::int64_t>(bytes), DType::f32);
    const double rounded = dist::measure_sum(*ranks, static_cast<std::int64_t>(bytes), DType::bf16);
    result["sums"].push_back(
        {{"mb", mb},
         {"ms", 1e3 * seconds},
         {"model_ms", 1e3 * train::sum_seconds(fabric_of(result["links"]), bytes, addition, {.ranks = ranks->size()})},
         {"bf16_ms", 1e3 * rounded}});
  }
  if (ranks->rank() > 0) {
    return;
  }
  if (!output.empty()) {
    io::write_atomically(output, result.dump(1) + "\n");
  }
  json ? print_json(result) : print_links(result);
}

train::Fabric read_fabric(const std::string& file) {
  const nlohmann::json json = io::read_json(file);
  try {
    check(json.is_object() && json.contains("links"), "it has no 'links'");
    const train::Fabric fabric = fabric_of(json["links"]);
    check(fabric.bytes_per_second > 0 && fabric.latency > 0, "its links carry nothing");
    return fabric;
  } catch (const std::exception& error) {
    fail("{} is no file of `vitrail bench comm --output`: {}", file, error.what());
  }
}

}  // namespace vitrail::cli
