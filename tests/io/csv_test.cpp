#include "vitrail/io/csv.h"

#include <algorithm>
#include <iterator>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::io {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Row = std::vector<std::string>;

std::vector<Row> fields_of(const std::vector<CsvRow>& rows) {
  std::vector<Row> all;
  std::ranges::transform(rows, std::back_inserter(all), &CsvRow::fields);
  return all;
}

TEST(Csv, HasLinesThatEndInThreeWays) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string text = std::string("a,b") + end + end + "\"c" + end + "d\",e" + end + "f,g";
    const std::vector<CsvRow> rows = parse_csv(text, "table");
    EXPECT_THAT(fields_of(rows), ElementsAre(Row{"a", "b"}, Row{std::string("c") + end + "d", "e"}, Row{"f", "g"}));
    EXPECT_EQ(rows[1].line, 3U);
    EXPECT_EQ(rows[2].line, 5U) << "behind a line break in quotes";
  }
}

TEST(Csv, IsSeparatedAsItsNameAndItsFirstLineSay) {
  const auto parsed = [](const char* name, const std::string& text) { return fields_of(parse_table(text, name)); };
  EXPECT_THAT(parsed("a.csv", "x,y;z\n"), ElementsAre(Row{"x", "y;z"}));
  EXPECT_THAT(parsed("a.csv", "\n\nx;y\n1,5;2\n"), ElementsAre(Row{"x", "y"}, Row{"1,5", "2"}));
  EXPECT_THAT(parsed("a.csv", "x\ty\n1,5\t2\n"), ElementsAre(Row{"x", "y"}, Row{"1,5", "2"}));
  EXPECT_THAT(parsed("a.TSV", "x\ty, z\n"), ElementsAre(Row{"x", "y, z"}));
  EXPECT_THAT(error_of([&] { parsed("a.csv", "x;y\n1;2;3\n"); }),
              HasSubstr("line 2 has 3 fields, but line 1 has 2: a field that has a semicolon in it"));
  EXPECT_TRUE(is_table_name("A.CSV") && is_table_name("b.tsv"));
  EXPECT_FALSE(is_table_name("csv") || is_table_name("a.json"));
}

}  // namespace
}  // namespace vitrail::io
