#include "vitrail/io/charts/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/charts/svg.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

constexpr const auto& palette = svg_palette;

// How a line is drawn that has a colour for the `round`th time, from 0.
constexpr const char* dashes_of(std::size_t round) {
  return round == 0 ? "" : round % 2 == 1 ? " stroke-dasharray=\"6 4\"" : " stroke-dasharray=\"2 3\"";
}
constexpr const char* ink = svg_ink;
constexpr const char* muted = svg_muted;
constexpr const char* grid = "#e6e9ef";

// An axis over [low, high] with ticks at 1, 2 or 5 times a power of ten.
struct Axis {
  double low;
  double high;
  double step;

  static Axis over(double low, double high, int ticks) {
    if (!(low <= high)) {
      low = 0;
      high = 1;
    }
    if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high)) || high == low) {
      const double margin = std::abs(high) * 0.1;
      low -= margin;
      high += high == 0 ? 1 : margin;
    }
    const double raw = (high - low) / ticks;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    const double lead = raw / power;
    return {low, high, (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power};
  }
  // Returns the axis with both limits moved outwards to whole steps.
  Axis rounded() const { return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step}; }
  double share(double value) const { return (value - low) / (high - low); }
  std::vector<double> ticks() const {
    std::vector<double> result;
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) {
      result.push_back(k * step + 0.0);  // + 0.0: never "-0"
    }
    return result;
  }
  std::string label(double tick) const {
    if (std::abs(tick) >= 1e6 || (step < 1e-4 && tick != 0)) {
      return fmt::format("{:g}", tick);
    }
    const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}f}", tick, decimals);
  }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

// One line chart inside the rectangle at (left, 0).
class Panel {
 public:
  Panel(const LineChart& chart, int index, double left, double width, double height)
      : chart_(chart), index_(index), left_(left), width_(width), height_(height) {
    Extent x;
    Extent y;
    for (const Series& series : chart.series) {
      check(series.x.size() == series.y.size(), "chart '{}': the series '{}' has {} x values and {} y values",
            chart.title, series.name, series.x.size(), series.y.size());
      std::ranges::for_each(series.x, [&](double value) { x.take(value); });
      std::ranges::for_each(series.y, [&](double value) { y.take(value); });
    }
    x_ = Axis::over(x.low, x.high, 7);
    const auto whole = [](double value) { return value == std::floor(value); };
    if (std::ranges::all_of(chart.series, [&](const Series& series) { return std::ranges::all_of(series.x, whole); })) {
      x_.step = std::max(x_.step, 1.0);
    }
    y_ = Axis::over(chart.y_min.value_or(y.low), chart.y_max.value_or(y.high), 6);
    if (!chart.y_min || !chart.y_max) {
      const Axis wide = y_.rounded();
      y_.low = chart.y_min ? y_.low : wide.low;
      y_.high = chart.y_max ? y_.high : wide.high;
    }
    for (const double tick : y_.ticks()) {
      margin_left_ = std::max(margin_left_, svg_text_width(y_.label(tick)) + beside_ticks);
    }
    colors_.reserve(chart.series.size());
    dashes_.reserve(chart.series.size());
    int next = 0;
    for (const Series& series : chart.series) {
      const int color = series.color >= 0 ? series.color : next++;
      colors_.push_back(palette.at(static_cast<std::size_t>(color) % palette.size()));
      dashes_.push_back(dashes_of(static_cast<std::size_t>(color) / palette.size()));
    }
    place_legend();
  }

  std::string svg() const { return frame() + legend() + curves(); }

 private:
  static constexpr double beside_ticks = 40;  // the name of the y axis, and what parts it from the ticks
  static constexpr double margin_right = 18;
  static constexpr double margin_top = 66;
  static constexpr double margin_bottom = 54;
  static constexpr double legend_row = 20;

  // Places the names of the series one after the other, in as many rows as they need.
  void place_legend() {
    double x = x0();
    for (const Series& series : chart_.series) {
      const double width = 24 + svg_text_width(series.name);
      if (!series.name.empty() && x > x0() && x + width > x1()) {
        x = x0();
        legend_height_ += legend_row;
      }
      legend_.push_back({x, legend_height_});
      x += series.name.empty() ? 0 : width + 18;
    }
  }

  double x0() const { return left_ + margin_left_; }
  double x1() const { return left_ + width_ - margin_right; }
  double y0() const { return margin_top + legend_height_; }
  double y1() const { return height_ - margin_bottom; }
  double x_at(double value) const { return x0() + x_.share(value) * (x1() - x0()); }
  double y_at(double value) const { return y1() - y_.share(value) * (y1() - y0()); }

  std::string frame() const {
    std::string out;
    auto to = std::back_inserter(out);
    out += svg_text(x0(), 26, "start", ink, chart_.title, " font-size=\"17\" font-weight=\"600\"");
    for (const double tick : y_.ticks()) {
      fmt::format_to(to, "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\" fill=\"none\"/>\n", x0(), y_at(tick), x1(),
                     grid);
      out += svg_text(x0() - 8, y_at(tick) + 4, "end", muted, y_.label(tick));
    }
    for (const double tick : x_.ticks()) {
      fmt::format_to(to, "<path d=\"M{0:.1f} {1:.1f}v5\" stroke=\"{2}\" fill=\"none\"/>\n", x_at(tick), y1(), muted);
      out += svg_text(x_at(tick), y1() + 21, "middle", muted, x_.label(tick));
    }
    fmt::format_to(to, "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\" fill=\"none\"/>\n", x0(), y1(), x1(), muted);
    out += svg_text((x0() + x1()) / 2, height_ - 12, "middle", muted, chart_.x_label);
    out += svg_text(left_ + 16, (y0() + y1()) / 2, "middle", muted, chart_.y_label,
                    fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", left_ + 16, (y0() + y1()) / 2));
    return out;
  }

  std::string legend() const {
    std::string out;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const Series& series = chart_.series[i];
      if (series.name.empty()) {
        continue;
      }
      const auto [x, down] = legend_[i];
      fmt::format_to(std::back_inserter(out),
                     "<path d=\"M{:.1f} {:.1f}h18\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\"{}/>\n", x,
                     44 + down, colors_[i], series.faint ? 2 : 3, series.faint ? 0.35 : 1, dashes_[i]);
      out += svg_text(x + 24, 48 + down, "start", ink, series.name);
    }
    return out;
  }

  std::string curves() const {
    std::string out;
    auto to = std::back_inserter(out);
    fmt::format_to(to,
                   "<clipPath id=\"plot{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
                   "</clipPath>\n<g clip-path=\"url(#plot{})\">\n",
                   index_, x0() - 4, y0() - 4, x1() - x0() + 8, y1() - y0() + 8, index_);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const Series& series = chart_.series[i];
      std::string path;
      bool pen_down = false;
      for (std::size_t k = 0; k < series.x.size(); ++k) {
        if (!std::isfinite(series.x[k]) || !std::isfinite(series.y[k])) {
          pen_down = false;
          continue;
        }
        fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', x_at(series.x[k]),
                       y_at(series.y[k]));
        pen_down = true;
        if (series.points) {
          fmt::format_to(to, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\"/>\n", x_at(series.x[k]),
                         y_at(series.y[k]), colors_[i]);
        }
      }
      if (!path.empty()) {
        fmt::format_to(to,
                       "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" "
                       "stroke-linejoin=\"round\"{}/>\n",
                       path, colors_[i], series.faint ? 1 : 2, series.faint ? 0.35 : 1, dashes_[i]);
      }
    }
    return out + "</g>\n";
  }

  const LineChart& chart_;
  int index_;
  double left_;
  double margin_left_ = 66;
  double width_;
  double height_;
  Axis x_{};
  Axis y_{};
  std::vector<const char*> colors_;
  std::vector<const char*> dashes_;
  std::vector<std::pair<double, double>> legend_;  // for each series: x, and y below the first row
  double legend_height_ = 0;                       // of the rows after the first
};

// Maps a share in [0, 1] to a colour from near white to deep blue. The exponent raises small shares, so that rare
// confusions remain visible.
std::string shade(double share) {
  constexpr std::array<std::array<double, 3>, 3> stops = {{{246, 248, 252}, {110, 156, 221}, {20, 60, 130}}};
  const double t = std::pow(std::clamp(share, 0.0, 1.0), 0.65) * 2;
  const std::size_t from = t < 1 ? 0 : 1;
  const double part = t - static_cast<double>(from);
  std::array<int, 3> rgb{};
  for (std::size_t c = 0; c < 3; ++c) {
    rgb.at(c) = static_cast<int>(std::lround(stops.at(from).at(c) * (1 - part) + stops.at(from + 1).at(c) * part));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

class HeatMapDrawing {
 public:
  explicit HeatMapDrawing(const HeatMap& map)
      : map_(map), rows_(map.rows.size()), columns_(map.columns.size()), shares_(map.values.size()) {
    check(map.values.size() == rows_ * columns_, "heat map '{}': {} values do not fill {} rows and {} columns",
          map.title, map.values.size(), rows_, columns_);
    const auto most = static_cast<double>(std::max({rows_, columns_, std::size_t{1}}));
    cell_ = std::clamp(640 / most, 1.0, 46.0);
    double longest_row = 0;
    double longest_column = 0;
    std::ranges::for_each(map.rows,
                          [&](const auto& name) { longest_row = std::max(longest_row, svg_text_width(name)); });
    std::ranges::for_each(map.columns,
                          [&](const auto& name) { longest_column = std::max(longest_column, svg_text_width(name)); });
    left_ = 40 + std::min(longest_row, 240.0) + 10;
    top_ = 52;
    bottom_ = 14 + 0.75 * std::min(longest_column, 240.0) + 34;
    work_out_shares();
  }

  std::string svg() const {
    const double title_width = 40 + 1.3 * svg_text_width(map_.title);  // in bold letters of 17 pixels
    const double width = std::max(left_ + grid_width() + 92, title_width);
    const double height = top_ + grid_height() + bottom_;
    return svg_open(width, height) +
           svg_text(20, 28, "start", ink, map_.title, " font-size=\"17\" font-weight=\"600\"") + cells() +
           labels(height) + color_bar() + "</svg>\n";
  }

 private:
  double grid_width() const { return cell_ * static_cast<double>(columns_); }
  double grid_height() const { return cell_ * static_cast<double>(rows_); }

  void work_out_shares() {
    const double largest = map_.values.empty() ? 0 : *std::ranges::max_element(map_.values);
    for (std::size_t r = 0; r < rows_; ++r) {
      double whole = largest;
      if (map_.shade_by_row) {
        whole = 0;
        for (std::size_t c = 0; c < columns_; ++c) {
          whole += map_.values[r * columns_ + c];
        }
      }
      for (std::size_t c = 0; c < columns_; ++c) {
        shares_[r * columns_ + c] = whole > 0 ? map_.values[r * columns_ + c] / whole : 0;
      }
    }
  }

  // How the values of cells are printed.
  enum class Numbers { digits, decimals, none };

  static std::string number(double value, Numbers numbers) {
    return value == std::round(value)   ? fmt::format("{:.0f}", value)
           : numbers == Numbers::digits ? fmt::format("{:.3g}", value)
                                        : fmt::format("{:.2f}", value);
  }

  // The first way in which all values fit into their cells: with some alone, the blank ones would be taken for zeros.
  Numbers numbers_that_fit() const {
    for (const Numbers numbers : {Numbers::digits, Numbers::decimals}) {
      const bool fit = std::ranges::all_of(map_.values, [&](double value) {
        return !(value > 0) || svg_text_width(number(value, numbers)) + 4 <= cell_;
      });
      if (fit) {
        return numbers;
      }
    }
    return Numbers::none;
  }

  std::string cells() const {
    const Numbers numbers = numbers_that_fit();
    std::string out;
    auto to = std::back_inserter(out);
    // Zeros show the background; only the other cells are drawn, which keeps the SVG of a thousand classes small.
    fmt::format_to(to, "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", left_,
                   top_, grid_width(), grid_height(), shade(0));
    const double gap = cell_ >= 8 ? 1 : 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (!(map_.values[i] > 0)) {
        continue;
      }
      const std::size_t row = i / columns_;
      const std::size_t column = i % columns_;
      const double x = left_ + cell_ * static_cast<double>(column);
      const double y = top_ + cell_ * static_cast<double>(row);
      const bool named = columns_ <= 40;
      fmt::format_to(to, "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}>", x, y,
                     cell_ - gap, cell_ - gap, shade(shares_[i]), named ? "" : "/");
      if (named) {
        fmt::format_to(to, "<title>{} → {}: {:g}</title></rect>", escape_xml(map_.rows[row]),
                       escape_xml(map_.columns[column]), map_.values[i]);
      }
      out += '\n';
      const std::string value = numbers == Numbers::none ? "" : number(map_.values[i], numbers);
      if (!value.empty() && value != "0.00") {
        out += svg_text(x + (cell_ - gap) / 2, y + cell_ / 2 + 4, "middle", shares_[i] > 0.4 ? "#ffffff" : ink, value);
      }
    }
    return out;
  }

  std::string labels(double height) const {
    std::string out;
    const auto every = static_cast<std::size_t>(std::ceil(14 / cell_));
    const auto shortened = [](const std::string& name) { return name.size() > 32 ? name.substr(0, 30) + "…" : name; };
    for (std::size_t r = 0; r < rows_; r += every) {
      out +=
          svg_text(left_ - 8, top_ + cell_ * (static_cast<double>(r) + 0.5) + 4, "end", ink, shortened(map_.rows[r]));
    }
    for (std::size_t c = 0; c < columns_; c += every) {
      const double x = left_ + cell_ * (static_cast<double>(c) + 0.5) + 4;
      const double y = top_ + grid_height() + 14;
      out += svg_text(x, y, "end", ink, shortened(map_.columns[c]),
                      fmt::format(" transform=\"rotate(-45 {:.1f} {:.1f})\"", x, y));
    }
    out += svg_text(left_ + grid_width() / 2, height - 10, "middle", muted, map_.column_label);
    out += svg_text(18, top_ + grid_height() / 2, "middle", muted, map_.row_label,
                    fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", top_ + grid_height() / 2));
    return out;
  }

  std::string color_bar() const {
    std::string out;
    const double x = left_ + grid_width() + 22;
    const double bar_height = std::min(grid_height(), 220.0);
    constexpr int steps = 44;
    for (int i = 0; i < steps; ++i) {
      const double share = 1 - (i + 0.5) / steps;
      fmt::format_to(std::back_inserter(out),
                     "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"12\" height=\"{:.2f}\" fill=\"{}\"/>\n", x,
                     top_ + bar_height * i / steps, bar_height / steps + 0.3, shade(share));
    }
    const double largest = map_.values.empty() ? 0 : *std::ranges::max_element(map_.values);
    for (const double share : {0.0, 0.5, 1.0}) {
      out +=
          svg_text(x + 18,
                   top_ + bar_height * (1 - share) +
                       (share == 1   ? 10
                        : share == 0 ? 0
                                     : 4),
                   "start", muted,
                   map_.shade_by_row ? fmt::format("{:.0f} %", 100 * share) : fmt::format("{:.3g}", share * largest));
    }
    return out;
  }

  const HeatMap& map_;
  std::size_t rows_;
  std::size_t columns_;
  std::vector<double> shares_;
  double cell_ = 0;
  double left_ = 0;
  double top_ = 0;
  double bottom_ = 0;
};

}  // namespace

std::string line_charts_svg(const std::vector<LineChart>& charts, int width, int height) {
  std::string out = svg_open(static_cast<double>(width) * static_cast<double>(charts.size()), height);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    out +=
        Panel(charts[i], static_cast<int>(i), static_cast<double>(width) * static_cast<double>(i), width, height).svg();
  }
  return out + "</svg>\n";
}

std::string heat_map_svg(const HeatMap& map) { return HeatMapDrawing(map).svg(); }

}  // namespace vitrail::io
