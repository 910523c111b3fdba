// How a training step grows with the batch, the tokens, the depth and the width, on one thread and on all: a table in
// Markdown on standard output and a plot, for docs/performance.md.
//
//   build/bin/vitrail_bench_scaling [PLOT.svg]
//
// The cost model beside the measurements: the FLOPs of the products (three times those of a forward pass), at the rate
// that the base configuration reaches.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "vitrail/io/charts/chart.h"
#include "vitrail/io/file.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/train/bench/benchmark.h"

namespace {

using namespace vitrail;

struct Point {
  std::int64_t batch = 16;
  std::int64_t grid = 8;  // patches along a side
  std::int64_t depth = 12;
  std::int64_t width = 192;

  std::int64_t tokens() const { return grid * grid + 1; }
};

struct Measured {
  double step_ms = 0;
  double flops = 0;
  double megabytes = 0;
  double peak_gflops = 0;
};

Measured measure(const Point& point, int threads) {
  kernels::set_threads(threads);
  train::BenchmarkOptions options;
  options.batch_size = point.batch;
  options.dtype = DType::bf16;
  options.warmup = 2;
  options.steps = 4;
  options.create.num_classes = 10;
  options.create.model_kwargs =
      fmt::format(R"({{"img_size": {}, "patch_size": 4, "depth": {}, "embed_dim": {}, "num_heads": {}}})",
                  4 * point.grid, point.depth, point.width, point.width / 64);
  const train::BenchmarkResult result = train::benchmark(options);
  return {result.step_ms_min, result.flops_per_unit * static_cast<double>(point.batch),
          static_cast<double>(result.peak_tensor_bytes) / 1e6, result.peak_gflops};
}

struct Axis {
  std::string name;
  std::vector<Point> points;
  std::int64_t (*value)(const Point&);
};

std::vector<Axis> axes() {
  std::vector<Axis> result = {{"batch", {}, [](const Point& p) { return p.batch; }},
                              {"tokens", {}, [](const Point& p) { return p.tokens(); }},
                              {"depth", {}, [](const Point& p) { return p.depth; }},
                              {"width", {}, [](const Point& p) { return p.width; }}};
  for (const std::int64_t batch : {4, 8, 16, 32, 64}) {
    result[0].points.push_back({.batch = batch});
  }
  for (const std::int64_t grid : {4, 8, 16, 24, 32}) {
    result[1].points.push_back({.batch = 4, .grid = grid});
  }
  for (const std::int64_t depth : {3, 6, 12, 24}) {
    result[2].points.push_back({.depth = depth});
  }
  for (const std::int64_t width : {64, 128, 192, 384, 768}) {
    result[3].points.push_back({.width = width});
  }
  return result;
}

io::LineChart chart_of(const Axis& axis) {
  io::LineChart chart;
  chart.title = "a step by " + axis.name;
  chart.x_label = axis.name;
  chart.y_label = "ms";
  chart.y_min = 0;
  return chart;
}

void run(const std::string& plot) {
  const int all = kernels::threads();
  const Measured base = measure({}, all);
  const double share = base.flops / (base.step_ms * 1e-3) / (base.peak_gflops * 1e9);
  fmt::print("{}, bf16; base: batch 16, 65 tokens, 12 layers, width 192, at {:.0f} % of {:.0f} GF/s on {} threads\n\n",
             kernels::cpu_name(), 100 * share, base.peak_gflops, all);
  fmt::print(
      "| grows | batch | tokens | depth | width | GFLOP | 1 thread, ms | {0} threads, ms | times as fast | model, "
      "ms | tensors, MB |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      all);
  std::vector<io::LineChart> charts;
  for (const Axis& axis : axes()) {
    io::LineChart chart = chart_of(axis);
    std::vector<double> x, one_ms, all_ms, model_ms;
    for (const Point& point : axis.points) {
      const Measured one = measure(point, 1);
      const Measured many = measure(point, all);
      const double model = base.step_ms * many.flops / base.flops;
      fmt::print("| {} | {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.0f} |\n", axis.name,
                 point.batch, point.tokens(), point.depth, point.width, 1e-9 * many.flops, one.step_ms, many.step_ms,
                 one.step_ms / many.step_ms, model, many.megabytes);
      std::fflush(stdout);
      x.push_back(static_cast<double>(axis.value(point)));
      one_ms.push_back(one.step_ms);
      all_ms.push_back(many.step_ms);
      model_ms.push_back(model);
    }
    chart.series = {{.name = "1 thread", .x = x, .y = one_ms, .points = true},
                    {.name = fmt::format("{} threads", all), .x = x, .y = all_ms, .points = true},
                    {.name = "cost model", .x = x, .y = model_ms, .faint = true}};
    charts.push_back(std::move(chart));
  }
  if (!plot.empty()) {
    io::write_atomically(plot, io::line_charts_svg(charts, 420, 320));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "vitrail_bench_scaling: {}\n", error.what());
    return 1;
  }
}
