#include "vitrail/models/huggingface.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/suggest.h"
#include "vitrail/models/huggingface_family.h"
#include "vitrail/models/huggingface_names.h"
#include "vitrail/models/mae.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

HubForm form_of(const Model& model) {
  const std::string refusal = fmt::format("'{}' cannot be written in Hugging Face's layout: ", model.architecture);
  check(!is_quantized(*model.net), "{}its weights are in int8, which transformers does not read", refusal);
  try {
    if (const auto* mae = dynamic_cast<const MaskedAutoencoder*>(model.net.get())) {
      HubForm form{"vit_mae", "ViTMAEForPreTraining", hub_mae_names(), "vit.", hub_encoder_json(mae->config().encoder)};
      form.config.update(mae_json(mae->config()));
      return form;
    }
    if (const auto* vit = dynamic_cast<const VisionTransformer*>(model.net.get())) {
      return hub_form(vit->config());
    }
    if (const auto* swin = dynamic_cast<const SwinTransformer*>(model.net.get())) {
      return hub_form(swin->config());
    }
  } catch (const Error& error) {
    fail("{}{}", refusal, error.what());
  }
  fail("{}only Vision Transformers and Swin Transformers can", refusal);
}

}  // namespace

const std::vector<HubFamily>& hub_families() {
  static const std::vector<HubFamily> all = {
      {"vit", read_hub_vit},         {"deit", read_hub_deit},
      {"dinov2", read_hub_dinov2},   {"dinov2_with_registers", read_hub_dinov2_with_registers},
      {"vit_mae", read_hub_vit_mae}, {"beit", read_hub_beit},
      {"swin", read_hub_swin},       {"swinv2", read_hub_swinv2}};
  return all;
}

bool is_hub_config(const Json& config) { return config.is_object() && config.contains("model_type"); }

FolderConfig read_hub_folder(const Json& config, const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  // Configs of transformers' have keys of all kinds, also ones of other versions: those that are of no use here are
  // passed over without a list of them.
  io::Fields f(config, source);
  const auto model_type = f.get<std::string>("model_type");
  const auto family = std::ranges::find(hub_families(), model_type, &HubFamily::model_type);
  if (family == hub_families().end()) {
    std::vector<std::string> known;
    for (const HubFamily& candidate : hub_families()) {
      known.emplace_back(candidate.model_type);
    }
    fail("{}: 'model_type' is '{}', expected {}{}", source, model_type, io::quoted_list(known),
         io::did_you_mean(model_type, known));
  }
  FolderConfig result;
  family->read(f, result);
  result.pretrained.channels = result.input_size[0];
  result.pretrained.height = result.input_size[1];
  result.pretrained.width = result.input_size[2];
  read_preprocessor(folder, result.pretrained);
  if (!result.fixed_input_size) {  // takes the size that its pictures are prepared in
    result.input_size = {result.input_size[0], result.pretrained.height, result.pretrained.width};
  }
  return result;
}

HubFiles hub_files(const Model& model) {
  const HubForm form = form_of(model);
  HubFiles files;
  OrderedJson head;
  head["architectures"] = {form.architecture};
  head["model_type"] = form.model_type;
  head.update(form.config);
  files.config = std::move(head);
  files.config["dtype"] = "float32";
  if (model.net->num_classes() > 0) {
    for (std::int64_t i = 0; i < model.net->num_classes(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const std::string name = index < model.pretrained.label_names.size() ? model.pretrained.label_names[index]
                                                                           : fmt::format("LABEL_{}", i);
      files.config["id2label"][std::to_string(i)] = name;
      files.config["label2id"][name] = i;
    }
  }
  files.preprocessor = preprocessor_json(model.pretrained);
  const bool bare = form.architecture.ends_with("Model");
  const NameMap names(form.names, bare ? "" : form.prefix, "decoder.decoder_layers.");
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    for (auto& entry : names.split(parameter.name, parameter.value.detach())) {
      files.tensors.push_back(std::move(entry));
    }
  }
  return files;
}

void write_hub_files(const HubFiles& files, const fs::path& folder) {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, files.config.dump(2) + "\n");
    io::write_atomically(temporary / "preprocessor_config.json", files.preprocessor.dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, files.tensors);
  });
}

}  // namespace vitrail::models
