#include "vitrail/train/tasks/frames.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/held_out.h"
#include "vitrail/data/sequences/sequence_loader.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/run/held_out.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/frames.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr double usual_val_share = 0.2;
// The value of --val-split for the part for validation, if there is one, and else a share.
constexpr const char* automatic = "auto";

// The options with the part that "auto" stands for.
FrameTaskOptions with_part(FrameTaskOptions options) {
  if (options.val_split == automatic && (!options.val_dir.empty() || options.has_part_apart())) {
    options.val_split = usual_val_split;
  }
  return options;
}

data::Sequences open_frames(const FrameTaskOptions& options, const std::string& source, const std::string& split,
                            const models::FrameTarget& target) {
  data::SequenceOptions wanted = sequence_options(target, target.classes);
  wanted.split = split;
  wanted.frames = options.frames;
  wanted.skip_broken = options.skip_broken;
  return data::open_sequences(source, wanted);
}

// A new network on the image model that --model names.
std::unique_ptr<models::FrameNetwork> new_frame_network(const FrameTaskOptions& options, models::FrameTarget target) {
  models::CreateOptions create = create_options(options);
  create.num_classes = 0;
  models::Model encoder = models::open_model(model_of(options.model).string(), create);
  models::check_takes_images(encoder);
  models::check_trainable(*encoder.net, options.model);
  nlohmann::json fields = nlohmann::json::parse(options.cell_kwargs);
  fields["architecture"] = options.cell;
  fields.emplace("hidden_size", 128);
  fields.emplace("dropout", options.drop);
  return std::make_unique<models::FrameNetwork>(std::move(encoder), fields.dump(), std::move(target), "--cell-kwargs");
}

class FrameTask final : public Task {
 public:
  FrameTask(const FrameTaskOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override {
    return frame_loss(model_->outputs(batch_.x, batch_.lengths, pass), batch_, training_, model_->target,
                      static_cast<float>(options_.smoothing));
  }
  std::string units() const override { return model_->target.each_frame() ? "frames" : "sequences"; }
  std::string batch_items() const override { return "sequences"; }
  std::vector<FigureKind> figures() const override {
    return evaluated_.empty() ? std::vector<FigureKind>() : frame_figures(model_->target);
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return frame_figures(model_->target).back().axis; }
  void save(const fs::path& folder) const override { models::save_frame_network(*model_, folder); }
  std::vector<std::pair<std::string, std::string>> pictures() const override;
  std::string name() const override { return fmt::format("{}-{}", model_->encoder.architecture, options_.cell); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void open_data(const models::FrameTarget& target);
  void hold_out();
  const data::Sequences& validation() const { return separate_ ? *separate_ : training_; }
  FrameRunOptions run_options(DType dtype) const;

  const FrameTaskOptions options_;
  data::Sequences training_;
  std::optional<data::Sequences> separate_;  // to evaluate on; none: a share of the others
  std::vector<std::int64_t> learned_;        // numbers of sequences
  std::vector<std::int64_t> evaluated_;      // likewise, of validation()
  std::unique_ptr<models::FrameNetwork> model_;
  std::unique_ptr<data::SequenceLoader> loader_;
  data::SequenceBatch batch_;
  FrameEvaluation evaluation_;  // the latest
};

FrameTask::FrameTask(const FrameTaskOptions& options, const fs::path& checkpoint) : options_(with_part(options)) {
  models::FrameTarget target;
  target.kind = models::target_named(options_.target, "--target");
  target.bins = options_.angle_bins;
  target.circular = options_.circular;
  target.frames = options_.frames;
  training_ = open_frames(options_, options_.data_dir, options_.train_split, target);
  target.classes = training_.classes;
  if (!checkpoint.empty()) {
    model_ = models::load_frame_network(checkpoint);
    check_same_classes(model_->target.classes, training_.classes);
    target = model_->target;
    if (target.classes != training_.classes) {
      training_ = open_frames(options_, options_.data_dir, options_.train_split, target);
    }
  }
  check(target.kind == models::FrameTarget::Kind::angle || target.classes.size() >= 2,
        "{}: all {} have the label '{}': there is nothing to tell apart", options_.data_dir,
        target.each_frame() ? "frames" : "sequences", target.classes.empty() ? "" : target.classes[0]);
  open_data(target);
  if (model_ == nullptr) {
    model_ = new_frame_network(options_, std::move(target));
  }
  data::apply(options_.images, model_->encoder.pretrained);
  data::SequenceLoaderOptions loading;
  loading.batch_size = options_.batch_size;
  loading.shuffle = !options_.no_shuffle;
  loading.shuffle_block = options_.shuffle_block;
  loading.drop_last = true;
  loading.max_frames = options_.max_frames;
  loading.circular = options_.circular;
  loading.seed = static_cast<std::uint64_t>(options_.seed);
  loading.workers = static_cast<int>(options_.workers);
  loading.skip_broken = options_.skip_broken;
  loader_ = std::make_unique<data::SequenceLoader>(
      training_, learned_, data::train_transform(model_->encoder.pretrained, options_.augment), loading);
}

// Decides which sequences are learned, and which are to evaluate on.
void FrameTask::open_data(const models::FrameTarget& target) {
  if (!options_.val_dir.empty()) {
    separate_ = open_frames(options_, options_.val_dir,
                            part_of_val_dir(options_, data::parts_of_images(options_.val_dir)), target);
  } else if (options_.has_part_apart()) {
    with_other_ways(options_,
                    [&] { separate_ = open_frames(options_, options_.data_dir, options_.val_split, target); });
  }
  if (separate_) {
    learned_.resize(training_.sequences.size());
    std::iota(learned_.begin(), learned_.end(), 0);
    evaluated_.resize(separate_->sequences.size());
    std::iota(evaluated_.begin(), evaluated_.end(), 0);
  } else {
    hold_out();
  }
}

// Draws a share of the sequences of each class.
void FrameTask::hold_out() {
  const double share = options_.held_out();
  std::vector<std::int64_t> classes;
  std::ranges::transform(training_.sequences, std::back_inserter(classes), &data::Sequence::label);
  data::HeldOut drawn = data::hold_out(
      classes, [&](std::int64_t i) { return training_.sequences[static_cast<std::size_t>(i)].name; }, share,
      static_cast<std::uint64_t>(options_.seed));
  learned_ = std::move(drawn.learned);
  evaluated_ = std::move(drawn.held);
  check(!learned_.empty(), "{}: with --val-share {} no sequence is left to learn", options_.data_dir, share);
}

std::optional<Drawn> FrameTask::next() {
  if (!loader_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, model_->target.each_frame() ? batch_.x.size(0) : batch_.lengths.size(0)};
}

FrameRunOptions FrameTask::run_options(DType dtype) const {
  FrameRunOptions options;
  options.batch_size = options_.validation_batch_size.value_or(options_.batch_size);
  options.dtype = dtype;
  options.workers = static_cast<int>(options_.workers);
  options.skip_broken = options_.skip_broken;
  options.turned = options_.circular;
  return options;
}

Figures FrameTask::evaluate(const Work& work) {
  work.begin("evaluating", std::ssize(evaluated_));
  FrameRunOptions options = run_options(work.dtype);
  options.progress = work.advance;
  options.ranks = work.ranks;
  evaluation_ = run_frames(*model_, validation(), evaluated_, options);
  return evaluation_.figures;
}

std::vector<std::pair<std::string, std::string>> FrameTask::pictures() const {
  if (evaluation_.predictions.empty()) {
    return {};
  }
  const bool angles = model_->target.kind == models::FrameTarget::Kind::angle;
  return {{angles ? "angles.svg" : "confusion.svg", frames_svg(evaluation_, validation(), model_->target)}};
}

std::vector<std::string> FrameTask::summary() const {
  const models::PretrainedConfig& images = model_->encoder.pretrained;
  std::vector<std::string> lines = {
      fmt::format("{} and {}, {:.2f} M parameters, {}x{} pixels", model_->encoder.architecture, options_.cell,
                  static_cast<double>(model_->parameters.count()) * 1e-6, images.width, images.height),
      fmt::format(
          "{} training and {}{}", learned_.size(), io::counted(std::ssize(evaluated_), "validation sequences"),
          model_->target.classes.empty() ? "" : ", of " + io::counted(std::ssize(model_->target.classes), "classes"))};
  note_unfilled(lines, "sequences", std::ssize(learned_), options_.batch_size);
  lines.insert(lines.end(), training_.notes.begin(), training_.notes.end());
  if (separate_) {
    lines.insert(lines.end(), separate_->notes.begin(), separate_->notes.end());
    std::ranges::copy(notes_of_parts(options_), std::back_inserter(lines));
  } else if (training_.parts.size() > 1 && options_.val_share) {
    lines.push_back(fmt::format("'{}' has the parts {}: without --val-share, --val-split evaluates on one of them",
                                options_.data_dir,
                                io::quoted_list({training_.parts.begin(), training_.parts.end()}, "and")));
  } else if (!options_.val_share && !evaluated_.empty()) {
    lines.push_back(
        fmt::format("'{}' has no part to evaluate on: a share of {} of each class is held out (--val-share)",
                    options_.data_dir, options_.held_out()));
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> FrameTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {{"architecture", model_->encoder.architecture},
                                                            {"network", model_->network_config()},
                                                            {"training_sequences", std::to_string(learned_.size())},
                                                            {training_digest, data::digest_of_names(*training_.images)},
                                                            {"validation_sequences", std::to_string(evaluated_.size())},
                                                            {"classes", std::to_string(model_->target.classes.size())}};
  std::ranges::move(held_out_facts(options_, separate_ ? 0 : options_.held_out(), !evaluated_.empty()),
                    std::back_inserter(facts));
  return facts;
}

}  // namespace

FrameTaskOptions::FrameTaskOptions() {
  batch_size = 16;
  val_split = automatic;
  augment.hflip = 0;  // what moves to the right, and turns, would not any more
}

void FrameTaskOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  list.find("data_dir")->help =
      "Sequences: class/sequence/frame.jpg in a folder or a .tar, or a .csv of path,sequence,…";
  list.add(
          "val_share", val_share, "SHARE",
          fmt::format("Share of the sequences of each class to evaluate on, drawn once (default: {}, unless --data-dir "
                      "has a part for it)",
                      usual_val_share))
      .below_one()
      .settled()
      .idle_if("beside --val-dir", [this] { return !val_dir.empty(); })
      .idle_if("beside --val-split", [this] { return !val_split.empty() && val_split != automatic; });
  list.add("frames", frames, "PATTERN",
           "Take frames with file names like this alone: '090-*.jpg' (default: all images)")
      .settled();
  list.add("max_frames", max_frames, "N", "Train on N frames in a row of longer sequences, from any place; 0: on all")
      .at_least(0);
  list.add("circular", circular, "", "Sequences are circles, as on a turntable: each begins at any of its frames")
      .settled();
  list.group("model");
  list.add("model", model, "MODEL", "Image model that sees each frame: a name (see: vitrail models), or a model folder")
      .path()
      .settled();
  add_model_options(list, *this);
  list.add("target", target, "WHAT",
           "What is learned: sequence, a class of each sequence; frames, a class of each frame; angle, that of each "
           "frame")
      .one_of({"sequence", "frames", "angle"})
      .settled();
  list.add("angle_bins", angle_bins, "K", "Angles are one of K classes; 0: their cosine and sine are learned")
      .at_least(0)
      .settled()
      .idle_if([this]() -> std::string { return target == "angle" ? "" : "without --target angle"; });
  list.add("cell", cell, "CELL", "Recurrent network over the frames: rnn, lstm, gru, mut3 or nas …").settled();
  list.add_arguments("cell_kwargs", cell_kwargs, "KEY=VALUE",
                     "Its fields: hidden_size=128 num_layers=1 bidirectional=True …")
      .settled();
  list.add("drop", drop, "P", "Dropout of the recurrent network").below_one().settled();
  list.add("smoothing", smoothing, "S", "Label smoothing of classes")
      .below_one()
      .idle_if("on angles without --angle-bins", [this] { return target == "angle" && angle_bins == 0; });
  add_parameter_options(list, *this);
  add_fitting_options(list, *this, "sequences");
  add_average_options(list, *this);
  add_run_options(list, *this, {"accuracy", "error", "loss"});
  idle_without_evaluation(list, "sequences to evaluate on (--val-share, --val-split, --val-dir)",
                          [this] { return held_out() > 0 || has_part_apart() || !val_dir.empty(); });
}

bool FrameTaskOptions::has_part_apart() const {
  const bool found =
      val_split == automatic && !val_share && data::has_part(data::parts_of_images(data_dir), usual_val_split);
  return val_dir.empty() && (found || (!val_split.empty() && val_split != automatic));
}

double FrameTaskOptions::held_out() const {
  return !val_dir.empty() || has_part_apart() ? 0 : val_share.value_or(val_split.empty() ? 0 : usual_val_share);
}

void FrameTaskOptions::validate() const {
  ImageTaskOptions::validate();
  check(angle_bins != 1, "--angle-bins must be 0, or at least 2 classes");
  check(target != "angle" || augment.no_aug || (augment.hflip == 0 && augment.vflip == 0),
        "a mirrored image shows another angle: --target angle wants --hflip 0 and --vflip 0");
}

std::unique_ptr<Task> FrameTaskOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<FrameTask>(*this, checkpoint);
}

}  // namespace vitrail::train
