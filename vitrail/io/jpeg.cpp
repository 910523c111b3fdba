#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE and size_t
#include <cstring>
#include <vector>

#include <jpeglib.h>

#include "vitrail/io/codecs.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

// A progressive file can have any number of scans, each as costly to decode as the whole image: a few kilobytes could
// keep a decoder busy for hours. Real files have about ten.
constexpr int kMaxScans = 500;

// A JPEG decompressor that reads from memory. libjpeg reports errors by calling error_exit, which must not return: it
// jumps back into guarded(). No object with a destructor may live in the stack frames that are jumped over, which are
// those of libjpeg and of guarded() alone.
class Decompressor {
 public:
  explicit Decompressor(std::span<const std::uint8_t> bytes) {
    info.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) {
      auto* self = static_cast<Decompressor*>(common->client_data);
      common->err->format_message(common, self->message_);
      std::longjmp(self->jump_, 1);
    };
    errors_.output_message = [](j_common_ptr) {};
    info.client_data = this;
    source_.next_input_byte = bytes.data();
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.resync_to_restart = jpeg_resync_to_restart;
    // All data are given at once, so a request for more means that the file is truncated. FALSE suspends the decoder.
    source_.fill_input_buffer = [](j_decompress_ptr) -> boolean { return FALSE; };
    source_.skip_input_data = [](j_decompress_ptr decompress, long count) {
      jpeg_source_mgr* source = decompress->src;
      const std::size_t skipped = std::min(source->bytes_in_buffer, static_cast<std::size_t>(std::max(count, 0L)));
      source->next_input_byte += skipped;
      source->bytes_in_buffer -= skipped;
    };
    progress_.progress_monitor = [](j_common_ptr common) {
      auto* self = static_cast<Decompressor*>(common->client_data);
      if (self->info.input_scan_number > kMaxScans) {
        std::snprintf(self->message_, sizeof(self->message_), "it has more than %d scans", kMaxScans);
        std::longjmp(self->jump_, 1);
      }
    };
  }
  ~Decompressor() { jpeg_destroy_decompress(&info); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Runs `step`. Returns false if libjpeg reported an error, whose text message() then returns.
  template <class Step>
  [[gnu::noinline]] bool guarded(Step step) {
    if (setjmp(jump_) != 0) {  // NOLINT: libjpeg's way of reporting errors
      return false;
    }
    step();
    return true;
  }
  const char* message() const { return message_; }

  void create() {
    jpeg_create_decompress(&info);
    info.src = &source_;
    info.progress = &progress_;
  }

  jpeg_decompress_struct info = {};

 private:
  jpeg_error_mgr errors_ = {};
  jpeg_source_mgr source_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  char message_[JMSG_LENGTH_MAX] = {};
};

// Converts CMYK as Pillow does: the bytes are taken to be inverted, as Adobe writes them, and each ink is scaled by
// what black leaves.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::int64_t count, std::uint8_t* rgb) {
  for (std::int64_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const int white = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * white + 128;
      rgb[c] = static_cast<std::uint8_t>(white - ((product + (product >> 8)) >> 8));
    }
  }
}

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view exif_header{"Exif\0\0", 6};
  constexpr std::string_view xmp_header{"http://ns.adobe.com/xap/1.0/\0", 29};
  std::vector<std::uint8_t> exif;  // may be spread over several markers
  std::string_view xmp;
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with(exif_header)) {
      exif.insert(exif.end(), data.begin() + exif_header.size(), data.end());
    } else if (data.starts_with(xmp_header)) {
      xmp = data.substr(xmp_header.size());
    }
  }
  const int orientation = exif_orientation(exif);
  return orientation != 0 ? orientation : xmp_orientation(xmp);
}

// Reads all rows into `image`: RGB directly, CMYK (4 bytes per pixel) through the buffer `row`, which is null for RGB.
// Returns false if the data end before the image does.
bool read_rows(jpeg_decompress_struct& info, Image& image, std::uint8_t* row) {
  if (jpeg_start_decompress(&info) == FALSE) {
    return false;
  }
  while (info.output_scanline < info.output_height) {
    std::uint8_t* out = image.at(0, info.output_scanline);
    JSAMPROW target = row != nullptr ? row : out;
    if (jpeg_read_scanlines(&info, &target, 1) != 1) {
      return false;
    }
    if (row != nullptr) {
      cmyk_to_rgb(row, image.width, out);
    }
  }
  return true;  // a missing end marker is accepted
}

}  // namespace

Decoded decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name) {
  Decompressor decompressor(bytes);
  jpeg_decompress_struct& info = decompressor.info;
  int status = JPEG_SUSPENDED;
  bool ok = decompressor.guarded([&] {
    decompressor.create();
    jpeg_save_markers(&info, JPEG_APP0 + 1, 0xffff);
    do {
      status = jpeg_read_header(&info, FALSE);
    } while (status == JPEG_HEADER_TABLES_ONLY);
  });
  check(ok, "{}: the JPEG image is broken: {}", name, decompressor.message());
  check(status == JPEG_HEADER_OK, "{}: the JPEG image is truncated", name);
  check_image_size(info.image_width, info.image_height, name);
  check(info.num_components == 1 || info.num_components == 3 || info.num_components == 4,
        "{}: a JPEG image of {} components; 1, 3 or 4 were expected", name, info.num_components);

  const bool cmyk = info.num_components == 4;
  info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  Decoded result;
  result.orientation = orientation_of(info);
  result.image = Image(info.image_width, info.image_height);
  std::vector<std::uint8_t> row(cmyk ? std::size_t{4} * info.image_width : 0);
  bool whole = false;
  ok = decompressor.guarded([&] { whole = read_rows(info, result.image, cmyk ? row.data() : nullptr); });
  check(ok, "{}: the JPEG image is broken: {}", name, decompressor.message());
  check(whole, "{}: the JPEG image is truncated", name);
  return result;
}

}  // namespace vitrail::io
