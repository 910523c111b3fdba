// `vitrail ask` answers questions about images, and shows what was looked at.
#include "vitrail/cli/use/ask.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/train/vqa/answerer.h"
#include "vitrail/train/vqa/on_target.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using train::AnsweredQuestion;

struct AskFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string image;
  std::vector<std::string> questions;
  std::int64_t topk = 5;
  std::string output;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  std::string word;
  bool json = false;
};

std::optional<std::int64_t> checked_index(const std::optional<std::int64_t>& asked, std::int64_t count,
                                          const char* what) {
  const std::optional<std::int64_t> index = asked ? std::optional(from_end(*asked, count)) : std::nullopt;
  check(!index || (*index >= 0 && *index < count), "there is no {} {}: there are {}, from 0", what, asked.value_or(0),
        count);
  return index;
}

// Draws what was looked at for a question: a sheet of layers and heads, one of words, and the map of all of them.
class LookedAt {
 public:
  LookedAt(const AskFlags& flags, io::Image image, const AnsweredQuestion& answered)
      : flags_(flags), image_(std::move(image)), answered_(answered) {
    check(!answered_.maps.empty(),
          "'{}' looks at no part of an image more than at others: --output has nothing to draw", flags_.model.model);
  }

  // Of the layer that was asked for, or the last one, by the head that was asked for, or all.
  io::Image whole() const {
    const std::int64_t layers = std::ssize(answered_.maps);
    const Tensor heads = of_heads(checked_index(flags_.layer, layers, "layer").value_or(layers - 1));
    const std::optional<std::int64_t> head = checked_index(flags_.head, heads.size(0), "head");
    return drawn(head ? heads.select(0, *head) : ops::mean(heads, {0}));
  }

  io::Image layers() const {
    const std::int64_t heads = answered_.maps.front().size(0);
    const std::optional<std::int64_t> head = checked_index(flags_.head, heads, "head");
    std::vector<std::vector<io::Image>> rows;
    explain::SheetLabels labels;
    for (const std::int64_t layer :
         chosen(checked_index(flags_.layer, std::ssize(answered_.maps), "layer"), std::ssize(answered_.maps))) {
      const Tensor of = of_heads(layer);
      std::vector<io::Image>& row = rows.emplace_back();
      labels.rows.push_back(fmt::format("layer {}", layer));
      if (!head) {
        row.push_back(drawn(ops::mean(of, {0})));
      }
      for (const std::int64_t h : chosen(head, heads)) {
        row.push_back(drawn(of.select(0, h)));
      }
    }
    if (!head) {
      labels.columns.emplace_back("all heads");
    }
    for (const std::int64_t h : chosen(head, heads)) {
      labels.columns.push_back(fmt::format("head {}", h));
    }
    return explain::sheet(rows, labels);
  }

  io::Image words() const {
    const Tensor map = ops::mean(answered_.maps.back(), {0});  // [words, patches]
    std::vector<std::vector<io::Image>> rows(answered_.weighted.defined() ? 2 : 1);
    explain::SheetLabels labels;
    labels.rows.emplace_back("attention");
    if (answered_.weighted.defined()) {
      labels.rows.emplace_back("weighted");
    }
    for (std::size_t i = 0; i < answered_.words.size(); ++i) {
      const auto word = static_cast<std::int64_t>(i);
      labels.columns.push_back(answered_.words.size() == 1 ? "question" : answered_.words[i]);
      rows[0].push_back(drawn(map.select(0, word)));
      if (answered_.weighted.defined()) {
        rows[1].push_back(drawn(answered_.weighted.select(0, word)));
      }
    }
    return explain::sheet(rows, labels);
  }

 private:
  io::Image drawn(const Tensor& patches) const {
    return explain::overlay(image_, patches.contiguous().reshape({answered_.grid[0], answered_.grid[1]}));
  }

  // The maps of a layer's heads, of the word that was asked for, or the sum over all: [H, patches].
  Tensor of_heads(std::int64_t layer) const {
    const Tensor& map = answered_.maps[static_cast<std::size_t>(layer)];
    Tensor sum = Tensor::zeros({map.size(0), map.size(2)});
    bool found = false;
    for (std::size_t i = 0; i < answered_.words.size(); ++i) {
      if (flags_.word.empty() || answered_.words[i] == flags_.word) {
        sum = sum + map.select(1, static_cast<std::int64_t>(i)).contiguous();
        found = true;
      }
    }
    check(found, "the question has no word '{}': its tokens are {}", flags_.word, fmt::join(answered_.words, " "));
    return sum;
  }

  const AskFlags& flags_;
  io::Image image_;
  const AnsweredQuestion& answered_;
};

// A page and its pictures, all of which are drawn before the first is written.
class LookedAtPage {
 public:
  LookedAtPage(const AskFlags& flags, const io::Image& image, const std::vector<AnsweredQuestion>& answered)
      : flags_(flags) {
    const io::Image picture = explain::fit_for_sheet(image);
    add("image.png", picture);
    explain::Section beside{.title = "Side by side", .text = {}, .table = {}, .figures = {}, .figure_width = 1000};
    std::vector<io::Image> row = {picture};
    explain::SheetLabels labels{.rows = {}, .columns = {"picture"}};
    for (std::size_t i = 0; i < answered.size(); ++i) {
      const LookedAt looked(flags_, picture, answered[i]);
      const std::string number = answered.size() > 1 ? fmt::format("-{}", i + 1) : "";
      const std::string& question = flags_.questions[i];
      row.push_back(looked.whole());
      labels.columns.push_back(question + " " + answered[i].best.front().text);
      add_sections(question, number, looked, answered[i]);
    }
    if (answered.size() > 1) {
      add("questions.png", explain::sheet({row}, labels));
      beside.text = "One picture and " + io::counted(std::ssize(answered), "questions") + ".";
      beside.figures = {{"questions.png", "bright where it looks"}};
      sections_.insert(sections_.begin(), beside);
    }
  }

  void write() const {
    const fs::path folder = flags_.output;
    std::vector<std::string> names;
    for (const auto& [name, image] : pictures_) {
      check_not_input((folder / name).string(), flags_.image);
      names.push_back(name);
    }
    make_page_folder(folder);
    for (const auto& [name, image] : pictures_) {
      io::write_png(folder / name, image);
    }
    io::write_atomically(folder / "index.html", explain::html_page("What was looked at", flags_.image, sections_));
    if (!flags_.json) {
      fmt::print("{}/index.html, {}\n", folder.string(), fmt::join(names, ", "));
    }
  }

 private:
  void add(const std::string& name, io::Image image) { pictures_.emplace_back(name, std::move(image)); }

  void add_sections(const std::string& question, const std::string& number, const LookedAt& looked,
                    const AnsweredQuestion& answered) {
    explain::Section answers{.title = question, .text = {}, .table = {}, .figures = {}, .figure_width = 480};
    answers.table.header = {"answer", "probability"};
    for (const train::GivenAnswer& answer : answered.best) {
      answers.table.rows.push_back({answer.text, fmt::format("{:.1f} %", 100 * answer.probability)});
    }
    answers.figures = {{"image.png", flags_.image}};
    explain::Section layers{.title = "Layers and heads", .text = {}, .table = {}, .figures = {}, .figure_width = 1000};
    layers.text = flags_.word.empty() ? "The mean over all words." : fmt::format("The word \"{}\".", flags_.word);
    layers.figures = {{fmt::format("layers{}.png", number), "bright where it looks"}};
    explain::Section words{.title = "Words", .text = {}, .table = {}, .figures = {}, .figure_width = 1000};
    words.text =
        "The last layer, mean over its heads" +
        std::string(answered.weighted.defined()
                        ? "; below it, where its scores raise the probability of the answer (gradient-weighted)."
                        : ".");
    words.figures = {{fmt::format("words{}.png", number), "bright where it looks"}};
    add(layers.figures[0].file, looked.layers());
    add(words.figures[0].file, looked.words());
    sections_.insert(sections_.end(), {answers, layers, words});
  }

  const AskFlags& flags_;
  std::vector<std::pair<std::string, io::Image>> pictures_;
  std::vector<explain::Section> sections_;
};

Json to_json(const std::string& question, const AnsweredQuestion& answered) {
  Json best = Json::array();
  for (const train::GivenAnswer& answer : answered.best) {
    best.push_back({{"answer", answer.text}, {"probability", answer.probability}});
  }
  return {{"question", question}, {"answer", answered.best.front().text}, {"best", best}};
}

void ask(const AskFlags& flags) {
  check_usage(!flags.output.empty() || (!flags.layer && !flags.head && flags.word.empty()),
              "--layer, --head and --word choose what --output draws");
  const DType dtype = flags.compute.apply();
  const std::unique_ptr<train::Answerer> answerer = open_answerer(flags.model);
  const io::Image image = io::read_image(flags.image);
  std::vector<AnsweredQuestion> answered;
  for (const std::string& question : flags.questions) {
    answered.push_back(
        answerer->answer(image, question, {.best = flags.topk, .maps = !flags.output.empty(), .dtype = dtype}));
  }
  const std::optional<LookedAtPage> page =
      flags.output.empty() ? std::nullopt : std::optional<LookedAtPage>(std::in_place, flags, image, answered);
  const bool one = answered.size() == 1;
  if (flags.json) {
    Json json = {{"file", io::as_utf8(flags.image)}};
    for (std::size_t i = 0; i < answered.size(); ++i) {
      const Json own = to_json(flags.questions[i], answered[i]);
      if (one) {
        json.update(own);
      } else {
        json["questions"].push_back(own);
      }
    }
    fmt::print("{}\n", json.dump(2));
  } else {
    for (std::size_t i = 0; i < answered.size(); ++i) {
      fmt::print("{}{}\n", one ? "" : flags.questions[i] + " ", answered[i].best.front().text);
      for (const train::GivenAnswer& answer : answered[i].best) {
        fmt::print("  {:5.1f} %  {}\n", 100 * answer.probability, answer.text);
      }
    }
  }
  if (page) {
    page->write();
  }
}

Json to_json(const train::TargetCount& count) {
  const double all = static_cast<double>(std::max<std::int64_t>(count.count, 1));
  return {{"count", count.count}, {"on_target", static_cast<double>(count.hits) / all}, {"chance", count.chance / all}};
}

Json to_json(const train::AnswerEvaluation& e, const std::vector<train::OnTarget>& maps) {
  Json json = {{"images", e.images},
               {"questions", e.count},
               {"accuracy", e.accuracy},
               {"loss", std::isnan(e.loss) ? Json() : Json(e.loss)}};
  if (e.official) {
    json["vqa_accuracy"] = *e.official;
  }
  json["types"] = Json::array();
  for (const train::TypeAccuracy& type : e.types) {
    json["types"].push_back({{"type", type.type}, {"count", type.count}, {"accuracy", type.accuracy}});
  }
  json["unseen_answers"] = e.unseen;
  json["unknown_words"] = e.unknown_words;
  json["attention"] = Json::array();
  for (const train::OnTarget& map : maps) {
    Json own = {{"map", map.map}};
    own.update(to_json(map.all));
    for (const auto& [type, count] : map.types) {
      own["types"][type] = to_json(count);
    }
    json["attention"].push_back(own);
  }
  json["broken"] = e.broken;
  return json;
}

}  // namespace

std::unique_ptr<train::Answerer> open_answerer(const ModelFlags& flags) {
  flags.check_unchanged("answers questions");
  const std::string folder = flags.name_or_folder();
  check(fs::exists(folder) || models::is_shipped_name(folder), "there is no model folder '{}'", folder);
  check(train::answers_questions(folder), "'{}' answers no questions: {}", flags.model,
        flags.instead("train --task vqa"));
  std::unique_ptr<train::Answerer> answerer = train::load_answerer(folder);
  as_usage([&] { answerer->prepare_images(flags.images); });
  return answerer;
}

void evaluate_questions(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                        const std::string& output, bool json) {
  const train::EvaluateOptions options = data.options(compute.apply());
  const std::unique_ptr<train::Answerer> answerer = open_answerer(model);
  const data::ImageQuestions questions = data::open_questions_of(data.data, data.split, true, data.skip_broken);
  for (const std::string& note : questions.images->notes()) {
    say("{}\n", note);
  }
  const train::AnswerEvaluation result = evaluate_under_bar("evaluating", *answerer, questions, options);
  // A map lies over what the network sees: over the image unless that is cropped.
  const bool whole = !model.images.crop_pct && (model.images.crop_mode.empty() || model.images.crop_mode == "squash");
  const std::vector<train::OnTarget> maps =
      answerer->vqa() != nullptr && whole
          ? train::attention_on_target(*answerer->vqa(), answerer->tokenizer(), questions, options)
          : std::vector<train::OnTarget>{};
  Json all = {{"model", model.model}, {"data", data.data}};
  all.update(to_json(result, maps));
  if (!output.empty()) {
    io::make_folder(output);
    Json answers = Json::array();
    for (const auto& [id, answer] : result.given) {
      answers.push_back({{"question_id", id}, {"answer", io::as_utf8(answer)}});
    }
    io::write_atomically(fs::path(output) / "eval.json", all.dump(2) + "\n");
    io::write_atomically(fs::path(output) / "answers.json", answers.dump() + "\n");
  }
  if (json) {
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("{}{}", train::answer_table(result), train::on_target_table(maps));
  for (const std::string& broken : result.broken) {
    fmt::print("left out: {}\n", broken);
  }
  if (!output.empty()) {
    fmt::print("\n{0}/eval.json, {0}/answers.json\n", output);
  }
}

void add_ask(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("ask", "Answer questions about an image, and show what was looked at");
  const auto flags = std::make_shared<AskFlags>();
  command
      .add_option("MODEL", flags->model.model,
                  "The folder of a run of 'train --task vqa', or of transformers' BlipForQuestionAnswering")
      ->required();
  command.add_option("IMAGE", flags->image, "Image")->required();
  command
      .add_option("QUESTION", flags->questions,
                  "Question, in quotes; several: what is looked at for each is drawn side by side")
      ->required();
  command.add_option("--topk", flags->topk, "Number of answers, the likeliest first")
      ->capture_default_str()
      ->check(at_least(1));
  command
      .add_option("--output", flags->output,
                  "Folder for an index.html with what was looked at by layer and head, and by each word")
      ->type_name("DIR");
  command.add_option("--layer", flags->layer, "Draw this layer alone; negative: from the last")->check(whole_number());
  command.add_option("--head", flags->head, "Draw this head alone; negative: from the last")->check(whole_number());
  command.add_option("--word", flags->word, "Draw layers and heads of this word of the question; default: the mean");
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_compute_flags(command, flags->compute);
  add_examples(
      command,
      {"vitrail ask runs/vqa scenes/validation/images/000000.png \"what colour is the small circle?\"",
       "vitrail ask blip-vqa-base street.jpg \"how many dogs are there?\" --output looked",
       "vitrail ask runs/vqa scenes/validation/images/000000.png \"how many birds are there?\" \"what colour is the "
       "sky?\" --output looked"});
  command.callback([flags] { ask(*flags); });
}

}  // namespace vitrail::cli
