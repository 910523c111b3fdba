// Any bytes as the config.json of a model folder, read as every command reads it: an Error, or a model whose shapes can
// be asked for and whose FLOPs can be counted. No memory is taken for its parameters.
#include <nlohmann/json.hpp>

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/io/json.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
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

// A detector, and a network for questions.
void read_others(std::string_view text) {
  static const Folder folder("config-others");
  folder.write("config.json", text);
  try {
    const models::Detector detector = models::load_detector(folder.path(), {.fill = nn::Fill::meta});
    require(std::ssize(detector.labels) == detector.net->config().num_labels);
  } catch (const Error&) {
  }
  try {
    const models::VqaModel model = models::load_vqa(folder.path(), nn::Fill::meta);
    require(std::ssize(model.answers) == model.net->config().num_answers && model.net->config().patches() > 0);
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(config)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  const std::string_view text = text_of(data, size);
  read_json(text);
  read_model(text);
  read_recurrent(text);
  read_others(text);
  return 0;
}
