/// \file
/// The families of text models.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/io/json.h"
#include "vitrail/models/formats/name_map.h"
#include "vitrail/models/text/decoder.h"
#include "vitrail/models/text/text_network.h"

namespace vitrail::models {

/// A kind of text model in the layout of Hugging Face's transformers.
struct TextFamily {
  std::string_view model_type;  ///< in config.json: "gpt2"
  /// transformers' classes that are known here: "GPT2LMHeadModel". A name creates the first.
  std::span<const std::string_view> architectures;
  std::string_view prefix;  ///< that files of the bare model leave out: "transformer."
  std::unique_ptr<TextNetwork> (*create)(io::Fields& config, std::string_view architecture,
                                         const nn::StoreOptions& store);
  /// The names in files that differ from the network's own, and what is passed over.
  std::vector<NameRule> (*names)(const TextNetwork& network);
  /// The models that are known by name, as a JSON object: the fields of config.json in which each differs from the
  /// defaults of transformers' class.
  std::string_view models;
  /// The fields of config.json that are rates of dropout, which `vitrail train --drop` sets.
  std::span<const std::string_view> drop_rates = {};
};

/// The "model_type"s of all families.
std::vector<std::string> text_model_types();

/// TextFamily::create of decoders, whose config.json `read` reads.
template <DecoderConfig (*read)(io::Fields& config)>
std::unique_ptr<TextNetwork> create_decoder(io::Fields& config, std::string_view, const nn::StoreOptions& store) {
  return std::make_unique<DecoderNetwork>(read(config), store);
}

/// TextFamily::names of decoders, with the names of the family. Where the head is tied, a second copy of it in a file
/// is passed over.
template <const auto& rules>
std::vector<NameRule> decoder_names(const TextNetwork& network) {
  std::vector<NameRule> result(rules.begin(), rules.end());
  const bool tied = dynamic_cast<const DecoderNetwork&>(network).body.config().tied_head;
  result.insert(result.begin(), {tied ? "" : "lm_head.@", "lm_head.@"});
  return result;
}

/// The names of an encoder with the heads of its family: those that the network lacks are passed over. The rest is
/// named by `body`, {"bert.@", "~@"}; a bare model has no "bert." itself.
std::vector<NameRule> encoder_names(const TextNetwork& network, std::span<const NameRule> heads, const NameRule& body);

extern const TextFamily bert_family;
extern const TextFamily bloom_family;
extern const TextFamily distilbert_family;
extern const TextFamily gpt2_family;
extern const TextFamily imagegpt_family;
extern const TextFamily llama_family;
extern const TextFamily mistral_family;
extern const TextFamily qwen2_family;
extern const TextFamily marian_family;
extern const TextFamily torch_transformer_family;
extern const TextFamily recurrent_family;          // models/recurrent
extern const TextFamily recurrent_seq2seq_family;  // models/recurrent
extern const TextFamily roberta_family;

}  // namespace vitrail::models
