#include "vitrail/io/codecs.h"
#include "vitrail/tensor/error.h"

#ifdef VITRAIL_WEBP
#include <algorithm>
#include <memory>

#include <webp/demux.h>
#endif

namespace vitrail::io {

#ifdef VITRAIL_WEBP
namespace {

// The metadata chunk with the given four-letter name, or nothing if there is none.
std::span<const std::uint8_t> chunk(const WebPDemuxer* demuxer, const char* four_letters) {
  WebPChunkIterator iterator;
  if (WebPDemuxGetChunk(demuxer, four_letters, 1, &iterator) == 0) {
    return {};
  }
  const std::span<const std::uint8_t> bytes(iterator.chunk.bytes, iterator.chunk.size);
  WebPDemuxReleaseChunkIterator(&iterator);  // the bytes belong to the demuxer
  return bytes;
}

}  // namespace

// Decodes through the animation decoder, as Pillow does: the first frame of an animation on its canvas, without alpha.
Decoded decode_webp(std::span<const std::uint8_t> bytes, const std::string& name) {
  const WebPData data = {bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(WebPDemux(&data), WebPDemuxDelete);
  check(demuxer != nullptr, "{}: the WebP image is broken or truncated", name);
  const std::uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  check_image_size(width, height, name);

  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(WebPAnimDecoderNew(&data, &options),
                                                                                   WebPAnimDecoderDelete);
  check(decoder != nullptr, "{}: the WebP image is broken, or no memory is left for it", name);
  std::uint8_t* rgba = nullptr;
  int timestamp = 0;
  check(WebPAnimDecoderGetNext(decoder.get(), &rgba, &timestamp) != 0, "{}: the WebP image is broken or truncated",
        name);

  Decoded result;
  result.image = Image(width, height);
  std::uint8_t* out = result.image.pixels.data();
  for (std::size_t i = 0; i < std::size_t{width} * height; ++i, rgba += 4, out += 3) {
    std::copy_n(rgba, 3, out);
  }
  const std::span<const std::uint8_t> xmp = chunk(demuxer.get(), "XMP ");
  result.orientation = exif_orientation(chunk(demuxer.get(), "EXIF"));
  if (result.orientation == 0) {
    result.orientation = xmp_orientation({reinterpret_cast<const char*>(xmp.data()), xmp.size()});
  }
  return result;
}

#else

Decoded decode_webp(std::span<const std::uint8_t>, const std::string& name) {
  fail("{}: a WebP image, but this vitrail was built without WebP (-DVITRAIL_WEBP=ON)", name);
}

#endif

}  // namespace vitrail::io
