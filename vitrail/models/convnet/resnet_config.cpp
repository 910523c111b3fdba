#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/convnet/families.h"
#include "vitrail/models/convnet/resnet.h"

namespace vitrail::models {

using io::Fields;

ResNetConfig read_resnet(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  ResNetConfig c;
  const io::Range count{1, most_channels};
  const auto number = [&](const char* key, std::int64_t fallback) { return f.get<std::int64_t>(key, fallback, count); };
  c.block = read_choice(f, "block", "bottleneck", {"basicblock", "bottleneck"}) == "basicblock"
                ? ResNetConfig::Block::basic
                : ResNetConfig::Block::bottleneck;
  c.layers = f.get<std::vector<std::int64_t>>("layers", c.layers, {1, 256});
  c.channels = f.get<std::vector<std::int64_t>>("channels", c.channels, count);
  check(c.layers.size() <= 4, "{}: 'layers' names {} stages, expected up to 4", source, c.layers.size());
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.in_chans = number("in_chans", c.in_chans);
  c.output_stride = number("output_stride", c.output_stride);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.cardinality = number("cardinality", c.cardinality);
  c.base_width = number("base_width", c.base_width);
  c.stem_width = number("stem_width", c.stem_width);
  const std::string stem = f.choice("stem_type", "", {"", "deep", "deep_tiered"});
  c.stem_type = stem.empty()     ? ResNetConfig::Stem::plain
                : stem == "deep" ? ResNetConfig::Stem::deep
                                 : ResNetConfig::Stem::deep_tiered;
  c.block_reduce_first = number("block_reduce_first", c.block_reduce_first);
  c.down_kernel_size = number("down_kernel_size", c.down_kernel_size);
  c.avg_down = f.get<bool>("avg_down", c.avg_down);
  c.act_layer = read_activation(f, "relu");
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  c.zero_init_last = f.get<bool>("zero_init_last", c.zero_init_last);
  if (f.kind("block_args") != io::Kind::absent) {
    Fields block = f.object("block_args");
    const std::string attention = block.choice("attn_layer", "", {"", "se", "nl"});
    c.attention = attention.empty()   ? ResNetConfig::Attention::none
                  : attention == "se" ? ResNetConfig::Attention::se
                                      : ResNetConfig::Attention::nl;
    if (attention == "nl") {
      c.nl_kind = nn::NonLocal::kind_named(block.choice(
          "nl_kind", "embedded_gaussian", {"embedded_gaussian", "gaussian", "dot_product", "concatenation"}));
    }
    block.finish();
  }
  c.sagan_stages = f.get<std::vector<std::int64_t>>("sagan_stages", c.sagan_stages, {1, 4});
  c.img_size = read_size(f, "img_size", c.img_size);
  f.finish();
  return c;
}

namespace {

// A classifier of vitrail's own: ResNet-18 with SAGAN's attention where the map has an eighth of the image's size.
std::string_view sagan_resnet_table() {
  return R"(
sagan_resnet (sagan_resnet) block=basicblock layers=(2,2,2,2) sagan_stages=(2,)
  untrained: crop_pct=0.95 normalization=imagenet
)";
}

}  // namespace

constinit const Family resnet_family = {.name = "resnet",
                                        .table = resnet_table,
                                        .build = build<ResNet, read_resnet>,
                                        .first_conv = "conv1 conv1.0",
                                        .sized = false};

constinit const Family sagan_resnet_family = {.name = "sagan_resnet",
                                              .table = sagan_resnet_table,
                                              .build = build<ResNet, read_resnet>,
                                              .first_conv = "conv1",
                                              .sized = false};

}  // namespace vitrail::models
