#include "vitrail/explain/labelled_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "vitrail/io/charts/svg.h"

namespace vitrail::explain {
namespace {

constexpr double margin = 20;
constexpr double line_width = 860;  // pixels, of which a text takes as many lines as it needs
constexpr double line_step = 32;
constexpr double box_height = 24;

// Words in coloured boxes, from left to right and in as many lines as they need.
class Boxes {
 public:
  // A ground of this colour and strength; the title is shown when the pointer is on it.
  void add(const std::string& word, const char* color, double strength, const std::string& title) {
    const double width = 1.1 * io::svg_text_width(word) + 12;
    if (x_ > margin && x_ + width > margin + line_width) {
      new_line();
    }
    out_ += fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
        "fill-opacity=\"{:.2f}\"/>",
        io::escape_xml(title), x_, y_, width, box_height, color, strength);
    out_ += io::svg_text(x_ + width / 2, y_ + 17, "middle", io::svg_ink, word) + "</g>\n";
    x_ += width + 4;
  }
  void new_line(double more = 0) {
    x_ = margin;
    y_ += line_step + more;
  }
  std::string svg() const { return io::svg_open(line_width + 2 * margin, y_ + line_step + 8) + out_ + "</svg>\n"; }

 private:
  std::string out_;
  double x_ = margin;
  double y_ = 16;
};

constexpr double ground(double probability) { return 0.1 + 0.6 * probability; }

}  // namespace

std::string labelled_texts_svg(const std::vector<std::vector<LabelledWord>>& texts,
                               const std::vector<std::string>& labels) {
  const auto color_of = [&](const std::string& label) {
    const auto at = static_cast<std::size_t>(std::ranges::find(labels, label) - labels.begin());
    return io::svg_palette.at(at % io::svg_palette.size());
  };
  Boxes boxes;
  for (const std::string& label : labels) {
    boxes.add(label, color_of(label), ground(1), label);
  }
  for (const std::vector<LabelledWord>& text : texts) {
    boxes.new_line(12);
    for (const LabelledWord& t : text) {
      boxes.add(t.word, color_of(t.label), ground(t.probability),
                fmt::format("{}: {:.1f} %", t.label, 100 * t.probability));
    }
  }
  return boxes.svg();
}

}  // namespace vitrail::explain
