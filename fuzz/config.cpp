// Any bytes as the config.json of a model folder, read as every command reads it: an Error, or a model whose shapes can
// be asked for and whose FLOPs can be counted. No memory is taken for its parameters.
#include <nlohmann/json.hpp>

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "vitrail/io/json.h"
#include "vitrail/models/model.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/tensor/error.h"

namespace {

using namespace vitrail;

void read_json(std::string_view text) {
  try {
    const nlohmann::json json = io::parse_json(text, "input");
    // What was read is written the same and read again.
    require(io::parse_json(json.dump(), "copy") == json);
  } catch (const Error&) {
  }
}

void read_model(std::string_view text) {
  static const Folder folder("config");
  folder.write("config.json", text);
  models::CreateOptions options;
  options.fill = nn::Fill::meta;
  try {
    const models::Model model = models::load_model(folder.path(), options);
    require(model.net->num_classes() >= 0 && model.net->depth() >= 0 && model.net->num_features() > 0);
    require(model.pretrained.height > 0 && model.pretrained.width > 0 && model.pretrained.channels > 0);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::int64_t layer = model.net->layer_of(parameter.name);
      require(layer >= 0 && layer <= model.net->depth() + 1);
      model.net->no_weight_decay(parameter.name);
    }
    model.net->token_layout(model.pretrained.height, model.pretrained.width);
    require(model.net->flops(model.pretrained.height, model.pretrained.width) >= 0);
  } catch (const Error&) {
  }
}

void read_recurrent(std::string_view text) {
  try {
    const nlohmann::json json = io::parse_json(text, "input");
    const models::RecurrentModel model(models::read_recurrent_config(json, "input"), {.fill = nn::Fill::meta});
    for (const nn::Parameter& parameter : model.parameters.all()) {
      const std::int64_t layer = model.layer_of(parameter.name);
      require(layer >= 1 && layer <= model.depth());
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  const std::string_view text = text_of(data, size);
  read_json(text);
  read_model(text);
  read_recurrent(text);
  return 0;
}
