// The decoders behind decode_image(). Not for use outside vitrail/io.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vitrail/io/image.h"

namespace vitrail::io {

// A picture as it is stored, with the EXIF orientation (1 … 8) in which it wants to be shown.
struct Decoded {
  Image image;
  int orientation = 1;
};

Decoded decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name);
Decoded decode_png(std::span<const std::uint8_t> bytes, const std::string& name);
Decoded decode_webp(std::span<const std::uint8_t> bytes, const std::string& name);

// Error unless both sides are positive and their product is at most max_pixels.
void check_picture_size(std::uint64_t width, std::uint64_t height, const std::string& name);

// The orientation (1 … 8) that EXIF data tell, or 0 if they tell none. EXIF is a TIFF file, with or without
// "Exif\0\0" in front; broken data tell none.
int exif_orientation(std::span<const std::uint8_t> exif);
// The same of an XMP packet: its tiff:Orientation. Pillow asks it where EXIF tells none.
int xmp_orientation(std::string_view xmp);

// The picture turned and mirrored so that orientation 1 shows it as `orientation` showed the original.
Image apply_orientation(Image image, int orientation);

}  // namespace vitrail::io
