/// \file
/// Parts of the `tokenizer.json` that say what older layouts and new tokenizers mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace vitrail::text {

/// A document with a model and nothing else, to which parts are added.
nlohmann::json empty_document(nlohmann::json model);

/// A special token, which is found in a text as it is written.
nlohmann::json added_token(const std::string& content, std::int64_t id, bool lstrip = false);

/// The part ByteLevel, whatever it is used as.
nlohmann::json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex = true);

/// A WordPiece tokenizer as BERT has it, without what is put around a text.
nlohmann::json bert_document(nlohmann::json vocab, bool lowercase, bool split_ideographs,
                             std::optional<bool> strip_accents);
/// What BERT puts around a text or two: [CLS] … [SEP] … [SEP], by their names in the vocabulary, which must have both.
nlohmann::json bert_template(const nlohmann::json& vocab, const std::string& cls = "[CLS]",
                             const std::string& sep = "[SEP]");

/// How CLIPTokenizer puts pieces of words, which end with `</w>`, together again.
nlohmann::json clip_decoder();
/// CLIP's tokenizer, as transformers' CLIPTokenizer builds it: NFC, lower case, bytes joined to pieces that end with
/// `</w>` at the end of a word, and `<|startoftext|>` … `<|endoftext|>` around a text. The vocabulary must have both.
nlohmann::json clip_document(nlohmann::json vocab, nlohmann::json merges);
/// The tokenizer_config.json beside it, with the longest text that its model takes.
std::string clip_tokenizer_config(std::int64_t model_max_length);

}  // namespace vitrail::text
