// `vitrail eval-captions` scores captions by those that people wrote, and those of scenes by what is in them.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/data/scenes/read.h"
#include "vitrail/data/scenes/truth.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/score/captions.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct EvalCaptionsFlags {
  std::string results;
  std::string data;
  bool json = false;
};

struct ReadCaptions {
  std::vector<std::int64_t> image_ids;
  std::vector<std::string> captions;
};

// The captions of a list in COCO's layout of results and annotations.
ReadCaptions read_captions(const nlohmann::json& list, const std::string& source) {
  ReadCaptions captions;
  for (const nlohmann::json& item : list) {
    io::Fields fields(item, fmt::format("{}: entry {}", source, captions.captions.size()));
    captions.image_ids.push_back(fields.get<std::int64_t>("image_id"));
    captions.captions.push_back(fields.get<std::string>("caption"));
  }
  return captions;
}

ReadCaptions read_results(const fs::path& file) {
  const nlohmann::json json = io::read_json(file);
  check(json.is_array(), "{}: a list of {{\"image_id\": …, \"caption\": …}} was expected, COCO's layout of results",
        file.string());
  ReadCaptions results = read_captions(json, file.string());
  check(!results.captions.empty(), "{}: there are no captions", file.string());
  std::map<std::int64_t, std::size_t> seen;
  for (std::size_t i = 0; i < results.image_ids.size(); ++i) {
    const auto [first, is_new] = seen.emplace(results.image_ids[i], i);
    check(is_new, "{}: image {} has two captions, entries {} and {}", file.string(), results.image_ids[i],
          first->second, i);
  }
  return results;
}

// The captions of each image of a file in COCO's layout.
std::map<std::int64_t, std::vector<std::string>> read_references(const fs::path& file) {
  const nlohmann::json json = io::read_json(file);
  io::Fields fields(json, file.string());
  check(fields.kind("annotations") == io::Kind::list,
        "{}: there is no list 'annotations', as captions in COCO's layout have it", file.string());
  const ReadCaptions all = read_captions(json["annotations"], file.string() + ": 'annotations'");
  std::map<std::int64_t, std::vector<std::string>> references;
  for (std::size_t i = 0; i < all.captions.size(); ++i) {
    references[all.image_ids[i]].push_back(all.captions[i]);
  }
  return references;
}

// How the captions of scenes were judged.
struct Judged {
  std::vector<data::SceneVerdict> verdicts;  // of each caption; empty if there are no scenes
  std::int64_t count(data::SceneTruth truth) const {
    return std::ranges::count(verdicts, truth, &data::SceneVerdict::truth);
  }
  double percent(data::SceneTruth truth) const {
    return 100 * static_cast<double>(count(truth)) / static_cast<double>(verdicts.size());
  }
};

Judged judge(const ReadCaptions& results, const fs::path& file) {
  const auto scenes = data::read_scenes(file);
  Judged judged;
  judged.verdicts.reserve(results.captions.size());
  for (std::size_t i = 0; i < results.captions.size(); ++i) {
    const auto scene = scenes.find(results.image_ids[i]);
    check(scene != scenes.end(), "{}: there is no scene {}", file.string(), results.image_ids[i]);
    judged.verdicts.push_back(data::caption_truth(results.captions[i], scene->second));
  }
  return judged;
}

std::string_view word_of(data::SceneTruth truth) {
  return truth == data::SceneTruth::holds ? "true" : truth == data::SceneTruth::fails ? "false" : "not understood";
}

void print_scores_json(const ReadCaptions& results, const text::CaptionScores& scores, const Judged& judged,
                       std::size_t without) {
  nlohmann::ordered_json json = {{"images", results.captions.size()}, {"without_caption", without}};
  for (std::size_t n = 0; n < scores.bleu.size(); ++n) {
    json[fmt::format("Bleu_{}", n + 1)] = scores.bleu[n];
  }
  json["ROUGE_L"] = scores.rouge_l;
  json["CIDEr"] = scores.cider;
  if (!judged.verdicts.empty()) {
    for (const auto truth : {data::SceneTruth::holds, data::SceneTruth::fails, data::SceneTruth::not_understood}) {
      json[std::string(word_of(truth))] = judged.count(truth);
    }
  }
  json["by_image"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < results.captions.size(); ++i) {
    nlohmann::ordered_json one = {{"image_id", results.image_ids[i]},
                                  {"caption", results.captions[i]},
                                  {"ROUGE_L", scores.rouge_l_of[i]},
                                  {"CIDEr", scores.cider_of[i]}};
    if (!judged.verdicts.empty()) {
      one["truth"] = word_of(judged.verdicts[i].truth);
      one["reason"] = judged.verdicts[i].reason;
    }
    json["by_image"].push_back(std::move(one));
  }
  fmt::print("{}\n", json.dump(2));
}

void print_scores(const ReadCaptions& results, const text::CaptionScores& scores, const Judged& judged,
                  std::size_t without) {
  fmt::print("{}{}\n", io::counted(std::ssize(results.captions), "images"),
             without > 0 ? fmt::format("; {} without a caption left out",
                                       io::counted(static_cast<std::int64_t>(without), "images"))
                         : "");
  for (std::size_t n = 0; n < scores.bleu.size(); ++n) {
    fmt::print("BLEU-{}   {:.4f}\n", n + 1, scores.bleu[n]);
  }
  fmt::print("ROUGE-L  {:.4f}\nCIDEr    {:.4f}\n", scores.rouge_l, scores.cider);
  if (judged.verdicts.empty()) {
    return;
  }
  using enum data::SceneTruth;
  fmt::print("true {:.1f} %   false {:.1f} %   not understood {:.1f} %\n", judged.percent(holds), judged.percent(fails),
             judged.percent(not_understood));
  for (const data::SceneTruth truth : {fails, not_understood}) {
    const auto first = std::ranges::find(judged.verdicts, truth, &data::SceneVerdict::truth);
    if (first != judged.verdicts.end()) {
      const auto i = static_cast<std::size_t>(first - judged.verdicts.begin());
      fmt::print("{}, for example: image {}, '{}': {}\n", word_of(truth), results.image_ids[i],
                 io::shown(results.captions[i]), first->reason);
    }
  }
}

void eval_captions(const EvalCaptionsFlags& flags) {
  const ReadCaptions results = read_results(flags.results);
  std::error_code error;
  const bool folder = fs::is_directory(flags.data, error);
  const fs::path file = folder ? fs::path(flags.data) / "captions.json" : fs::path(flags.data);
  check(!folder || fs::exists(file, error), "the folder '{}' has no captions.json: name a file of captions",
        flags.data);
  const auto references = read_references(file);
  std::vector<std::string> candidates;
  candidates.reserve(results.captions.size());
  std::vector<std::vector<std::string>> tokenized;
  for (std::size_t i = 0; i < results.captions.size(); ++i) {
    const auto of_image = references.find(results.image_ids[i]);
    check(of_image != references.end(), "{}: image {} of '{}' has no captions there", file.string(),
          results.image_ids[i], flags.results);
    candidates.push_back(text::caption_tokenized(results.captions[i]));
    std::vector<std::string>& of_it = tokenized.emplace_back();
    of_it.reserve(of_image->second.size());
    for (const std::string& reference : of_image->second) {
      of_it.push_back(text::caption_tokenized(reference));
    }
  }
  const text::CaptionScores scores = text::caption_scores(candidates, tokenized);
  const fs::path scenes = file.parent_path() / "scene.json";
  const Judged judged = fs::exists(scenes, error) ? judge(results, scenes) : Judged();
  (flags.json ? print_scores_json : print_scores)(results, scores, judged, references.size() - candidates.size());
}

}  // namespace

void add_eval_captions(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("eval-captions", "Score captions by BLEU, ROUGE-L and CIDEr, with pycocoevalcap's numbers");
  const auto flags = std::make_shared<EvalCaptionsFlags>();
  command
      .add_option("RESULTS", flags->results,
                  "The captions to score, in COCO's layout: [{\"image_id\": 7, \"caption\": \"a cat\"}]")
      ->required()
      ->type_name("");
  command
      .add_option("--data", flags->data,
                  "The captions to compare with: a .json in COCO's layout, or the folder of a captions.json. If a "
                  "scene.json of `vitrail scenes` lies beside it, captions are also judged by what is in the scenes")
      ->required()
      ->type_name("FILE");
  command.add_flag("--json", flags->json, "Print one JSON object, with the scores of each image");
  add_examples(command, {"vitrail eval-captions results.json --data annotations/captions_val2017.json",
                         "vitrail eval-captions results.json --data scenes/validation"});
  command.callback([flags] { eval_captions(*flags); });
}

}  // namespace vitrail::cli
