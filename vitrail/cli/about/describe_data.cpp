#include "vitrail/cli/about/describe_data.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/about/describe.h"
#include "vitrail/data/dataset.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/sources/data_kinds.h"
#include "vitrail/train/sources/text_data_kinds.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

std::vector<train::DataOfKind> data_in(const std::string& source) {
  try {
    return train::data_in(source);
  } catch (const Error& error) {
    fail("'{}' is neither a model folder, which has a config.json, nor data: {}", source, error.what());
  }
}

// "10 classes: airplane, automobile, …"
std::string classes_text(const std::vector<std::string>& classes, std::string_view task) {
  constexpr std::ptrdiff_t most = 12;
  const std::ptrdiff_t shown = std::min(std::ssize(classes), most);
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(shown));
  std::transform(classes.begin(), classes.begin() + shown, std::back_inserter(names), [](const std::string& name) {
    const bool plain = name.find(',') == std::string::npos && io::trimmed(name) == name;
    return plain ? io::on_one_line(name) : fmt::format("'{}'", io::on_one_line(name));
  });
  return fmt::format("{}: {}{}", io::counted(std::ssize(classes), task == "vqa" ? "answers" : "classes"),
                     fmt::join(names, ", "), std::ssize(classes) > most ? ", …" : "");
}

std::string part_text(const train::PartOfData& part, std::string_view task) {
  if (!part.error.empty()) {
    return fmt::format("cannot be read: {}", part.error);
  }
  std::vector<std::string> words;
  for (const auto& [things, count] : part.counts) {
    words.push_back(io::counted(count, things));
  }
  if (!part.classes.empty()) {
    words.push_back(classes_text(part.classes, task));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

bool names_data(const std::string& name) {
  if (!data::is_one_path(name)) {
    return true;
  }
  std::error_code error;
  if (!fs::exists(name, error)) {  // the name of a model, or data that are not there
    return data::holds_images(name) || train::is_file_of_texts(name);
  }
  if (fs::is_directory(name, error)) {
    return !fs::exists(fs::path(name) / models::config_file, error) &&
           !fs::exists(fs::path(name) / "config.toml", error);
  }
  // A file may be called like a model.
  return !models::names_text_model(name) &&
         std::ranges::find(models::architectures(), name, &models::Architecture::name) == models::architectures().end();
}

nlohmann::ordered_json describe_data(const std::string& source) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (const train::DataOfKind& kind : data_in(source)) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const train::PartOfData& part : kind.parts) {
      nlohmann::ordered_json json = {{"part", part.name}};
      for (const auto& [things, count] : part.counts) {
        json[things] = count;
      }
      if (!part.classes.empty()) {
        json[kind.task == "vqa" ? "answers" : "classes"] = part.classes;
      }
      if (!part.notes.empty()) {
        json["notes"] = part.notes;
      }
      if (!part.error.empty()) {
        json["error"] = part.error;
      }
      parts.push_back(std::move(json));
    }
    nlohmann::ordered_json told = {{"data", kind.what}, {"task", kind.task}, {"parts", std::move(parts)}};
    if (!kind.command.empty()) {
      told["command"] = "vitrail " + kind.command;
    }
    kinds.push_back(std::move(told));
  }
  return {{"source", source}, {"kinds", kinds}};
}

void print_data(const std::string& source) {
  const std::vector<train::DataOfKind> kinds = data_in(source);
  line("data", source);
  for (const train::DataOfKind& kind : kinds) {
    fmt::print("\n{}\n", io::capitalized(kind.what));
    std::vector<std::string> notes;
    for (const train::PartOfData& part : kind.parts) {
      line("  " + (part.name.empty() ? "all" : io::on_one_line(part.name)), part_text(part, kind.task));
      for (const std::string& note : part.notes) {
        if (std::ranges::find(notes, note) == notes.end()) {
          notes.push_back(note);
        }
      }
    }
    for (const std::string& note : notes) {
      line("  note", note);
    }
    if (!kind.command.empty()) {
      line("  learn by", "vitrail " + kind.command);
    }
  }
}

}  // namespace vitrail::cli
