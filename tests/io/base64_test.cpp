#include "vitrail/io/base64.h"

#include <gmock/gmock.h>

#include "tests/support/errors.h"

namespace vitrail::io {
namespace {

// The vectors of RFC 4648, section 10.
TEST(Base64, HasTheTextsOfTheRfc) {
  for (const auto& [bytes, text] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
  const std::string all("\x00\xff\xfe\x10", 4);
  EXPECT_EQ(decode_base64(encode_base64(all)), all);
}

TEST(Base64, RefusesOtherTexts) {
  EXPECT_THAT(test::error_of([] { decode_base64("Zg="); }), testing::HasSubstr("3 characters is not base 64"));
  EXPECT_THAT(test::error_of([] { decode_base64("Zm9!"); }), testing::HasSubstr("character 3"));
}

}  // namespace
}  // namespace vitrail::io
