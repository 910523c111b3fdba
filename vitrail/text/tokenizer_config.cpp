#include "vitrail/text/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/documents.h"
#include "vitrail/text/parts/vocabulary.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A token of a file, a string or an object with its "content" and flags, as an added token of tokenizer.json: what it
// does not say is as in AddedToken of Hugging Face's tokenizers.
json read_token(const json& token, std::int64_t id, bool special, const std::string& place) {
  const std::string content = ConfigFile::content_of(token);
  check(!content.empty(), "{} must be a token, with at least one character", place);
  json added = added_token(content, id);
  added["special"] = special;
  const auto take = [&](const char* flag) {
    const bool is_said = token.is_object() && token.contains(flag);
    if (is_said) {
      added[flag] = token[flag];
    }
    return is_said;
  };
  for (const char* flag : {"single_word", "lstrip", "rstrip", "special"}) {
    take(flag);
  }
  if (!take("normalized")) {
    added["normalized"] = added["special"] != true;
  }
  return added;
}

// The tokens that are named as the first one, the last one … of a text, and further special ones, in the order of
// transformers.
std::vector<json> special_tokens(const ConfigFile& config, const ConfigFile& map) {
  std::vector<json> tokens;
  const auto take = [&](const json& token, const std::string& place) {
    if (!token.is_null()) {
      tokens.push_back(read_token(token, 0, true, place));
      tokens.back()["special"] = true;
    }
  };
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const ConfigFile& file = map.all().contains(key) ? map : config;
    if (file.all().contains(key)) {
      take(file.all()[key], fmt::format("{}: '{}'", file.source(), key));
    }
  }
  for (const ConfigFile* file : {&config, &map}) {
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
      if (file->all().contains(key)) {
        for (const json& token : file->all()[key]) {  // of a list, or the values of an object
          take(token, fmt::format("{}: '{}'", file->source(), key));
        }
      }
    }
  }
  return tokens;
}

// The tokens that the files beside a vocabulary add to it (from_pretrained() of transformers'
// tokenization_utils_base.py).
struct TokensBeside {
  std::map<std::int64_t, json> listed;  // by their ids
  std::vector<json> named;              // special ones, which need not be among these
};

TokensBeside read_tokens_beside(const fs::path& folder) {
  TokensBeside tokens;
  const ConfigFile config = tokenizer_config(folder);
  const std::string key = "added_tokens_decoder";
  if (config.all().contains(key)) {
    const json& list = config.all()[key];
    check(list.is_object(), "{}: '{}' must be an object of ids and tokens", config.source(), key);
    for (const auto& [name, token] : list.items()) {
      std::int64_t id = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
      check(error == std::errc() && end == name.data() + name.size() && token.is_object(),
            "{}: '{}': '{}' must be an id with an object that describes its token", config.source(), key, name);
      json added = read_token(token, id, false, fmt::format("{}: '{}': '{}'", config.source(), key, name));
      check(tokens.listed.emplace(id, std::move(added)).second, "{}: '{}': two tokens have the id {}", config.source(),
            key, id);
    }
    tokens.named = special_tokens(config, ConfigFile(""));
    return tokens;
  }
  tokens.named = special_tokens(config, ConfigFile(folder / "special_tokens_map.json"));
  std::set<std::string> special;
  for (const json& token : tokens.named) {
    special.insert(ConfigFile::content_of(token));
  }
  const fs::path file = folder / "added_tokens.json";
  const ConfigFile list(file);
  for (const auto& [token, value] : list.all().items()) {
    const std::int64_t id = id_in(list.all(), token, file);
    json added = read_token(token, id, special.contains(token), file.string());
    check(tokens.listed.emplace(id, std::move(added)).second, "{}: two tokens have the id {}", file.string(), id);
  }
  return tokens;
}

// The ids of the vocabulary of a document, an object of them or a list of pieces with their scores.
std::map<std::string, std::int64_t> ids_in_vocabulary(const json& vocab) {
  std::map<std::string, std::int64_t> ids;
  std::int64_t place = 0;
  for (const auto& [token, value] : vocab.items()) {
    if (vocab.is_object() && value.is_number_integer()) {
      ids.emplace(token, value.get<std::int64_t>());
    } else if (value.is_array() && !value.empty() && value[0].is_string()) {
      ids.emplace(value[0].get<std::string>(), place);
    }
    ++place;
  }
  return ids;
}

// The first id behind those of a vocabulary and of the tokens that were added to it.
std::int64_t first_free_id(const json& vocab, const json& added) {
  std::int64_t next = vocab.is_array() ? std::ssize(vocab) : 0;
  const auto pass = [&](const json& id) {
    next = std::max(next, id.is_number_integer() ? std::min(id.get<std::int64_t>(), largest_id) + 1 : 0);
  };
  if (vocab.is_object()) {
    std::ranges::for_each(vocab, pass);
  }
  for (const json& token : added) {
    pass(token.value("id", json()));
  }
  return next;
}

// Adds the tokens that a tokenizer.json does not have (TokenizersBackend of tokenization_utils_tokenizers.py). The ids
// of new ones follow the others, whatever "added_tokens_decoder" says.
bool add_missing_tokens(json& document, const fs::path& folder) {
  const bool has_vocabulary = document.contains("model") && document["model"].is_object() &&
                              document["model"].contains("vocab") && document["model"]["vocab"].is_structured();
  const json added = document.value("added_tokens", json());
  if (!has_vocabulary || !(added.is_null() || added.is_array()) ||
      !std::ranges::all_of(added, [](const json& token) { return token.is_object(); })) {
    return false;  // which whoever reads the document tells
  }
  std::set<std::string> known;
  for (const json& token : added) {
    known.insert(ConfigFile::content_of(token));
  }
  const TokensBeside beside = read_tokens_beside(folder);
  std::set<std::string> named;
  for (const json& token : beside.named) {
    named.insert(ConfigFile::content_of(token));
  }
  std::vector<json> missing;
  const auto take = [&](json token) {
    const std::string content = ConfigFile::content_of(token);
    if (known.insert(content).second) {
      token["special"] = token["special"] == true || named.contains(content);
      missing.push_back(std::move(token));
    }
  };
  for (const auto& [id, token] : beside.listed) {
    take(token);
  }
  std::ranges::for_each(beside.named, take);
  if (missing.empty()) {
    return false;
  }
  const json& vocab = document["model"]["vocab"];
  const std::map<std::string, std::int64_t> ids = ids_in_vocabulary(vocab);
  std::int64_t next = first_free_id(vocab, added);
  for (json& token : missing) {
    const auto id = ids.find(ConfigFile::content_of(token));
    token["id"] = id == ids.end() ? next++ : id->second;
    document["added_tokens"].push_back(std::move(token));
  }
  return true;
}

// Sets a field of a part to what the config says, if it says it.
bool obey(json& part, const char* field, const ConfigFile& config, const char* key) {
  const std::optional<bool> said = config.optional<bool>(key);
  const bool changes = said && part.value(field, json()) != *said;
  if (changes) {
    part[field] = *said;
  }
  return changes;
}

bool is_part(const json& document, const char* place, const char* type) {
  return document.contains(place) && document[place].is_object() && document[place].value("type", json()) == type;
}

}  // namespace

ConfigFile::ConfigFile(const fs::path& file) : source_(file.string()) {
  if (fs::exists(file)) {
    json_ = io::read_json(file);
    check(json_.is_object(), "{}: it must be an object", source_);
  }
}

std::string ConfigFile::token(const std::string& key, const std::string& usual) const {
  const std::string named = json_.contains(key) ? content_of(json_[key]) : "";
  return named.empty() ? usual : named;
}

std::string ConfigFile::content_of(const json& token) {
  const json& name = token.is_object() && token.contains("content") ? token["content"] : token;
  return name.is_string() ? name.get<std::string>() : "";
}

ConfigFile tokenizer_config(const fs::path& folder) { return ConfigFile(folder / "tokenizer_config.json"); }

std::string tokenizer_class_in(const fs::path& folder) {
  std::string name = tokenizer_config(folder).optional<std::string>("tokenizer_class").value_or("");
  constexpr std::string_view fast = "Fast";
  return name.ends_with(fast) ? name.substr(0, name.size() - fast.size()) : name;
}

std::int64_t id_in(const json& vocab, const std::string& token, const fs::path& file) {
  check(vocab.contains(token), "{}: the token '{}' is missing", file.string(), token);
  const json& id = vocab[token];
  check(id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() <= largest_id,
        "{}: the id of the token '{}' must be a whole number from 0 to {}", file.string(), token, largest_id);
  return id.get<std::int64_t>();
}

json with_tokens_beside(json document, const fs::path& folder) {
  const json& vocab = document["model"]["vocab"];
  std::int64_t next = 0;
  for (const auto& [token, id] : vocab.items()) {
    next = std::max(next, id.is_number_integer() ? std::min(id.get<std::int64_t>(), largest_id) + 1 : 0);
  }
  json& added = document["added_tokens"];
  std::map<std::string, std::size_t> places;  // of the tokens in `added`
  for (const json& token : added) {
    places.emplace(ConfigFile::content_of(token), places.size());
  }
  const auto put = [&](json token) {
    const auto [place, is_new] = places.emplace(ConfigFile::content_of(token), added.size());
    (is_new ? added.emplace_back() : added[place->second]) = std::move(token);
  };
  TokensBeside beside = read_tokens_beside(folder);
  const auto id_of = [&](const json& token) {
    const std::string content = ConfigFile::content_of(token);
    return vocab.contains(content) ? vocab[content] : json(next);
  };
  for (auto& [id, token] : beside.listed) {
    const json expected = id_of(token);
    check(expected == id, "{}: the token '{}' was added with the id {}, but the vocabulary beside it gives it {}",
          folder.string(), ConfigFile::content_of(token), id, expected.dump());
    next += id == next ? 1 : 0;
    put(std::move(token));
  }
  for (json& token : beside.named) {
    if (!places.contains(ConfigFile::content_of(token))) {
      token["id"] = id_of(token);
      next += token["id"] == next ? 1 : 0;
      put(std::move(token));
    }
  }
  return document;
}

bool obey_files_beside(json& document, const fs::path& folder) {
  if (!document.is_object()) {
    return false;
  }
  const ConfigFile config = tokenizer_config(folder);
  const std::string kind = tokenizer_class_in(folder);
  bool changed = add_missing_tokens(document, folder);
  if (kind == "BertTokenizer" && is_part(document, "normalizer", "BertNormalizer")) {
    json& normalizer = document["normalizer"];
    for (const auto& [field, key] :
         {std::pair("lowercase", "do_lower_case"), std::pair("strip_accents", "strip_accents"),
          std::pair("handle_chinese_chars", "tokenize_chinese_chars")}) {
      changed = obey(normalizer, field, config, key) || changed;
    }
  }
  if ((kind == "GPT2Tokenizer" || kind == "RobertaTokenizer") && is_part(document, "pre_tokenizer", "ByteLevel")) {
    changed = obey(document["pre_tokenizer"], "add_prefix_space", config, "add_prefix_space") || changed;
  }
  return changed;
}

}  // namespace vitrail::text
