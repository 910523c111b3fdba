#include "vitrail/optim/state.h"

#include <map>

namespace vitrail::optim {

void copy_state(const char* owner, const io::NamedTensors& from, const io::NamedTensors& to) {
  const std::map<std::string, Tensor> given(from.begin(), from.end());
  std::map<std::string, Tensor> unknown = given;
  for (const auto& [name, tensor] : to) {
    const auto found = given.find(name);
    check(found != given.end(), "the state of the {} lacks '{}'", owner, name);
    const Tensor& source = found->second;
    check(source.shape() == tensor.shape() && source.dtype() == tensor.dtype(),
          "the state of the {}: '{}' must be {} {}, not {} {}", owner, name, tensor.shape(), name_of(tensor.dtype()),
          source.shape(), name_of(source.dtype()));
    unknown.erase(name);
  }
  check(unknown.empty(), "the state of the {} holds '{}', which the model does not have", owner,
        unknown.empty() ? "" : unknown.begin()->first);
  for (const auto& [name, tensor] : to) {
    tensor.copy_from(given.at(name));
  }
}

}  // namespace vitrail::optim
