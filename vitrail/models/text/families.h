/// \file
/// The families of language models.
#pragma once

#include <span>
#include <string_view>

#include "vitrail/io/json.h"
#include "vitrail/models/formats/name_map.h"
#include "vitrail/models/text/decoder.h"

namespace vitrail::models {

/// A kind of language model in the layout of Hugging Face's transformers.
struct TextFamily {
  std::string_view model_type;    ///< in config.json: "gpt2"
  std::string_view architecture;  ///< of the language model: "GPT2LMHeadModel"
  std::string_view prefix;        ///< that files of the bare model leave out: "transformer."
  DecoderConfig (*read)(io::Fields& config);
  std::span<const NameRule> names;
  /// The models that are known by name, as a JSON object: the fields of config.json in which each differs from the
  /// defaults of transformers' class.
  std::string_view models;
};

extern const TextFamily gpt2_family;
extern const TextFamily llama_family;
extern const TextFamily mistral_family;
extern const TextFamily qwen2_family;

}  // namespace vitrail::models
