#include "vitrail/models/base/kwargs.h"

#include <gtest/gtest.h>

#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

TEST(Kwargs, ReadsPythonLiterals) {
  EXPECT_EQ(kwargs_to_json({"img_size=32", "class_token=False", "init_values=1e-5", "fc_norm=None"}),
            R"({"class_token":false,"fc_norm":null,"img_size":32,"init_values":1e-05})");
  EXPECT_EQ(kwargs_to_json({"img_size=(32, 48)", "a=[1,(2,3),]", "b=.5", "c=-3."}),
            R"({"a":[1,[2,3]],"b":0.5,"c":-3.0,"img_size":[32,48]})");
}

TEST(Kwargs, TakesAnythingElseAsText) {
  EXPECT_EQ(kwargs_to_json({"global_pool=avg", "norm_layer='layernorm'", "x=a=b", "y="}),
            R"({"global_pool":"avg","norm_layer":"layernorm","x":"a=b","y":""})");
}

TEST(Kwargs, AreSetByFlagsWhichMayContradictThem) {
  std::string kwargs = R"({"depth":2,"img_size":[32,32]})";
  EXPECT_EQ(set_kwarg(kwargs, "img_size", "32"), "");
  EXPECT_EQ(set_kwarg(kwargs, "in_chans", "1"), "");
  EXPECT_EQ(kwargs, R"({"depth":2,"img_size":32,"in_chans":1})");
  EXPECT_EQ(set_kwarg(kwargs, "img_size", "[32,48]"), "img_size=32");
  EXPECT_EQ(kwargs, R"({"depth":2,"img_size":[32,48],"in_chans":1})");
}

TEST(Kwargs, SaysWhatAnItemLooksLike) {
  EXPECT_THROW(kwargs_to_json({"img_size"}), Error);
  EXPECT_THROW(kwargs_to_json({"=3"}), Error);
  EXPECT_THROW(kwargs_to_json({"a=1", "a=2"}), Error);
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(kwargs_to_json({"a=" + nested(64)}), R"({"a":)" + nested(64) + "}");
  EXPECT_THROW(kwargs_to_json({"a=" + nested(100000)}), Error);
  EXPECT_THROW(kwargs_to_json({"a=\xff"}), Error);
}

}  // namespace
}  // namespace vitrail::models
