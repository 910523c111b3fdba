/// \file
/// What the project's SVG drawings are made of: colours, text, and the frame around them.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace vitrail::io {

/// Colours that stay distinct for people with any common colour vision, and in print.
inline constexpr std::array<const char*, 10> svg_palette = {"#2463c5", "#e4572e", "#1f9d61", "#8a4fc7", "#d28f06",
                                                            "#0d98ac", "#c2337f", "#7a5c3e", "#66758a", "#8fa01a"};
inline constexpr const char* svg_ink = "#1f2733";    ///< of text
inline constexpr const char* svg_muted = "#667085";  ///< of text that matters less

/// The opening tag of a drawing of this size in pixels, with a white ground and the viewer's own sans-serif font at 14
/// pixels. It ends with "</svg>\n".
std::string svg_open(double width, double height);
/// One line of text at (x, y), its baseline; `anchor` is "start", "middle" or "end", `more` further attributes.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view fill, std::string_view words,
                     std::string_view more = "");
/// The approximate width in pixels of a text at 14 pixels, for layouts.
double svg_text_width(std::string_view words);

/// Escapes text for use between XML tags and inside attributes: `&`, `<`, `>` and quotes become entities; bytes that
/// are not valid UTF-8 or that XML does not allow become "?".
std::string escape_xml(std::string_view text);

}  // namespace vitrail::io
