#include "vitrail/models/base/shipped.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <system_error>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view shipped_prefix = "vitrail/";
constexpr const char* card_file = "card.json";

// The folder beside the program, wherever it was moved together with its share.
fs::path beside_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : (program.parent_path() / VITRAIL_SHARE_FROM_BIN / "weights").lexically_normal();
}

// Names and folders of what is there; of two with one name, that of the folder that is looked into first.
std::map<std::string, fs::path> found() {
  std::map<std::string, fs::path> result;
  for (const fs::path& folder : shipped_folders()) {
    std::error_code error;  // a folder that is not there has none
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (fs::exists(entry.path() / card_file, error)) {
        result.try_emplace(std::string(shipped_prefix) + entry.path().filename().string(), entry.path());
      }
    }
  }
  return result;
}

}  // namespace

ModelCard read_card(const fs::path& path) {
  const nlohmann::json json = io::read_json(path);
  io::Fields f(json, path.string());
  const auto text = [&](std::string_view key) {
    std::string value = f.get<std::string>(key);
    check(!value.empty(), "{}: '{}' is empty", path.string(), key);
    return value;
  };
  ModelCard card;
  card.name = text("name");
  card.what = text("what");
  card.data = text("data");
  card.data_licence = text("data_licence");
  card.licence = text("licence");
  card.command = text("command");
  card.seed = f.get<std::int64_t>("seed");
  card.machine = text("machine");
  card.hours = f.get<double>("hours", {0, 1e6});
  card.date = text("date");
  card.accuracy = text("accuracy");
  card.measured_by = text("measured_by");
  card.limits = text("limits");
  card.sha256 = text("sha256");
  f.finish();
  return card;
}

bool is_shipped_name(std::string_view name) { return name.starts_with(shipped_prefix); }

std::vector<fs::path> shipped_folders() {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    if (!folder.empty() && std::ranges::find(folders, folder) == folders.end()) {
      folders.push_back(folder);
    }
  };
  if (const char* own = std::getenv("VITRAIL_WEIGHTS"); own != nullptr) {
    add(own);
  }
  add(beside_program());
  add(fs::path(VITRAIL_SHARE) / "weights");
  return folders;
}

std::vector<ShippedModel> shipped_models() {
  std::vector<ShippedModel> result;
  for (const auto& [name, folder] : found()) {
    ShippedModel& model = result.emplace_back(ShippedModel{folder, read_card(folder / card_file), 0});
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        model.bytes += static_cast<std::int64_t>(entry.file_size());
      }
    }
  }
  return result;
}

bool has_shipped(std::string_view name) { return found().contains(std::string(name)); }

fs::path shipped_folder(std::string_view name) {
  const std::map<std::string, fs::path> all = found();
  const auto it = all.find(std::string(name));
  if (it == all.end()) {
    std::vector<std::string> known;
    known.reserve(all.size());
    for (const auto& [one, folder] : all) {
      known.push_back(one);
    }
    const std::string near = io::did_you_mean(name, known);
    fail("there is no checkpoint '{}'{}", name,
         !near.empty()   ? near
         : known.empty() ? ": none came with this program, and VITRAIL_WEIGHTS names no folder of them"
                         : " (vitrail models --shipped lists those that there are)");
  }
  return it->second;
}

fs::path shipped_or(const fs::path& path) {
  return is_shipped_name(path.native()) ? shipped_folder(path.native()) : path;
}

}  // namespace vitrail::models
