// Any bytes as a table of images and labels beside two images: an Error, or labels of classes that there are.
#include <cstdint>

#include "dataset.h"
#include "folder.h"
#include "memory_limit.h"
#include "target.h"
#include "two_images.h"

FUZZ_TARGET(csv)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("csv");
  static const bool ready = with_two_images(folder);
  require(ready);
  const MemoryLimit limit;
  folder.write("input.csv", text_of(data, size));
  for (const char* split : {"", "train", "validation"}) {
    read_dataset(folder.path() / "input.csv", split);
  }
  return 0;
}
