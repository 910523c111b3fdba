#include "vitrail/train/task.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/optim/state.h"

namespace vitrail::train {

std::string left_out_text(const std::vector<std::string>& broken) {
  return fmt::format("left out {}: {}{}", io::counted(std::ssize(broken), "broken images"), broken.front(),
                     broken.size() > 1 ? " …" : "");
}

void Work::say_left_out(const std::vector<std::string>& broken) const {
  if (!broken.empty()) {
    say(left_out_text(broken));
  }
}

void note_same_data(std::vector<std::string>& lines, std::string_view items, const std::vector<std::string>& learned,
                    const std::vector<std::string>& judging) {
  const auto is_same = [](const std::string& a, const std::string& b) {
    std::error_code not_there;
    return a == b || std::filesystem::equivalent(a, b, not_there);
  };
  if (!judging.front().empty() && std::ranges::equal(learned, judging, is_same)) {
    lines.push_back(
        fmt::format("the {0} to evaluate on are those to train on: their figures say nothing of other {0}", items));
  }
}

void note_unfilled(std::vector<std::string>& lines, std::string_view items, std::int64_t size,
                   std::int64_t batch_size) {
  const std::int64_t rest = size % batch_size;
  if (rest > 0 && rest < size && rest * 100 >= size) {
    lines.push_back(fmt::format("each epoch leaves out {} of the {} training {}, which do not fill a batch of {}", rest,
                                size, items, batch_size));
  }
}

void note_shared_images(std::vector<std::string>& lines, const data::Dataset& learned, const data::Dataset* judging) {
  std::unordered_map<std::string, std::filesystem::path> folders;  // where links lead
  const auto hash_of = [&folders](const data::Dataset& images, std::int64_t i) -> std::optional<std::size_t> {
    const std::filesystem::path file = images.file(i);
    if (!io::is_image_name(file)) {
      return std::nullopt;
    }
    const auto [known, is_new] = folders.try_emplace(file.parent_path().string());
    if (is_new) {
      const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
      std::error_code unreadable;
      known->second = std::filesystem::weakly_canonical(folder, unreadable);
      known->second = unreadable ? folder.lexically_normal() : known->second;
    }
    return std::hash<std::string>()((known->second / file.filename()).string());
  };
  std::unordered_set<std::size_t> files;
  for (std::int64_t i = 0; judging != nullptr && i < learned.size(); ++i) {
    if (const auto file = hash_of(learned, i)) {
      files.insert(*file);
    }
  }
  std::int64_t shared = 0;
  for (std::int64_t i = 0; !files.empty() && i < judging->size(); ++i) {
    const auto file = hash_of(*judging, i);
    shared += file && files.contains(*file) ? 1 : 0;
  }
  if (shared > 0) {
    lines.push_back(fmt::format("{} of the {} to evaluate on {} trained on too", shared,
                                io::counted(judging->size(), "images"), shared == 1 ? "is" : "are"));
  }
}

void add_note(std::vector<std::string>& lines, const std::string& note) {
  if (!note.empty()) {
    lines.push_back("note: " + note);
  }
}

void validate(const TaskOptions& options) {
  const std::unique_ptr<TaskOptions> copy = options.clone();
  OptionList list;
  copy->describe(list);
  list.validate();
  options.validate();
}

namespace {

constexpr const char* parameters_file = "model.safetensors";

io::NamedTensors parameters_of(const nn::Network& network) {
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : network.parameters.all()) {
    tensors.emplace_back(parameter.name, parameter.value.detach());
  }
  return tensors;
}

}  // namespace

void save_parameters(const nn::Network& network, const std::filesystem::path& folder) {
  io::replace_folder(folder, [&](const std::filesystem::path& temporary) {
    io::save_safetensors(temporary / parameters_file, parameters_of(network));
  });
}

void load_parameters(nn::Network& network, const std::filesystem::path& folder) {
  const io::Safetensors file = io::Safetensors::open(folder / parameters_file);
  io::NamedTensors values;
  for (const std::string& name : file.names()) {
    values.emplace_back(name, file.get(name));
  }
  optim::copy_state(file.source().c_str(), values, parameters_of(network));
  for (const nn::Parameter& parameter : network.parameters.all()) {
    parameter.value.touch();
  }
}

}  // namespace vitrail::train
