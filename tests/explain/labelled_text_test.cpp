#include "vitrail/explain/labelled_text.h"

#include <gmock/gmock.h>

namespace vitrail::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LabelledText, HasAGroundInTheColorOfItsLabel) {
  const std::string svg =
      labelled_texts_svg({{{"der", "small", 1.0}, {"<Hund>", "capital", 0.5}}}, {"capital", "small"});
  EXPECT_THAT(svg, HasSubstr("<title>small: 100.0 %</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>capital: 50.0 %</title>"));
  EXPECT_THAT(svg, HasSubstr("&lt;Hund&gt;"));
  EXPECT_THAT(svg, HasSubstr("fill=\"#2463c5\" fill-opacity=\"0.40\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"#e4572e\" fill-opacity=\"0.70\""));
  EXPECT_THAT(svg, Not(HasSubstr("<Hund>")));
}

TEST(LabelledText, TakesAsManyLinesAsItNeeds) {
  const std::vector<LabelledWord> text(40, {"Donaudampfschiff", "noun", 1.0});
  const auto lowest = [](const std::string& svg) {
    return std::stod(svg.substr(svg.find(" y=\"", svg.rfind("<rect x=")) + 4));
  };
  EXPECT_GT(lowest(labelled_texts_svg({text}, {"noun"})), lowest(labelled_texts_svg({{text[0]}}, {"noun"})) + 60);
}

}  // namespace
}  // namespace vitrail::explain
