#include <algorithm>
#include <array>

#include "vitrail/data/dataset.h"
#include "vitrail/data/resize.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/train/captions/captions.h"

namespace vitrail::train {

io::Image caption_sheet(const models::Captioner& model, const text::Tokenizer& tokenizer, const data::TextPairs& pairs,
                        bool skip_broken, std::int64_t most, DType dtype) {
  constexpr std::int64_t side = 128;    // of an image
  constexpr std::int64_t longest = 64;  // tokens of a caption
  constexpr std::int64_t cell = side + 16;
  constexpr std::int64_t columns = 5;
  constexpr std::int64_t bar = 6;    // below an image, in the colour of right or wrong
  constexpr std::int64_t lines = 3;  // of text
  constexpr auto letters = static_cast<std::size_t>(cell / explain::letter_width - 1);  // of a line
  std::vector<io::Image> images;
  std::vector<std::vector<std::string>> right;
  data::for_spread_images(*pairs.images, most, skip_broken, [&](std::int64_t index, io::Image image) {
    images.push_back(std::move(image));
    right.push_back(pairs.texts[static_cast<std::size_t>(index)]);
  });
  const std::int64_t count = std::ssize(images);
  if (count == 0) {
    return {};
  }
  const CaptionTokens captions(right, tokenizer, most_new_tokens(model, longest));
  const std::vector<std::string> said = caption(model, tokenizer, prepared(model.image_model.pretrained, images),
                                                caption_options(model, usual_caption_beams, longest, dtype));
  const std::int64_t height = cell + bar + lines * (explain::letter_height + 1) + 4;
  io::Image sheet = explain::white_image(columns * cell, (count + columns - 1) / columns * height);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t left = i % columns * cell + 8;
    const std::int64_t top = i / columns * height + 8;
    explain::paste(sheet, data::resize(images[at], side, side, data::Interpolation::nearest), left, top);
    const bool is_right = is_exact(model, tokenizer, said[at], captions.ids[at]);
    const std::array<std::uint8_t, 3> color =
        is_right ? std::array<std::uint8_t, 3>{31, 157, 97} : std::array<std::uint8_t, 3>{228, 87, 46};
    for (std::int64_t k = 0; k < bar * side; ++k) {
      std::ranges::copy(color, sheet.at(left + k % side, top + side + k / side));
    }
    const std::int64_t below = top + side + bar + 3;
    if (explain::text_width(said[at], 2) <= cell) {
      explain::draw_text(sheet, left, below, said[at], 2);
      continue;
    }
    std::string rest = said[at];
    for (std::int64_t line = 0; line < lines && !rest.empty(); ++line) {
      std::size_t end = rest.size();
      if (end > letters) {
        const std::size_t space = rest.rfind(' ', letters);
        end = space == std::string::npos || space == 0 ? letters : space;
      }
      explain::draw_text(sheet, left - 6, below + line * (explain::letter_height + 1), rest.substr(0, end), 1);
      rest.erase(0, std::min(rest.size(), end + (end < rest.size() && rest[end] == ' ' ? 1 : 0)));
    }
  }
  return sheet;
}

}  // namespace vitrail::train
