#include "vitrail/io/toml.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::io {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

std::string toml_complaint(const std::string& text) {
  return error_of([&] { parse_toml(text, "config.toml"); });
}

TEST(Toml, IsReadThroughFields) {
  const nlohmann::json config = parse_toml(R"(
# a run
[data]
data_dir = 'C:\images'
mean = [0.5, 0.25]
[optimizer]
lr = 1e-3
epochs = 300
amp = true
)",
                                           "config.toml");
  Fields all(config, "config.toml");
  Fields data = all.object("data");
  EXPECT_EQ(data.get<std::string>("data_dir"), "C:\\images");
  EXPECT_THAT(data.get<std::vector<double>>("mean"), ElementsAre(0.5, 0.25));
  Fields optimizer = all.object("optimizer");
  EXPECT_EQ(optimizer.get<double>("lr"), 1e-3);
  EXPECT_EQ(optimizer.get<std::int64_t>("epochs"), 300);
  EXPECT_EQ(error_of([&] { optimizer.finish(); }), "config.toml, 'optimizer': unknown key 'amp'");
}

TEST(Toml, SaysWhereAndWhatIsWrong) {
  EXPECT_THAT(toml_complaint("a = 1\nb = = 2\n"), StartsWith("config.toml: not valid TOML: line 2, column 5: "));
  for (const char* broken :
       {"a", "a = ", "[a", "a = 1\na = 2", "[a]\n[a]", "a = 'x", "a = [1, 2", "a = 01", "a = \xff"}) {
    EXPECT_THAT(toml_complaint(broken), StartsWith("config.toml: not valid TOML: line ")) << broken;
  }
  EXPECT_EQ(toml_complaint("x = 1\nwhen = 2024-01-01\n"), "config.toml: line 2: dates and times are not supported");
  EXPECT_EQ(toml_complaint(""), "no error");
}

TEST(Toml, MustNotNestDeep) {
  std::string dotted = "a";
  for (int i = 0; i < 200'000; ++i) {
    dotted += ".a";
  }
  EXPECT_EQ(toml_complaint(dotted + " = 1"), "config.toml: a key has more than 32 parts");
  EXPECT_THAT(toml_complaint("[" + dotted + "]"), EndsWith("more than 32 parts"));
  std::string quoted = "x = {\"=\"";
  for (int i = 0; i < 200'000; ++i) {
    quoted += " . '=\\' . \"\\\"=\"";
  }
  EXPECT_THAT(toml_complaint(quoted + " = 1}"), EndsWith("more than 32 parts"));
  EXPECT_THAT(toml_complaint("x = [\"\"\"\\\"\"\"\"\"\", {" + dotted + " = 1}]"), EndsWith("more than 32 parts"));
  EXPECT_THAT(toml_complaint("x = " + std::string(200'000, '[')), StartsWith("config.toml: not valid TOML"));
  const std::string dots(500, '.');
  EXPECT_EQ(toml_complaint("x = 'a.b" + dots + "' # a.b" + dots + "\ny = [" + std::string(200, ' ') + "1.5, 2.5]"),
            "no error");
}

TEST(TomlValue, ReadsBackToTheBit) {
  const auto back = [](const std::string& value) { return parse_toml("x = " + value, "text")["x"]; };
  for (const double number :
       std::initializer_list<double>{0.0, -0.0, 1.0, 0.1, -1e-300, 1e300, 5e-324, 1.7976931348623157e308,
                                     123456789012345680.0, INFINITY, -INFINITY}) {
    const nlohmann::json value = back(toml_value(number));
    ASSERT_TRUE(value.is_number_float()) << toml_value(number);
    EXPECT_EQ(value.get<double>(), number);
    EXPECT_EQ(std::signbit(value.get<double>()), std::signbit(number));
  }
  EXPECT_TRUE(std::isnan(back(toml_value(std::nan(""))).get<double>()));
  for (const std::int64_t number : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    EXPECT_EQ(back(toml_value(number)), number);
  }
  EXPECT_EQ(back(toml_value(true)), true);
  for (const std::string& text : {std::string(), std::string("plain"), std::string("C:\\x"), std::string("\"quoted\""),
                                  std::string("it's \"both\""), std::string("a\nb\t\x01\x7f"), std::string("größe 😀"),
                                  std::string("\0", 1), std::string("'''"), std::string(R"({"img_size": 32})")}) {
    EXPECT_EQ(back(toml_value(text)), text) << toml_value(text);
  }
  EXPECT_EQ(toml_value(R"({"img_size": 32})"), R"('{"img_size": 32}')");
}

TEST(TomlValue, WritesListsAndKeys) {
  EXPECT_EQ(toml_value(std::vector<double>{0.5, 1}), "[0.5, 1.0]");
  EXPECT_EQ(toml_value(std::vector<std::int64_t>{30, 60}), "[30, 60]");
  EXPECT_EQ(toml_value(std::vector<bool>{true, false}), "[true, false]");
  EXPECT_EQ(toml_value(std::vector<std::string>{"a", "b"}), R"(["a", "b"])");
  EXPECT_EQ(toml_value(std::vector<double>{}), "[]");
  EXPECT_EQ(toml_key("batch_size"), "batch_size");
  EXPECT_EQ(toml_key("a b"), "\"a b\"");
  EXPECT_EQ(toml_key(""), "\"\"");
  EXPECT_THAT(error_of([] { toml_value("\xff"); }), EndsWith("is not valid UTF-8, so it cannot be written as TOML"));
}

}  // namespace
}  // namespace vitrail::io
