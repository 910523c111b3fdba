// Any bytes as a config.json: an Error, or values inside their ranges. The fields are those of a Vision Transformer's
// model folder, read as the models read them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "memory_limit.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace {

using namespace vitrail;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void read_model_args(io::Fields fields) {
  const io::Range sizes{1, 1 << 20};
  if (fields.kind("img_size") == io::Kind::list) {
    for (const std::int64_t side : fields.get<std::vector<std::int64_t>>("img_size", sizes)) {
      require(side >= 1 && side <= 1 << 20);
    }
  } else {
    const auto side = fields.get<std::int64_t>("img_size", 224, sizes);
    require(side >= 1 && side <= 1 << 20);
  }
  const auto depth = fields.get<std::int64_t>("depth", 12, {0, 1000});
  require(depth >= 0 && depth <= 1000);
  const auto ratio = fields.get<double>("mlp_ratio", 4, {1e-3, 1e3});
  require(ratio >= 1e-3 && ratio <= 1e3);
  fields.get<bool>("qkv_bias", true);
  fields.optional<double>("init_values");
  const std::string pool = fields.choice("global_pool", "token", {"", "token", "avg", "max", "sum", "map"});
  require(pool.size() <= 5);
  fields.finish();
}

void read_config(const nlohmann::json& json) {
  io::Fields fields(json, "input");
  fields.get<std::string>("architecture", "vit_tiny_patch16_224");
  fields.optional<std::int64_t>("num_classes", io::at_least(0));
  if (fields.kind("model_args") != io::Kind::absent) {
    read_model_args(fields.object("model_args"));
  }
  if (fields.kind("pretrained_cfg") != io::Kind::absent) {
    io::Fields pretrained = fields.object("pretrained_cfg");
    pretrained.get<std::vector<double>>("mean", {0.5});
    pretrained.get<std::vector<std::string>>("label_names", {});
    pretrained.get<std::vector<bool>>("flags", {});
    pretrained.ignore("url");
    pretrained.finish();
  }
  fields.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  try {
    const nlohmann::json json = io::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    // What was read is written the same and read again.
    require(io::parse_json(json.dump(), "copy") == json);
    read_config(json);
  } catch (const Error&) {
  }
  return 0;
}
