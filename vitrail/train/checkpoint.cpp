#include "vitrail/train/checkpoint.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/tensor/random.h"

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

// Eight bytes at a time, so that it costs little beside writing them.
std::uint64_t digest(std::uint64_t state, const std::byte* bytes, std::size_t size) {
  const auto take = [&](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15U;
    state ^= state >> 29;
  };
  std::uint64_t word = 0;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::memcpy(&word, bytes, 8);
    take(word);
  }
  word = size;
  std::memcpy(&word, bytes, size);
  take(word);
  return state;
}

io::NamedTensors weights(const models::Model& model) {
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    tensors.emplace_back(parameter.name, parameter.value);
  }
  return tensors;
}

}  // namespace

std::uint64_t checksum(const io::NamedTensors& tensors) {
  std::uint64_t sum = 0;  // of the tensors' own, so that their order does not count
  for (const auto& [name, tensor] : tensors) {
    std::uint64_t state = hash(name);
    for (const std::int64_t size : tensor.shape()) {
      state = mix(state, static_cast<std::uint64_t>(size));
    }
    const Tensor dense = tensor.contiguous();
    sum += digest(state, dense.raw(), dense.bytes());
  }
  return sum;
}

std::uint64_t weights_checksum(const models::Model& model) { return checksum(weights(model)); }

void save_checkpoint(const fs::path& folder, const models::Model& model, const Counters& counters,
                     const io::NamedTensors& state) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"version", fmt::format("{}", format_version)}};
  visit_counters(counters, [&](const char* name, auto value) { metadata[name] = fmt::format("{}", value); });
  metadata["weights_checksum"] = fmt::format("{}", weights_checksum(model));
  metadata["state_checksum"] = fmt::format("{}", checksum(state));
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::save_model(model, temporary);
    io::save_safetensors(temporary / state_file, state, metadata);
  });
}

TrainState load_train_state(const fs::path& folder, const models::Model& model) {
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
  check(weights_checksum(model) == expected,
        "{} does not match the model beside it: its weights are damaged, or from another moment of the training",
        source);
  return state;
}

}  // namespace vitrail::train
