// `vitrail predict` with a model of texts, and `vitrail fill-mask`.
#include <memory>
#include <numeric>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/explain/labelled_text.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/text_predictions.h"

namespace vitrail::cli {
namespace {

using LabelJson = nlohmann::ordered_json;

train::TextRunOptions run_of(const PredictTextsFlags& flags, DType dtype) {
  return {.dtype = dtype, .batch_size = flags.batch_size, .batch_tokens = flags.batch_tokens};
}

void print_classes(const models::TextModel& model, const text::Tokenizer& tokenizer, const PredictTextsFlags& flags,
                   DType dtype) {
  const std::vector<text::LabelledText> texts = list_texts_to_classify(flags.texts, flags.skip_broken);
  std::vector<std::string> all_texts;
  for (const text::LabelledText& one : texts) {
    all_texts.push_back(one.text);
    all_texts.push_back(one.second);
  }
  note_unknown(tokenizer, all_texts);
  const std::vector<std::string> labels = models::labels_of(model);
  const Tensor all = train::classify_texts(model, tokenizer, texts, flags.truncate, run_of(flags, dtype));
  LabelJson json = LabelJson::array();
  const bool numbers = model.problem_type == models::ProblemType::regression;  // of which none is likelier than others
  std::vector<std::int64_t> own_order(labels.size());
  std::iota(own_order.begin(), own_order.end(), 0);
  const char* const value = numbers ? "value" : "probability";
  if (flags.format == "csv") {
    fmt::print("text,rank,label,index,{}\n", value);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> p = all.select(0, static_cast<std::int64_t>(i)).values();
    LabelJson top = LabelJson::array();
    const std::string shown = texts[i].second.empty() ? texts[i].text : texts[i].text + "\t" + texts[i].second;
    std::string line = shown + ":";
    for (const std::int64_t best : numbers ? own_order : kernels::largest(p, flags.topk)) {
      const auto c = static_cast<std::size_t>(best);
      top.push_back({{"label", labels[c]}, {"index", c}, {value, p[c]}});
      line += numbers ? fmt::format("  {} {:.4g}", io::on_one_line(labels[c]), p[c])
                      : fmt::format("  {} {:.1f} %", io::on_one_line(labels[c]), 100 * p[c]);
      if (flags.format == "csv") {
        fmt::print("{},{},{},{},{}\n", csv_field(shown), top.size(), csv_field(labels[c]), c, p[c]);
      }
    }
    json.push_back({{"text", texts[i].text}});
    if (!texts[i].second.empty()) {
      json.back()["text_pair"] = texts[i].second;
    }
    json.back()["top"] = std::move(top);
    if (flags.format == "text") {
      fmt::print("{}\n", line);
    }
  }
  if (flags.format == "json") {
    print_json(json);
  }
}

// The words of a text with the labels of their first tokens, by which words are learned. Tokens between which there is
// nothing are of one word.
std::vector<explain::LabelledWord> words_of(const std::string& text, const std::vector<train::TokenLabel>& tokens) {
  std::vector<std::size_t> begins;  // of the code points
  std::u32string points;
  text::for_each_code_point(text, [&](char32_t point, std::size_t at) {
    begins.push_back(at);
    points.push_back(point);
  });
  begins.push_back(text.size());
  std::vector<explain::LabelledWord> words;
  std::size_t end = 0;
  for (const train::TokenLabel& t : tokens) {
    auto start = static_cast<std::size_t>(t.start);
    const auto stop = static_cast<std::size_t>(t.end);
    while (start < stop && text::is_whitespace(points[start])) {
      ++start;  // the token has the space before its word
    }
    if (start == stop) {
      continue;
    }
    if (words.empty() || start != end) {
      words.push_back({"", t.entity, t.score});
    }
    words.back().word += text.substr(begins[start], begins[stop] - begins[start]);
    end = stop;
  }
  return words;
}

// A label for each token: a line for each as in a file of CoNLL, or objects as those of transformers' pipeline.
void print_tags(const models::TextModel& model, const text::Tokenizer& tokenizer, const PredictTextsFlags& flags,
                DType dtype) {
  for (const std::string& given : flags.texts) {
    check_not_input(flags.output, given);
  }
  const std::vector<std::string> texts = list_texts_to_tag(flags.texts, models::labels_of(model), flags.skip_broken);
  note_unknown(tokenizer, texts);
  LabelJson json = LabelJson::array();
  if (flags.format == "csv") {
    fmt::print("text,index,word,entity,score,start,end\n");
  }
  const auto all = train::label_tokens(model, tokenizer, texts, flags.truncate, run_of(flags, dtype));
  std::vector<std::vector<explain::LabelledWord>> drawn;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    LabelJson tokens = LabelJson::array();
    for (const train::TokenLabel& t : all[i]) {
      tokens.push_back({{"entity", t.entity},
                        {"score", t.score},
                        {"index", t.index},
                        {"word", t.word},
                        {"start", t.start},
                        {"end", t.end}});
      if (flags.format == "csv") {
        fmt::print("{},{},{},{},{},{},{}\n", csv_field(text), t.index, csv_field(t.word), csv_field(t.entity), t.score,
                   t.start, t.end);
      } else if (flags.format == "text") {
        fmt::print("{}\t{}\t{:.1f} %\n", t.word, t.entity, 100 * t.score);
      }
    }
    if (flags.format == "text") {
      fmt::print("\n");
    }
    if (!flags.output.empty()) {
      drawn.push_back(words_of(text, all[i]));
    }
    json.push_back({{"text", text}, {"tokens", std::move(tokens)}});
  }
  if (!flags.output.empty()) {
    io::write_atomically(flags.output, explain::labelled_texts_svg(drawn, models::labels_of(model)));
  }
  if (flags.format == "json") {
    print_json(json);
  }
}

struct FillMaskFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::vector<std::string> texts;
  std::vector<std::string> targets;
  std::int64_t top_k = 5;
  bool truncate = false;
  bool skip_broken = false;
  bool json = false;
};

// Behind the texts, `--targets` takes all words up to the next flag, which the parser has put among the texts, as it
// takes one alone: in front of MODEL and TEXT nothing would tell them apart.
void sort_targets(const CLI::App& command, FillMaskFlags& flags) {
  const CLI::Option* const text = command.get_option("TEXT");
  const CLI::Option* const targets = command.get_option("--targets");
  const std::vector<std::string> words = std::exchange(flags.texts, {});
  const std::vector<std::string> named = std::exchange(flags.targets, {});
  auto word = words.begin();
  auto target = named.begin();
  bool takes_more = false;
  for (const CLI::Option* option : command.parse_order()) {
    if (option == text) {
      (takes_more ? flags.targets : flags.texts).push_back(*word++);
      continue;
    }
    takes_more = option == targets && !flags.texts.empty();
    if (option == targets) {
      flags.targets.push_back(*target++);
    }
  }
}

void fill_mask(const FillMaskFlags& flags) {
  const DType dtype = flags.compute.apply();
  const std::string folder = text_model_folder(flags.model);
  const models::TextModel model = models::load_text_model(folder);
  const text::Tokenizer tokenizer = open_tokenizer(folder, model.net->shape().vocab_size);
  for (const std::string& target : flags.targets) {
    if (const std::vector<std::int64_t> ids = tokenizer.encode(target, false).ids;
        !tokenizer.id_of(target) && !ids.empty()) {
      say("note: '{}' is no token of the model: '{}', with which it begins, stands for it\n", target,
          tokenizer.token_of(ids.front()));
    }
  }
  const std::vector<std::string> texts = list_texts(flags.texts, flags.skip_broken);
  note_unknown(tokenizer, texts);
  LabelJson of_texts = LabelJson::array();
  for (const std::string& text : texts) {
    const auto masks = train::fill_masks(model, tokenizer, text, flags.top_k, flags.targets, flags.truncate, dtype);
    LabelJson json = LabelJson::array();
    for (const std::vector<train::FilledMask>& mask : masks) {
      LabelJson list = LabelJson::array();
      for (const train::FilledMask& f : mask) {
        list.push_back({{"score", f.score}, {"token", f.token}, {"token_str", f.token_str}, {"sequence", f.sequence}});
        if (!flags.json) {
          fmt::print("{:5.1f} %  {:<16} {}\n", 100 * f.score, f.token_str, f.sequence);
        }
      }
      if (!flags.json && &mask != &masks.back()) {
        fmt::print("\n");
      }
      json.push_back(std::move(list));
    }
    of_texts.push_back(masks.size() == 1 ? std::move(json[0]) : std::move(json));
  }
  if (flags.json) {  // a single text, as a single mask, has no list around its list, as in transformers
    fmt::print("{}\n", (texts.size() == 1 ? of_texts[0] : of_texts).dump());
  }
}

}  // namespace

void predict_texts(const ModelFlags& flags, const ComputeFlags& compute, const PredictTextsFlags& options) {
  const DType dtype = compute.apply();
  const std::string folder = text_model_folder(flags);
  const models::TextModel model = models::load_text_model(folder);
  const bool each_token = models::classifier_of(model).each_token();
  check_usage(each_token || options.output.empty(), "'{}' labels no words: it takes no --output", folder);
  check_usage(!each_token || !options.topk_given, "'{}' labels each word: it takes no --topk", folder);
  check_usage(model.problem_type != models::ProblemType::regression || !options.topk_given,
              "'{}' predicts numbers: it takes no --topk", folder);
  const text::Tokenizer tokenizer = open_tokenizer(folder, model.net->shape().vocab_size);
  (each_token ? print_tags : print_classes)(model, tokenizer, options, dtype);
}

void add_fill_mask(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("fill-mask", "Print what may stand for [MASK] in a text");
  const auto flags = std::make_shared<FillMaskFlags>();
  command.add_option("MODEL", flags->model.model, "Folder of a model such as BERT with its tokenizer, or a run folder")
      ->required()
      ->type_name("");
  command
      .add_option("TEXT", flags->texts, "Texts with [MASK] or <mask>, files of such lines, or - for the standard input")
      ->required()
      ->type_name("");
  command.add_option("--top-k,--topk", flags->top_k, "Number of tokens to name, the likeliest first")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("K");
  command
      .add_option("--targets", flags->targets,
                  "Compare these words alone: one in front of the texts, behind them all up to the next flag; may be "
                  "given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->type_name("WORD");
  command.add_flag("--truncate", flags->truncate, "Cut texts that are longer than the model's positions");
  command.add_flag("--skip-broken", flags->skip_broken, "Leave out lines that are not UTF-8, and count them");
  command.add_flag(
      "--json", flags->json,
      "Print the list that transformers' fill-mask pipeline gives: of several texts, a list of their lists");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail fill-mask my_bert \"A man is [MASK] a horse.\"",
                         "vitrail fill-mask my_bert \"A man is [MASK] a horse.\" --targets riding feeding",
                         "vitrail fill-mask my_roberta \"A man is <mask> a horse.\" --top-k 3 --json"});
  command.callback([flags, &command] {
    sort_targets(command, *flags);
    fill_mask(*flags);
  });
}

}  // namespace vitrail::cli
