#include "vitrail/train/run/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/run/digest.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_file = "train-state.safetensors";
constexpr int format_version = 1;

// Calls visit(name, field) for each counter.
template <class C, class Visitor>
void visit_counters(C& counters, Visitor&& visit) {
  visit("step", counters.step);
  visit("epoch", counters.epoch);
  visit("batch", counters.batch);
  visit("batches_per_epoch", counters.batches_per_epoch);
  visit("best_epoch", counters.best_epoch);
  visit("best_metric", counters.best_metric);
  visit("metrics_bytes", counters.metrics_bytes);
  visit("threads", counters.threads);
  visit("seconds", counters.seconds);
}

template <class Number>
void parse(const std::string& source, const std::map<std::string, std::string>& metadata, const std::string& name,
           Number& value) {
  const auto entry = metadata.find(name);
  check(entry != metadata.end(), "{} is not a training state: it has no '{}'", source, name);
  const char* end = entry->second.data() + entry->second.size();
  const auto result = std::from_chars(entry->second.data(), end, value);
  check(result.ec == std::errc() && result.ptr == end, "{}: '{}' is no number: '{}'", source, name, entry->second);
}

io::NamedTensors weights(const nn::Network& network) {
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : network.parameters.all()) {
    tensors.emplace_back(parameter.name, parameter.value);
  }
  return tensors;
}

}  // namespace

std::uint64_t checksum(const io::NamedTensors& tensors) {
  std::uint64_t sum = 0;  // a sum over the tensors, so that their order does not matter
  for (const auto& [name, tensor] : tensors) {
    std::uint64_t state = hash(name);
    for (const std::int64_t size : tensor.shape()) {
      state = mix(state, static_cast<std::uint64_t>(size));
    }
    const Tensor dense = tensor.contiguous();
    sum += digest(state, {dense.raw(), dense.bytes()});
  }
  return sum;
}

std::uint64_t weights_checksum(const nn::Network& network) { return checksum(weights(network)); }

io::NamedTensors with_prefix(const io::Safetensors& state, std::string_view prefix) {
  io::NamedTensors result;
  for (const std::string& name : state.names()) {
    if (name.starts_with(prefix)) {
      result.emplace_back(name.substr(prefix.size()), state.get(name));
    }
  }
  return result;
}

void keep_epoch(const fs::path& folder, const Task& task, const Counters& counters, std::int64_t count) {
  if (count == 0 || counters.epoch == 0 || counters.batch > 0) {
    return;
  }
  io::make_folder(folder);
  task.save(folder / fmt::format("{:04}", counters.epoch));
  std::vector<fs::path> kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.size() >= 4 && name.find_first_not_of("0123456789") == std::string::npos) {
      kept.push_back(entry.path());
    }
  }
  std::ranges::sort(kept, [](const fs::path& a, const fs::path& b) {
    return std::pair(a.native().size(), a) < std::pair(b.native().size(), b);
  });
  for (std::int64_t i = 0; i < std::ssize(kept) - count; ++i) {
    fs::remove_all(kept[static_cast<std::size_t>(i)]);
  }
}

void save_checkpoint(const fs::path& folder, const Task& task, const nn::Network& network, const Counters& counters,
                     const io::NamedTensors& learner) {
  io::NamedTensors state = learner;
  for (const auto& [name, tensor] : task.state()) {
    state.emplace_back(std::string(task_prefix) + name, tensor);
  }
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"version", fmt::format("{}", format_version)}};
  visit_counters(counters, [&](const char* name, auto value) { metadata[name] = fmt::format("{}", value); });
  metadata["weights_checksum"] = fmt::format("{}", weights_checksum(network));
  metadata["state_checksum"] = fmt::format("{}", checksum(state));
  io::replace_folder(folder, [&](const fs::path& temporary) {
    task.save(temporary);
    io::save_safetensors(temporary / state_file, state, metadata);
  });
}

TrainState load_train_state(const fs::path& folder, const nn::Network& network) {
  const fs::path path = folder / state_file;
  check(fs::exists(path), "'{}' holds no training state to go on from ({} is missing)", folder.string(), state_file);
  TrainState state{{}, io::Safetensors::open(path)};
  const std::string source = path.string();
  const auto& metadata = state.tensors.metadata();
  int version = 0;
  parse(source, metadata, "version", version);
  check(version == format_version, "{} has the format {}, but this program reads {}", source, version, format_version);
  visit_counters(state.counters, [&](const char* name, auto& value) { parse(source, metadata, name, value); });
  const Counters& c = state.counters;
  check(c.step >= 0 && c.epoch >= 0 && c.best_epoch >= 0 && c.batch >= 0 && c.batch <= c.batches_per_epoch,
        "{} is damaged: step {}, epoch {}, batch {} of {}", source, c.step, c.epoch, c.batch, c.batches_per_epoch);

  std::uint64_t expected = 0;
  io::NamedTensors tensors;
  for (const std::string& name : state.tensors.names()) {
    tensors.emplace_back(name, state.tensors.get(name));
  }
  parse(source, metadata, "state_checksum", expected);
  check(checksum(tensors) == expected, "{} is damaged: its tensors do not match its checksum", source);
  parse(source, metadata, "weights_checksum", expected);
  check(weights_checksum(network) == expected,
        "{} does not match the model beside it: its weights are damaged, or from another moment of the training",
        source);
  return state;
}

std::int64_t step_of_checkpoint(const fs::path& folder) {
  try {
    const auto metadata = io::Safetensors::open(folder / state_file).metadata();
    const auto step = metadata.find("step");
    return step == metadata.end() ? -1 : std::stoll(step->second);
  } catch (const std::exception&) {
    return -1;
  }
}

std::string identity_of_checkpoint(const fs::path& folder) {
  try {
    const auto metadata = io::Safetensors::open(folder / state_file).metadata();
    std::string identity;
    for (const auto& [name, value] : metadata) {
      identity += fmt::format("{}={}\n", name, value);
    }
    return identity;
  } catch (const std::exception&) {
    return "";
  }
}

void check_goes_on(const fs::path& folder, const Counters& saved, std::int64_t batches_per_epoch, std::int64_t epochs) {
  check(saved.batches_per_epoch == batches_per_epoch || saved.batch == 0,
        "the run '{}' stopped inside an epoch of {}, but now there are {}: the data or --batch-size changed",
        folder.string(), io::counted(saved.batches_per_epoch, "batches"), batches_per_epoch);
  const std::int64_t begun = saved.epoch + (saved.batch > 0 ? 1 : 0);
  check(begun <= epochs, "the run '{}' is in epoch {} already: it cannot end after {} (--epochs)", folder.string(),
        begun, epochs);
}

}  // namespace vitrail::train
