/// \file
/// SVG charts as text: curves of a training run, and matrices as heat maps. The output is well-formed XML that browsers
/// and editors open as it is; text is set in the viewer's own sans-serif font.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

/// One curve of a line chart. A point that is not finite leaves a gap.
struct Series {
  std::string name;  ///< the curve's name in the legend; empty: not listed there
  std::vector<double> x;
  std::vector<double> y;
  bool faint = false;   ///< drawn thin and pale, as a backdrop of another curve
  bool points = false;  ///< a dot is drawn at each point
  int color = -1;       ///< index into the palette; -1: the next colour
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::optional<double> y_min;  ///< lower limit of the vertical axis; unset: from the data
  std::optional<double> y_max;  ///< upper limit of the vertical axis; unset: from the data
};

/// Draws the charts side by side, each `width` by `height` pixels, and returns the SVG text. Throws Error if x and y of
/// a series differ in length.
std::string line_charts_svg(const std::vector<LineChart>& charts, int width = 560, int height = 380);

/// A matrix to be drawn as coloured cells, such as confusion counts or attention from tokens to tokens.
struct HeatMap {
  std::string title;
  std::string row_label;             ///< what the rows are ("true class")
  std::string column_label;          ///< what the columns are ("predicted class")
  std::vector<std::string> rows;     ///< a name each
  std::vector<std::string> columns;  ///< a name each
  std::vector<double> values;        ///< [rows, columns], not negative
  bool shade_by_row = false;  ///< the colour shows a value's share of its row's sum, otherwise of the largest value
};

/// Draws the heat map and returns the SVG text. Values are written into the cells if they fit. Throws Error if the
/// number of values is not rows · columns.
std::string heat_map_svg(const HeatMap& map);

}  // namespace vitrail::io
