#include "vitrail/io/charts/chart.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/xml.h"
#include "vitrail/io/charts/svg.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

LineChart chart_of(std::vector<double> x, std::vector<double> y) {
  LineChart chart{"Loss", "epoch", "nats", {}, {}, {}};
  Series series;
  series.name = "training";
  series.x = std::move(x);
  series.y = std::move(y);
  chart.series.push_back(series);
  return chart;
}

TEST(LineChart, IsWellFormedWithTitlesTicksAndLegend) {
  LineChart chart = chart_of({0, 1, 2, 3}, {2.3, 1.9, 1.2, 0.9});
  chart.title = "Loss <of> \"R&D\"";
  chart.series[0].points = true;
  const std::string svg = line_charts_svg({chart, chart});
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("Loss &lt;of&gt; &quot;R&amp;D&quot;"));
  EXPECT_THAT(svg, HasSubstr(">training</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.5</text>"));
  EXPECT_THAT(svg, HasSubstr(">2.5</text>"));
  EXPECT_EQ(count(svg, "<circle"), 8U);
  EXPECT_EQ(count(svg, "id=\"plot0\""), 1U);
  EXPECT_EQ(count(svg, "id=\"plot1\""), 1U);
}

// As many rows as a legend needs, none of them beyond its own chart.
TEST(LineChart, WrapsALongLegend) {
  LineChart chart = chart_of({0, 1}, {1, 2});
  chart.series.assign(9, chart.series[0]);
  const std::string svg = line_charts_svg({chart}, 400);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(" 44.0h18"));
  EXPECT_THAT(svg, HasSubstr(" 64.0h18"));
  for (std::size_t at = svg.find("h18\""); at != std::string::npos; at = svg.find("h18\"", at + 1)) {
    const std::size_t begin = svg.rfind("\"M", at) + 2;
    EXPECT_LT(std::stod(svg.substr(begin)), 400 - 60);
  }
}

TEST(LineChart, DrawsNothingEqualValuesAndSinglePoints) {
  for (const LineChart& chart : {chart_of({}, {}), chart_of({1}, {5}), chart_of({1, 2}, {0, 0}),
                                 chart_of({0, 1e9}, {-1e-9, 1e9}), chart_of({3, 3}, {1e-7, 2e-7})}) {
    const std::string svg = line_charts_svg({chart});
    EXPECT_EQ(test::xml_fault(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(LineChart, LeavesAGapWhereAValueIsNotFinite) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const std::string svg = line_charts_svg({chart_of({0, 1, 2, 3, 4}, {1, 2, nan, inf, 3})});
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChart, WantsAsManyXAsY) { EXPECT_THROW(line_charts_svg({chart_of({0, 1}, {1})}), Error); }

TEST(HeatMap, ShowsCountsAndNames) {
  HeatMap map{"Confusion", "true", "predicted", {"cat", "<dog>"}, {"cat", "<dog>"}, {8, 2, 0, 12}, true};
  const std::string svg = heat_map_svg(map);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;dog&gt;"));
  EXPECT_THAT(svg, HasSubstr(">12</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>cat → &lt;dog&gt;: 2</title>"));
}

TEST(HeatMap, GrowsWithoutLimitAndShrinksToNothing) {
  HeatMap map;
  EXPECT_EQ(test::xml_fault(heat_map_svg(map)), "");
  map.rows.assign(300, "class");
  map.columns = map.rows;
  map.values.assign(300 * 300, 0);
  map.values[5] = 1;
  const std::string svg = heat_map_svg(map);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_LT(svg.size(), 100000U) << "empty cells are not drawn";
}

TEST(HeatMap, WantsAValueForEachCell) { EXPECT_THROW(heat_map_svg({"", "", "", {"a"}, {"b"}, {1, 2}, false}), Error); }

TEST(EscapeXml, MakesAnyBytesSafe) {
  EXPECT_EQ(escape_xml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_xml("café – 猫 🐈"), "café – 猫 🐈");
  EXPECT_EQ(escape_xml(std::string("\x00\x1b", 2)), "??");
  EXPECT_EQ(escape_xml("\xff\xc3"), "??");
  EXPECT_EQ(escape_xml("\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(escape_xml("\xed\xa0\x80"), "???") << "a surrogate";
}

TEST(LineChart, DashesLinesWhoseColoursComeAgain) {
  LineChart chart;
  for (int i = 0; i < 12; ++i) {
    chart.series.push_back(chart_of({0, 1}, {0, static_cast<double>(i)}).series[0]);
  }
  EXPECT_EQ(count(line_charts_svg({chart}), "stroke-dasharray"), 4U) << "two lines, each in the legend too";
}

}  // namespace
}  // namespace vitrail::io
