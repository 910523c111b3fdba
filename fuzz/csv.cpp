// Any bytes as a table of images and labels beside two images: an Error, or labels of classes that there are.
#include "dataset.h"
#include "folder.h"
#include "memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("csv");
  static const bool ready = [] {
    for (const char* name : {"a.png", "b.png"}) {
      vitrail::io::write_png(folder.path() / name, vitrail::io::Image(2, 1));
    }
    return true;
  }();
  require(ready);
  const MemoryLimit limit;
  folder.write("input.csv", text_of(data, size));
  for (const char* split : {"", "train", "validation"}) {
    read_dataset(folder.path() / "input.csv", split);
  }
  return 0;
}
