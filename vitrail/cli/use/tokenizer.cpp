// `vitrail tokenizer` turns texts into ids and back, and says what a tokenizer is.
#include "vitrail/text/tokenizer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/help.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/train.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

using nlohmann::json;

struct TokenizerFlags {
  std::string tokenizer;
  std::vector<std::string> words;  // texts, or ids
  std::string input;
  bool skip_broken = false;
  bool lines_are_json = false;
  bool json = false;
  int threads = 1;
  bool show = false;
  bool special_tokens = false;  // encode: leave them out; decode: keep them
};

struct TokenizerTrainFlags {
  std::vector<std::string> files;
  std::string output;
  std::string model = "bpe";
  bool skip_broken = false;
  text::TokenizerTraining training;
};

constexpr std::size_t lines_at_once = 1024;

bool from_input(const std::string& path) { return path == "-"; }

// Calls `use` with each line of a file, "-" being the standard input, and its number.
void for_each_line(const std::string& path, const std::function<void(std::string, std::size_t)>& use) {
  std::ifstream file;
  if (!from_input(path)) {
    file.open(path);
    check(file.is_open(), "cannot read '{}': {}", path, std::strerror(errno));
  }
  std::istream& in = from_input(path) ? std::cin : file;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) {  // of Windows
      line.pop_back();
    }
    if (++number == 1) {
      line = io::without_byte_order_mark(line);
    }
    use(std::move(line), number);
  }
}

json as_json(const text::Encoding& encoding) {
  return {{"ids", encoding.ids},
          {"tokens", encoding.tokens},
          {"offsets", encoding.offsets},
          {"type_ids", encoding.type_ids},
          {"special_tokens_mask", encoding.special},
          {"attention_mask", encoding.attention_mask}};
}

// The file whose lines are taken: that of --input, or the standard input for a single "-"; empty: the words are taken.
std::string source_of(const TokenizerFlags& flags, const std::string& what) {
  check_usage(flags.words.empty() || flags.input.empty(), "give {} or --input, not both", what);
  const std::string source = flags.words == std::vector<std::string>{"-"} ? "-" : flags.input;
  check_usage(!source.empty() || !flags.words.empty(), "give {}, a file by --input, or - for the standard input", what);
  return source;
}

// The pieces one after the other in two colours, each with its id.
void show(const text::Encoding& encoding) {
  const bool colours = isatty(STDOUT_FILENO) == 1;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const char* begin = !colours ? "" : i % 2 == 0 ? "\x1b[30;46m" : "\x1b[30;43m";
    fmt::print("{}{}{}\u2009{}{}", begin, encoding.tokens[i], colours ? "\x1b[0;2m" : "", encoding.ids[i],
               colours                   ? "\x1b[0m "
               : i + 1 < encoding.size() ? " "
                                         : "");
  }
  fmt::print("\n");
}

void print_encodings(const TokenizerFlags& flags, const text::Tokenizer& tokenizer,
                     std::span<const std::string> texts) {
  // Each text stands for itself: none is padded to another's length.
  const std::optional<text::Padding>& padding = tokenizer.padding();
  for (text::Encoding& encoding :
       tokenizer.with_padding(std::nullopt).encode_batch(texts, !flags.special_tokens, flags.threads)) {
    if (padding) {
      text::pad({&encoding, 1}, *padding);
    }
    if (flags.show) {
      show(encoding);
    } else if (flags.json) {
      fmt::print("{}\n", as_json(encoding).dump());
    } else {
      fmt::print("{}\n", fmt::join(encoding.ids, " "));
    }
  }
}

void encode(const TokenizerFlags& flags) {
  const std::string input = source_of(flags, "texts");
  const text::Tokenizer tokenizer = text::load_tokenizer(train::model_of(flags.tokenizer));
  if (input.empty()) {
    print_encodings(flags, tokenizer, flags.words);
    return;
  }
  std::int64_t skipped = 0;
  std::vector<std::string> lines;
  const auto flush = [&] {
    print_encodings(flags, tokenizer, lines);
    lines.clear();
  };
  for_each_line(input, [&](std::string line, std::size_t number) {
    if (flags.skip_broken && text::find_invalid_utf8(line) != std::string::npos) {
      ++skipped;
      return;
    }
    const std::string source = fmt::format("{}: line {}", input, number);
    if (flags.lines_are_json) {
      const json value = io::parse_json(line, source);
      check(value.is_string(), "{}: it must be a JSON string", source);
      line = value.get<std::string>();
    }
    text::check_line(line, from_input(input) ? "standard input" : input, number);
    lines.push_back(std::move(line));
    if (lines.size() == lines_at_once) {
      flush();
    }
  });
  flush();
  note_skipped_lines(skipped);
}

std::vector<std::int64_t> ids_of(const std::string& text, const std::string& source) {
  std::vector<std::int64_t> ids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    check(error == std::errc() && end == word.data() + word.size(), "{}: '{}' is not an id", source, word);
    ids.push_back(id);
  }
  return ids;
}

void decode(const TokenizerFlags& flags) {
  const std::string input = source_of(flags, "ids");
  const text::Tokenizer tokenizer = text::load_tokenizer(train::model_of(flags.tokenizer));
  const auto print = [&](const std::vector<std::int64_t>& ids) {
    const std::string text = tokenizer.decode(ids, !flags.special_tokens);
    fmt::print("{}\n", flags.json ? json(text).dump() : text);
  };
  if (input.empty()) {
    print(ids_of(fmt::format("{}", fmt::join(flags.words, " ")), "the arguments"));
    return;
  }
  for_each_line(input, [&](const std::string& line, std::size_t number) {
    print(ids_of(line, fmt::format("{}: line {}", input, number)));
  });
}

void info(const TokenizerFlags& flags) {
  const text::Tokenizer tokenizer = text::load_tokenizer(train::model_of(flags.tokenizer));
  json special = json::object();
  std::int64_t found = 0;
  for (std::int64_t id = 0; found < tokenizer.vocab_size() && id <= text::largest_id; ++id) {
    if (!tokenizer.has(id)) {
      continue;
    }
    ++found;
    if (tokenizer.is_special(id)) {
      special[tokenizer.token_of(id)] = id;
    }
  }
  const auto& truncation = tokenizer.truncation();
  const auto& padding = tokenizer.padding();
  if (flags.json) {
    const json result = {{"kind", tokenizer.kind()},
                         {"vocab_size", tokenizer.vocab_size()},
                         {"special_tokens", special},
                         {"max_length", truncation ? json(truncation->max_length) : json()},
                         {"pads", padding.has_value()}};
    print_json(result);
    return;
  }
  fmt::print("{}, {} tokens\n", tokenizer.kind(), tokenizer.vocab_size());
  for (const auto& [token, id] : special.items()) {
    fmt::print("  {:>8}  {}\n", id.get<std::int64_t>(), token);
  }
  if (truncation) {
    fmt::print("cuts to {} tokens\n", truncation->max_length);
  }
  if (padding) {
    fmt::print("pads to {}\n", padding->length ? fmt::format("{} tokens", *padding->length) : "the longest of a batch");
  }
}

// What a tokenizer learns from a file: of a table or of pairs the texts alone, of any other file all of it. With
// `skipped`, lines that are not UTF-8 are left out and counted there.
std::string text_of(const std::string& file, std::int64_t* skipped) {
  std::string all;
  const auto add = [&](const std::string& text) { all += text.empty() ? "" : text + "\n"; };
  if (text::names_pairs(file)) {
    const text::ParallelText pairs = text::read_parallel_text(file, "", skipped);
    std::ranges::for_each(pairs.source, add);
    std::ranges::for_each(pairs.target, add);
  } else if (text::names_table(file)) {
    for (const text::LabelledText& one : text::read_labelled_texts(file, skipped, text::Labels::optional)) {
      add(one.text);
      add(one.second);
    }
  } else {
    all = io::without_byte_order_mark(io::read_text(file));
    if (skipped != nullptr) {
      all = text::without_broken_lines(all, *skipped);
    }
  }
  return all;
}

// The lines of text files, with their ends, as the reference reads them too. sentencepiece wants them without.
std::vector<std::string> read_lines(const std::vector<std::string>& files, bool with_ends, std::int64_t* skipped) {
  std::vector<std::string> lines;
  for (const std::string& file : files) {
    const std::string text = text_of(file, skipped);
    std::size_t number = 1;
    for (std::size_t begin = 0; begin < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      std::string line = text.substr(begin, end - begin);
      text::check_line(line, file, number);
      if (!with_ends && line.ends_with('\n')) {
        line.pop_back();
      }
      lines.push_back(std::move(line));
      begin = end;
    }
  }
  return lines;
}

void train(const TokenizerTrainFlags& flags) {
  namespace fs = std::filesystem;
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  const bool pieces = flags.model == "unigram" || flags.model == "sentencepiece-bpe";
  std::int64_t skipped = 0;
  const std::vector<std::string> lines = read_lines(flags.files, !pieces, flags.skip_broken ? &skipped : nullptr);
  note_skipped_lines(skipped);
  const auto learned = [&] {
    if (flags.model == "bpe") {
      return text::train_byte_level_bpe(lines, flags.training);
    }
    if (flags.model == "wordpiece") {
      return text::train_wordpiece(lines, flags.training);
    }
    return text::train_sentencepiece(lines, flags.model == "unigram" ? "unigram" : "bpe", flags.training);
  };
  const text::Tokenizer tokenizer = learned();
  io::replace_folder(flags.output, [&](const fs::path& folder) { tokenizer.save(folder); });
  fmt::print("{}, {} tokens: {}\n", tokenizer.kind(), tokenizer.vocab_size(), flags.output);
}

CLI::App& add_action(CLI::App& command, const std::string& name, const std::string& help, TokenizerFlags& flags) {
  CLI::App& action = *command.add_subcommand(name, help);
  action
      .add_option("TOKENIZER", flags.tokenizer,
                  "Folder of a tokenizer, or its tokenizer.json, vocab.txt, .model or .spm")
      ->required();
  action.add_flag("--json", flags.json, "JSON instead of text");
  return action;
}

void add_input(CLI::App& action, TokenizerFlags& flags, const std::string& what) {
  action.add_option("--input", flags.input, "File with " + what + ", one a line; - for the standard input")
      ->type_name("FILE");
}

}  // namespace

void add_tokenizer(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("tokenizer", "Turn texts into a model's ids and back");
  command.require_subcommand(1);
  const auto flags = std::make_shared<TokenizerFlags>();

  CLI::App& encoding = add_action(command, "encode", "The ids of texts", *flags);
  encoding.add_option("TEXT", flags->words, "Texts; - for the lines of the standard input");
  add_input(encoding, *flags, "texts");
  encoding.add_flag("--json-lines", flags->lines_are_json, "The lines of --input are JSON strings");
  encoding.add_flag("--skip-broken", flags->skip_broken, "Leave out lines that are not UTF-8, and count them");
  encoding.add_flag("--show", flags->show, "The pieces in alternating colours, with their ids");
  encoding.add_flag("--no-special-tokens", flags->special_tokens, "Only the tokens of the text");
  encoding.add_option("--threads", flags->threads, "Threads")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  encoding.callback([flags] {
    check_usage(!flags->lines_are_json || !flags->input.empty(), "--json-lines has no effect without --input");
    check_usage(!flags->skip_broken || !flags->input.empty() || flags->words == std::vector<std::string>{"-"},
                "--skip-broken has no effect on texts that are given here: it is for the lines of --input");
    check_usage(!flags->show || !flags->json, "--show colours pieces, which --json does not print: give one of them");
    encode(*flags);
  });

  CLI::App& decoding = add_action(command, "decode", "The texts of ids", *flags);
  decoding.add_option("ID", flags->words, "Ids; - for the lines of the standard input");
  add_input(decoding, *flags, "ids");
  decoding.add_flag("--keep-special-tokens", flags->special_tokens, "Tokens such as [SEP] too");
  decoding.callback([flags] { decode(*flags); });

  CLI::App& about = add_action(command, "info", "The kind of a tokenizer, its size, its special tokens", *flags);
  about.callback([flags] { info(*flags); });

  CLI::App& training = *command.add_subcommand("train", "Learn a new tokenizer from text files, line by line");
  const auto train_flags = std::make_shared<TokenizerTrainFlags>();
  training.add_option("FILE", train_flags->files, "Text files")->required();
  training.add_option("--output", train_flags->output, "New folder")->required()->type_name("DIR");
  training
      .add_option("--model", train_flags->model,
                  "bpe (byte-level, GPT-2's), wordpiece (BERT's), unigram or sentencepiece-bpe")
      ->capture_default_str()
      ->check(CLI::IsMember({"bpe", "wordpiece", "unigram", "sentencepiece-bpe"}));
  training.add_option("--vocab-size", train_flags->training.vocab_size, "Tokens, special ones included")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, text::largest_id))
      ->type_name("N");
  const CLI::Option* const frequency = training
                                           .add_option("--min-frequency", train_flags->training.min_frequency,
                                                       "Least occurrences of a pair that is joined")
                                           ->capture_default_str()
                                           ->check(whole_number())
                                           ->type_name("N");
  training
      .add_option(
          "--special-tokens", train_flags->training.special_tokens,
          "Tokens such as <|endoftext|>; with unigram and sentencepiece-bpe control symbols, which are found in "
          "no text")
      ->type_name("TOKEN");
  training.add_flag("--skip-broken", train_flags->skip_broken, "Leave out lines that are not UTF-8, and count them");
  training.add_flag("--lowercase", train_flags->training.lowercase, "wordpiece: without capitals and accents");
  training.callback([train_flags, frequency] {
    const std::string& model = train_flags->model;
    const bool joins = model == "bpe" || model == "wordpiece";
    check_usage(joins || frequency->count() == 0, "--min-frequency has no effect with --model {}", model);
    check_usage(!train_flags->training.lowercase || model == "wordpiece", "--lowercase has no effect with --model {}",
                model);
    check_usage(
        std::ranges::find(train_flags->training.special_tokens, "") == train_flags->training.special_tokens.end(),
        "a special token is empty");
    train(*train_flags);
  });

  add_examples(command,
               {"vitrail tokenizer train book.txt --vocab-size 8000 --special-tokens \"<|endoftext|>\" --output book",
                "vitrail tokenizer encode gpt2 \"Hello, world!\" --show",
                "vitrail tokenizer encode gpt2 --input book.txt --json > tokens.jsonl",
                "vitrail tokenizer decode gpt2 15496 11 995 0"});
}

}  // namespace vitrail::cli
