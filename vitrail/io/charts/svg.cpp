#include "vitrail/io/charts/svg.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace vitrail::io {
namespace {

// Length in bytes of the sequence at `text[i]` if it is valid UTF-8 that XML 1.0 allows, otherwise 0.
std::size_t valid_sequence(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) {
    return lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  }
  const std::size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (lead < 0xc2 || length == 0 || i + length > text.size()) {
    return 0;
  }
  std::uint32_t code = lead & (0x7fU >> length);
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) >> 6) != 2) {
      return 0;
    }
    code = code << 6 | (byte(i + k) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < smallest.at(length) || surrogate || code == 0xfffe || code == 0xffff || code > 0x10ffff ? 0 : length;
}

}  // namespace

std::string svg_open(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif\" "
      "font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view fill, std::string_view words,
                     std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y, anchor, fill,
                     more, escape_xml(words));
}

double svg_text_width(std::string_view words) {
  const auto letters = std::ranges::count_if(words, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  return 7.7 * static_cast<double>(letters);
}

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = valid_sequence(text, i);
    switch (text[i]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += length > 0 ? text.substr(i, length) : "?";
    }
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace vitrail::io
