/// \file
/// Models of text: created by name, loaded from Hugging Face's folders, and saved to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/models/base/held.h"
#include "vitrail/models/base/problem_type.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_classifier.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/translator.h"

namespace vitrail::models {

struct TextFamily;

/// A model of text with all that its folder says about it.
struct TextModel {
  std::string name;                    ///< "gpt2-medium", or of a folder its "model_type"
  const TextFamily* family = nullptr;  ///< the family that created it
  std::string architecture;            ///< transformers' class: "GPT2LMHeadModel"
  std::unique_ptr<TextNetwork> net;
  ProblemType problem_type = ProblemType::single_label_classification;  ///< of a classifier
  /// config.json as text: the fields that it was created from, also those that are of no use here.
  std::string config = "{}";
};

/// What a caller may ask of a model of text that is created or loaded.
struct TextModelOptions {
  std::string model_kwargs = "{}";  ///< fields of config.json that differ from the model's own, as a JSON object
  /// One of the family's architectures. Where the folder has another one, what its file does not have of the head, or
  /// has in another shape, is made anew, as by transformers. Empty: the folder's, or the family's first.
  std::string architecture = {};
  std::optional<double> drop = std::nullopt;  ///< rate of dropout wherever the model has it; unset: the model's own
  /// The names of the classes, with a classifier made anew if their number is another. Empty: the folder's.
  std::vector<std::string> labels = {};
  bool renew_classifier = false;  ///< whether what maps to the labels is made anew even if their number is the folder's
  std::uint64_t seed = 0;
  nn::Fill fill = nn::Fill::initialize;  ///< meta: a model to ask about, not to run
  /// For inference alone: held_text_weights() are held in this dtype (f32, bf16 or i8) and no other form. Tensors of a
  /// folder are converted one after the other. A folder in int8 stays so. Unset: weights can be trained.
  std::optional<DType> weights = std::nullopt;
};

/// The names that create_text_model() knows, sorted: "gpt2", "smollm2-135m" …
std::vector<std::string> text_models();
/// Creates a model by name with weights as training begins with. Throws Error, with similar names, if there is no such
/// model or architecture, or if a field is unknown.
TextModel create_text_model(const std::string& name, const TextModelOptions& options = {});
/// The weights of a network that TextModelOptions::weights is about: those of the linear maps of the blocks, and
/// TextNetwork::vocabulary_weights().
HeldWeights held_text_weights(const TextNetwork& net, const nn::Held& how);
/// Makes a model of the same config with the parameters that `store` says, whose values are left to the caller.
TextModel remake_text_model(const TextModel& model, const nn::StoreOptions& store);
/// Loads a folder in transformers' layout: `config.json`, whose "model_type" is that of a family and whose
/// "architectures" names one of its classes, and `model.safetensors`. Throws Error if the folder cannot be read or does
/// not fit.
TextModel load_text_model(const std::filesystem::path& folder, const TextModelOptions& options = {});
/// Loads the folder `name_or_folder` if it is one, otherwise creates a model of this name.
TextModel open_text_model(const std::string& name_or_folder, const TextModelOptions& options = {});
/// The class of the family of `name_or_folder` whose name ends with `ending` ("ForSequenceClassification"), or for an
/// encoder the bare one if `ending` is "Model". Throws Error if there is no such model or class.
std::string architecture_for(const std::string& name_or_folder, std::string_view ending);
/// Whether open_text_model() knows the name, or the folder's config.json is that of a model of text.
bool names_text_model(const std::string& name_or_folder);
/// Writes the config.json and model.safetensors that transformers' from_pretrained() reads into `folder`, which exists.
void write_text_model(const TextModel& model, const std::filesystem::path& folder);

/// Throws Error, naming `source` if it is given, if a tokenizer has more tokens than the model's `vocab_size`.
void check_vocabulary(std::int64_t tokens, std::int64_t vocab_size, std::string_view source = {});
/// The names of the classes of a classifier.
std::vector<std::string> labels_of(const TextModel& model);
/// The model as one that tells classes apart. Throws Error, naming its architecture, if it is none.
const TextClassifier& classifier_of(const TextModel& model);
/// The model as one that continues texts. Throws Error, naming its architecture, if it is none.
const LanguageBody& language_of(const TextModel& model);
/// The model as one that translates. Throws Error, naming its architecture, if it is none.
const Translator& translator_of(const TextModel& model);

}  // namespace vitrail::models
