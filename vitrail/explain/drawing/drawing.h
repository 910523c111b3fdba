/// \file
/// Text on images, in letters of five by eight pixels.
#pragma once

#include <cstdint>
#include <string_view>

#include "vitrail/explain/drawing/letters.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// The width in pixels of a text of one line (letters.h).
std::int64_t text_width(std::string_view text, std::int64_t scale);

/// Draws one line of text in dark letters, each pixel of which is a square of `scale` pixels. What lies outside the
/// image is left out.
void draw_text(io::Image& image, std::int64_t left, std::int64_t top, std::string_view text, std::int64_t scale);

/// An image that is all white.
io::Image white_image(std::int64_t width, std::int64_t height);

/// Copies `image` onto a larger one, in which it lies as a whole.
void paste(io::Image& onto, const io::Image& image, std::int64_t left, std::int64_t top);

/// The image with each pixel as a square of `zoom` pixels.
io::Image magnified(const io::Image& image, std::int64_t zoom);
/// The factor by which an image is magnified so that its shorter side has `smallest` pixels at least; less where its
/// longer side would have more than eight times as many.
std::int64_t zoom_to_be_seen(std::int64_t width, std::int64_t height, std::int64_t smallest = 224);
/// The image magnified by zoom_to_be_seen().
io::Image large_enough(const io::Image& image, std::int64_t smallest = 224);
/// The image in its proportions with at most `largest` pixels on its longer side.
io::Image small_enough(const io::Image& image, std::int64_t largest);
/// The image as one of many on a sheet: large_enough(), and with at most 1024 pixels on its longer side.
io::Image fit_for_sheet(const io::Image& image);

/// The image under a text, which is broken into lines that are about as wide as the image.
io::Image captioned(const io::Image& image, std::string_view text, std::int64_t scale);

}  // namespace vitrail::explain
