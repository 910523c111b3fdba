// `vitrail bleu` scores translations as sacrebleu does, with its flags and in its words.
#include "vitrail/text/score/bleu.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/help.h"
#include "vitrail/io/file.h"
#include "vitrail/text/score/chrf.h"
#include "vitrail/text/strings/encoding.h"

namespace vitrail::cli {
namespace {

struct BleuFlags {
  std::vector<std::string> references;
  std::string input = "-";
  std::vector<std::string> metrics = {"bleu"};
  text::BleuOptions bleu;
  std::string languages;
  text::ChrfOptions chrf;
  bool sentence_level = false;
  bool score_only = false;
  bool short_signature = false;
  int width = 1;
  std::string format = "json";
  std::string encoding = "utf-8";
};

// One score, as it is printed.
struct Result {
  std::string name;
  std::string signature;
  double score = 0;
  std::string details;  // "" if there are none
};

// The score in the fields of sacrebleu's JSON, the parts of the signature among them.
std::string json_of(const Result& result, const std::string& score) {
  nlohmann::ordered_json json = {{"name", result.name}, {"score", std::stod(score)}, {"signature", result.signature}};
  if (!result.details.empty()) {
    json["verbose_score"] = result.details;
  }
  for (std::size_t begin = 0; begin < result.signature.size();) {
    const std::size_t end = std::min(result.signature.find('|', begin), result.signature.size());
    const std::size_t colon = result.signature.find(':', begin);
    json[result.signature.substr(begin, colon - begin)] = result.signature.substr(colon + 1, end - colon - 1);
    begin = end + 1;
  }
  return json.dump(1);
}

std::string shown(const Result& result, const BleuFlags& flags, bool as_json) {
  const std::string score = fmt::format("{:.{}f}", result.score, flags.width);
  if (flags.score_only) {
    return score;
  }
  return as_json ? json_of(result, score)
                 : fmt::format("{}|{} = {}{}{}", result.name, result.signature, score,
                               result.details.empty() ? "" : " ", result.details);
}

// The results one below the other: in JSON as a list if there are several, as text with their = in one column.
void print_results(const std::vector<Result>& results, const BleuFlags& flags) {
  const bool as_json = flags.format == "json";
  const bool list = as_json && results.size() > 1;
  const auto label = [](const Result& result) { return result.name.size() + 1 + result.signature.size(); };
  const std::size_t widest = label(std::ranges::max(results, {}, label));
  fmt::print("{}", list ? "[\n" : "");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t indent = as_json || flags.score_only ? 0 : widest - label(results[i]);
    fmt::print("{}{}{}\n", std::string(indent, ' '), shown(results[i], flags, as_json),
               list && i + 1 < results.size() ? "," : "");
  }
  fmt::print("{}", list ? "]\n" : "");
}

// As in sacrebleu, JSON has the long names in any case.
std::string signature_of(const std::string& signature, const BleuFlags& flags) {
  return flags.short_signature && (flags.format == "text" || flags.sentence_level) ? text::short_signature(signature)
                                                                                   : signature;
}

Result score_of(const std::string& metric, const text::Segments& hypotheses,
                const std::vector<text::Segments>& references, const BleuFlags& flags) {
  if (metric == "chrf") {
    return {text::chrf_name(flags.chrf), signature_of(text::chrf_signature(flags.chrf, references.size()), flags),
            text::chrf(hypotheses, references, flags.chrf), ""};
  }
  const text::BleuScore score = text::bleu(hypotheses, references, flags.bleu);
  return {"BLEU", signature_of(text::bleu_signature(flags.bleu, references.size()), flags), score.score,
          text::bleu_details(score)};
}

void bleu(BleuFlags flags) {
  const bool smooths_by_value = flags.bleu.smooth_method == "floor" || flags.bleu.smooth_method == "add-k";
  check_usage(!flags.bleu.smooth_value || smooths_by_value, "--smooth-value is for --smooth-method floor and add-k");
  std::ranges::sort(flags.metrics);
  flags.metrics.erase(std::unique(flags.metrics.begin(), flags.metrics.end()), flags.metrics.end());
  check_usage(!flags.sentence_level || flags.metrics.size() == 1, "--sentence-level takes one metric");

  const auto segments_of = [&](const std::string& bytes, const std::string& source) {
    return text::parse_segments(text::to_utf8(bytes, flags.encoding, source), source);
  };
  std::vector<text::Segments> references;
  for (const std::string& path : flags.references) {
    references.push_back(segments_of(io::read_text(path), path));
  }
  const bool from_stdin = flags.input == "-";
  const std::string source = from_stdin ? "standard input" : flags.input;
  const text::Segments hypotheses =
      segments_of(from_stdin ? io::read_standard_input() : io::read_text(flags.input), source);
  for (std::size_t i = 0; i < references.size(); ++i) {
    text::check_parallel(hypotheses, source, references[i], flags.references[i]);
  }
  check(!hypotheses.empty(), "'{}' is empty: there is nothing to score", source);

  if (!flags.sentence_level) {
    std::vector<Result> results;
    for (const std::string& metric : flags.metrics) {
      results.push_back(score_of(metric, hypotheses, references, flags));
    }
    print_results(results, flags);
    return;
  }
  flags.bleu.effective_order = true;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<text::Segments> translations(references.size());
    for (std::size_t r = 0; r < references.size(); ++r) {
      translations[r] = {references[r][i]};
    }
    fmt::print("{}\n", shown(score_of(flags.metrics.front(), {hypotheses[i]}, translations, flags), flags, false));
  }
}

// Wrong usage unless these are two languages, "de-en".
void check_language_pair(const std::string& languages) {
  const std::size_t dash = languages.find('-');
  check_usage(dash != std::string::npos && dash > 0 && dash + 1 < languages.size(),
              "--language-pair is the codes of two languages such as de-en, not '{}'", languages);
}

// The tokenizer of BLEU for translations from one language to another, as sacrebleu chooses it.
std::string tokenizer_for(const std::string& languages) {
  const std::string target = languages.substr(languages.find('-') + 1);
  check_usage(target != "ja" && target != "ko",
              "--language-pair {}: sacrebleu cuts this language by MeCab, which is not here: choose one by --tokenize",
              languages);
  return target == "zh" ? "zh" : text::BleuOptions().tokenize;
}

void add_bleu_flags(CLI::App& command, BleuFlags& flags) {
  const char* group = "BLEU";
  command
      .add_option("-l,--language-pair", flags.languages,
                  "From and to which language was translated, as de-en: zh is cut into words in its own way")
      ->group(group)
      ->type_name("PAIR");
  command
      .add_flag_callback(
          "--force", [] {}, "As in sacrebleu: do not warn of tokenized texts, as is never done")
      ->group(group);
  command
      .add_option("--tokenize", flags.bleu.tokenize, "How lines are cut into words: 13a, intl, zh, char, none (-tok)")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::IsMember(text::bleu_tokenizers()))
      ->type_name("NAME");
  command.add_flag("--lowercase", flags.bleu.lowercase, "Take capitals for small letters (-lc)")->group(group);
  command
      .add_option("-s,--smooth-method", flags.bleu.smooth_method,
                  "What orders without matches count: exp (NIST), floor, add-k, none")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::IsMember(text::bleu_smooth_methods()))
      ->type_name("NAME");
  command
      .add_option("--smooth-value", flags.bleu.smooth_value, "Of floor (by default 0.1) and add-k (1); in short -sv")
      ->group(group)
      ->check(not_negative())
      ->type_name("X");
}

void add_chrf_flags(CLI::App& command, BleuFlags& flags) {
  const char* group = "chrF";
  command.add_option("--chrf-char-order", flags.chrf.char_order, "Longest n-grams of characters (-cc)")
      ->group(group)
      ->capture_default_str()
      ->check(whole_number(1, 100))
      ->type_name("N");
  command.add_option("--chrf-word-order", flags.chrf.word_order, "Longest n-grams of words; 2 is chrF++ (-cw)")
      ->group(group)
      ->capture_default_str()
      ->check(whole_number(0, 100))
      ->type_name("N");
  command.add_option("--chrf-beta", flags.chrf.beta, "How much more recall weighs than precision")
      ->group(group)
      ->capture_default_str()
      ->check(whole_number(1, 100))
      ->type_name("N");
  command.add_flag("--chrf-whitespace", flags.chrf.whitespace, "Count white space as characters")->group(group);
  command.add_flag("--chrf-lowercase", flags.chrf.lowercase, "Take capitals for small letters")->group(group);
  command.add_flag("--chrf-eps-smoothing", flags.chrf.eps_smoothing, "Count orders without matches, as chrF++.py does")
      ->group(group);
}

// Wrong usage if several files follow -i, which are as many systems to sacrebleu, and would be references here.
void check_one_system(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool names_flag = word == "-i" || word == "--input";
    const bool has_value = word.starts_with("--input=") || (word.starts_with("-i") && word.size() > 2);
    const std::size_t behind = names_flag ? i + 2 : i + 1;
    check_usage((!names_flag && !has_value) || behind >= arguments.size() || arguments[behind].starts_with('-'),
                "-i takes one file, and '{}' is another: references stand in front of it, and each system is scored by "
                "itself",
                arguments[std::min(behind, arguments.size() - 1)]);
  }
}

}  // namespace

void add_bleu(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App& command = *app.add_subcommand("bleu", "Score translations by BLEU and chrF, with sacrebleu's numbers");
  const auto flags = std::make_shared<BleuFlags>();
  command
      .add_option("REF", flags->references,
                  "Reference translations, a segment a line; several files for several of each")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("");
  command.add_option("-i,--input", flags->input, "The translations to score; - is standard input")
      ->capture_default_str()
      ->type_name("FILE");
  command.add_option("-e,--encoding", flags->encoding, "How the files are encoded: utf-8, latin-1, windows-1252 …")
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("-m,--metrics", flags->metrics, "What to score by: bleu, chrf or both")
      ->capture_default_str()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::IsMember({"bleu", "chrf"}))
      ->type_name("NAME");
  command.add_flag("--sentence-level", flags->sentence_level, "A score for each line (-sl)");
  command.add_flag_callback(
      "-q,--quiet", [] {}, "As in sacrebleu: no remarks, of which there are none");
  command.add_flag("-b,--score-only", flags->score_only, "Print the score alone");
  command.add_flag("--short", flags->short_signature, "Short names in the signature of text (-sh)");
  command.add_option("-w,--width", flags->width, "Digits behind the point")
      ->capture_default_str()
      ->check(whole_number(0, 15))
      ->type_name("N");
  const CLI::Option* const format =
      command.add_option("-f,--format", flags->format, "How to print: json or text; --sentence-level prints text")
          ->capture_default_str()
          ->check(CLI::IsMember({"json", "text"}))
          ->type_name("FORMAT");
  add_bleu_flags(command, *flags);
  add_chrf_flags(command, *flags);
  add_examples(command,
               {"vitrail bleu test.en -i translated.en", "vitrail bleu test.en -i translated.en -m bleu chrf -f text",
                "vitrail bleu test.en -b -w 2 -lc < translated.en"});
  command.callback([flags, format, arguments, &command] {
    check_one_system(arguments);
    check_usage(!flags->sentence_level || format->count() == 0 || flags->format == "text",
                "--format json has no effect with --sentence-level, which prints a line of text for each score");
    for (const auto& [metric, group] : {std::pair{"bleu", "BLEU"}, {"chrf", "chrF"}}) {
      const bool scores = std::ranges::find(flags->metrics, metric) != flags->metrics.end();
      for (const CLI::Option* option :
           command.get_options([group = group](const CLI::Option* one) { return one->get_group() == group; })) {
        check_usage(scores || option->count() == 0, "{} has no effect without --metrics {}", option->get_name(),
                    metric);
      }
    }
    if (!flags->languages.empty()) {
      check_language_pair(flags->languages);
      if (command.get_option("--tokenize")->count() == 0) {
        flags->bleu.tokenize = tokenizer_for(flags->languages);
      }
    }
    bleu(*flags);
  });
}

}  // namespace vitrail::cli
