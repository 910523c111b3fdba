#include "vitrail/cli/texts.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/say.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/corpus.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

bool is_text_model(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  if (models::is_sentence_folder(name) || models::names_text_model(name)) {
    return true;
  }
  if (!models::names_folder(name) && !fs::exists(name) && name.find('/') == std::string::npos) {
    models::find_architecture(name);
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

void refuse_image_flags(const ModelFlags& flags) {
  const bool of_pixels = fs::exists(fs::path(flags.name_or_folder()) / "preprocessor_config.json");
  check_usage(!flags.num_classes && !flags.img_size && !flags.prepares_images(),
              "'{}' {}: it takes no --num-classes, --img-size or other flags of images", flags.model,
              of_pixels ? "reads images as its folder says" : "is a model of texts");
}

std::string text_model_folder(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  check_trained(name, flags.model);
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

}  // namespace

std::vector<std::string> list_texts(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      const std::string all(std::istreambuf_iterator<char>(std::cin), {});
      text::check_corpus(all, "standard input");
      std::ranges::copy(text::lines_of(all), std::back_inserter(texts));
    } else if (io::is_file(argument)) {
      std::ranges::copy(text::lines_of(text::read_corpus(argument)), std::back_inserter(texts));
    } else {
      text::check_corpus(argument, "the command line");
      if (looks_like_file(argument)) {
        say("note: there is no file '{}': it is taken as a text\n", argument);
      }
      texts.push_back(argument);
    }
  }
  const std::size_t empty = std::erase_if(
      texts, [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; });
  check(!texts.empty(), "there are no texts");
  if (empty > 0) {
    say("note: {} left out\n", io::counted(static_cast<std::int64_t>(empty), "empty lines"));
  }
  return texts;
}

std::vector<text::LabelledText> list_texts_to_classify(const std::vector<std::string>& arguments) {
  std::vector<text::LabelledText> texts;
  for (const std::string& argument : arguments) {
    if (text::names_table(argument) && io::is_file(argument)) {
      std::ranges::copy(text::read_labelled_texts(argument, nullptr, text::Labels::optional),
                        std::back_inserter(texts));
    } else {
      for (std::string& text : list_texts({argument})) {
        texts.push_back({std::move(text), "", ""});
      }
    }
  }
  return texts;
}

std::vector<std::string> list_texts_to_tag(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts;
  for (const std::string& argument : arguments) {
    if (argument.ends_with(".conll") && io::is_file(argument)) {
      for (const text::TaggedSentence& sentence : text::read_tagged_sentences(argument)) {
        texts.push_back(fmt::format("{}", fmt::join(sentence.words, " ")));
      }
    } else {
      std::ranges::copy(list_texts({argument}), std::back_inserter(texts));
    }
  }
  return texts;
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
  for (const char* name : {"[UNK]", "<unk>"}) {
    const std::optional<std::int64_t> unknown = tokenizer.id_of(name);
    const auto count = unknown ? std::ranges::count(ids, *unknown) : 0;
    if (count > 0) {
      say("note: {}: {} of {} are {}: the tokenizer does not know what stands there\n", source, count,
          io::counted(std::ssize(ids), "tokens"), name);
    }
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
