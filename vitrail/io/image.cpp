#include "vitrail/io/image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "vitrail/io/codecs.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view magic, std::size_t offset = 0) {
  return bytes.size() >= offset + magic.size() && std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

Decoded decode(std::span<const std::uint8_t> bytes, const std::string& name) {
  check(!bytes.empty(), "{}: the file is empty", name);
  if (starts_with(bytes, "\xff\xd8\xff")) {
    return decode_jpeg(bytes, name);
  }
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) {
    return decode_png(bytes, name);
  }
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) {
    return decode_webp(bytes, name);
  }
  fail("{}: not a JPEG, PNG or WebP image", name);
}

// What `make` makes of the image `name`, or an Error where there is no memory for it.
template <class Make>
auto within_memory(const std::string& name, Make make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    fail("{}: the image is larger than memory allows", name);
  }
}

}  // namespace

void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name) {
  check(width > 0 && height > 0, "{}: an image of {} x {} pixels has nothing in it", name, width, height);
  check(width <= max_pixels / height, "{}: an image of {} x {} pixels is larger than the limit of {} pixels", name,
        width, height, max_pixels);
}

Decoded decode_as_stored(std::span<const std::uint8_t> bytes, const std::string& name) {
  return within_memory(name, [&] { return decode(bytes, name); });
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  return within_memory(name, [&] {
    Decoded decoded = decode(bytes, name);
    return apply_orientation(std::move(decoded.image), decoded.orientation);
  });
}

Image read_image(const std::filesystem::path& path) { return decode_image(read_bytes(path), path.string()); }

bool is_image_name(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 4> extensions = {".jpg", ".jpeg", ".png", ".webp"};
  const std::string extension = lower_case(path.extension().native());
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

}  // namespace vitrail::io
