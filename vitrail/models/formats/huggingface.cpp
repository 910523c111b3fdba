#include "vitrail/models/formats/huggingface.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/formats/preprocessor.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

}  // namespace

bool is_hub_config(const Json& config) { return config.is_object() && config.contains("model_type"); }

std::string hub_model_type(const Json& config, const std::string& source) {
  return io::Fields(config, source).get<std::string>("model_type");
}

FolderConfig read_hub_folder(const Json& config, const fs::path& folder, const HubKind& kind) {
  // The configs of transformers have many kinds of keys, also of other versions: keys that are of no use here are
  // ignored without a list of them.
  io::Fields f(config, (folder / config_file).string());
  FolderConfig result;
  kind.read(f, result);
  result.pretrained.channels = result.input_size[0];
  result.pretrained.height = result.input_size[1];
  result.pretrained.width = result.input_size[2];
  read_preprocessor(folder, result.pretrained);
  if (!result.fixed_input_size) {  // such a model takes the size that its images are prepared in
    result.input_size = {result.input_size[0], result.pretrained.height, result.pretrained.width};
  }
  return result;
}

HubForm hub_form_of(const Model& model) {
  const std::string refusal = fmt::format("'{}' cannot be written in Hugging Face's layout: ", model.architecture);
  check(model.family->hub_form != nullptr, "{}only Vision Transformers and Swin Transformers can", refusal);
  try {
    return model.family->hub_form(*model.net);
  } catch (const Error& error) {
    fail("{}{}", refusal, error.what());
  }
}

HubFiles hub_files(const Model& model, const HubForm& form) {
  HubFiles files;
  OrderedJson head;
  head["architectures"] = {form.architecture};
  head["model_type"] = form.model_type;
  head.update(form.config);
  files.config = std::move(head);
  files.config["dtype"] = "float32";
  files.config[own_object]["architecture"] = find_architecture(model.architecture).name;
  if (model.net->num_classes() > 0) {
    for (std::int64_t i = 0; i < model.net->num_classes(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const std::string name = index < model.pretrained.label_names.size() ? model.pretrained.label_names[index]
                                                                           : fmt::format("LABEL_{}", i);
      files.config["id2label"][std::to_string(i)] = name;
      files.config["label2id"][name] = i;
    }
    if (model.pretrained.problem_type != ProblemType::single_label_classification) {
      files.config[problem_type_field] = name_of(model.pretrained.problem_type);
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
  for (const auto& [name, shape] : form.zeros) {
    const bool of_prefix = bare && !form.prefix.empty() && name.starts_with(form.prefix);
    files.tensors.emplace_back(of_prefix ? name.substr(form.prefix.size()) : name, Tensor::zeros(shape));
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
