/// \file
/// Tokenizers in the files of transformers' older classes, as the tokenizer.json that means the same. Tokens that were
/// added to them stand beside these files: in tokenizer_config.json ("added_tokens_decoder", "pad_token" …) or
/// added_tokens.json and special_tokens_map.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace vitrail::text {

/// The vocab.json and merges.txt of GPT-2, Qwen2, RoBERTa or CLIP (GPT2Converter, Qwen2Converter, RobertaConverter and
/// CLIPConverter of transformers' convert_slow_tokenizer.py): as the "tokenizer_class" of tokenizer_config.json or the
/// "model_type" of config.json says, and otherwise as the vocabulary's special tokens tell.
nlohmann::json byte_level_bpe_document(const std::filesystem::path& folder);

/// BERT's vocab.txt, a token a line (BertConverter).
nlohmann::json wordpiece_document(const std::filesystem::path& file);

/// A file of sentencepiece, of the kind BPE, as transformers' LlamaTokenizer reads it, for which `<s>` begins a text
/// unless "add_bos_token" of the tokenizer_config.json beside it is false. What it makes of texts before it looks for
/// pieces (its "normalizer_spec") counts for nothing there.
nlohmann::json llama_document(std::string_view bytes, const std::filesystem::path& file);

}  // namespace vitrail::text
