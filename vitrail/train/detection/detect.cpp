#include "vitrail/train/detection/detect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/boxes/box_batches.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/kind.h"
#include "vitrail/train/detection/detection_sheet.h"
#include "vitrail/train/detection/detections.h"
#include "vitrail/train/detection/matching_history.h"
#include "vitrail/train/run/held_out.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// A detector, and what a user should know of how it was made.
struct Made {
  models::Detector detector;
  std::string name;         // what it is called: --model, or the detector that it starts from
  bool pretrained = false;  // whether its backbone has learnt before
  std::vector<std::string> notes;
};

void override_images(const DetectionOptions& options, models::DetectorImages& images) {
  images.shortest_edge = options.shortest_edge.value_or(images.shortest_edge);
  check(!options.longest_edge || *options.longest_edge >= images.shortest_edge,
        "--longest-edge {} is less than the shorter side of the images, {} (--shortest-edge)",
        options.longest_edge.value_or(0), images.shortest_edge);
  images.longest_edge = std::max(options.longest_edge.value_or(images.longest_edge), images.shortest_edge);
}

// The fields of config.json that flags of their own give.
nlohmann::json kwargs_of(const DetectionOptions& options) {
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  if (options.num_queries) {
    kwargs["num_queries"] = *options.num_queries;
  }
  for (const char* rate : {"dropout", "attention_dropout", "activation_dropout"}) {
    if (options.drop) {
      kwargs[rate] = *options.drop;
    }
  }
  return kwargs;
}

Made make_detector(const DetectionOptions& options, const fs::path& checkpoint,
                   const std::vector<std::string>& classes) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  Made made;
  made.name = options.model;
  if (!checkpoint.empty()) {
    const fs::path config = checkpoint.parent_path() / "config.toml";
    const std::map<std::string, std::string> facts =
        fs::exists(config) ? read_facts(config) : std::map<std::string, std::string>();
    if (const auto name = facts.find("architecture"); name != facts.end()) {
      made.name = name->second;
    }
    made.detector = models::load_detector(checkpoint, {.learns = true, .seed = seed});
    // When the run began:
    made.pretrained = !models::is_detector_name(options.model) || !options.initial_checkpoint.empty();
    return made;
  }
  const fs::path given = model_of(options.model);
  const fs::path initial = options.initial_checkpoint.empty() ? fs::path() : model_of(options.initial_checkpoint);
  const auto is_detector = [](const fs::path& path) {
    return !path.empty() && models::kind_of(path.string()) == models::ModelKind::detector;
  };
  if (is_detector(initial) || is_detector(given)) {
    const fs::path& folder = is_detector(initial) ? initial : given;
    check(kwargs_of(options).empty(), "--model-kwargs, --num-queries and --drop are for a new detector, not for '{}'",
          folder.string());
    made.detector = models::load_detector(folder, {.labels = classes, .learns = true, .seed = seed});
    made.pretrained = true;
    if (is_detector(initial)) {
      made.name = options.initial_checkpoint;
      if (options.model != DetectionOptions().model) {
        made.notes.push_back(
            fmt::format("--model '{}' has no effect: '{}' is a whole detector, and not a backbone alone", options.model,
                        options.initial_checkpoint));
      }
    }
    if (made.detector.drops_auxiliary_loss) {
      made.notes.push_back(
          fmt::format("'{}' says auxiliary_loss, with which transformers feeds normed states on: what "
                      "learns here does not, and begins with other boxes",
                      folder.string()));
    }
    if (made.detector.classifier == models::Classifier::by_names) {
      made.notes.push_back(
          fmt::format("'{}' has these classes among its own, or in another order: the classifier of the "
                      "queries keeps what it knows of them",
                      folder.string()));
    }
    if (made.detector.classifier == models::Classifier::renewed) {
      made.notes.push_back(
          fmt::format("the classes of '{}' are others: the classifier of the queries begins anew", folder.string()));
    }
    return made;
  }
  check(!models::names_folder(given.string()), "'{}' {}, but this task takes a detector{}", options.model,
        models::words_of(models::kind_of(given.string())).is_or_does,
        models::has_image_model(models::kind_of(given.string())) ? ": a ResNet is given by --initial-checkpoint" : "");
  made.detector = models::create_detector(options.model, {.labels = classes, .seed = seed}, kwargs_of(options).dump());
  if (!initial.empty()) {
    models::CreateOptions bare;
    bare.num_classes = 0;
    const models::Model backbone = models::open_model(initial.string(), bare);
    models::take_backbone(made.detector, backbone);
    made.pretrained = true;
    made.notes.push_back(fmt::format("the backbone has the weights of '{}'", initial.string()));
  }
  return made;
}

// Writes the weights of matching and loss that are used into the detector's config, by transformers' names. Others that
// its folder asks for are told, as are those that stand in an object of their own: but for eos_coefficient,
// transformers refuses a folder with one that is no whole number.
void write_weights_of_loss(const DetectionOptions& options, Made& made, bool resumed) {
  const std::array<std::pair<const char*, double>, 6> used = {
      {{"class_cost", options.costs.set_cost_class},
       {"bbox_cost", options.costs.set_cost_bbox},
       {"giou_cost", options.costs.set_cost_giou},
       {"bbox_loss_coefficient", options.weights.bbox_loss_coef},
       {"giou_loss_coefficient", options.weights.giou_loss_coef},
       {"eos_coefficient", options.weights.eos_coef}}};
  auto config = nlohmann::ordered_json::parse(made.detector.config);
  std::vector<std::string> others;
  std::vector<std::string> fractions;
  auto own = config.value(models::own_object, nlohmann::ordered_json::object());
  for (const auto& [key, value] : used) {
    const auto said = own.contains(key) ? own[key] : config.value(key, nlohmann::ordered_json());
    if (said.is_number() && said != value) {
      others.push_back(fmt::format("{} {} and not {:g}", key, said.dump(), value));
    }
    own.erase(key);
    if (key == std::string_view("eos_coefficient")) {
      config[key] = value;
    } else if (value == std::floor(value) && value < 1e9) {
      config[key] = static_cast<std::int64_t>(value);
    } else {
      config.erase(key);
      own[key] = value;
      fractions.push_back(fmt::format("{} {:g}", key, value));
    }
  }
  if (!fractions.empty() && !resumed) {
    made.notes.push_back(
        fmt::format("transformers takes whole numbers alone for {}: config.json keeps it in a place of its own",
                    fmt::join(fractions, ", ")));
  }
  if (!own.empty()) {
    config[models::own_object] = own;
  } else {
    config.erase(models::own_object);
  }
  made.detector.config = config.dump();
  if (!others.empty() && !resumed) {
    made.notes.push_back(
        fmt::format("the folder's config.json says {}: --set-cost-class, --set-cost-bbox, --set-cost-giou, "
                    "--bbox-loss-coef, --giou-loss-coef and --eos-coef say what counts",
                    fmt::join(others, ", ")));
  }
}

class DetectionTask final : public Task {
 public:
  DetectionTask(const DetectionOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *detector_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "loss of all layers"; }
  io::NamedTensors state() const override { return history_.state(); }
  void load_state(const io::NamedTensors& state) override { history_.load_state(state); }
  void save(const fs::path& folder) const override;
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override { return name_; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  data::BoxedImages open(const std::string& source, const std::string& split, const std::vector<std::string>& classes);

  const DetectionOptions options_;
  data::BoxedImages training_;
  std::optional<data::BoxedImages> validation_;
  double held_out_ = 0;  // the share of the training images that validation_ is
  models::Detector detector_;
  std::string name_;
  bool frozen_norms_ = false;
  std::vector<std::string> notes_;
  std::unique_ptr<data::BoxLoader> loader_;
  data::BoxBatch batch_;
  MatchingHistory history_;  // of the first images to evaluate on
};

DetectionTask::DetectionTask(const DetectionOptions& options, const fs::path& checkpoint)
    : options_(options),
      training_(data::open_boxed_images(options.data_dir,
                                        {.split = options.train_split, .skip_broken = options.skip_broken})) {
  Made made = make_detector(options_, checkpoint, training_.classes);
  write_weights_of_loss(options_, made, !checkpoint.empty());
  detector_ = std::move(made.detector);
  name_ = std::move(made.name);
  if (!checkpoint.empty()) {
    check_same_classes(detector_.labels, training_.classes);
  }
  if (detector_.labels != training_.classes) {
    training_ = data::open_boxed_images(
        options_.data_dir,
        {.split = options_.train_split, .classes = detector_.labels, .skip_broken = options_.skip_broken});
  }
  const auto open_boxes = [&](const std::string& source, const std::string& split) {
    validation_ = data::open_boxed_images(
        source, {.split = split, .classes = training_.classes, .skip_broken = options_.skip_broken});
  };
  held_out_ = open_evaluation(
      options_,
      {.open_dir =
           [&] { open_boxes(options_.val_dir, part_of_val_dir(options_, data::parts_of_boxes(options_.val_dir))); },
       .open_part = [&] { open_boxes(options_.data_dir, options_.val_split); },
       .is_all_for_training = [&] { return data::is_all_for_training(data::parts_of_boxes(options_.data_dir)); }});
  if (held_out_ > 0) {
    data::HeldOut drawn = draw_held_out(options_, held_out_, *training_.images);
    if (!drawn.held.empty()) {
      validation_ = data::part_of(training_, std::move(drawn.held));
      validation_->notes.clear();  // which are those of the training images
    }
    training_ = data::part_of(training_, std::move(drawn.learned));
  }
  check(training_.count() > 0, "{}: there is no box to learn from", options_.data_dir);
  const std::int64_t classes = std::ssize(training_.classes);
  check(options_.num_classes.value_or(classes) == classes,
        "--num-classes is {}, but {} declares {}, with ids up to {}: ids become classes by their order, whatever gaps "
        "they have, so that the flag can be left out",
        options_.num_classes.value_or(0), options_.data_dir, io::counted(classes, "classes"),
        training_.category_ids.empty() ? 0 : training_.category_ids.back());
  detector_.category_ids = training_.category_ids;
  notes_ = std::move(made.notes);
  override_images(options_, detector_.images);
  frozen_norms_ = options_.backbone_norm == "frozen" || (options_.backbone_norm == "auto" && made.pretrained);
  if (frozen_norms_) {
    detector_.net->freeze_backbone();
  }
  data::BoxTransform how = box_transform(detector_.images);
  how.hflip = options_.hflip;
  how.random_resize = !options_.no_random_resize;
  loader_ = data::box_loader(training_, how, training_loading(options_));
  if (validation_) {
    history_ = MatchingHistory(*validation_);
  }
}

std::optional<Drawn> DetectionTask::next() {
  if (!loader_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, std::ssize(batch_.indices)};
}

Tensor DetectionTask::loss(nn::Pass& pass) {
  const models::DetrInput input{batch_.x, batch_.pixel_mask};
  const models::SetPredictions found =
      options_.no_aux_loss ? detector_.net->forward(input, pass) : detector_.net->forward_layers(input, pass);
  return set_loss(found, object_sets(batch_), options_.costs, options_.weights).loss;
}

std::vector<FigureKind> DetectionTask::figures() const {
  if (!validation_) {
    return {};
  }
  std::vector<FigureKind> kinds;
  for (const char* figure : {"AP", "AP50", "AP75"}) {
    kinds.push_back({.name = figure,
                     .label = figure,
                     .decimals = 3,
                     .higher_is_better = true,
                     .chart = "Average precision",
                     .axis = "average precision",
                     .axis_max = 1});
  }
  kinds.push_back(loss_figure(loss_axis()));
  return kinds;
}

Figures DetectionTask::evaluate(const Work& work) {
  work.begin("evaluating", validation_->images->size());
  const DetectorEvaluation result =
      evaluate_detector(detector_, *validation_, evaluation_options(options_, work), options_.costs, options_.weights);
  work.say_left_out(result.broken);
  history_.record(detector_, options_.costs, work.dtype);
  const auto& stats = result.figures.stats;
  return {{"AP", stats[0]}, {"AP50", stats[1]}, {"AP75", stats[2]}, {"loss", result.loss}};
}

void DetectionTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) { models::write_detector(detector_, temporary); });
}

std::vector<std::string> DetectionTask::draw(const fs::path& run) const {
  const fs::path best = run / "best";
  if (!validation_ || !fs::exists(best)) {
    return {};
  }
  const fs::path file = run / "detections.png";
  io::write_png(file, detection_sheet(models::load_detector(best), *validation_, options_.skip_broken));
  std::vector<std::string> lines = {fmt::format("what it finds in images to evaluate on: {}", file.string())};
  if (!history_.state().empty()) {
    history_.write_page(run / "matching");
    lines.push_back(fmt::format("which query stood for which object, from one evaluation to the next: {}",
                                (run / "matching" / "index.html").string()));
  }
  return lines;
}

std::vector<std::string> DetectionTask::summary() const {
  const models::DetrConfig& config = detector_.net->config();
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {} queries, shorter side {} pixels, batch norms of the backbone {}", name_,
                  static_cast<double>(detector_.net->parameters.count()) * 1e-6, config.num_queries,
                  detector_.images.shortest_edge,
                  frozen_norms_ ? "frozen, with its first layers" : "trained, since it has learnt nothing yet"),
      fmt::format("{} in the training images", io::counted(training_.count(), "objects")),
      fmt::format("{}: {}", io::counted(std::ssize(training_.classes), "classes"), fmt::join(training_.classes, ", "))};
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  std::ranges::copy(
      data_summary(options_, *training_.images, validation_ ? validation_->images.get() : nullptr, held_out_),
      std::back_inserter(lines));
  for (const data::BoxedImages* data : {&training_, validation_ ? &*validation_ : nullptr}) {
    if (data != nullptr) {
      lines.insert(lines.end(), data->notes.begin(), data->notes.end());
    }
  }
  const auto crowded = std::ranges::count_if(
      training_.objects, [&](const auto& objects) { return std::ssize(objects) > config.num_queries; });
  if (crowded > 0) {
    lines.push_back(fmt::format("{} more objects than the detector has queries ({}): some of them are not learned",
                                crowded == 1 ? "1 image has" : fmt::format("{} images have", crowded),
                                config.num_queries));
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> DetectionTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"architecture", name_},
      {"training_images", std::to_string(training_.images->size())},
      {training_digest, data::digest_of_names(*training_.images)},
      {"training_objects", std::to_string(training_.count())},
      {"validation_images", std::to_string(validation_ ? validation_->images->size() : 0)},
      {"classes", fmt::format("{}", fmt::join(training_.classes, ", "))},
      {"frozen_norms", frozen_norms_ ? "true" : "false"}};
  std::ranges::move(held_out_facts(options_, held_out_, validation_.has_value()), std::back_inserter(facts));
  return facts;
}

}  // namespace

DetectionOptions::DetectionOptions() {
  model = "detr_resnet50";
  batch_size = 2;
  epochs = 300;
  lr = 1e-4;
  lr_backbone = 1e-5;
  weight_decay = 1e-4;
  weight_decay_all = true;
  clip_grad = 0.1;
  eval_metric = "AP";
}

void DetectionOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  add_val_share_option(list, *this);
  list.find("data_dir")->help =
      "Images with boxes: a .json or a folder in COCO's layout, or a folder in Pascal VOC's (see docs/detection.md)";
  list.group("model");
  list.add("model", model, "MODEL",
           fmt::format("Detector: {}, or a folder of transformers' DetrForObjectDetection",
                       fmt::join(models::detector_names(), ", ")))
      .path()
      .settled();
  list.add("initial_checkpoint", initial_checkpoint, "FOLDER",
           "Start from these weights: of a detector, with a new classifier for other classes, or of a ResNet, which "
           "become the backbone's")
      .path()
      .settled();
  list.add_arguments("model_kwargs", model_kwargs, "KEY=VALUE",
                     "Fields of a new model's config.json: d_model=128 encoder_layers=3 … (backbone_kwargs: timm's)")
      .settled();
  list.add("num_classes", num_classes, "N", "Classes, if you want them checked: they are those of the annotations")
      .at_least(1);
  list.add("num_queries", num_queries, "N", "Predictions an image, at least its objects").at_least(1).settled();
  list.add("backbone_norm", backbone_norm, "HOW",
           "Batch norms of the backbone: frozen, as its first layers, batch (trained), or auto, which freezes those "
           "that "
           "have learnt before")
      .one_of({"auto", "frozen", "batch"})
      .settled();
  list.add("drop", drop, "RATE", "Dropout of the transformer of a new model (default: the model's)")
      .below_one()
      .settled();
  list.add("shortest_edge", shortest_edge, "N", "Pixels of an image's shorter side (default: the model's)")
      .at_least(8)
      .at_most(1e5);
  list.add("longest_edge", longest_edge, "N", "Most pixels of its longer side").at_least(8).at_most(1e5);
  add_parameter_options(list, *this);
  list.group("loss");
  list.add("set_cost_class", costs.set_cost_class, "W", "Weight of the class in the matching").at_least(0);
  list.add("set_cost_bbox", costs.set_cost_bbox, "W", "Weight of the boxes' L1 distance in the matching").at_least(0);
  list.add("set_cost_giou", costs.set_cost_giou, "W", "Weight of the boxes' generalized IoU in the matching")
      .at_least(0)
      .check_that([this](const Option&) {
        check(costs.set_cost_class + costs.set_cost_bbox + costs.set_cost_giou > 0,
              "--set-cost-class, --set-cost-bbox and --set-cost-giou are all 0: nothing is left to match by");
      });
  list.add("bbox_loss_coef", weights.bbox_loss_coef, "W", "Weight of the L1 distance in the loss").at_least(0);
  list.add("giou_loss_coef", weights.giou_loss_coef, "W", "Weight of the generalized IoU in the loss").at_least(0);
  list.add("eos_coef", weights.eos_coef, "W", "Weight of 'no object' in the cross-entropy").positive();
  list.add("no_aux_loss", no_aux_loss, "", "No loss for the layers of the decoder before the last");
  add_batch_options(list, *this, "images");
  add_optimizer_options(list, *this);
  list.add("lr_backbone", lr_backbone, "LR", "Learning rate of the backbone").positive();
  list.find("clip_grad")->also("--clip-max-norm");
  add_schedule_options(list, *this, "images");
  list.group("augmentation");
  list.add("hflip", hflip, "P", "Probability of a horizontal flip").share();
  list.add("no_random_resize", no_random_resize, "",
           "Images of one size, uncropped; else the shorter side is 0.6 to 1 of --shortest-edge, half of them cropped");
  add_average_options(list, *this);
  add_run_options(list, *this, {"AP", "AP50", "AP75", "loss"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> DetectionOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<DetectionTask>(*this, checkpoint);
}

}  // namespace vitrail::train
