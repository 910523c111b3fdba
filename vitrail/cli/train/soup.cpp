// The command `vitrail soup`, which averages the weights of several models.
#include "vitrail/train/study/soup.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/kind.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct SoupFlags {
  std::vector<std::string> folders;
  ComputeFlags compute;
  std::string output;
  bool greedy = false;
  DataFlags data;
  std::int64_t tta = 0;
  bool json = false;
};

// The models, each once: one that is named twice would weigh twice.
std::vector<std::string> each_once(const std::vector<std::string>& folders) {
  std::vector<std::string> result;
  std::set<fs::path> seen;
  for (const std::string& folder : folders) {
    std::error_code error;
    if (seen.insert(fs::weakly_canonical(train::model_of(folder), error)).second) {
      result.push_back(folder);
    } else {
      say("passed over: {} is named twice\n", folder);
    }
  }
  return result;
}

void soup(SoupFlags flags) {
  check_usage(!flags.greedy || !flags.data.data.empty(),
              "--greedy chooses models by their accuracy: name the images with --data");
  as_usage([&] { train::check_tta(flags.tta); });
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  flags.folders = each_once(flags.folders);
  std::vector<fs::path> folders;
  std::transform(flags.folders.begin(), flags.folders.end(), std::back_inserter(folders), train::model_of);
  nlohmann::ordered_json json;
  json["output"] = flags.output;
  const auto print_result = [&](const std::string& text) {
    if (flags.json) {
      print_json(json);
    } else {
      fmt::print("{}\n", text);
    }
  };
  if (models::kind_of(folders.front().string()) == models::ModelKind::texts) {
    check_usage(!flags.greedy && flags.data.data.empty(),
                "--greedy and --data take images, but '{}' is a model of texts", flags.folders.front());
    save_beside_files_of(folders.front(), train::uniform_text_soup(folders), flags.output);
    json["models"] = flags.folders;
    print_result(fmt::format("{}: the average of {}", flags.output, io::counted(std::ssize(folders), "models")));
    return;
  }
  train::EvaluateOptions options = flags.data.options(flags.compute.apply());
  options.tta = flags.tta;
  std::unique_ptr<data::Dataset> dataset;
  const auto evaluate = [&](const models::Model& model) {
    if (dataset == nullptr) {
      dataset = open_images(flags.data, model);
    }
    train::Evaluation result = evaluate_under_bar("evaluating", model, *dataset, options);
    note_left_out_images(result.broken);
    return result;
  };

  for (std::size_t i = 0; i < folders.size(); ++i) {
    const models::ModelKind kind = models::kind_of(folders[i].string());
    check(models::has_image_model(kind), "'{}' {}: soups are made of models that classify images, or of texts",
          flags.folders[i], models::words_of(kind).is_or_does);
  }
  note_left_out(folders.front().string());
  if (!flags.greedy) {
    say_note(train::note_of_preparations(folders));
    const models::Model model = train::uniform_soup(folders);
    json["models"] = flags.folders;
    std::string text = fmt::format("{}: the average of {}", flags.output, io::counted(std::ssize(folders), "models"));
    if (!flags.data.data.empty()) {
      const double top1 = evaluate(model).top1;
      json["top1"] = top1;
      text += fmt::format(", top-1 {:.2f} %", top1);
    }
    models::save_model(model, flags.output);
    print_result(text);
    return;
  }
  const train::GreedySoup made = train::greedy_soup(folders, evaluate);
  std::vector<fs::path> used_folders;
  for (const train::GreedySoup::Ingredient& one : made.ingredients) {
    if (one.used) {
      used_folders.push_back(one.folder);
    }
  }
  say_note(train::note_of_preparations(used_folders));
  models::save_model(made.model, flags.output);
  json["top1"] = made.top1;
  std::string text;
  std::size_t used = 0;
  for (const train::GreedySoup::Ingredient& one : made.ingredients) {
    json["models"].push_back(
        {{"folder", one.folder.string()}, {"top1", one.top1}, {"used", one.used}, {"soup_with_it", one.with_top1}});
    text += fmt::format("  {:6.2f} %  {}  {:6.2f} %  {}\n", one.top1, one.used ? "used    " : "left out", one.with_top1,
                        one.folder.string());
    used += one.used ? 1 : 0;
  }
  if (flags.json) {
    print_json(json);
    return;
  }
  fmt::print("{}: the average of {} of {}, top-1 {:.2f} %\n", flags.output, used,
             io::counted(std::ssize(folders), "models"), made.top1);
  fmt::print("     alone            soup with it\n{}", text);
}

}  // namespace

void add_soup(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("soup", "Average the weights of models fine-tuned from the same one");
  const auto flags = std::make_shared<SoupFlags>();
  command.add_option("FOLDERS", flags->folders, "Model folders to average")->required()->type_name("");
  command.add_option("--output", flags->output, "New model folder")->required()->type_name("DIR");
  command.add_flag("--greedy", flags->greedy,
                   "Take the best, and each next one only if the average is no worse for it");
  add_data_flag(command, flags->data, "--data", "Images to evaluate on, which no model was trained on");
  for (CLI::Option* option : add_loading_flags(command, flags->data)) {
    option->needs("--data");
  }
  command
      .add_option("--tta", flags->tta,
                  "Average each image and its mirror image (2), both also moved by a pixel (6), or take it alone (0)")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number())
      ->needs(command.get_option("--data"));
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_compute_flags(command, flags->compute);
  for (const char* name : {"--amp", "--dtype"}) {  // the average is taken in float32
    command.get_option(name)->needs("--data");
  }
  add_examples(command, {"vitrail soup runs/a/best runs/b/best runs/c/best --output soup",
                         "vitrail soup runs/*/best --output soup --greedy --data photos --split validation"});
  command.callback([flags] { soup(*flags); });
}

}  // namespace vitrail::cli
