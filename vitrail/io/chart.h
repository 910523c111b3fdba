// Charts as SVG text: curves of a run, and matrices as heat maps. Well-formed XML that browsers and editors open as it
// is; fonts are the reader's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

// One curve. A point that is not finite leaves a gap.
struct Series {
  std::string name;  // in the legend; empty: not listed there
  std::vector<double> x;
  std::vector<double> y;
  bool faint = false;   // thin and pale, as a backdrop of another curve
  bool points = false;  // a dot at each point
  int color = -1;       // index into the palette; -1: the next one
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  // The range of the vertical axis where it is not to follow the data.
  std::optional<double> y_min;
  std::optional<double> y_max;
};

// The charts next to each other, each `width` by `height` pixels. Error if x and y of a series differ in length.
std::string line_charts_svg(const std::vector<LineChart>& charts, int width = 560, int height = 380);

// A matrix as coloured cells: confusion counts, attention from tokens to tokens.
struct HeatMap {
  std::string title;
  std::string row_label;             // what the rows are ("true class")
  std::string column_label;          // what the columns are ("predicted class")
  std::vector<std::string> rows;     // a name each
  std::vector<std::string> columns;  // a name each
  std::vector<double> values;        // [rows, columns], not negative
  bool shade_by_row = false;         // the colour shows a value's share of its row's sum, else of the largest value
};

// Error if the number of values is not rows · columns. Values are written into the cells where there is room.
std::string heat_map_svg(const HeatMap& map);

// Text made safe between tags and inside attributes: &, <, > and quotes become entities, bytes that XML or UTF-8 do not
// allow become "?".
std::string escape_xml(std::string_view text);

}  // namespace vitrail::io
