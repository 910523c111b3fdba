// Pictures of what was found in sets.
#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "vitrail/io/charts/svg.h"
#include "vitrail/train/sets/sets.h"

namespace vitrail::train {
namespace {

constexpr std::size_t sets_a_row = 4;
constexpr double panel = 220;  // pixels, with the gap to the next one
constexpr double inner = 200;
constexpr double margin = 16;
constexpr double top = 34;
constexpr double radius = 7;  // of a target's ring

// The range of one axis, a little wider than what is on it.
struct Extent {
  double low = 0;
  double high = 0;
  bool any = false;

  void take(double value) {
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
  double share(double value) const {
    const double room = std::max(high - low, 1e-6) * 0.06;
    return (value - low + room) / (high - low + 2 * room);
  }
};

// Where the numbers of an element are drawn: those of two in the plane, of others the first above their class.
struct Places {
  bool plane = false;
  std::array<Extent, 2> extents = {};

  std::array<double, 2> of(std::span<const float> values, std::int64_t label) const {
    const double x = plane ? static_cast<double>(values[0]) : static_cast<double>(label + 1);
    return {x, static_cast<double>(values[plane ? 1 : 0])};
  }
  void take(const std::array<double, 2>& place) {
    extents[0].take(place[0]);
    extents[1].take(place[1]);
  }
  std::array<double, 2> pixel(const std::array<double, 2>& place) const {
    return {inner * extents[0].share(place[0]), inner * (1 - extents[1].share(place[1]))};
  }
};

// Calls `act` with each place of the elements, which have no class, of the targets and of what was found.
template <class Act>
void for_each_place(const Places& places, const data::SetExample& example, const std::vector<FoundElement>& found,
                    std::size_t input_size, Act&& act) {
  for (std::size_t i = 0; i < example.elements.size(); i += input_size) {
    act('e', places.of(std::span(example.elements).subspan(i, input_size), -1));
  }
  const std::size_t output_size = example.labels.empty() ? 1 : example.values.size() / example.labels.size();
  for (std::size_t t = 0; t < example.labels.size(); ++t) {
    act('t', places.of(std::span(example.values).subspan(t * output_size, output_size), example.labels[t]));
  }
  for (const FoundElement& element : said_elements(found)) {
    act('f', places.of(element.values, element.label));
  }
}

}  // namespace

std::string sets_svg(const SetEvaluation& evaluation, std::int64_t input_size, std::int64_t output_size) {
  Places places;
  places.plane = input_size == 2 && output_size == 2;
  const auto size = static_cast<std::size_t>(input_size);
  for (std::size_t i = 0; i < evaluation.shown.size(); ++i) {
    for_each_place(places, evaluation.shown[i], evaluation.found[i], size,
                   [&](char, const std::array<double, 2>& place) { places.take(place); });
  }
  const std::size_t columns = std::min(sets_a_row, std::max<std::size_t>(evaluation.shown.size(), 1));
  const std::size_t rows = (evaluation.shown.size() + columns - 1) / columns;
  std::string svg = io::svg_open(2 * margin + panel * static_cast<double>(columns) - (panel - inner),
                                 top + margin + panel * static_cast<double>(rows) - (panel - inner));
  const char* legend = places.plane ? "dots: the set; rings: its targets; crosses: what was found"
                                    : "dots, left: the set; then by class, rings: targets; crosses: what was found";
  svg += io::svg_text(margin, 22, "start", io::svg_ink, legend);
  for (std::size_t i = 0; i < evaluation.shown.size(); ++i) {
    const std::size_t row = i / columns;
    svg += fmt::format(
        "<g transform=\"translate({:.0f} {:.0f})\">\n<rect width=\"{:.0f}\" height=\"{:.0f}\" "
        "fill=\"none\" stroke=\"#d5dae2\"/>\n",
        margin + panel * static_cast<double>(i % columns), top + panel * static_cast<double>(row), inner, inner);
    for_each_place(places, evaluation.shown[i], evaluation.found[i], size,
                   [&](char kind, const std::array<double, 2>& place) {
                     const auto [x, y] = places.pixel(place);
                     if (kind == 'e') {
                       svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"#98a2b3\"/>\n", x, y);
                     } else if (kind == 't') {
                       svg += fmt::format(
                           "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.0f}\" fill=\"none\" "
                           "stroke=\"{}\" stroke-width=\"2\"/>\n",
                           x, y, radius, io::svg_palette[0]);
                     } else {
                       svg += fmt::format(
                           "<path d=\"M{0:.1f} {1:.1f}l10 10m0 -10l-10 10\" stroke=\"{2}\" "
                           "stroke-width=\"2\" fill=\"none\"/>\n",
                           x - 5, y - 5, io::svg_palette[1]);
                     }
                   });
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace vitrail::train
