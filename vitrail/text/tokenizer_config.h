/// \file
/// What stands beside a vocabulary or a tokenizer.json: tokenizer_config.json, added_tokens.json and
/// special_tokens_map.json, as from_pretrained() of transformers reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"

namespace vitrail::text {

/// An object in a file of a tokenizer's folder, of which some fields matter; the file may be missing.
class ConfigFile {
 public:
  explicit ConfigFile(const std::filesystem::path& file);
  template <class T>
  std::optional<T> optional(const std::string& key) const {
    return io::Fields(json_, source_).optional<T>(key);
  }
  bool get(const std::string& key, bool fallback) const { return optional<bool>(key).value_or(fallback); }
  /// What a token's field names: a string, or an object with its "content"; `usual` if it names none.
  std::string token(const std::string& key, const std::string& usual = "") const;
  /// The same of such a value; "" if it names none.
  static std::string content_of(const nlohmann::json& token);
  const nlohmann::json& all() const { return json_; }
  /// The names of the fields, or of those of the object that is the field `key`, in the order of the file.
  std::vector<std::string> names_in_order(const std::string& key = "") const;
  const std::string& source() const { return source_; }

 private:
  nlohmann::json json_ = nlohmann::json::object();
  std::string source_;
};
/// The tokenizer_config.json of a folder.
ConfigFile tokenizer_config(const std::filesystem::path& folder);
/// The class of the tokenizer in a folder, as its tokenizer_config.json says: "LlamaTokenizer"; "" if it does not, or
/// there is none. A class that is called Fast is the one without that.
std::string tokenizer_class_in(const std::filesystem::path& folder);
/// The same or, where that file says nothing, the class that config.json names or that transformers takes for its
/// "model_type"; "" if none does, or the type is another than BERT's, GPT-2's, RoBERTa's, CLIP's and Qwen2's kind.
std::string tokenizer_class_of(const std::filesystem::path& folder);

/// The id of a token in a vocabulary. Throws Error, naming `file`, if it has none there.
std::int64_t id_in(const nlohmann::json& vocab, const std::string& token, const std::filesystem::path& file);

/// Adds the tokens beside the vocabulary of a document, whose first ids are those of the vocabulary. Throws Error if a
/// token was added with another id than it would have.
nlohmann::json with_tokens_beside(nlohmann::json document, const std::filesystem::path& folder);

/// Changes a tokenizer.json as the files beside it say: adds tokens that it does not have, gives others the flags that
/// are listed, and obeys what the tokenizers of some classes take from tokenizer_config.json, or by their defaults, in
/// place of the document (BERT's do_lower_case, strip_accents and tokenize_chinese_chars; GPT-2's, RoBERTa's and
/// Qwen2's add_prefix_space; CLIP's spaces between decoded words). Returns whether anything was to be changed.
bool obey_files_beside(nlohmann::json& document, const std::filesystem::path& folder);

}  // namespace vitrail::text
