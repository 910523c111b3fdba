#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/convnet/families.h"
#include "vitrail/models/convnet/resnetv2.h"

namespace vitrail::models {
namespace {

using io::Fields;
using Config = ResNetV2Config;

// Reads `conv_layer`: a name, or a pair of a name and the epsilon of weight standardization.
nn::ConvStyle read_conv_layer(Fields& fields) {
  float eps = 1e-6F;
  std::string name;
  if (fields.kind("conv_layer") == io::Kind::list) {
    const nlohmann::json& pair = fields.raw("conv_layer");
    check(pair.size() == 2 && pair[0].is_string() && pair[1].is_number() && pair[1].get<double>() > 0,
          "{}: 'conv_layer' is a name, or a pair of a name and an epsilon above 0", fields.source());
    name = pair[0].get<std::string>();
    eps = pair[1].get<float>();
    check(name == "stdconv2d" || name == "stdconv2dsame",
          "{}: 'conv_layer' with an epsilon is 'stdconv2d' or "
          "'stdconv2dsame', not '{}'",
          fields.source(), name);
  } else {
    name = read_choice(fields, "conv_layer", "stdconv2d", {"stdconv2d", "stdconv2dsame", "createconv2d"});
  }
  return {.standardize = name == "createconv2d" ? std::nullopt : std::optional(eps),
          .same_padding = name == "stdconv2dsame"};
}

Config read_resnetv2(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  Config c;
  const io::Range count{1, most_channels};
  c.layers = f.get<std::vector<std::int64_t>>("layers", c.layers, {1, 256});
  c.channels = f.get<std::vector<std::int64_t>>("channels", c.channels, count);
  check(c.layers.size() <= 8, "{}: 'layers' names {} stages, expected up to 8", source, c.layers.size());
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, count);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.width_factor = f.get<std::int64_t>("width_factor", c.width_factor, {1, 64});
  c.stem_chs = f.get<std::int64_t>("stem_chs", c.stem_chs, count);
  const std::string stem =
      f.choice("stem_type", "", {"", "fixed", "same", "deep", "deep_fixed", "deep_same", "tiered"});
  c.stem_type = stem == "tiered"           ? Config::Stem::tiered
                : stem.starts_with("deep") ? Config::Stem::deep
                                           : Config::Stem::plain;
  c.stem_pool = stem.ends_with("fixed")  ? Config::StemPool::zeros
                : stem.ends_with("same") ? Config::StemPool::by_size
                                         : Config::StemPool::even;
  c.avg_down = f.get<bool>("avg_down", c.avg_down);
  c.preact = f.get<bool>("preact", c.preact);
  c.basic = f.get<bool>("basic", c.basic);
  c.bottle_ratio = f.get<double>("bottle_ratio", c.bottle_ratio, {1e-3, 16});
  c.act_layer = read_activation(f, "relu");
  c.norm_layer = read_choice(f, "norm_layer", "groupnormact", {"groupnormact", "batchnormact2d"}) == "groupnormact"
                     ? nn::Norm2dKind::group
                     : nn::Norm2dKind::batch;
  c.conv_layer = read_conv_layer(f);
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  c.zero_init_last = f.get<bool>("zero_init_last", c.zero_init_last);
  c.img_size = read_size(f, "img_size", c.img_size);
  f.finish();
  return c;
}

}  // namespace

constinit const Family resnetv2_family = {.name = "resnetv2",
                                          .table = resnetv2_table,
                                          .build = build<ResNetV2, read_resnetv2>,
                                          .first_conv = "stem.conv stem.conv1",
                                          .sized = false};

}  // namespace vitrail::models
