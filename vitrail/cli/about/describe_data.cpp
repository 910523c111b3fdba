#include "vitrail/cli/about/describe_data.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/about/describe.h"
#include "vitrail/data/dataset.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/tasks/data_kinds.h"

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
  std::transform(classes.begin(), classes.begin() + shown, std::back_inserter(names), io::on_one_line);
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
  if (fs::is_directory(name, error)) {
    return !fs::exists(fs::path(name) / models::config_file, error) &&
           !fs::exists(fs::path(name) / "config.toml", error);
  }
  return io::is_file(name);
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
        json["classes"] = part.classes;
      }
      if (!part.notes.empty()) {
        json["notes"] = part.notes;
      }
      if (!part.error.empty()) {
        json["error"] = part.error;
      }
      parts.push_back(std::move(json));
    }
    kinds.push_back(
        {{"data", kind.what}, {"task", kind.task}, {"command", "vitrail " + kind.command}, {"parts", parts}});
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
    line("  learn by", "vitrail " + kind.command);
  }
}

}  // namespace vitrail::cli
