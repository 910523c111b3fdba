// `vitrail detect` finds objects in images: boxes, names and scores.
#include "vitrail/cli/use/detect.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/train/detection/detection_sheet.h"
#include "vitrail/train/detection/detections.h"
#include "vitrail/train/detection/query_boxes.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using train::FoundObject;

constexpr const char* results_file = "detections.json";

struct DetectFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::vector<std::string> images;
  double threshold = train::shown_score;
  bool skip_broken = false;
  std::string format = "text";
  std::string output;
};

class Detections {
 public:
  explicit Detections(const DetectFlags& flags)
      : flags_(flags), dtype_(flags.compute.apply()), detector_(open_detector(flags.model)) {}

  void run() {
    const std::vector<NamedImage> listed = list_images(flags_.images, "", flags_.skip_broken);
    ids_ = ids_in_names(listed);
    if (!flags_.output.empty()) {
      check_none_in(flags_.output, listed);
      io::make_folder(flags_.output);
      outlive_reader();
    }
    if (ids_.empty() && (!flags_.output.empty() || flags_.format == "json")) {
      say_note("image_id counts the images from 1, as not each has a file name with a number of its own");
    }
    if (flags_.format == "csv") {
      tell("file,label,score,x,y,width,height\n");
    }
    for_each_batch(listed, 1, flags_.skip_broken,
                   [this](const std::vector<std::string>& names, const std::vector<io::Image>& images) {
                     take(names.front(), images.front());
                   });
    if (flags_.format == "json") {
      print_json(results_);
    }
    if (!flags_.output.empty()) {
      io::write_atomically(fs::path(flags_.output) / results_file, results_.dump(2) + "\n");
      pictures_.note_others_in(flags_.output);
      if (flags_.format == "text") {
        tell("{0}: the images with boxes, and {1}\n", flags_.output, results_file);
      }
    }
  }

 private:
  void take(const std::string& name, const io::Image& image) {
    const std::vector<FoundObject> found = train::detect(detector_, {image}, dtype_).front();
    ++images_;
    std::int64_t shown = 0;
    for (const FoundObject& object : found) {
      if (object.score < flags_.threshold) {
        continue;
      }
      ++shown;
      const std::string& label = detector_.labels[static_cast<std::size_t>(object.label)];
      const data::Box& box = object.box;
      results_.push_back({{"image_id", ids_.empty() ? images_ : ids_.at(name)},
                          {"file_name", io::as_utf8(name)},
                          {"category_id", models::category_id_of(detector_, object.label)},
                          {"category", label},
                          {"bbox", {rounded(box.x0), rounded(box.y0), rounded(box.width()), rounded(box.height())}},
                          {"score", rounded(object.score)}});
      if (flags_.format == "csv") {
        tell("{},{},{:.4f},{:.1f},{:.1f},{:.1f},{:.1f}\n", csv_field(name), csv_field(label), object.score, box.x0,
             box.y0, box.width(), box.height());
      } else if (flags_.format == "text") {
        tell("{}: {} {:.1f} % at {:.0f} {:.0f}, {:.0f} x {:.0f}\n", io::on_one_line(name), label, 100 * object.score,
             box.x0, box.y0, box.width(), box.height());
      }
    }
    if (shown == 0 && flags_.format == "text") {
      tell("{}: nothing with {:.0f} % or more\n", io::on_one_line(name), 100 * flags_.threshold);
    }
    if (!flags_.output.empty()) {
      io::write_png(fs::path(flags_.output) / pictures_.next(name),
                    train::with_detections(image, found, detector_.labels, flags_.threshold));
    }
  }

  static double rounded(double value) { return std::round(value * 1e6) / 1e6; }

  const DetectFlags& flags_;
  DType dtype_;
  models::Detector detector_;
  PictureNames pictures_;
  std::map<std::string, std::int64_t> ids_;  // COCO's
  std::int64_t images_ = 0;
  Json results_ = Json::array();
};

Json to_json(const train::DetectorEvaluation& result, const std::vector<std::string>& classes) {
  Json json = {{"count", result.count}};
  for (std::size_t i = 0; i < result.figures.stats.size(); ++i) {
    json[train::coco_figure_names()[i]] = result.figures.stats[i];
  }
  json["loss"] = result.loss;
  json["classes"] = Json::array();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    json["classes"].push_back(
        {{"name", classes[c]}, {"AP", result.figures.class_ap[c]}, {"AP50", result.figures.class_ap50[c]}});
  }
  json["broken"] = result.broken;
  return json;
}

}  // namespace

models::Detector open_detector(const ModelFlags& flags) {
  flags.check_unchanged();
  check_usage(!flags.prepares_images(), "'{}' finds objects: its images are resized as its folder says", flags.model);
  const std::string folder = flags.name_or_folder();
  check(fs::exists(folder) || models::is_shipped_name(folder), "there is no model folder '{}'", folder);
  check(flags.kind() == models::ModelKind::detector, "'{}' finds no objects: {}", flags.model,
        flags.instead("train --task detect"));
  return models::load_detector(folder);
}

void evaluate_detections(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                         const std::string& output, bool json) {
  const train::EvaluateOptions options = data.options(compute.apply());
  const models::Detector detector = open_detector(model);
  const data::BoxedImages images = data::open_boxed_images(
      data.data, {.split = data.split, .classes = detector.labels, .skip_broken = data.skip_broken});
  for (const std::string& note : images.notes) {
    say("{}\n", note);
  }
  const train::DetectorEvaluation result = evaluate_under_bar("evaluating", detector, images, options);
  Json all = {{"model", model.model}, {"data", data.data}};
  all.update(to_json(result, detector.labels));
  if (!output.empty()) {
    io::make_folder(output);
    const fs::path folder = output;
    std::vector<train::ResultImage> named;
    for (const std::int64_t index : result.indices) {
      named.push_back({images.ids[static_cast<std::size_t>(index)], images.images->name(index)});
    }
    io::write_atomically(folder / "eval.json", all.dump(2) + "\n");
    io::write_atomically(folder / results_file, train::coco_results(result.found, named, images.category_ids));
    io::write_png(folder / "detections.png", train::detection_sheet(detector, images, options.skip_broken));
    io::write_png(folder / "queries.png",
                  train::query_boxes(result.found, result.sizes, detector.net->config().num_queries));
  }
  if (json) {
    print_json(all);
    return;
  }
  tell("{}\n{}", io::counted(result.count, "images"), train::coco_table(result.figures, detector.labels));
  for (const std::string& broken : result.broken) {
    tell("left out: {}\n", broken);
  }
  if (!output.empty()) {
    tell("\n{0}/eval.json, {0}/{1}, {0}/detections.png, {0}/queries.png\n", output, results_file);
  }
}

void add_detect(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("detect", "Find objects in images: boxes with names and scores");
  const auto flags = std::make_shared<DetectFlags>();
  command
      .add_option("MODEL", flags->model.model,
                  "Detector: the folder of a run, or of transformers' DetrForObjectDetection")
      ->required();
  add_images_argument(command, flags->images);
  command.add_option("--threshold", flags->threshold, "Least score of what is shown")
      ->capture_default_str()
      ->type_name("P")
      ->check(share());
  command.add_option("--output", flags->output, "Folder for the images with boxes, and detections.json")
      ->type_name("DIR");
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  command
      .add_option("--format", flags->format,
                  "Output: text or csv, a line for each object; json, a list in COCO's layout of results")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "csv", "json"}));
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail detect runs/cells photos/ --threshold 0.5 --output found",
                         "vitrail detect detr-resnet-50 street.jpg --format json"});
  command.callback([flags] { Detections(*flags).run(); });
}

}  // namespace vitrail::cli
