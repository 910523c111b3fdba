// Any bytes as captions of two images in COCO's layout, and as a table: an Error, or images with captions.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "two_images.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/tensor/error.h"

namespace {

void read_captions(const std::filesystem::path& source) {
  using namespace vitrail;
  try {
    const data::CaptionedImages read = data::open_captioned_images(source);
    require(std::ssize(read.texts) == read.images->size() && read.images->size() > 0);
    for (const auto& own : read.texts) {
      require(!own.empty());
    }
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(captions)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("captions");
  static const bool ready = with_two_images(folder);
  require(ready);
  const MemoryLimit limit;
  for (const char* name : {"captions.json", "captions.csv"}) {
    folder.write(name, text_of(data, size));
    read_captions(folder.path() / name);
  }
  return 0;
}
