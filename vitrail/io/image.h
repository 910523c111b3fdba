// Pictures in memory, and the codecs that read and write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vitrail::io {

// 8-bit RGB, rows from the top, three bytes a pixel.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]

  Image() = default;
  Image(std::int64_t w, std::int64_t h) : width(w), height(h), pixels(static_cast<std::size_t>(w * h * 3)) {}
  std::uint8_t* at(std::int64_t x, std::int64_t y) { return pixels.data() + (y * width + x) * 3; }
  const std::uint8_t* at(std::int64_t x, std::int64_t y) const { return pixels.data() + (y * width + x) * 3; }
};

// More pixels than this are taken for an attempt to exhaust memory: Pillow's limit (DecompressionBombError).
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr std::uint64_t max_pixels = 4'000'000;  // a fuzzer asks for too much memory all the time
#else
inline constexpr std::uint64_t max_pixels = 178'956'970;
#endif

// JPEG, PNG or WebP, told apart by their first bytes. Grayscale, palette, CMYK, alpha and 16-bit become RGB with the
// pixels of Pillow's Image.open(f).convert("RGB") after ImageOps.exif_transpose. Error says what is wrong; `name` is
// named in it.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name);
Image read_image(const std::filesystem::path& path);

std::vector<std::uint8_t> encode_png(const Image& image);
void write_png(const std::filesystem::path& path, const Image& image);  // atomically
bool is_image_name(const std::filesystem::path& path);                  // by extension: .jpg .jpeg .png .webp, any case

}  // namespace vitrail::io
