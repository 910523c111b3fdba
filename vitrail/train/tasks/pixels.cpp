#include "vitrail/train/tasks/pixels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/color_clusters.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/io/file.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/share_batches.h"
#include "vitrail/train/tasks/text_blocks.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Images as sequences of colours, each behind the token that begins a picture; the next colour of each is the target.
class PixelSequences final : public data::Samples<TextBatch> {
 public:
  PixelSequences(const data::Dataset& images, const data::ColorClusters& clusters, bool skip_broken)
      : length_(clusters.size * clusters.size), begin_(clusters.count()) {
    for (std::int64_t i = 0; i < images.size(); ++i) {
      try {
        const std::vector<std::int64_t> ids = clusters.encode(images.image(i));
        colors_.insert(colors_.end(), ids.begin(), ids.end());
      } catch (const Error& error) {
        check(skip_broken, "{} (--skip-broken leaves out such images)", error.what());
        broken_.emplace_back(error.what());
      }
    }
    check(count() > 0, "none of the {} images could be read: {}", images.size(),
          broken_.empty() ? "" : broken_.front());
  }

  std::int64_t count() const { return std::ssize(colors_) / length_; }
  std::int64_t length() const { return length_; }
  const std::vector<std::string>& broken() const { return broken_; }

  std::string name(std::int64_t index) const override { return fmt::format("image {}", index); }
  TextBatch begin(const data::BatchPlan& plan) const override {
    const Shape shape{std::ssize(plan.picks), length_};
    return {plan.number, Tensor::empty(shape, DType::i64), Tensor::empty(shape, DType::i64)};
  }
  void fill(TextBatch& batch, const data::BatchPlan& plan, std::int64_t i) const override {
    const auto from = colors_.begin() + plan.picks[static_cast<std::size_t>(i)].index * length_;
    std::int64_t* ids = batch.ids.data<std::int64_t>() + i * length_;
    *ids = begin_;
    std::copy(from, from + length_ - 1, ids + 1);
    std::copy(from, from + length_, batch.targets.data<std::int64_t>() + i * length_);
  }
  void finish(TextBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  std::int64_t length_;
  std::int64_t begin_;
  std::vector<std::int64_t> colors_;  // of one image after the other
  std::vector<std::string> broken_;   // images left out
};

std::unique_ptr<data::Dataset> pictures_of(const std::string& source, const std::string& split, bool skip_broken) {
  data::DatasetOptions options;
  options.skip_broken = skip_broken;
  options.split = split;
  options.labeled = false;
  return data::open_dataset(source, options);
}

models::TextModel make_image_gpt(const PixelOptions& options, const std::string& folder, std::int64_t colors,
                                 std::int64_t pixels) {
  models::TextModelOptions create{
      .model_kwargs = options.model_kwargs, .drop = options.drop, .seed = static_cast<std::uint64_t>(options.seed)};
  if (!folder.empty()) {
    return models::load_text_model(folder, create);
  }
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  kwargs.emplace("vocab_size", colors + 1);
  kwargs.emplace("n_positions", pixels);
  create.model_kwargs = kwargs.dump();
  return models::create_text_model(options.model, create);
}

class Pixels final : public Task {
 public:
  Pixels(const PixelOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *batches_; }
  std::optional<Drawn> next() override {
    if (!batches_->next(batch_)) {
      return std::nullopt;
    }
    return Drawn{batch_.number, batch_.ids.numel()};
  }
  Tensor loss(nn::Pass& pass) override { return loss_of(batch_, pass); }
  std::string units() const override { return "pixels"; }
  std::string batch_items() const override { return "images"; }
  std::vector<FigureKind> figures() const override {
    if (validation_ == nullptr) {
      return {};
    }
    return {loss_figure(loss_axis()),
            {.name = "bits_per_pixel",
             .label = "bits per pixel",
             .decimals = 4,
             .chart = "Bits per pixel",
             .axis = "bits"}};
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of the next pixel"; }
  void save(const fs::path& folder) const override {
    io::replace_folder(folder, [&](const fs::path& temporary) {
      models::write_text_model(model_, temporary);
      data::write_clusters(clusters_, temporary);
    });
  }
  std::string name() const override { return fmt::format("{}-{}", model_.name, clusters_.size); }
  std::vector<std::string> summary() const override {
    const auto count = static_cast<double>(model_.net->parameters.count());
    std::vector<std::string> lines = {
        fmt::format("{}, {:.2f} M parameters, {}x{} pixels in {} colours", model_.name, count / 1e6, clusters_.size,
                    clusters_.size, clusters_.count()),
        fmt::format("{} training{} images", training_->count(),
                    validation_ != nullptr ? fmt::format(" and {} validation", validation_->count()) : "")};
    note_unfilled(lines, "images", training_->count(), options_.batch_size);
    if (!training_->broken().empty()) {
      lines.push_back(left_out_text(training_->broken()));
    }
    if (validation_ != nullptr) {
      std::ranges::move(notes_of_parts(options_), std::back_inserter(lines));
    }
    return lines;
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"model", model_.name},
            {"architecture", model_.architecture},
            {"flops", std::to_string(model_.net->flops(training_->length()))},
            {"training_images", std::to_string(training_->count())},
            {"validation_images", std::to_string(validation_ != nullptr ? validation_->count() : 0)}};
  }

 private:
  Tensor loss_of(const TextBatch& batch, nn::Pass& pass) const {
    const Tensor logits = models::language_of(model_).forward(batch.ids, pass);
    return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), batch.targets.reshape({-1}));
  }

  const PixelOptions options_;
  data::ColorClusters clusters_;
  std::shared_ptr<const PixelSequences> training_;
  std::shared_ptr<const PixelSequences> validation_;  // null: none
  models::TextModel model_;
  std::unique_ptr<data::Prefetch<TextBatch>> batches_;
  TextBatch batch_;
};

// What `open` opens to evaluate on. An Error says what else can be done.
std::unique_ptr<data::Dataset> or_other_ways(const std::function<std::unique_ptr<data::Dataset>()>& open) {
  try {
    return open();
  } catch (const Error& error) {
    fail("{}; name another folder with --val-dir, or train without evaluation by --val-split ''", error.what());
  }
}

Pixels::Pixels(const PixelOptions& options, const fs::path& checkpoint) : options_(options) {
  const std::unique_ptr<data::Dataset> images =
      pictures_of(options_.data_dir, options_.train_split, options_.skip_broken);
  const std::string given = model_of(options_.model).string();
  const std::string folder = !checkpoint.empty() ? checkpoint.string() : fs::is_directory(given) ? given : "";
  clusters_ = !folder.empty() ? data::read_clusters(folder)
                              : data::learn_clusters(*images, options_.clusters, options_.img_size.value_or(32),
                                                     mix(static_cast<std::uint64_t>(options_.seed), hash("colours")));
  const std::int64_t pixels = clusters_.size * clusters_.size;
  model_ = make_image_gpt(options_, folder, clusters_.count(), pixels);
  const models::LanguageBody& body = models::language_of(model_);
  check(body.vocab_size() == clusters_.count() + 1 && body.max_positions() >= pixels,
        "{}: a model of {} tokens and {} positions does not read pictures of {} pixels in {} colours", model_.name,
        body.vocab_size(), body.max_positions(), pixels, clusters_.count());
  training_ = std::make_shared<PixelSequences>(*images, clusters_, options_.skip_broken);
  if (!options_.val_dir.empty() || !options_.val_split.empty()) {
    const bool apart = !options_.val_dir.empty();
    const auto open = [&] {
      return pictures_of(
          apart ? options_.val_dir : options_.data_dir,
          apart ? part_of_val_dir(options_, data::parts_of_images(options_.val_dir)) : options_.val_split,
          options_.skip_broken);
    };
    const auto others = apart || !checkpoint.empty() ? open() : or_other_ways(open);
    validation_ = std::make_shared<PixelSequences>(*others, clusters_, options_.skip_broken);
  }
  const data::PlanOptions plan{.size = training_->count(),
                               .batch_size = options_.batch_size,
                               .shuffle = !options_.no_shuffle,
                               .shuffle_block = options_.shuffle_block,
                               .drop_last = true,
                               .seed = mix(static_cast<std::uint64_t>(options_.seed), hash("images"))};
  batches_ = std::make_unique<data::Prefetch<TextBatch>>(training_, data::plan_batches(plan),
                                                         data::PrefetchOptions{.workers = 0, .items = "images"});
}

Figures Pixels::evaluate(const Work& work) {
  work.say_left_out(validation_->broken());
  work.begin("evaluating", validation_->count());
  const std::int64_t rows = options_.validation_batch_size.value_or(options_.batch_size);
  data::Prefetch<TextBatch> batches(validation_, data::plan_batches({.size = validation_->count(), .batch_size = rows}),
                                    {.workers = 0});
  const autograd::NoGrad no_grad;
  const BatchSharing sharing = {work.ranks, [&](std::int64_t done, std::int64_t) { work.advance(done); },
                                validation_->count()};
  const auto found = share_losses<TextBatch>(batches, sharing, [&](const TextBatch& batch) {
    nn::Pass pass{.dtype = work.dtype};
    return std::pair(static_cast<double>(loss_of(batch, pass).item()), batch.ids.size(0));
  });
  const double loss = found.mean();
  return {{"loss", loss}, {"bits_per_pixel", loss / std::numbers::ln2}};
}

}  // namespace

PixelOptions::PixelOptions() {
  model = "imagegpt-small";
  eval_metric = "loss";
  batch_size = 16;
  epochs = 10;
  lr = 1e-3;
  weight_decay = 0.1;
  clip_grad = 1;
  optimizer.betas = std::array{0.9, 0.95};
  schedule.warmup_lr = 0;
}

void PixelOptions::describe(OptionList& list) {
  const auto has_clusters = [this]() -> std::string {
    return fs::is_directory(model_of(model)) ? "with --model " + model + ", whose folder has size and colours" : "";
  };
  add_data_options(list, *this);
  list.group("model");
  list.add("model", model, "MODEL", "Model: imagegpt-small, imagegpt-medium, imagegpt-large, or a model folder")
      .path()
      .settled();
  list.add_arguments("model_kwargs", model_kwargs, "KEY=VALUE",
                     "Fields of the model's config.json: n_layer=4 n_head=4 n_embd=128 …")
      .settled();
  list.add("img_size", img_size, "N", "Pixels of a side that pictures are brought to (default: 32)")
      .at_least(1)
      .settled()
      .idle_if(has_clusters);
  list.add("clusters", clusters, "N", "Colours, which are chosen from the training images by k-means")
      .at_least(1)
      .settled()
      .idle_if(has_clusters);
  list.add("drop", drop, "RATE", "Dropout, wherever the model has it (default: the model's)").below_one();
  add_parameter_options(list, *this);
  add_batch_options(list, *this, "images");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "images");
  add_average_options(list, *this);
  add_run_options(list, *this, {"loss", "bits_per_pixel"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> PixelOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<Pixels>(*this, checkpoint);
}

}  // namespace vitrail::train
