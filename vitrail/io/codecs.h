/// \file
/// The decoders behind decode_image(). They are not for use outside of vitrail/io.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vitrail/io/image.h"

namespace vitrail::io {

/// An image as it is stored, and the EXIF orientation (1 … 8) in which it is meant to be shown.
struct Decoded {
  Image image;
  int orientation = 1;
};

// Each decodes one format. `name` stands for the file in errors; broken, truncated and too large images throw Error.

Decoded decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name);
Decoded decode_png(std::span<const std::uint8_t> bytes, const std::string& name);
Decoded decode_webp(std::span<const std::uint8_t> bytes, const std::string& name);

/// Decodes any of them, recognized by the first bytes.
Decoded decode_as_stored(std::span<const std::uint8_t> bytes, const std::string& name);

/// Throws Error unless both sides are positive and their product is at most max_pixels.
void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name);

/// The orientation (1 … 8) that EXIF data state, or 0 if they state none. EXIF data are a TIFF file, with or without
/// `Exif\0\0` in front; malformed data count as stating none.
int exif_orientation(std::span<const std::uint8_t> exif);
/// The orientation (1 … 8) that an XMP packet states as `tiff:Orientation`, or 0 if it states none. Pillow asks for it
/// where EXIF data state none.
int xmp_orientation(std::string_view xmp);

/// Rotates and mirrors an image that is stored in the given EXIF orientation, so that the result is upright
/// (orientation 1).
Image apply_orientation(Image image, int orientation);

}  // namespace vitrail::io
