// A kind of task of one's own: a small network that learns the last column of a CSV of numbers from the others. It
// trains, validates, logs, and goes on to the same bits after it was killed, as the tasks of vitrail do.
//   regress DATA.csv RUNS NAME        begins RUNS/NAME, or goes on with it
#include <fstream>
#include <iostream>
#include <sstream>

#include <vitrail/vitrail.h>

using namespace vitrail;

namespace {

struct Rows {
  std::vector<std::vector<float>> values;
  std::int64_t inputs() const { return static_cast<std::int64_t>(values.front().size()) - 1; }
};

Rows read_csv(const std::string& path) {
  Rows rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<float>& row = rows.values.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) {
      std::size_t used = 0;
      try {
        row.push_back(std::stof(cell, &used));
      } catch (const std::exception&) {
        used = std::string::npos;
      }
      check(used == cell.size(), "{}: line {}: '{}' is no number", path, rows.values.size(), cell);
    }
    check(row.size() == rows.values.front().size(), "{}: line {} has {} cells, but the first line {}", path,
          rows.values.size(), row.size(), rows.values.front().size());
  }
  check(rows.values.size() >= 10 && rows.inputs() > 0, "'{}' is no table of numbers with ten rows or more", path);
  return rows;
}

struct Batch {
  Tensor x;  // [B, inputs]
  Tensor y;  // [B, 1]
  std::int64_t number = 0;
};

// Some rows of the table as batches.
struct RowSamples : data::Samples<Batch> {
  RowSamples(const Rows& all, std::int64_t skipped) : rows(all), first(skipped) {}
  std::string name(std::int64_t index) const override { return "row " + std::to_string(first + index + 1); }
  Batch begin(const data::BatchPlan& plan) const override {
    const std::int64_t size = std::ssize(plan.picks);
    return {Tensor::empty({size, rows.inputs()}), Tensor::empty({size, 1}), plan.number};
  }
  void fill(Batch& batch, const data::BatchPlan& plan, std::int64_t i) const override {
    const auto& row = rows.values.at(static_cast<std::size_t>(first + plan.picks[static_cast<std::size_t>(i)].index));
    std::copy_n(row.begin(), rows.inputs(), batch.x.data<float>() + i * rows.inputs());
    batch.y.data<float>()[i] = row.back();
  }
  void finish(Batch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}
  const Rows& rows;
  std::int64_t first;
};

// y = W₂ gelu(W₁ x + b₁) + b₂
struct Perceptron : nn::Network {
  Perceptron(std::int64_t inputs, std::uint64_t seed)
      : Network({.seed = seed}), mlp(nn::Scope(parameters), {.dim = inputs, .hidden = 32, .out = 1}) {}
  std::int64_t depth() const override { return 0; }
  std::int64_t layer_of(const std::string&) const override { return 0; }
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_head(const std::string& name) const override { return name.starts_with("fc2."); }
  nn::Mlp mlp;
};

struct RegressOptions : train::TaskOptions {
  std::string csv;
  std::string kind() const override { return "regress"; }
  std::string command() const override { return "regress"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<RegressOptions>(*this); }
  void describe(train::OptionList& list) override {
    list.group("data");
    list.add("csv", csv, "FILE", "the table");
    add_batch_options(list, *this, "rows");
    add_optimizer_options(list, *this);
    add_schedule_options(list, *this, "rows");
    add_average_options(list, *this);
    add_run_options(list, *this, {"r2", "loss"});
  }
  std::unique_ptr<train::Task> make(const std::filesystem::path& checkpoint) const override;
};

class Regress : public train::Task {
 public:
  Regress(const RegressOptions& options, const std::filesystem::path& checkpoint)
      : rows_(read_csv(options.csv)),
        network_(rows_.inputs(), static_cast<std::uint64_t>(options.seed)),
        held_out_(std::ssize(rows_.values) / 5),
        batches_(std::make_shared<RowSamples>(rows_, held_out_),
                 data::plan_batches({.size = std::ssize(rows_.values) - held_out_,
                                     .batch_size = options.batch_size,
                                     .shuffle = true,
                                     .seed = static_cast<std::uint64_t>(options.seed)}),
                 {.items = "rows"}) {
    if (!checkpoint.empty()) {
      train::load_parameters(network_, checkpoint);
    }
  }

  nn::Network& network() override { return network_; }
  data::Batches& batches() override { return batches_; }
  std::optional<train::Drawn> next() override {
    return batches_.next(batch_) ? std::optional(train::Drawn{batch_.number, batch_.x.size(0)}) : std::nullopt;
  }
  Tensor loss(nn::Pass& pass) override { return ops::mse_loss(network_.mlp(batch_.x, pass), batch_.y); }
  std::string units() const override { return "rows"; }
  std::vector<train::FigureKind> figures() const override {
    return {{.name = "r2", .label = "R²", .higher_is_better = true, .chart = "Explained", .axis = "R²"},
            train::loss_figure("squared error")};
  }
  // The first fifth of the rows is held out: how much of its variance is explained.
  train::Figures evaluate(const train::Work& work) override {
    work.begin("evaluating", held_out_);
    data::Prefetch<Batch> all(std::make_shared<RowSamples>(rows_, 0),
                              data::plan_batches({.size = held_out_, .batch_size = held_out_}), {.workers = 0});
    Batch batch;
    all.next(batch);
    const autograd::NoGrad pause;
    nn::Pass pass;
    const float error = ops::mse_loss(network_.mlp(batch.x, pass), batch.y).item();
    const float variance = ops::mse_loss(batch.y, ops::expand(ops::mean(batch.y, {0}, true), batch.y.shape())).item();
    return {{"r2", 1 - error / variance}, {"loss", error}};
  }
  void save(const std::filesystem::path& folder) const override { train::save_parameters(network_, folder); }
  std::string name() const override { return "regress"; }

 private:
  Rows rows_;
  Perceptron network_;
  std::int64_t held_out_;
  data::Prefetch<Batch> batches_;
  Batch batch_;
};

std::unique_ptr<train::Task> RegressOptions::make(const std::filesystem::path& checkpoint) const {
  return std::make_unique<Regress>(*this, checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: regress DATA.csv RUNS NAME\n";
    return 2;
  }
  try {
    RegressOptions options;
    const std::filesystem::path run = std::filesystem::path(argv[2]) / argv[3];
    if (std::filesystem::exists(run)) {
      train::resume(run, options);
    } else {
      options.csv = argv[1];
      options.output = argv[2];
      options.experiment = argv[3];
      options.lr = 1e-2;
      options.batch_size = 16;
      options.epochs = 60;
      options.recovery_interval = 1;
    }
    train::Progress progress(stdout);
    train::fit(options, {.should_stop = {}, .progress = &progress, .on_step = {}});
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
