#include <algorithm>
#include <charconv>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "vitrail/io/codecs.h"
#include "vitrail/io/file.h"
#include "vitrail/io/gray_png.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

// The state of libpng's callbacks. libpng reports errors by a call that must not return: it jumps back into guarded().
// No object with a destructor may live in the stack frames that are jumped over.
struct PngState {
  std::span<const std::uint8_t> input;
  std::vector<std::uint8_t> output;
  std::jmp_buf jump = {};
  char message[128] = {};

  template <class Step>
  [[gnu::noinline]] bool guarded(Step step) {
    if (setjmp(jump) != 0) {  // NOLINT: libpng's way of reporting errors
      return false;
    }
    step();
    return true;
  }
};

void on_error(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof(state->message) - 1);
  std::longjmp(state->jump, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep data, std::size_t size) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (size > state->input.size()) {
    png_error(png, "the file is truncated");
  }
  std::memcpy(data, state->input.data(), size);
  state->input = state->input.subspan(size);
}

void on_write(png_structp png, png_bytep data, std::size_t size) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  bool failed = false;
  try {
    state->output.insert(state->output.end(), data, data + size);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  if (failed) {
    png_error(png, "out of memory");
  }
}

// The file up to the first chunk, other than IDAT, whose length reaches beyond the end of the file. libpng would take
// as much memory as the chunk claims, up to 2 GB, before it finds that the bytes are missing.
std::span<const std::uint8_t> whole_chunks(std::span<const std::uint8_t> bytes) {
  std::size_t at = 8;
  while (bytes.size() - at >= 8) {
    const std::size_t length = png_get_uint_32(bytes.data() + at);
    const bool pixels = std::memcmp(bytes.data() + at + 4, "IDAT", 4) == 0;
    if (length + 12 > bytes.size() - at) {
      return pixels ? bytes : bytes.first(at);
    }
    at += length + 12;
  }
  return bytes;
}

class PngReader {
 public:
  explicit PngReader(PngState& state)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning)),
        info(png != nullptr ? png_create_info_struct(png) : nullptr) {
    if (info != nullptr) {
      png_set_read_fn(png, &state, on_read);
      png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size() is the limit
    }
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png;
  png_infop info;
};

class PngWriter {
 public:
  explicit PngWriter(PngState& state)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning)),
        info(png != nullptr ? png_create_info_struct(png) : nullptr) {
    if (info != nullptr) {
      png_set_write_fn(png, &state, on_write, [](png_structp) {});
    }
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  png_structp png;
  png_infop info;
};

// The samples as they are stored, one byte each; for 16 bits two, the high one first.
struct RawImage {
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  int bit_depth = 0;
  int color_type = 0;
  int channels = 0;
  std::vector<std::uint8_t> palette;  // 256 × RGB
  std::vector<std::uint8_t> samples;
};

// Converts as Pillow's `convert("RGB")`: alpha is dropped, 16-bit colour keeps its high byte, and 16-bit gray is not
// scaled but clipped at 255.
Image to_rgb(const RawImage& raw) {
  Image image(raw.width, raw.height);
  const int bytes = raw.bit_depth == 16 ? 2 : 1;
  const int step = raw.channels * bytes;
  const bool gray = raw.color_type == PNG_COLOR_TYPE_GRAY || raw.color_type == PNG_COLOR_TYPE_GRAY_ALPHA;
  const int scale = raw.bit_depth < 8 ? 255 / ((1 << raw.bit_depth) - 1) : 1;
  const std::uint8_t* in = raw.samples.data();
  std::uint8_t* out = image.pixels.data();
  for (std::size_t i = 0; i < image.pixels.size(); i += 3, in += step, out += 3) {
    if (raw.color_type == PNG_COLOR_TYPE_PALETTE) {
      std::memcpy(out, raw.palette.data() + std::size_t{3} * in[0], 3);
    } else if (raw.color_type == PNG_COLOR_TYPE_GRAY && raw.bit_depth == 16) {
      std::memset(out, in[0] != 0 ? 255 : in[1], 3);
    } else if (gray) {
      std::memset(out, in[0] * scale, 3);
    } else {
      out[0] = in[0];
      out[1] = in[bytes];
      out[2] = in[2 * bytes];
    }
  }
  return image;
}

// Decodes EXIF data that ImageMagick has stored as text: an empty line, a line "exif", the length, then hexadecimal
// digits.
std::vector<std::uint8_t> exif_from_text(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(end + 1);
  }
  std::string digits(text);
  std::erase(digits, '\n');
  std::vector<std::uint8_t> bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, bytes[i], 16);
  }
  return bytes;
}

int orientation_of(png_structp png, png_infop info) {
  png_uint_32 length = 0;
  png_bytep exif = nullptr;
  int orientation = 0;
  if (png_get_eXIf_1(png, info, &length, &exif) != 0) {
    orientation = exif_orientation({exif, length});
  }
  png_textp texts = nullptr;
  const int count = png_get_text(png, info, &texts, nullptr);
  for (int i = 0; i < count && orientation == 0; ++i) {
    const std::string_view key = texts[i].key;
    if (key == "Raw profile type exif" && texts[i].text != nullptr) {
      orientation = exif_orientation(exif_from_text(texts[i].text));
    }
  }
  for (int i = 0; i < count && orientation == 0; ++i) {
    const std::string_view key = texts[i].key;
    if (key == "XML:com.adobe.xmp" && texts[i].text != nullptr) {
      orientation = xmp_orientation(texts[i].text);
    }
  }
  return orientation == 0 ? 1 : orientation;
}

void read_header(PngReader& reader, RawImage& raw) {
  png_read_info(reader.png, reader.info);
  png_set_packing(reader.png);  // unpacks samples of 1, 2 or 4 bits to one byte each
  raw.width = png_get_image_width(reader.png, reader.info);
  raw.height = png_get_image_height(reader.png, reader.info);
  raw.bit_depth = png_get_bit_depth(reader.png, reader.info);
  raw.color_type = png_get_color_type(reader.png, reader.info);
  raw.channels = png_get_channels(reader.png, reader.info);
}

void read_samples(PngReader& reader, std::vector<png_bytep>& rows) {
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  png_read_image(reader.png, rows.data());
}

void read_palette(PngReader& reader, RawImage& raw) {
  png_colorp colors = nullptr;
  int count = 0;
  raw.palette.assign(std::size_t{3} * 256, 0);
  if (png_get_PLTE(reader.png, reader.info, &colors, &count) != 0) {
    for (int i = 0; i < count; ++i) {
      std::uint8_t* entry = raw.palette.data() + std::size_t{3} * static_cast<std::size_t>(i);
      entry[0] = colors[i].red;
      entry[1] = colors[i].green;
      entry[2] = colors[i].blue;
    }
  }
}

}  // namespace

Decoded decode_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  PngState state;
  state.input = whole_chunks(bytes);
  PngReader reader(state);
  check(reader.info != nullptr, "{}: no memory for a PNG decoder", name);
  RawImage raw;
  bool ok = state.guarded([&] { read_header(reader, raw); });
  check(ok, "{}: the PNG image is broken: {}", name, state.message);
  check_image_size(raw.width, raw.height, name);
  // Deflate compresses at most 1032-fold. A file that is too small for the size that it claims is refused before memory
  // is taken for its pixels.
  const std::size_t packed_row =
      (std::size_t{raw.width} * static_cast<std::size_t>(raw.channels * raw.bit_depth) + 7) / 8;
  check(packed_row * raw.height / 1032 <= bytes.size(), "{}: the PNG image is truncated", name);

  const std::size_t row =
      std::size_t{raw.width} * static_cast<std::size_t>(raw.channels * (raw.bit_depth == 16 ? 2 : 1));
  raw.samples.resize(row * raw.height);
  std::vector<png_bytep> rows(raw.height);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    rows[y] = raw.samples.data() + y * row;
  }
  ok = state.guarded([&] { read_samples(reader, rows); });
  check(ok, "{}: the PNG image is broken: {}", name, state.message);
  // The chunks after the pixels may be missing, as in Pillow; they are read because they may hold EXIF data.
  state.guarded([&] { png_read_end(reader.png, reader.info); });

  Decoded result;
  if (raw.color_type == PNG_COLOR_TYPE_PALETTE) {
    read_palette(reader, raw);
  }
  result.orientation = orientation_of(reader.png, reader.info);
  result.image = to_rgb(raw);
  return result;
}

namespace {

// Rows of 8-bit samples: three a pixel, or one if the type is gray.
std::vector<std::uint8_t> encode_rows(const std::uint8_t* samples, std::int64_t width, std::int64_t height,
                                      int color_type) {
  check(width > 0 && height > 0, "an image of {} x {} pixels cannot be written", width, height);
  const std::int64_t row = width * (color_type == PNG_COLOR_TYPE_RGB ? 3 : 1);
  PngState state;
  PngWriter writer(state);
  check(writer.info != nullptr, "no memory for a PNG encoder");
  const bool ok = state.guarded([&] {
    png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
                 color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer.png, writer.info);
    for (std::int64_t y = 0; y < height; ++y) {
      png_write_row(writer.png, samples + y * row);
    }
    png_write_end(writer.png, writer.info);
  });
  check(ok, "the image cannot be written as PNG: {}", state.message);
  return std::move(state.output);
}

}  // namespace

std::vector<std::uint8_t> encode_png(const Image& image) {
  return encode_rows(image.pixels.data(), image.width, image.height, PNG_COLOR_TYPE_RGB);
}

std::vector<std::uint8_t> encode_gray_png(std::span<const std::uint8_t> samples, std::int64_t width,
                                          std::int64_t height) {
  check(std::ssize(samples) == width * height, "{} samples are not an image of {} x {} pixels", samples.size(), width,
        height);
  return encode_rows(samples.data(), width, height, PNG_COLOR_TYPE_GRAY);
}

void write_png(const std::filesystem::path& path, const Image& image) { write_atomically(path, encode_png(image)); }

}  // namespace vitrail::io
