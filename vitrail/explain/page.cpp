#include "vitrail/explain/page.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/charts/svg.h"

namespace vitrail::explain {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --paper: #fcfcfd; --line: #d9d9e0; --accent: #2b5fb3 }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #b0b4ba; --paper: #16181b; --line: #363a3f; --accent: #8fb8ff } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1080px; padding: 2rem 1.25rem 4rem; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
.lead { font-size: 1.1rem; color: var(--soft); margin: 0 }
.figures { display: grid; gap: 1rem; margin-top: 1rem }
figure { margin: 0; overflow-x: auto }
figure img { display: block; width: 100%; height: auto; border-radius: 6px; background: #fff }
figure img[src$=".svg"] { width: auto; max-width: 100%; min-width: min(100%, 44rem) }
@media (max-width: 44rem) { figure img[src$=".svg"] { max-width: none; min-width: 44rem } }
figcaption { font-size: .86rem; color: var(--soft); margin-top: .35rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; margin-top: .8rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--soft) }
)";

void append_paragraphs(std::string& page, const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find("\n\n", begin);
    end = end == std::string::npos ? text.size() : end;
    page += fmt::format("<p>{}</p>\n", io::escape_xml(text.substr(begin, end - begin)));
    begin = end + 2;
  }
}

void append_row(std::string& page, const std::vector<std::string>& cells, std::string_view tag) {
  page += "<tr>";
  for (const std::string& cell : cells) {
    page += fmt::format("<{0}>{1}</{0}>", tag, io::escape_xml(cell));
  }
  page += "</tr>\n";
}

void append_section(std::string& page, const Section& section) {
  page += fmt::format("<section>\n<h2>{}</h2>\n", io::escape_xml(section.title));
  append_paragraphs(page, section.text);
  if (!section.table.rows.empty()) {
    page += "<div class=\"scroll\"><table>\n";
    append_row(page, section.table.header, "th");
    for (const auto& row : section.table.rows) {
      append_row(page, row, "td");
    }
    page += "</table></div>\n";
  }
  if (!section.figures.empty()) {
    page += fmt::format(
        "<div class=\"figures\" style=\"grid-template-columns: repeat(auto-fill, minmax(min({}px, 100%), 1fr))\">\n",
        section.figure_width);
    for (const Figure& figure : section.figures) {
      page +=
          fmt::format("<figure><img src=\"{0}\" alt=\"{1}\" loading=\"lazy\"><figcaption>{1}</figcaption></figure>\n",
                      io::escape_xml(figure.file), io::escape_xml(figure.caption));
    }
    page += "</div>\n";
  }
  page += "</section>\n";
}

}  // namespace

std::string html_page(const std::string& title, const std::string& lead, const std::vector<Section>& sections) {
  std::string body;
  for (const Section& section : sections) {
    append_section(body, section);
  }
  return html_frame(title, lead, body);
}

std::string html_frame(const std::string& title, const std::string& lead, std::string_view body,
                       std::string_view more_style) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{5}\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p class=\"lead\">{3}</p>\n{4}</body>\n</html>\n",
      io::escape_xml(title), style, more_style, io::escape_xml(lead), body, page_generator);
}

std::string script_json(const nlohmann::json& json) {
  std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

}  // namespace vitrail::explain
