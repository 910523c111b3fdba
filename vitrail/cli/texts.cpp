#include "vitrail/cli/texts.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/say.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/model.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

bool is_text_model(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  if (models::is_sentence_folder(name) || models::names_text_model(name)) {
    return true;
  }
  if (!models::names_folder(name) && !fs::exists(name)) {
    check(name.find('/') == std::string::npos, "there is no model folder '{}'", flags.model);
    models::check_architecture(name);
  }
  return false;
}

void check_trained(const fs::path& folder, const std::string& given) {
  if (!fs::is_directory(folder)) {
    check(!models::names_text_model(given),
          "'{}' is the name of a model, whose weights are random: name a folder with trained ones", given);
    fail("there is no model folder '{}'", given);
  }
}

void check_trained_on_texts(const fs::path& folder, const std::string& given) {
  check_trained(folder, given);
  const models::ModelKind kind = models::kind_of(folder.string());
  check(kind == models::ModelKind::texts, "'{}' is no model of texts: it {}; {}", given,
        models::words_of(kind).is_or_does, models::words_of(kind).use);
}

void save_beside_files_of(const fs::path& source, const models::TextModel& model, const fs::path& output) {
  io::replace_folder(output, [&](const fs::path& temporary) {
    for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
      const std::string name = entry.path().filename().string();
      const bool weights = name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".index.json");
      if (!weights && name != models::config_file) {
        fs::copy(entry.path(), temporary / name, fs::copy_options::recursive);
      }
    }
    models::write_text_model(model, temporary);
  });
}

text::Tokenizer open_tokenizer(const fs::path& folder, std::int64_t vocab_size) {
  text::Tokenizer tokenizer = text::load_tokenizer(folder);
  models::check_vocabulary(text::ordinary_tokens(tokenizer), vocab_size, folder.string());
  return tokenizer;
}

void refuse_image_flags(const ModelFlags& flags) {
  const bool of_pixels = fs::exists(fs::path(flags.name_or_folder()) / "preprocessor_config.json");
  check_usage(!flags.num_classes && !flags.img_size && !flags.prepares_images(),
              "'{}' {}: it takes no --num-classes, --img-size or other flags of images", flags.model,
              of_pixels ? "reads images as its folder says" : "is a model of texts");
}

std::string text_model_folder(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  check_trained_on_texts(name, flags.model);
  check_usage(flags.kwargs.empty(), "'{}' is a model of texts: it takes no --model-kwargs", flags.model);
  refuse_image_flags(flags);
  return name;
}

namespace {

// Whether a word was probably meant to name a file: it has no spaces, but folders or an ending.
bool looks_like_file(const std::string& word) {
  const std::size_t dot = word.rfind('.');
  const bool has_ending = dot != std::string::npos && dot > 0 && dot + 1 < word.size() && word.size() - dot <= 6;
  return word.find_first_of(" \t\n") == std::string::npos && (has_ending || word.find('/') != std::string::npos);
}

// What is left out of the texts that are listed.
struct LeftOut {
  bool skip_broken = false;
  std::int64_t empty = 0;
  std::int64_t broken = 0;

  std::int64_t* skipped() { return skip_broken ? &broken : nullptr; }
};

// The texts that an argument names or is, without those that are left out.
std::vector<std::string> texts_of(const std::string& argument, LeftOut& left_out) {
  std::vector<std::string> texts;
  if (argument == "-") {
    std::string all = io::read_standard_input();
    if (left_out.skip_broken) {
      all = text::without_broken_lines(all, left_out.broken);
    }
    text::check_corpus(all, "standard input");
    texts = io::lines_of(all);
  } else if (io::is_file(argument)) {
    texts = io::lines_of(text::read_corpus(argument, left_out.skipped()));
  } else {
    text::check_corpus(argument, "the command line");
    std::error_code error;
    if (fs::is_directory(argument, error)) {
      say("note: '{}' is a folder: it is taken as a text\n", argument);
    } else if (looks_like_file(argument)) {
      say("note: there is no file '{}': it is taken as a text\n", argument);
    }
    texts = {argument};
  }
  left_out.empty += static_cast<std::int64_t>(std::erase_if(
      texts, [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }));
  return texts;
}

// Throws Error if there are no texts, and says how many were left out.
void check_any(std::size_t texts, const LeftOut& left_out) {
  note_skipped_lines(left_out.broken);
  check(texts > 0, "there are no texts");
  if (left_out.empty > 0) {
    say("note: {} left out\n", io::counted(left_out.empty, "empty lines"));
  }
}

}  // namespace

std::vector<std::string> list_texts(const std::vector<std::string>& arguments, bool skip_broken) {
  std::vector<std::string> texts;
  LeftOut left_out{skip_broken};
  for (const std::string& argument : arguments) {
    std::ranges::copy(texts_of(argument, left_out), std::back_inserter(texts));
  }
  check_any(texts.size(), left_out);
  return texts;
}

std::vector<text::LabelledText> list_texts_to_classify(const std::vector<std::string>& arguments, bool skip_broken) {
  std::vector<text::LabelledText> texts;
  LeftOut left_out{skip_broken};
  for (const std::string& argument : arguments) {
    if (text::names_table(argument) && io::is_file(argument)) {
      std::ranges::copy(text::read_labelled_texts(argument, left_out.skipped(), text::Labels::optional),
                        std::back_inserter(texts));
    } else {
      for (std::string& text : texts_of(argument, left_out)) {
        texts.push_back({std::move(text), "", ""});
      }
    }
  }
  check_any(texts.size(), left_out);
  return texts;
}

namespace {

// The sentences of a file of words with labels, or nothing if it is another file: if not half of the labels, as they
// would be, are among `labels`.
std::vector<text::TaggedSentence> tagged_sentences_of(const std::string& file, std::span<const std::string> labels,
                                                      std::int64_t* skipped) {
  if (!io::is_file(file)) {
    return {};
  }
  if (file.ends_with(".conll") || text::is_conll_u(file)) {  // the latter are refused
    return text::read_tagged_sentences(file, skipped);
  }
  std::vector<text::TaggedSentence> found;
  std::int64_t broken = 0;
  try {
    found = text::read_tagged_sentences(file, skipped != nullptr ? &broken : nullptr);
  } catch (const Error&) {  // the lines are texts
    return {};
  }
  std::size_t words = 0;
  std::vector<std::string> unknown;
  for (const text::TaggedSentence& sentence : found) {
    words += sentence.labels.size();
    std::ranges::copy_if(sentence.labels, std::back_inserter(unknown),
                         [&](const std::string& label) { return std::ranges::find(labels, label) == labels.end(); });
  }
  if (2 * unknown.size() > words) {
    if (words > 1) {
      say("note: {}: each line is taken as a text: were they words with labels, '{}' would be no label of the model\n",
          file, unknown.front());
    }
    return {};
  }
  if (skipped != nullptr) {
    *skipped += broken;
  }
  return found;
}

}  // namespace

std::vector<std::string> list_texts_to_tag(const std::vector<std::string>& arguments,
                                           std::span<const std::string> labels, bool skip_broken) {
  std::vector<std::string> texts;
  LeftOut left_out{skip_broken};
  for (const std::string& argument : arguments) {
    const std::vector<text::TaggedSentence> tagged = tagged_sentences_of(argument, labels, left_out.skipped());
    for (const text::TaggedSentence& sentence : tagged) {
      texts.push_back(fmt::format("{}", fmt::join(sentence.words, " ")));
    }
    if (tagged.empty()) {
      std::ranges::copy(texts_of(argument, left_out), std::back_inserter(texts));
    }
  }
  check_any(texts.size(), left_out);
  return texts;
}

void note_skipped_lines(std::int64_t skipped) {
  if (skipped > 0) {
    say_note(train::skipped_summary(skipped));
  }
}

void as_generation_usage(const std::function<void()>& read, const std::map<std::string, std::string>& fields) {
  try {
    read();
  } catch (const Error& error) {
    std::string words;
    std::istringstream message(error.what());
    for (std::string word; message >> word;) {
      const auto named = fields.find(word);
      const bool is_field = word.find('_') != std::string::npos || word == "temperature";
      words += (words.empty() ? "" : " ") + (named != fields.end() ? named->second
                                             : is_field ? "--" + CLI::detail::find_and_replace(word, "_", "-")
                                                        : word);
    }
    fail_usage(words);
  }
}

void say_generation_config(const std::string& source, std::vector<std::string> said,
                           const std::vector<std::pair<std::string, bool>>& replaced) {
  std::erase_if(said, [&](const std::string& words) {
    return std::ranges::any_of(replaced,
                               [&](const auto& field) { return field.second && words.starts_with(field.first + " "); });
  });
  if (!said.empty()) {
    say("{}: {}\n", source, fmt::join(said, ", "));
  }
}

void add_seed_flag(CLI::App& command, std::optional<std::uint64_t>& seed) {
  command.add_option("--seed", seed, "Of the draws, if the model's generation_config.json has do_sample (default: 0)")
      ->check(at_least(0))
      ->type_name("N")
      ->group("Search");
}

void note_idle(const std::vector<std::pair<const char*, bool>>& given, const char* partner) {
  std::vector<std::string> names;
  for (const auto& [name, is_given] : given) {
    if (is_given) {
      names.emplace_back(name);
    }
  }
  if (!names.empty()) {
    say("note: without {}, {} changes nothing\n", partner, fmt::join(names, ", "));
  }
}

void note_unknown(const text::Tokenizer& tokenizer, std::span<const std::int64_t> ids, const std::string& source) {
  text::UnknownTokens unknown(tokenizer);
  unknown.add(ids);
  say_note(unknown.note(source));
}

void note_unknown(const text::Tokenizer& tokenizer, std::span<const std::string> texts) {
  text::UnknownTokens unknown(tokenizer);
  for (const text::Encoding& encoding : tokenizer.encode_batch(texts, true, kernels::threads())) {
    unknown.add(encoding.ids);
  }
  say_note(unknown.note("the texts"));
}

void note_unread_words(const text::Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::vector<std::string> unread;
  for (const std::string& text : texts) {
    for (const auto& words : {text::unknown_words(tokenizer, text), text::spelt_words(tokenizer, text)}) {
      for (const std::string& word : words) {
        if (std::ranges::find(unread, word) == unread.end()) {
          unread.push_back(word);
        }
      }
    }
  }
  if (!unread.empty()) {
    say_note(fmt::format("the tokenizer has no pieces for {}, only single characters: the model has hardly read {}",
                         io::quoted_list(unread, "and"), unread.size() == 1 ? "it" : "them"));
  }
}

CLI::Option* add_batch_tokens_flag(CLI::App& command, std::optional<std::int64_t>& batch_tokens) {
  return command
      .add_option("--batch-tokens", batch_tokens,
                  "In place of --batch-size, tokens a batch of texts, which is not padded")
      ->check(at_least(1))
      ->type_name("N");
}

std::string csv_field(const std::string& value) {
  return value.find_first_of(",\"\r\n") == std::string::npos
             ? value
             : "\"" + CLI::detail::find_and_replace(value, "\"", "\"\"") + "\"";
}

}  // namespace vitrail::cli
