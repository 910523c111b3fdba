// Any bytes as one of CIFAR's or MNIST's files, which one the first byte says: an Error, or images with labels.
#include <cstdint>

#include "dataset.h"
#include "folder.h"
#include "memory_limit.h"
#include "target.h"

namespace {

// The other one of a pair of idx files: two images of 2 by 1 pixels, and their labels.
constexpr std::string_view two_images("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x10\x20\x30\x40", 20);
constexpr std::string_view two_labels("\0\0\x08\x01\0\0\0\x02\0\x01", 10);

}  // namespace

FUZZ_TARGET(binary)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("binary");
  if (size == 0) {
    return 0;
  }
  const MemoryLimit limit;
  const std::string_view bytes = text_of(data + 1, size - 1);
  const char* images = "t10k-images-idx3-ubyte";
  const char* labels = "t10k-labels-idx1-ubyte";
  switch (data[0] % 4) {
    case 0:
      folder.write("test_batch.bin", bytes);  // CIFAR-10
      read_dataset(folder.path() / "test_batch.bin", "");
      break;
    case 1:
      folder.write("test.bin", bytes);  // CIFAR-100
      read_dataset(folder.path() / "test.bin", "");
      break;
    case 2:
      folder.write(images, bytes);
      folder.write(labels, two_labels);
      read_dataset(folder.path() / images, "");
      break;
    default:
      folder.write(images, two_images);
      folder.write(labels, bytes);
      read_dataset(folder.path() / images, "");
  }
  return 0;
}
