#include "vitrail/io/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"

namespace vitrail::io {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string json_complaint(const std::string& text) {
  return error_of([&] { parse_json(text, "config.json"); });
}

TEST(Json, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(json_complaint("{}"), "no error");
  EXPECT_THAT(json_complaint("{\n  \"a\": 1,\n}"),
              StartsWith("config.json: not valid JSON: line 3, column 1: syntax error"));
  for (const char* broken :
       {"", "{", "{\"a\" 1}", "[1 2]", "{} x", "{'a': 1}", "[NaN]", "[Infinity]", "// no\n{}", "[01]", "[1.]", "[+1]",
        "\"\x01\"", "\"\xff\"", "\"\\x\"", "[tru]", "\xef\xbb", "[1e999]"}) {
    EXPECT_THAT(json_complaint(broken), StartsWith("config.json: not valid JSON: ")) << broken;
  }
  EXPECT_THAT(json_complaint(std::string("{}\0{", 4)), EndsWith("it has a NUL byte"));
  EXPECT_LT(json_complaint("[\"" + std::string(100'000, 'x')).size(), 400U);
}

// A list as long as that of COCO's annotations takes a moment, not a time that grows with the square of its length.
TEST(Json, MayHaveLongLists) {
  std::string whole = R"({"annotations": [)";
  for (int i = 0; i < 200'000; ++i) {
    whole += R"({"id": 7, "caption": "a \" and a [ and a }"},)";
  }
  EXPECT_THAT(
      json_complaint(whole + R"({"id": 7, "capt)"),
      AllOf(StartsWith("config.json: not valid JSON: line 1, column 90000"), HasSubstr("missing closing quote")));
  whole.back() = ']';
  EXPECT_EQ(json_complaint(whole + "}"), "no error");
}

TEST(Json, MustNotRepeatAKey) {
  EXPECT_EQ(json_complaint(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})"), "no error");
  EXPECT_EQ(json_complaint(R"({"a": 1, "b": 2, "a": 3})"), "config.json: the key 'a' is there twice in one object");
  EXPECT_THAT(json_complaint(R"([{"x": {"a": 1, "\u0061": 2}}])"),
              EndsWith("the key 'a' is there twice in one object"));
}

TEST(Json, MustNotNestDeep) {
  EXPECT_EQ(json_complaint(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(json_complaint(std::string(65, '[') + std::string(65, ']')), "config.json: nested deeper than 64 levels");
  EXPECT_THAT(json_complaint(std::string(1'000'000, '[')), EndsWith("nested deeper than 64 levels"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_THAT(json_complaint(objects), EndsWith("nested deeper than 64 levels"));
}

TEST(Json, ReadsFilesAndNamesThem) {
  const test::TemporaryFolder folder;
  write_atomically(folder / "config.json", R"({"depth": 12})");
  EXPECT_EQ(read_json(folder / "config.json")["depth"], 12);
  write_atomically(folder / "config.json", "{");
  EXPECT_THAT(error_of([&] { read_json(folder / "config.json"); }),
              StartsWith((folder / "config.json").string() + ": not valid JSON: line 1, column 2"));
}

class FieldsOf : public ::testing::Test {
 protected:
  Fields fields(const std::string& text) {
    json_ = parse_json(text, "config.json");
    return {json_, "config.json"};
  }

 private:
  nlohmann::json json_;
};

TEST_F(FieldsOf, AnObjectHaveTypesAndDefaults) {
  Fields all = fields(R"({"b": true, "i": -3, "whole": 4, "d": 0.5, "s": "text", "bs": [true, false], "is": [1, 2],
                          "ds": [1, 2.5], "ss": ["x"], "none": [], "big": 9223372036854775807})");
  EXPECT_TRUE(all.get<bool>("b"));
  EXPECT_EQ(all.get<std::int64_t>("i"), -3);
  EXPECT_EQ(all.get<double>("whole"), 4.0);
  EXPECT_EQ(all.get<double>("d", 1.0), 0.5);
  EXPECT_EQ(all.get<std::string>("s", "other"), "text");
  EXPECT_THAT(all.get<std::vector<bool>>("bs"), ElementsAre(true, false));
  EXPECT_THAT(all.get<std::vector<std::int64_t>>("is"), ElementsAre(1, 2));
  EXPECT_THAT(all.get<std::vector<double>>("ds"), ElementsAre(1, 2.5));
  EXPECT_THAT(all.get<std::vector<std::string>>("ss"), ElementsAre("x"));
  EXPECT_THAT(all.get<std::vector<double>>("none"), IsEmpty());
  EXPECT_EQ(all.get<std::int64_t>("big"), INT64_MAX);
  EXPECT_EQ(all.get<std::int64_t>("absent", 7), 7);
  EXPECT_EQ(all.get<std::string>("gone", "x"), "x");
  EXPECT_NO_THROW(all.finish());
}

TEST_F(FieldsOf, AnObjectNameTheKeyOfAWrongType) {
  Fields all =
      fields(R"({"b": 1, "i": 4.0, "d": "0.5", "s": null, "l": {}, "is": [1, "2"], "big": 9223372036854775808})");
  EXPECT_EQ(error_of([&] { all.get<bool>("b"); }), "config.json: 'b' must be true or false, but is 1");
  EXPECT_EQ(error_of([&] { all.get<std::int64_t>("i"); }), "config.json: 'i' must be a whole number, but is 4.0");
  EXPECT_EQ(error_of([&] { all.get<double>("d"); }), "config.json: 'd' must be a number, but is \"0.5\"");
  EXPECT_EQ(error_of([&] { all.get<std::string>("s", "x"); }), "config.json: 's' must be a string, but is null");
  EXPECT_EQ(error_of([&] { all.get<std::vector<double>>("l"); }), "config.json: 'l' must be a list, but is an object");
  EXPECT_EQ(error_of([&] { all.get<std::vector<std::int64_t>>("is"); }),
            "config.json: 'is'[1] must be a whole number, but is \"2\"");
  EXPECT_THAT(error_of([&] { all.get<std::int64_t>("big"); }), EndsWith("whole number, but is 9223372036854775808"));
  EXPECT_EQ(error_of([&] { all.get<bool>("absent"); }), "config.json: 'absent' is missing");
  EXPECT_EQ(error_of([&] { fields("[1, 2]"); }), "config.json: must be an object, but is a list of 2");
}

TEST_F(FieldsOf, AnObjectHaveRanges) {
  Fields all = fields(R"({"n": 5, "rate": 1.5, "sizes": [1, 0]})");
  EXPECT_EQ(all.get<std::int64_t>("n", {5, 5}), 5);
  EXPECT_EQ(error_of([&] { all.get<std::int64_t>("n", 1, {1, 4}); }), "config.json: 'n' must be from 1 to 4, but is 5");
  EXPECT_EQ(error_of([&] { all.get<double>("rate", {0, 1}); }), "config.json: 'rate' must be from 0 to 1, but is 1.5");
  EXPECT_EQ(error_of([&] { all.get<std::vector<std::int64_t>>("sizes", at_least(1)); }),
            "config.json: 'sizes'[1] must be at least 1, but is 0");
  EXPECT_EQ(error_of([&] {
              all.get<std::int64_t>("n", {-INFINITY, 4});
            }),
            "config.json: 'n' must be at most 4, but is 5");
}

TEST_F(FieldsOf, AnObjectTellAbsentAndNullFromValues) {
  Fields all = fields(R"({"null": null, "x": 1, "size": [2, 3], "o": {"depht": 3}})");
  EXPECT_EQ(all.optional<double>("null"), std::nullopt);
  EXPECT_EQ(all.optional<double>("absent"), std::nullopt);
  EXPECT_EQ(all.optional<double>("x"), 1.0);
  EXPECT_EQ(all.kind("null"), Kind::null);
  EXPECT_EQ(all.kind("nothing"), Kind::absent);
  EXPECT_EQ(all.kind("x"), Kind::integer);
  EXPECT_EQ(all.kind("size"), Kind::list);
  EXPECT_EQ(all.raw("size")[1], 3);
  Fields inner = all.object("o");
  inner.get<std::int64_t>("depth", 1);
  EXPECT_EQ(error_of([&] { inner.finish(); }), "config.json, 'o': unknown key 'depht' (did you mean 'depth'?)");
  EXPECT_EQ(error_of([&] { all.object("x"); }), "config.json, 'x': must be an object, but is 1");
}

TEST_F(FieldsOf, AnObjectCanBeAChoice) {
  Fields all = fields(R"({"pool": "tokn"})");
  EXPECT_EQ(all.choice("absent", "own default", {"a"}), "own default");
  EXPECT_EQ(error_of([&] {
              all.choice("pool", "avg", {"token", "avg", "max"});
            }),
            "config.json: 'pool' must be 'token', 'avg' or 'max', but is 'tokn' (did you mean 'token'?)");
}

TEST_F(FieldsOf, AnObjectKnowWhichNobodyAskedFor) {
  Fields all = fields(R"({"embed_dim": 192, "img_sise": 224, "notes": "x"})");
  all.get<std::int64_t>("embed_dim");
  all.get<std::int64_t>("img_size", 224);
  all.ignore("notes");
  EXPECT_EQ(error_of([&] { all.finish(); }), "config.json: unknown key 'img_sise' (did you mean 'img_size'?)");
  Fields several = fields(R"({"b": 1, "a": 2, "c": 3})");
  EXPECT_EQ(error_of([&] { several.finish(); }), "config.json: unknown keys 'a', 'b' and 'c'");
}

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("Depht", "depth"), 1U);  // neighbours swapped, case ignored
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2U);
}

TEST(Suggest, FindsTheNearestNamesFirst) {
  const std::vector<std::string> names = {"vit_base_patch16_224", "vit_tiny_patch16_224", "vit_tiny_patch8_224",
                                          "resnet50"};
  EXPECT_THAT(nearest("vit_tiny_patch16_24", names),
              ElementsAre("vit_tiny_patch16_224", "vit_tiny_patch8_224", "vit_base_patch16_224"));
  EXPECT_THAT(nearest("vit_tiny_patch16_24", names, 1), ElementsAre("vit_tiny_patch16_224"));
  EXPECT_THAT(nearest("vit_tiny", names), ElementsAre("vit_tiny_patch8_224", "vit_tiny_patch16_224"));
  EXPECT_THAT(nearest("ResNet5O", names), ElementsAre("resnet50"));
  EXPECT_THAT(nearest("swin", names), IsEmpty());
  EXPECT_THAT(nearest("", names), IsEmpty());
}

TEST(Suggest, MakesTheEndOfASentence) {
  EXPECT_EQ(did_you_mean("--bach-size", {"--batch-size", "--workers"}), " (did you mean '--batch-size'?)");
  EXPECT_EQ(did_you_mean("lr", {"opt", "epochs"}), "");
  EXPECT_EQ(did_you_mean("--grad-clip", {"--grad-dtype", "--clip-grad"}),
            " (did you mean '--clip-grad' or '--grad-dtype'?)");
  EXPECT_EQ(quoted_list({}), "");
  EXPECT_EQ(quoted_list({"a", "b", "c"}, "and"), "'a', 'b' and 'c'");
}

}  // namespace
}  // namespace vitrail::io
