/// \file
/// HTML pages of text, tables and images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace vitrail::explain {

struct Figure {
  std::string file;     ///< relative to the page
  std::string caption;  ///< plain text
};

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

struct Section {
  std::string title;
  std::string text;  ///< plain text; an empty line begins a new paragraph
  Table table;       ///< left out if it has no rows
  std::vector<Figure> figures;
  int figure_width = 240;  ///< CSS pixels; wider screens show more side by side
};

/// What the head of each page says of the program that made it.
inline constexpr const char* page_generator = "<meta name=\"generator\" content=\"vitrail\">";

/// One self-contained HTML page: its style is inside, it has no scripts and takes nothing from elsewhere but the
/// figures' files. It is readable on a phone and in dark mode.
std::string html_page(const std::string& title, const std::string& lead, const std::vector<Section>& sections);

/// A page in the same dress with another content: `body`, behind the title and the lead, and `style`, CSS besides.
std::string html_frame(const std::string& title, const std::string& lead, std::string_view body,
                       std::string_view style = "");

/// JSON as text that may stand inside of a script of a page.
std::string script_json(const nlohmann::json& json);

}  // namespace vitrail::explain
