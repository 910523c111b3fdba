// Any text as a policy of --aa: an Error, or an augmentation that a small image survives.
#include "vitrail/data/auto_augment.h"

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(auto_augment)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  const MemoryLimit limit;
  try {
    data::ImageConfig config;
    config.width = config.height = 4;
    data::AugmentOptions options;
    options.aa = text_of(data, size);
    const data::Transform transform = data::train_transform(config, options);
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      require(transform.prepared(io::Image(5, 3), 0, epoch).pixels.size() == 48);
    }
  } catch (const Error&) {
  }
  return 0;
}
