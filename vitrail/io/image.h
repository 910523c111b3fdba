/// \file
/// Images in memory, and the codecs that read and write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vitrail::io {

/// An 8-bit RGB image: rows from the top, three bytes per pixel.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]

  Image() = default;
  Image(std::int64_t w, std::int64_t h) : width(w), height(h), pixels(static_cast<std::size_t>(w * h * 3)) {}
  /// The three bytes of the pixel in column x of row y.
  std::uint8_t* at(std::int64_t x, std::int64_t y) { return pixels.data() + (y * width + x) * 3; }
  const std::uint8_t* at(std::int64_t x, std::int64_t y) const { return pixels.data() + (y * width + x) * 3; }
};

/// Images of more pixels than this are refused as an attempt to exhaust memory. The limit is Pillow's
/// (DecompressionBombError).
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr std::uint64_t max_pixels = 4'000'000;  ///< smaller, since a fuzzer asks for too much memory all the
                                                        ///< time
#else
inline constexpr std::uint64_t max_pixels = 178'956'970;
#endif

/// Decodes a JPEG, PNG or WebP image; the format is recognized by the first bytes. Grayscale, palette, CMYK, alpha and
/// 16-bit images become RGB with the pixels of Pillow's `Image.open(f).convert("RGB")` after `ImageOps.exif_transpose`.
/// Throws Error, which names `name` and says what is wrong.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name);
/// Reads and decodes an image file, as decode_image().
Image read_image(const std::filesystem::path& path);

/// The image as a PNG file in memory. Throws Error if it has no pixels.
std::vector<std::uint8_t> encode_png(const Image& image);
void write_png(const std::filesystem::path& path, const Image& image);  ///< atomically, as write_atomically()
bool is_image_name(const std::filesystem::path& path);  ///< judged by the extension: .jpg .jpeg .png .webp, in any case

}  // namespace vitrail::io
