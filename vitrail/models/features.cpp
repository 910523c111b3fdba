#include "vitrail/models/features.h"

#include <nlohmann/json.hpp>

#include "vitrail/models/family.h"
#include "vitrail/models/vit.h"

namespace vitrail::models {

Model without_head(const Model& model, const std::string& pool) {
  nn::StoreOptions store = model.net->parameters.options();
  store.fill = nn::Fill::leave;
  nlohmann::json arguments = nlohmann::json::parse(model.model_args);
  arguments["num_classes"] = 0;
  if (!pool.empty()) {
    arguments["global_pool"] = pool;
    const auto* vit = dynamic_cast<const VisionTransformer*>(model.net.get());
    if (vit != nullptr && !vit->config().distilled) {
      arguments["fc_norm"] = model.net->parameters.find("fc_norm.weight") != nullptr;
    }
  }
  Model result = build_model(model.architecture, arguments, "the model without its head", store);
  for (const nn::Parameter& parameter : result.net->parameters.all()) {
    const nn::Parameter* own = model.net->parameters.find(parameter.name);
    check(own != nullptr && own->value.shape() == parameter.value.shape(),
          "the features by global_pool '{}' need '{}' {}, which the model '{}' does not have", pool, parameter.name,
          parameter.value.shape(), model.architecture);
    parameter.value.copy_from(own->value.detach());
    parameter.value.touch();
  }
  result.pretrained = model.pretrained;
  result.pretrained.label_names.clear();
  return result;
}

}  // namespace vitrail::models
