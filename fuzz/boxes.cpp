// Any bytes as boxes in COCO's and in Pascal VOC's layout, beside two images: an Error, or boxes of classes that there
// are, inside of their images.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "two_images.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/tensor/error.h"

namespace {

void read_boxes(const std::filesystem::path& source) {
  using namespace vitrail;
  try {
    const data::BoxedImages boxes = data::open_boxed_images(source);
    require(std::ssize(boxes.objects) == boxes.images->size() && boxes.ids.size() == boxes.objects.size());
    require(boxes.category_ids.size() == boxes.classes.size());
    for (const auto& objects : boxes.objects) {
      for (const data::BoxedObject& object : objects) {
        require(!object.box.empty() && object.label >= 0 && object.label < std::ssize(boxes.classes));
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(boxes)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("boxes");
  static const bool ready = with_two_images(folder);
  require(ready);
  const MemoryLimit limit;
  folder.write("input.json", text_of(data, size));
  read_boxes(folder.path() / "input.json");
  folder.write("a.xml", text_of(data, size));
  read_boxes(folder.path());
  return 0;
}
