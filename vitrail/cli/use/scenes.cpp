// `vitrail scenes` draws a data set of which everything is known.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/explain/scene_sheet.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/progress.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct SceneFlags {
  std::string output;
  data::SceneFolder what;
  std::string objects = "2-6";
  std::string holdout;
  std::string background;
  std::int64_t preview = 0;
};

// Reads "2-6", or "3" for 3-3.
std::pair<std::int64_t, std::int64_t> range_of(const std::string& text) {
  const auto number = [&](std::string_view part, std::int64_t& value) {
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), value);
    return status == std::errc() && end == part.data() + part.size();
  };
  const std::string_view all = text;
  const std::size_t dash = all.find('-');
  std::int64_t low = 0;
  std::int64_t high = 0;
  const bool right =
      number(all.substr(0, dash), low) && number(dash == std::string_view::npos ? all : all.substr(dash + 1), high);
  check(right, "--objects takes a number or a range of numbers, as in 2-6, not '{}'", text);
  return {low, high};
}

std::set<data::SceneKind> kinds_of(std::string_view list) {
  std::set<data::SceneKind> kinds;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t first = std::min(name.find_first_not_of(' '), name.size());
    name = name.substr(first, name.find_last_not_of(' ') + 1 - first);
    kinds.insert(data::scene_kind(name));
  }
  return kinds;
}

void scenes(SceneFlags& flags) {
  data::SceneFolder& what = flags.what;
  as_usage([&] {
    std::tie(what.scenes.fewest_objects, what.scenes.most_objects) = range_of(flags.objects);
    what.scenes.holdout = kinds_of(flags.holdout);
    if (!flags.background.empty()) {
      what.scenes.background = data::scene_color(flags.background);
    }
    data::check_scene_options(what.scenes);
  });
  std::error_code error;
  check(!fs::exists(flags.output, error) || data::is_scene_folder(flags.output) || fs::is_empty(flags.output, error),
        "'{}' exists and is no folder of scenes: name a new one", flags.output);
  if (data::is_scene_folder(flags.output)) {
    const fs::path foreign = data::foreign_in_scenes(flags.output);
    check(foreign.empty(), "'{}' would be lost with the scenes in '{}': name a new folder, or move it away",
          foreign.string(), flags.output);
  }
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("scenes", what.count);
  }
  data::ScenesWritten written;
  io::replace_folder(flags.output, [&](const fs::path& folder) {
    written = data::write_scenes(folder, what, [&](std::int64_t done) {
      if (progress.terminal()) {
        progress.update(done, "");
      }
    });
    progress.end();
    if (flags.preview > 0) {
      std::vector<data::Scene> shown;
      for (std::int64_t i = 0; i < std::min(flags.preview, what.count); ++i) {
        shown.push_back(data::sample_scene(what.scenes, what.first + i));
      }
      io::write_png(folder / data::scene_preview, explain::scene_sheet(shown, what.side));
    }
  });
  fmt::print(
      "{}: {} of {} x {} pixels, {} … {} of seed {}: images, masks, captions.json, instances.json, heads.json, "
      "scene.json\n",
      flags.output, io::counted(what.count, "scenes"), what.side, what.side, what.first, what.first + what.count - 1,
      what.scenes.seed);
  if (written.questions > 0) {
    fmt::print(
        "{} in vqa_questions.json and vqa_annotations.json; their text alone answers {:.1f} % of those of the "
        "second half\n",
        io::counted(written.questions, "questions"), 100 * written.accuracy_by_text);
  }
}

}  // namespace

void add_scenes(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "scenes", "Draw images of coloured shapes and birds, with masks, boxes, captions and questions");
  const auto flags = std::make_shared<SceneFlags>();
  data::SceneFolder& what = flags->what;
  command.add_option("OUT", flags->output, "Folder to write; one of scenes is replaced")->required()->type_name("");
  command.add_option("--count", what.count, "Number of scenes")->required()->check(whole_number(1, 1'000'000));
  command.add_option("--seed", what.scenes.seed, "Seed: a scene depends on it and on its index alone")
      ->capture_default_str()
      ->check(at_least(0))
      ->type_name("N");
  command.add_option("--start", what.first, "Index of the first scene: other parts of a data set are other ranges")
      ->capture_default_str()
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("N");
  command.add_option("--size", what.side, "Pixels of a side")
      ->capture_default_str()
      ->check(whole_number(data::smallest_scene, data::largest_scene))
      ->type_name("N");
  command.add_option("--objects", flags->objects, "Number of objects, or a range of numbers")
      ->capture_default_str()
      ->type_name("N-M");
  command.add_option("--holdout", flags->holdout, "Kinds of objects that no scene has: \"red triangle,blue bird\"")
      ->check(CLI::Validator(
          [](const std::string& kinds) { return kinds.empty() ? std::string("name the kinds") : std::string(); }, ""))
      ->type_name("KINDS");
  command.add_flag("--held-out", what.scenes.held_out, "Instead, scenes that have one of the kinds of --holdout each");
  command.add_option("--background", flags->background, "One background for all scenes, in this colour")
      ->type_name("COLOR");
  command.add_option("--questions", what.questions, "Questions about each scene; 0: none")
      ->capture_default_str()
      ->check(whole_number(0, 100))
      ->type_name("N");
  command
      .add_option("--preview", flags->preview, "Draw preview.png: this many scenes with boxes, captions and questions")
      ->check(whole_number(0, 400))
      ->type_name("N");
  add_examples(command,
               {"vitrail scenes scenes/train --count 8000 --holdout \"red triangle,blue bird\" --preview 16",
                "vitrail scenes scenes/validation --start 8000 --count 500 --holdout \"red triangle,blue bird\"",
                "vitrail scenes scenes/unseen --start 8500 --count 500 --holdout \"red triangle,blue bird\" "
                "--held-out",
                "vitrail pretrain dino scenes/train/images"});
  command.callback([flags] { scenes(*flags); });
}

}  // namespace vitrail::cli
