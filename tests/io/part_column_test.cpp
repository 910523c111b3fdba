#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/io/csv.h"

namespace vitrail::io {
namespace {

using test::error_of;

// The parts that a table says of its rows, one after the other.
std::string parts_of(const std::string& table) {
  const std::vector<CsvRow> rows = parse_csv(table, "t.csv");
  const auto column = part_column(rows, "t.csv");
  std::string all;
  for (std::size_t i = 1; column && i < rows.size(); ++i) {
    all += (all.empty() ? "" : " ") + column->part_of(rows[i], rows[0], "t.csv");
  }
  return column ? all : "none";
}

TEST(PartColumn, NamesPartsOrTellsTwoApart) {
  EXPECT_EQ(parts_of("path,split\na, Train \nb,VAL\n"), "train val");
  EXPECT_EQ(parts_of("path,Subset\na,fold1\n"), "fold1");
  EXPECT_EQ(parts_of("path,is_valid\na,True\nb,False\nc,1\nd,0\ne,no\n"), "validation train validation train train");
  EXPECT_EQ(parts_of("path,is_test\na,true\nb,false\n"), "test train");
  EXPECT_EQ(parts_of("path,is_train\na,true\nb,false\n"), "train validation");
  EXPECT_EQ(parts_of("path,is_valid,split\na,True,test\n"), "test") << "a name says more";
  EXPECT_EQ(parts_of("path,is_test,is_valid\na,1,0\nb,0,1\nc,0,0\nd,,\n"), "test validation train ");
  EXPECT_EQ(parts_of("path,is_train,is_test\na,1,0\nb,0,1\nc,0,0\n"), "train test validation");
  EXPECT_EQ(parts_of("path,valid\na,True\n"), "none");
  EXPECT_EQ(parts_of("path,is_train,is_valid\na,1,0\nb,0,1\nc,0,0\n"), "train validation test");
  EXPECT_EQ(parts_of("path,is_valid\na,y\nb,n\nc,\n"), "validation train ");
  EXPECT_EQ(parts_of("path,split,is_valid\na,fold1,True\nb,,True\nc,train,False\n"), "fold1 validation train");
  EXPECT_EQ(parts_of("path,is_valid\na,broken\nb,whole\n"), "none") << "other words in all rows";
  EXPECT_EQ(error_of([] { parts_of("path,is_valid\na,True\nb,perhaps\n"); }),
            "t.csv: line 3 says 'perhaps' of which part it is, where True or False was expected");
}

TEST(PartColumn, RefusesRowsOfTwoParts) {
  const auto error_in = [](const std::string& table) { return error_of([&] { parts_of(table); }); };
  EXPECT_EQ(error_in("path,split,is_valid\na,train,False\nb,train,True\n"),
            "t.csv: line 3 is of two parts, by its 'split' and its 'is_valid'");
  EXPECT_EQ(error_in("path,is_valid,is_test\na,1,1\n"),
            "t.csv: line 2 is of two parts, by its 'is_valid' and its 'is_test'");
  for (const char* table : {"path,split,is_train\na,train,no\n", "path,split,is_train\na,val,yes\n"}) {
    EXPECT_EQ(error_in(table), "t.csv: line 2 is of two parts, by its 'split' and its 'is_train'");
  }
  for (const char* table : {"path,split,is_test\na,val,True\n", "path,split,is_test\na,test,False\n"}) {
    EXPECT_EQ(error_in(table), "t.csv: line 2 is of two parts, by its 'split' and its 'is_test'");
  }
  EXPECT_EQ(error_in("path,is_train,is_valid,is_test\na,0,0,0\n"),
            "t.csv: line 2 is of no part: all of its columns say False");
}

}  // namespace
}  // namespace vitrail::io
