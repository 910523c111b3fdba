// Any bytes as a file of torch.save: an Error, or tensors that lie inside it.
#include "vitrail/io/torch_file.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(torch_file)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  using namespace vitrail;
  const auto owner = std::make_shared<const std::vector<std::uint8_t>>(data, data + size);
  try {
    const io::StoredTensors file = io::parse_torch_file(*owner, owner, "input");
    for (const std::string& name : file.names()) {
      try {
        const Tensor tensor = file.get(name);
        require(tensor.shape() == file.shape(name));
        require(tensor.values().size() <= std::size_t{1} << 20);  // what small files may repeat
      } catch (const Error&) {                                    // a dtype that Tensor does not have
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
