#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "vitrail/io/codecs.h"

namespace vitrail::io {
namespace {

// Reads numbers of a TIFF file in its byte order; beyond the end of the file it returns nothing.
class TiffReader {
 public:
  TiffReader(std::span<const std::uint8_t> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::optional<std::uint32_t> number(std::uint64_t offset, int size) const {
    if (offset + static_cast<std::uint64_t>(size) > bytes_.size()) {
      return std::nullopt;
    }
    std::uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      const std::uint32_t byte = bytes_[offset + static_cast<std::uint64_t>(i)];
      value |= byte << (8 * (big_endian_ ? size - 1 - i : i));
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::string_view kExifHeader{"Exif\0\0", 6};

// Size in bytes of a TIFF type that can hold an orientation (BYTE, SHORT or LONG), or 0 for other types.
int size_of_type(std::uint32_t type) {
  switch (type) {
    case 1:
      return 1;
    case 3:
      return 2;
    case 4:
      return 4;
    default:
      return 0;
  }
}

int valid_orientation(std::uint32_t value) { return value >= 1 && value <= 8 ? static_cast<int>(value) : 0; }

}  // namespace

int exif_orientation(std::span<const std::uint8_t> exif) {
  while (exif.size() >= kExifHeader.size() && std::memcmp(exif.data(), kExifHeader.data(), kExifHeader.size()) == 0) {
    exif = exif.subspan(kExifHeader.size());
  }
  if (exif.size() < 8 || exif[0] != exif[1] || (exif[0] != 'I' && exif[0] != 'M')) {
    return 0;
  }
  const TiffReader tiff(exif, exif[0] == 'M');
  if (tiff.number(2, 2) != 42U) {
    return 0;
  }
  const std::uint64_t directory = *tiff.number(4, 4);
  const std::uint32_t entries = tiff.number(directory, 2).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + std::uint64_t{12} * i;
    if (tiff.number(entry, 2) != kOrientationTag) {
      continue;
    }
    const int size = size_of_type(tiff.number(entry + 2, 2).value_or(0));
    if (size == 0 || tiff.number(entry + 4, 4) != 1U) {
      return 0;
    }
    return valid_orientation(tiff.number(entry + 8, size).value_or(0));
  }
  return 0;
}

int xmp_orientation(std::string_view xmp) {
  constexpr std::string_view key = "tiff:Orientation";
  for (std::size_t at = xmp.find(key); at != std::string_view::npos; at = xmp.find(key, at + 1)) {
    std::string_view rest = xmp.substr(at + key.size());
    const std::size_t skip = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (skip > 0 && rest.size() > skip && rest[skip] >= '0' && rest[skip] <= '9') {
      return valid_orientation(static_cast<std::uint32_t>(rest[skip] - '0'));
    }
  }
  return 0;
}

Image apply_orientation(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) {
    return image;
  }
  // To find the source of pixel (x, y) of the result, swap x and y first, then mirror them in the source image.
  const bool swap = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result(swap ? image.height : image.width, swap ? image.width : image.height);
  for (std::int64_t y = 0; y < result.height; ++y) {
    for (std::int64_t x = 0; x < result.width; ++x) {
      std::int64_t from_x = swap ? y : x;
      std::int64_t from_y = swap ? x : y;
      from_x = mirror_x ? image.width - 1 - from_x : from_x;
      from_y = mirror_y ? image.height - 1 - from_y : from_y;
      std::copy_n(std::as_const(image).at(from_x, from_y), 3, result.at(x, y));
    }
  }
  return result;
}

}  // namespace vitrail::io
