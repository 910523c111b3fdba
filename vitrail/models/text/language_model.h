/// \file
/// Language models: created by name, loaded from Hugging Face's folders, and saved to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/text/decoder.h"
#include "vitrail/nn/network.h"

namespace vitrail::models {

/// A network that predicts the next token of a text.
struct LanguageNetwork final : nn::Network {
  explicit LanguageNetwork(const DecoderConfig& config, const nn::StoreOptions& store = {})
      : nn::Network(store), body(nn::Scope(parameters), config) {}

  std::int64_t depth() const override { return body.depth(); }
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_head(const std::string& parameter) const override { return body.is_head(parameter); }

  const Decoder body;
};

struct TextFamily;

/// A language model with all that its folder says about it.
struct LanguageModel {
  std::string name;                    ///< "gpt2-medium", or of a folder its "model_type"
  const TextFamily* family = nullptr;  ///< the family that created it
  std::unique_ptr<LanguageNetwork> net;
  /// config.json as text: the fields that it was created from, also those that are of no use here.
  std::string config = "{}";
};

/// What a caller may ask of a language model that is created or loaded.
struct LanguageOptions {
  std::string model_kwargs = "{}";  ///< fields of config.json that differ from the model's own, as a JSON object
  std::uint64_t seed = 0;
  nn::Fill fill = nn::Fill::initialize;  ///< meta: a model to ask about, not to run
};

/// The names that create_language_model() knows, sorted: "gpt2", "smollm2-135m" …
std::vector<std::string> language_models();
/// Creates a model by name with weights as training begins with. Throws Error, with similar names, if there is no such
/// model, or if a field is unknown.
LanguageModel create_language_model(const std::string& name, const LanguageOptions& options = {});
/// Loads a folder in transformers' layout: `config.json`, whose "model_type" is one of gpt2, llama, mistral and qwen2,
/// and `model.safetensors`. Throws Error if the folder cannot be read or does not fit.
LanguageModel load_language_model(const std::filesystem::path& folder, const LanguageOptions& options = {});
/// Loads the folder `name_or_folder` if it is one, otherwise creates a model of this name.
LanguageModel open_language_model(const std::string& name_or_folder, const LanguageOptions& options = {});
/// Whether open_language_model() knows the name, or the folder's config.json is that of a language model.
bool names_language_model(const std::string& name_or_folder);
/// Writes the config.json and model.safetensors that transformers' from_pretrained() reads into `folder`, which exists.
void write_language_model(const LanguageModel& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
