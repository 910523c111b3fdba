// `vitrail report` makes a page that shows a run.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/explain/attention.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
  ModelFlags model;  // of the run
  DataFlags data;
  std::string output;
  std::int64_t images = 20;
  ComputeFlags compute;
};

// Writes the images of the page and collects its sections.
class Page {
 public:
  Page(const ReportFlags& flags, models::Model model, const data::Dataset& dataset)
      : flags_(flags),
        folder_(flags.output),
        model_(std::move(model)),
        dataset_(dataset),
        names_(train::class_names(model_)) {}

  void write() {
    make_page_folder(folder_);
    io::make_folder(folder_ / "attention");
    dtype_ = flags_.compute.apply();
    evaluation_ = evaluate_under_bar("evaluating", model_, dataset_, flags_.data.options(dtype_));
    std::vector<explain::Section> sections = {accuracy()};
    sections.push_back(predictions());
    sections.push_back(layers());
    io::write_atomically(folder_ / "index.html", explain::html_page(title(), lead(), sections));
  }

  const train::Evaluation& evaluation() const { return evaluation_; }

 private:
  std::string title() const {
    return fmt::format("{}: {} on {}", train::run_name(flags_.model.model), model_.architecture,
                       fs::path(flags_.data.data).string());
  }

  std::string lead() const {
    const std::string at_once =
        fmt::format("{:.1f} % of {} recognized at once", evaluation_.top1, io::counted(evaluation_.count, "images"));
    return evaluation_.num_classes() <= 5
               ? at_once + "."
               : fmt::format("{}, {:.1f} % among the first five guesses.", at_once, evaluation_.top5);
  }

  explain::Section accuracy() {
    explain::Section section{.title = "Accuracy", .text = {}, .table = {}, .figures = {}, .figure_width = 1000};
    io::write_atomically(folder_ / "confusion.svg", train::confusion_svg(evaluation_));
    const fs::path curves = fs::path(flags_.model.model) / "curves.svg";
    if (fs::exists(curves)) {
      io::write_atomically(folder_ / "curves.svg", io::read_text(curves));
      section.figures.push_back({"curves.svg", "loss and accuracy while training"});
    }
    section.figures.push_back({"confusion.svg", "what is taken for what"});
    section.table.header = {"class", "images", "top-1"};
    for (std::int64_t c = 0; c < evaluation_.num_classes(); ++c) {
      const std::int64_t count = evaluation_.class_count(c);
      section.table.rows.push_back({evaluation_.classes[static_cast<std::size_t>(c)], std::to_string(count),
                                    count == 0 ? "-" : fmt::format("{:.1f} %", evaluation_.class_accuracy(c))});
    }
    return section;
  }

  // Shows images that are evenly spread over the data set, hence over its classes, which come in order.
  explain::Section predictions() {
    explain::Section section{.title = "What it says, and where it looks",
                             .text =
                                 "Left the image, right its attention over all layers (rollout; with windows, the "
                                 "last layer's). Bright is much, dark is little.",
                             .table = {},
                             .figures = {},
                             .figure_width = 240};
    const std::int64_t count = std::min(flags_.images, evaluation_.count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = index_of((2 * i + 1) * evaluation_.count / (2 * count));
      const Tensor x = model_input(model_, dataset_.image(index));
      const explain::Attention attention = explain::record_attention(*model_.net, x, dtype_);
      const io::Image image = explain::image_of(x, model_.pretrained.mean, model_.pretrained.std, 112);
      const std::string file = fmt::format("attention/{:02}.png", i);
      if (attention.layers.empty()) {
        io::write_png(folder_ / file, image);
      } else {
        const auto last = std::ssize(attention.layers) - 1;
        const Tensor map = explain::can_roll_out(attention)
                               ? explain::rollout(attention)
                               : explain::attention_map(attention, last, explain::all_heads);
        io::write_png(folder_ / file, explain::sheet({{image, explain::overlay(image, map)}}));
      }
      section.figures.push_back({file, caption(attention.logits, dataset_.label(index))});
    }
    return section;
  }

  // The index in the data set of image `i` among those that were evaluated.
  std::int64_t index_of(std::int64_t i) const { return evaluation_.indices[static_cast<std::size_t>(i)]; }

  std::string caption(const Tensor& logits, std::int64_t label) const {
    const std::vector<float> probabilities = ops::softmax(logits, 0).values();
    const auto best = std::ranges::max_element(probabilities);
    const auto guess = static_cast<std::size_t>(best - probabilities.begin());
    const std::string& truth = dataset_.classes()[static_cast<std::size_t>(label)];
    return names_[guess] == truth ? fmt::format("✓ {}, {:.0f} %", truth, 100 * *best)
                                  : fmt::format("✗ {}, {:.0f} %; it is: {}", names_[guess], 100 * *best, truth);
  }

  explain::Section layers() {
    explain::Section section{.title = "One image, layer by layer",
                             .text = "A row for each layer, a column for each head, both counted from 0.",
                             .table = {},
                             .figures = {},
                             .figure_width = 640};
    const std::int64_t index = index_of(evaluation_.count / 2);
    const io::Image original = dataset_.image(index);
    io::write_png(folder_ / "image.png", original);
    const Tensor x = model_input(model_, original);
    const explain::Attention attention = explain::record_attention(*model_.net, x, dtype_);
    const io::Image image = explain::image_of(x, model_.pretrained.mean, model_.pretrained.std, 112);
    std::vector<std::vector<io::Image>> maps;
    explain::SheetLabels labels;
    for (std::size_t layer = 0; layer < attention.layers.size(); ++layer) {
      const auto l = static_cast<std::int64_t>(layer);
      maps.emplace_back();
      labels.rows.push_back(fmt::format("layer {}", layer));
      for (std::int64_t head = 0; head < attention.num_heads(l); ++head) {
        if (head == std::ssize(labels.columns)) {
          labels.columns.push_back(fmt::format("head {}", head));
        }
        maps.back().push_back(explain::overlay(image, explain::attention_map(attention, l, head)));
      }
    }
    if (!maps.empty()) {
      io::write_png(folder_ / "attention" / "layers.png", explain::sheet(maps, labels));
      section.figures.push_back({"attention/layers.png", dataset_.name(index)});
    }
    return section;
  }

  const ReportFlags& flags_;
  fs::path folder_;
  models::Model model_;
  const data::Dataset& dataset_;
  std::vector<std::string> names_;
  DType dtype_ = DType::f32;
  train::Evaluation evaluation_;
};

void report(const ReportFlags& flags) {
  check_beside_data(flags.output, flags.data.data);
  note_learned_data(flags.model, flags.data);
  models::Model model = flags.model.open_classifier();
  const auto dataset = open_images(flags.data, model);
  Page page(flags, std::move(model), *dataset);
  page.write();
  fmt::print("top-1 {:.2f} %   top-5 {:.2f} %   {}\n{}/index.html\n", page.evaluation().top1, page.evaluation().top5,
             io::counted(page.evaluation().count, "images"), flags.output);
  for (const std::string& broken : page.evaluation().broken) {
    fmt::print("left out: {}\n", broken);
  }
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("report", "Make a page that shows a run: accuracy, curves, predictions, attention");
  const auto flags = std::make_shared<ReportFlags>();
  command.add_option("RUN", flags->model.model, "Run folder, or a model folder")->required()->type_name("");
  add_data_argument(command, flags->data,
                    "Images to show it on: a folder of class folders, a .tar, CIFAR or MNIST files, a .csv");
  command.add_option("--output", flags->output, "Folder for index.html and its images")->required()->type_name("DIR");
  command.add_option("--images", flags->images, "Number of images with predictions")
      ->capture_default_str()
      ->check(at_least(1));
  command.add_option("--pictures", flags->images)->group("")->check(at_least(1));  // its name in earlier versions
  add_loading_flags(command, flags->data);
  add_compute_flags(command, flags->compute);
  add_model_changes(command, flags->model);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail report demo/run data/cifar10/test.tar --output demo"});
  command.callback([flags] {
    check_usage(!flags->data.data.empty(), "DATA is required");
    report(*flags);
  });
}

}  // namespace vitrail::cli
