// `vitrail zeroshot` tells images apart by what their classes are called, and finds images by texts and texts by
// images.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/data/scenes/scene.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/train/finite.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/study/zero_shot.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ZeroshotFlags {
  ModelFlags model;
  ComputeFlags compute;
  DataFlags data;
  std::vector<std::string> images;
  std::string labels;
  std::vector<std::string> templates = {"a photo of a {}"};
  std::string pairs;
  std::int64_t topk = 5;
  std::string format = "text";
  std::string output;
};

constexpr const char* shipped_of_scenes = "vitrail/scenes_clip";

// What may be in a scene, as --labels takes it: "red circle,red square,…".
std::string kinds_of_scenes() {
  std::vector<std::string> kinds;
  for (const data::SceneKind& kind : data::all_scene_kinds()) {
    kinds.push_back(data::name_of(kind));
  }
  return fmt::format("{}", fmt::join(kinds, ","));
}

// The labels of a file, one a line, or between commas.
std::vector<std::string> read_labels(const std::string& given) {
  const bool from_file = io::is_file(given);
  check(from_file || !given.ends_with(".txt"), "--labels: there is no file '{}'", given);
  std::vector<std::string> labels;
  for (const std::string& field : from_file ? io::read_lines(given) : CLI::detail::split(given, ',')) {
    const std::string label(io::trimmed(field));
    if (!label.empty()) {
      labels.push_back(label);
      check(std::find(labels.begin(), labels.end() - 1, labels.back()) == labels.end() - 1,
            "--labels '{}': '{}' is there twice", given, labels.back());
    }
  }
  check(!labels.empty(), "--labels '{}': there is no label in it", given);
  check(from_file || std::ssize(labels) == std::ranges::count(given, ',') + 1, "--labels '{}': a label is empty",
        given);
  return labels;
}

// Calls `run` with options under a progress bar, if stderr is a terminal.
template <class Run>
auto with_bar(std::string_view title, std::int64_t total, train::EvaluateOptions options, const Run& run) {
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin(title, total);
    options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done, ""); };
  }
  auto result = run(options);
  progress.end();
  return result;
}

Json recalls_json(const std::array<double, 3>& recalls) {
  Json json;
  for (std::size_t i = 0; i < recalls.size(); ++i) {
    json[fmt::format("recall@{}", train::recall_depths[i])] = recalls[i];
  }
  return json;
}

train::ImageTextModel open_model(const ModelFlags& flags) {
  const std::string source = flags.name_or_folder();
  check(flags.kind() == models::ModelKind::joint || !models::names_folder(source),
        "'{}' puts images and texts in no common space: {}", flags.model, flags.instead("pretrain clip"));
  return train::open_image_text_model(source);
}

class Zeroshot {
 public:
  explicit Zeroshot(const ZeroshotFlags& flags)
      : flags_(flags), dtype_(flags.compute.apply()), model_(open_model(flags.model)) {
    data::apply(flags.model.images, model_.joint.pretrained);
  }

  void run() {
    if (!flags_.pairs.empty()) {
      retrieve();
    } else if (!flags_.data.data.empty()) {
      evaluate();
    } else {
      predict();
    }
  }

 private:
  Tensor label_vectors(const std::vector<std::string>& labels) const {
    std::string cut;
    note_unread_words(model_.tokenizer, labels);
    const Tensor vectors = train::embed_labels(model_, labels, flags_.templates, dtype_, &cut);
    say_note(cut);
    train::check_finite(vectors);
    return vectors;
  }

  void predict() {
    const std::vector<std::string> labels = read_labels(flags_.labels);
    const Tensor vectors = label_vectors(labels);
    if (flags_.format == "csv") {
      fmt::print("file,rank,label,index,probability\n");
    }
    for_each_batch(list_images(flags_.images, "", flags_.data.skip_broken), flags_.data.batch_size,
                   flags_.data.skip_broken,
                   [&](const std::vector<std::string>& names, const std::vector<io::Image>& images) {
                     report(names, images, labels, vectors);
                   });
    if (flags_.format == "json") {
      print_json(results_);
    }
  }

  void report(const std::vector<std::string>& names, const std::vector<io::Image>& images,
              const std::vector<std::string>& labels, const Tensor& vectors) {
    const autograd::NoGrad no_grad;
    const Tensor embeds = train::embed_images(model_.joint, images, dtype_);
    const Tensor all = model_.joint.net->probabilities(model_.joint.net->logits_per_image(embeds, vectors));
    train::check_finite(all);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<float> probabilities = all.select(0, static_cast<std::int64_t>(i)).values();
      const std::vector<std::int64_t> best = kernels::largest(probabilities, flags_.topk);
      std::string line = names[i] + ":";
      Json top = Json::array();
      for (std::size_t rank = 0; rank < best.size(); ++rank) {
        const auto c = static_cast<std::size_t>(best[rank]);
        if (flags_.format == "json") {
          top.push_back({{"label", labels[c]}, {"index", c}, {"probability", probabilities[c]}});
        } else if (flags_.format == "csv") {
          fmt::print("{},{},{},{},{}\n", csv_field(names[i]), rank + 1, csv_field(labels[c]), c, probabilities[c]);
        } else {
          line += fmt::format("  {} {:.1f} %", io::on_one_line(labels[c]), 100 * probabilities[c]);
        }
      }
      if (flags_.format == "json") {
        results_.push_back({{"file", io::as_utf8(names[i])}, {"top", top}});
      } else if (flags_.format == "text") {
        fmt::print("{}\n", line);
      }
    }
  }

  void evaluate() {
    data::DatasetOptions where;
    where.split = flags_.data.split;
    where.skip_broken = flags_.data.skip_broken;
    where.classes = flags_.labels.empty() ? std::vector<std::string>() : read_labels(flags_.labels);
    const auto images = data::open_dataset(flags_.data.data, where);
    say_notes_of(*images);
    note_beside_classes(flags_.data.data);
    const std::vector<std::string>& labels = images->classes();
    const Tensor vectors = label_vectors(labels);
    if (!flags_.output.empty()) {
      io::make_folder(flags_.output);
    }
    const train::Features features =
        with_bar("looking at images", images->size(), flags_.data.options(dtype_),
                 [&](const train::EvaluateOptions& o) { return train::embed_images(model_.joint, *images, o); });
    train::check_finite(features.x);
    const train::Evaluation result = train::evaluate_zero_shot(*model_.joint.net, features, labels, vectors);
    Json json = {{"model", flags_.model.model}, {"data", flags_.data.data}, {"templates", flags_.templates},
                 {"count", result.count},       {"top1", result.top1},      {"top5", result.top5},
                 {"loss", result.loss}};
    json["classes"] = Json::array();
    for (std::int64_t c = 0; c < result.num_classes(); ++c) {
      const std::int64_t count = result.class_count(c);
      json["classes"].push_back({{"name", labels[static_cast<std::size_t>(c)]},
                                 {"count", count},
                                 {"top1", count == 0 ? Json() : Json(result.class_accuracy(c))}});
    }
    json["confusion"] = result.confusion;
    json["broken"] = result.broken;
    if (!flags_.output.empty()) {
      const std::filesystem::path folder = flags_.output;
      io::write_atomically(folder / "confusion.svg", train::confusion_svg(result));
      io::write_atomically(folder / "zeroshot.json", json.dump(2) + "\n");
    }
    if (flags_.format == "json") {
      print_json(json);
      return;
    }
    print(result);
    if (!flags_.output.empty()) {
      fmt::print("\n{0}/confusion.svg, {0}/zeroshot.json\n", flags_.output);
    }
  }

  void print(const train::Evaluation& result) const {
    fmt::print("top-1 {:.2f} %   top-5 {:.2f} %   loss {:.4f}   {}, {} by their names\n\n", result.top1, result.top5,
               result.loss, io::counted(result.count, "images"), io::counted(result.num_classes(), "classes"));
    print_by_class(result);
  }

  void retrieve() {
    if (flags_.data.split.empty()) {
      data::check_whole(data::parts_of_pairs(flags_.pairs), flags_.pairs);
    }
    const data::TextPairs pairs =
        data::open_text_pairs(flags_.pairs, flags_.data.split, {.skip_broken = flags_.data.skip_broken});
    say_notes_of(*pairs.images);
    std::string cut;
    const train::Retrieval found = with_bar("looking at images", pairs.images->size(), flags_.data.options(dtype_),
                                            [&](const train::EvaluateOptions& o) {
                                              return train::retrieval(model_.joint, model_.tokenizer, pairs, o, &cut);
                                            });
    say_note(cut);
    if (flags_.format == "json") {
      const Json json = {{"model", flags_.model.model},
                         {"pairs", flags_.pairs},
                         {"images", found.images},
                         {"texts", found.texts},
                         {"broken", found.broken},
                         {"image_to_text", recalls_json(found.image_to_text)},
                         {"text_to_image", recalls_json(found.text_to_image)}};
      print_json(json);
      return;
    }
    fmt::print("{}, {}\n\n{:<14}", io::counted(found.images, "images"), io::counted(found.texts, "texts"), "");
    for (const std::int64_t depth : train::recall_depths) {
      fmt::print("  {:>10}", fmt::format("recall@{}", depth));
    }
    for (const auto& [way, recalls] :
         {std::pair{"image to text", found.image_to_text}, {"text to image", found.text_to_image}}) {
      fmt::print("\n{:<14}", way);
      for (const double recall : recalls) {
        fmt::print("  {:>8.2f} %", recall);
      }
    }
    fmt::print("\n");
    for (const std::string& broken : found.broken) {
      fmt::print("left out: {}\n", broken);
    }
  }

  const ZeroshotFlags& flags_;
  DType dtype_;
  train::ImageTextModel model_;
  Json results_ = Json::array();
};

}  // namespace

void add_zeroshot(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "zeroshot", "Tell images apart by what their classes are called; find images by texts and texts by images");
  const auto flags = std::make_shared<ZeroshotFlags>();
  command
      .add_option("MODEL", flags->model.model,
                  "Folder of a CLIPModel or SiglipModel with its tokenizer, or a run of pretrain clip")
      ->required()
      ->type_name("");
  CLI::Option* const images =
      command
          .add_option("IMAGES", flags->images,
                      "Image files, folders, .tar files, or - for a list of paths on standard input")
          ->type_name("");
  CLI::Option* const labels =
      command.add_option("--labels", flags->labels, "What may be in an image: cat,dog or a file with a label a line")
          ->type_name("LABELS");
  const CLI::Option* const templates =
      command
          .add_option("--templates", flags->templates,
                      "Texts with {} in the place of a label; the vectors of several are averaged")
          ->capture_default_str()
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->type_name("TEXT");
  CLI::Option* const data =
      command
          .add_option("--data", flags->data.data,
                      "Images with classes to measure by: a folder of class folders, a .tar, a .csv of path,label")
          ->type_name("DIR");
  command.add_option("--split", flags->data.split, "Part of --data or of --pairs")->type_name("NAME");
  CLI::Option* const pairs =
      command
          .add_option("--pairs", flags->pairs,
                      "Images with texts to find by each other: a folder with captions.json (COCO's layout), a .csv of "
                      "path,caption, WebDataset shards")
          ->type_name("DIR");
  const CLI::Option* const topk =
      command.add_option("--topk", flags->topk, "Number of labels to name, the likeliest first")
          ->capture_default_str()
          ->check(at_least(1));
  command.add_option("--output", flags->output, "With --data, folder for zeroshot.json and confusion.svg")
      ->type_name("DIR")
      ->needs(data);
  add_loading_flags(command, flags->data);
  command
      .add_option("--format", flags->format, "Output: text; csv, of IMAGES a line for each label that is named; json")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "csv", "json"}));
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail zeroshot scene.png", "vitrail zeroshot my_clip cat.jpg --labels cat,dog,horse",
                         "vitrail zeroshot my_clip photos --labels labels.txt --templates \"a photo of a {}\" \"a "
                         "drawing of a {}\"",
                         "vitrail zeroshot my_clip --data photos --split validation --output report",
                         "vitrail zeroshot my_clip --pairs scenes/validation"});
  command.callback([flags, images, labels, data, pairs, templates, topk] {
    if (images->count() == 0 && data->count() == 0 && pairs->count() == 0) {
      if (const std::optional<std::string> image = image_without_model(flags->model, shipped_of_scenes)) {
        flags->images = {*image};
      }
    }
    if (images->count() > 0) {
      check_one_image_without_model(flags->model, shipped_of_scenes);
    }
    if (flags->model.model == shipped_of_scenes && images->count() + flags->images.size() > 0 &&
        flags->labels.empty() && templates->count() == 0) {
      flags->labels = kinds_of_scenes();
      flags->templates = {"a {}"};
    }
    const bool of_images = !flags->images.empty();
    const auto asked =
        static_cast<int>(of_images) + static_cast<int>(data->count() > 0) + static_cast<int>(pairs->count() > 0);
    check_usage(asked == 1, "give one of IMAGES, --data and --pairs");
    check_usage(flags->data.split.empty() || !of_images, "--split is a part of --data or of --pairs");
    check_usage(!of_images || !flags->labels.empty(), "--labels is missing: what may be in the images");
    check_usage(pairs->count() == 0 || (labels->count() == 0 && templates->count() == 0),
                "--pairs have texts of their own: leave out --labels and --templates");
    check_usage(of_images || (topk->count() == 0 && flags->format != "csv"), "--topk and --format csv are for IMAGES");
    if (of_images && labels->count() == 0) {
      say_note("without --labels, what may be in a picture are the things of scenes: red circle, green bird, …");
    }
    Zeroshot(*flags).run();
  });
}

}  // namespace vitrail::cli
