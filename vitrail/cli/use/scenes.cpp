// `vitrail scenes` draws a data set of which everything is known.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/say.h"
#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/explain/scene_sheet.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/interrupt.h"
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
  std::string style = "shapes";
  std::string task = "none";
  std::int64_t preview = 0;
};

// The value of this name, which is one of `names`.
template <class T, class Names>
T chosen(const std::string& name, const Names& names) {
  return static_cast<T>(std::ranges::find(names, name) - names.begin());
}

// Wrong usage if flags were given that do nothing for this style or this task.
void check_effect(const CLI::App& command, const SceneFlags& flags) {
  const auto refuse = [&](const std::vector<std::string>& names, const std::string& with) {
    for (const std::string& name : names) {
      check_usage(command.count(name) == 0, "{} has no effect with {}", name, with);
    }
  };
  if (flags.style == "cells") {
    refuse(
        {"--objects", "--holdout", "--held-out", "--background", "--overlap", "--task", "--questions", "--paraphrase"},
        "--style cells");
  }
  if (flags.task == "same-different") {
    refuse({"--overlap"}, "--task same-different, whose birds are in opposite corners");
  }
  if (flags.task != "none") {
    refuse({"--questions", "--paraphrase"}, "--task " + flags.task);
  } else {
    check_usage(command.count("--validation") == 0,
                "--validation is for --task: other parts are other ranges of --start");
  }
  if (flags.task == "same-different") {
    refuse({"--objects"}, "--task same-different: there are two birds");
  }
}

// The first scenes with what is known of them.
io::Image preview_of(const data::SceneFolder& what, std::int64_t count) {
  if (what.style == data::SceneStyle::cells) {
    std::vector<data::CellScene> shown;
    shown.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      shown.push_back(data::sample_cells(what.scenes.seed, what.first + i));
    }
    return explain::cell_sheet(shown, what.side);
  }
  std::vector<data::Scene> shown;
  shown.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    shown.push_back(data::sample_scene(what.scenes, what.first + i));
  }
  return explain::scene_sheet(shown, what);
}

// What lies in the folder beside the images.
std::string_view files_of(const data::SceneFolder& what) {
  if (what.style == data::SceneStyle::cells) {
    return "images, masks, instances.json, scene.json";
  }
  return what.scenes.task == data::SceneTask::none
             ? "images, masks, captions.json, instances.json, heads.json, scene.json"
             : "train, validation, scene.json";
}

void scenes(SceneFlags& flags) {
  data::SceneFolder& what = flags.what;
  as_usage([&] {
    data::read_object_range(flags.objects, "--objects", what.scenes);
    what.scenes.holdout = data::read_scene_kinds(flags.holdout);
    what.style = chosen<data::SceneStyle>(flags.style, data::scene_styles);
    what.scenes.task = chosen<data::SceneTask>(flags.task, data::scene_tasks);
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
  const std::int64_t total = what.count + (what.scenes.task == data::SceneTask::none ? 0 : what.validation_count());
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("scenes", total);
  }
  const train::Interrupt interrupt;
  data::ScenesWritten written;
  io::replace_folder(flags.output, [&](const fs::path& folder) {
    written = data::write_scenes(folder, what, [&](std::int64_t done) {
      if (progress.terminal()) {
        progress.update(done, "");
      }
      end_if_interrupted(&progress);
    });
    progress.end();
    say_note(flags.preview > what.count
                 ? fmt::format("--preview {} shows the {} that there are{}", flags.preview,
                               io::counted(what.count, "scenes"), flags.task == "none" ? "" : " to learn from")
                 : "");
    if (flags.preview > 0) {
      io::write_png(folder / data::scene_preview, preview_of(what, std::min(flags.preview, what.count)));
    }
  });
  fmt::print("{}: {} of {} x {} pixels, {} … {} of seed {}: {}\n", flags.output, io::counted(total, "scenes"),
             what.side, what.side, what.first, what.first + total - 1, what.scenes.seed, files_of(what));
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
      "scenes",
      "Draw images of coloured shapes and birds, with masks, boxes, captions and questions, or of blood cells");
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
  command.add_flag("--overlap", what.scenes.overlap, "Objects may cover parts of each other");
  command.add_option("--style", flags->style, "What is drawn: shapes, or cells: blood under a microscope, with boxes")
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>(data::scene_styles.begin(), data::scene_styles.end())))
      ->type_name("NAME");
  command
      .add_option("--task", flags->task,
                  "Write class folders in train/ and validation/ instead: same-different (are two birds of one "
                  "species?), count (of objects)")
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>(data::scene_tasks.begin(), data::scene_tasks.end())))
      ->type_name("NAME");
  command
      .add_option("--validation", what.validation, "Scenes of validation/ with --task; by default a tenth of --count")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command.add_option("--questions", what.questions, "Questions about each scene; 0: none")
      ->capture_default_str()
      ->check(whole_number(0, 100))
      ->type_name("N");
  command.add_flag(
      "--paraphrase", what.paraphrase,
      "Ask in several wordings: \"how many birds are in this image?\", \"what is the colour of the sky?\" …");
  command
      .add_option(
          "--preview", flags->preview,
          "Draw preview.png: this many scenes with their boxes, and captions and questions, or the class of --task")
      ->check(whole_number(0, 400))
      ->type_name("N");
  add_examples(
      command,
      {"vitrail scenes scenes/train --count 8000 --holdout \"red triangle,blue bird\" --preview 16",
       "vitrail scenes scenes/validation --start 8000 --count 500 --holdout \"red triangle,blue bird\"",
       "vitrail scenes scenes/unseen --start 8500 --count 500 --holdout \"red triangle,blue bird\" "
       "--held-out",
       "vitrail scenes species --task same-different --count 8000", "vitrail scenes blood --style cells --count 300",
       "vitrail pretrain dino scenes/train/images",
       "vitrail train --task detect --data-dir scenes:count=8000,overlap   # the same scenes, with nothing written"});
  command.callback([flags, &command] {
    check_effect(command, *flags);
    scenes(*flags);
  });
}

}  // namespace vitrail::cli
