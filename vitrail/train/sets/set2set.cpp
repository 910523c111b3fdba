#include "vitrail/train/sets/set2set.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The network of a checkpoint or of a folder, or a new one for these data.
models::SetModel make_set_model(const Set2SetOptions& options, const fs::path& checkpoint, const data::Sets& data) {
  const fs::path folder = checkpoint.empty() ? model_of(options.model) : checkpoint;
  const nlohmann::json given = nlohmann::json::parse(options.model_kwargs);
  if (models::is_set_model_folder(folder)) {
    check(!checkpoint.empty() || (given.empty() && !options.num_queries && options.drop == 0),
          "--model-kwargs, --num-queries and --drop are for a new network, not for '{}'", folder.string());
    return models::load_set_model(folder);
  }
  nlohmann::json kwargs = given;
  for (const char* rate : {"dropout", "attention_dropout", "activation_dropout"}) {
    if (options.drop > 0) {
      kwargs[rate] = options.drop;
    }
  }
  return models::create_set_model(options.model,
                                  {.input_size = data.input_size,
                                   .output_size = data.output_size,
                                   .labels = data.labels,
                                   .num_queries = options.num_queries.value_or(data.most_targets)},
                                  kwargs.dump(), {.seed = static_cast<std::uint64_t>(options.seed)});
}

void check_fit(const models::SetModel& model, const data::Sets& data) {
  const models::Set2SetConfig& c = model.net->config();
  check(data.input_size == c.input_size && data.output_size == c.output_size,
        "{}: elements have {} numbers and targets {}, but the network takes {} and says {}", data.source,
        data.input_size, data.output_size, c.input_size, c.output_size);
}

class Set2SetTask final : public Task {
 public:
  Set2SetTask(const Set2SetOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override {
    return loader_->next(batch_) ? std::optional(Drawn{batch_.number, std::ssize(batch_.indices)}) : std::nullopt;
  }
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "sets"; }
  std::vector<FigureKind> figures() const override { return validation_ ? set_figures() : std::vector<FigureKind>(); }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return set_figures().back().axis; }
  void save(const fs::path& folder) const override {
    io::replace_folder(folder, [&](const fs::path& temporary) { models::write_set_model(model_, temporary); });
  }
  std::vector<std::pair<std::string, std::string>> pictures() const override;
  std::string name() const override { return model_.name; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  const Set2SetOptions options_;
  data::Sets training_;
  std::optional<data::Sets> validation_;
  models::SetModel model_;
  std::unique_ptr<data::SetLoader> loader_;
  data::SetBatch batch_;
  SetEvaluation evaluation_;  // the latest
};

Set2SetTask::Set2SetTask(const Set2SetOptions& options, const fs::path& checkpoint) : options_(options) {
  const fs::path folder = checkpoint.empty() ? model_of(options_.model) : checkpoint;
  const bool known = models::is_set_model_folder(folder);
  training_ =
      data::open_sets(options_.data_dir, options_.train_split,
                      known ? models::load_set_model(folder, nn::Fill::meta).labels : std::vector<std::string>());
  check(!training_.labels.empty(), "{}: none of the sets has targets to learn", options_.data_dir);
  model_ = make_set_model(options_, checkpoint, training_);
  check_fit(model_, training_);
  if (!options_.val_dir.empty()) {
    validation_ = data::open_sets(options_.val_dir, "validation", model_.labels);
  } else if (!options_.val_split.empty()) {
    check(data::is_set_source(options_.data_dir),
          "'{}' is one part: name the sets to evaluate on by --val-dir, or give --val-split \"\" for none",
          options_.data_dir);
    validation_ = data::open_sets(options_.data_dir, options_.val_split, model_.labels);
  }
  if (validation_) {
    check_fit(model_, *validation_);
  }
  data::LoaderOptions loading;
  loading.batch_size = options_.batch_size;
  loading.shuffle = true;
  loading.drop_last = true;
  loading.seed = static_cast<std::uint64_t>(options_.seed);
  loading.workers = static_cast<int>(options_.workers);
  loader_ = data::set_loader(training_, loading);
}

Tensor Set2SetTask::loss(nn::Pass& pass) {
  const models::SetInput input{batch_.x, batch_.mask};
  const models::SetOutputs said =
      options_.no_aux_loss ? model_.net->forward(input, pass) : model_.net->forward_layers(input, pass);
  const std::vector<TargetSet> targets = targets_of(batch_);
  return set_criterion(targets, options_.weights)(said, targets).loss;
}

Figures Set2SetTask::evaluate(const Work& work) {
  work.begin("evaluating", validation_->count);
  SetRunOptions run;
  run.batch_size = options_.validation_batch_size.value_or(options_.batch_size);
  run.dtype = work.dtype;
  run.workers = static_cast<int>(options_.workers);
  run.tolerance = options_.tolerance;
  run.weights = options_.weights;
  run.aux_loss = !options_.no_aux_loss;
  run.progress = work.advance;
  run.ranks = work.ranks;
  evaluation_ = evaluate_sets(*model_.net, *validation_, run);
  return evaluation_.figures;
}

std::vector<std::pair<std::string, std::string>> Set2SetTask::pictures() const {
  if (evaluation_.shown.empty()) {
    return {};
  }
  return {{"sets.svg", sets_svg(evaluation_, training_.input_size, training_.output_size)}};
}

std::vector<std::string> Set2SetTask::summary() const {
  const models::Set2SetConfig& config = model_.net->config();
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {}, {}", model_.name,
                  static_cast<double>(model_.net->parameters.count()) * 1e-6,
                  io::counted(config.num_queries, "queries"),
                  options_.weights.no_matching ? "query i is target i" : "queries are matched with targets"),
      fmt::format("{}: {}", io::counted(std::ssize(model_.labels), "classes"), fmt::join(model_.labels, ", ")),
      fmt::format("{} training and {}", training_.count,
                  io::counted(validation_ ? validation_->count : 0, "validation sets"))};
  note_unfilled(lines, "sets", training_.count, options_.batch_size);
  if (training_.most_targets > config.num_queries) {
    lines.push_back(fmt::format("there are sets with {} targets, but {} queries: some targets are not learned",
                                training_.most_targets, config.num_queries));
  }
  if (!data::is_set_source(options_.val_dir)) {  // which would be another part of what is drawn
    const bool by_part = options_.val_dir.empty();
    note_same_data(lines, "sets", {by_part ? options_.train_split : options_.data_dir},
                   {by_part ? options_.val_split : options_.val_dir});
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> Set2SetTask::facts() const {
  return {{"architecture", model_.name},
          {"training_sets", std::to_string(training_.count)},
          {"validation_sets", std::to_string(validation_ ? validation_->count : 0)},
          {"classes", fmt::format("{}", fmt::join(model_.labels, ", "))}};
}

}  // namespace

Set2SetOptions::Set2SetOptions() {
  batch_size = 32;
  epochs = 10;
  lr = 2e-3;
  weight_decay = 1e-4;
  clip_grad = 0.1;
  eval_metric = "right";
}

void Set2SetOptions::describe(OptionList& list) {
  list.group("data");
  list.add("data_dir", data_dir, "DATA",
           "Sets: sets:task=sort,count=20000 or sets:task=centres,count=20000, which are drawn, or a .jsonl (see "
           "docs/sets.md)")
      .argument("DATA")
      .also("--data")
      .path()
      .check_that([this](const Option& self) {
        check(!data_dir.empty(), "{} is missing: sets:task=sort,count=20000, or a .jsonl of sets", self.flag());
      });
  list.add("train_split", train_split, "NAME", "Part of --data-dir to train on");
  list.add("val_split", val_split, "NAME", "Part of --data-dir to evaluate on; empty: none")
      .idle_if("beside --val-dir", [this] { return !val_dir.empty() && !val_split.empty(); })
      .settled();
  list.add("val_dir", val_dir, "DATA", "Sets to evaluate on, where they are others").path().settled();
  list.group("model");
  list.add("model", model, "MODEL", "Network: set2set, or a folder of one").path().settled();
  list.add_arguments("model_kwargs", model_kwargs, "KEY=VALUE",
                     "Fields of a new network's config.json: d_model=64 encoder_layers=2 decoder_layers=2 …")
      .settled();
  list.add("num_queries", num_queries, "N",
           "Elements that the network can say are in a set (default: the most targets of a training set)")
      .at_least(1)
      .settled();
  list.add("drop", drop, "RATE", "Dropout of a new network").below_one().settled();
  add_parameter_options(list, *this);
  list.group("loss");
  list.add("no_matching", weights.no_matching, "",
           "Query i is target i, in the order in which the targets come, and not the one it is matched with");
  list.add("set_cost_class", weights.set_cost_class, "W", "Weight of the class in the matching")
      .at_least(0)
      .idle_if("with --no-matching", [this] { return weights.no_matching; });
  list.add("set_cost_value", weights.set_cost_value, "W", "Weight of the values' L1 distance in the matching")
      .at_least(0)
      .check_that([this](const Option&) {
        check(weights.no_matching || weights.set_cost_class + weights.set_cost_value > 0,
              "--set-cost-class and --set-cost-value are both 0: nothing is left to match by");
      })
      .idle_if("with --no-matching", [this] { return weights.no_matching; });
  list.add("value_loss_coef", weights.value_loss_coef, "W", "Weight of the values' L1 distance in the loss")
      .at_least(0);
  list.add("eos_coef", weights.eos_coef, "W", "Weight of 'nothing' in the cross-entropy").positive();
  list.add("no_aux_loss", no_aux_loss, "", "No loss for the layers of the decoder before the last");
  add_batch_options(list, *this, "sets");
  add_optimizer_options(list, *this);
  list.find("clip_grad")->also("--clip-max-norm");
  add_schedule_options(list, *this, "sets");
  add_average_options(list, *this);
  list.group("evaluation");
  list.add("tolerance", tolerance, "D",
           "How far the numbers of an element may be from its target's in a set that is right")
      .positive();
  add_run_options(list, *this, {"right", "size", "distance", "loss"});
  idle_without_evaluation(list, "sets to evaluate on (--val-split, --val-dir)",
                          [this] { return !val_split.empty() || !val_dir.empty(); });
}

std::unique_ptr<Task> Set2SetOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<Set2SetTask>(*this, checkpoint);
}

}  // namespace vitrail::train
