#include "vitrail/train/task.h"

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
