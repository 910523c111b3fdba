// A data set that was read from any bytes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include "require.h"
#include "vitrail/data/dataset.h"
#include "vitrail/tensor/error.h"

// Opens `source`: an Error, or images that are whole or an Error each, of classes that there are.
inline void read_dataset(const std::filesystem::path& source, const std::string& split) {
  using namespace vitrail;
  try {
    data::DatasetOptions options;
    options.split = split;
    const auto images = data::open_dataset(source, options);
    require(images->size() > 0);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(images->size(), 64); ++i) {
      const std::int64_t label = images->label(i);
      require(label >= 0 && label < static_cast<std::int64_t>(images->classes().size()));
      try {
        const io::Image image = images->image(i);
        require(image.width > 0 && image.height > 0);
        require(static_cast<std::int64_t>(image.pixels.size()) == 3 * image.width * image.height);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}
