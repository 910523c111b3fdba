#include "vitrail/text/tokenizer_config.h"

#include <algorithm>
#include <array>
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

// Whether a file says a token of no characters, which counts for nothing.
bool is_empty_token(const json& token) {
  const json& content = token.is_object() && token.contains("content") ? token["content"] : token;
  return content.is_null() || (content.is_string() && content.get<std::string>().empty());
}

void take_special(std::vector<json>& tokens, const json& token, const std::string& place) {
  if (!is_empty_token(token)) {
    tokens.push_back(read_token(token, 0, true, place));
    tokens.back()["special"] = true;
  }
}

// The tokens that are named as the first one, the last one … of a text, in the order of transformers, and those of
// single models, as "image_token": objects before strings.
std::vector<json> named_tokens(const ConfigFile& config, const ConfigFile& map) {
  constexpr std::array roles = {"bos_token", "eos_token", "unk_token", "sep_token",
                                "pad_token", "cls_token", "mask_token"};
  std::vector<json> tokens;
  for (const char* key : roles) {
    const ConfigFile& file = map.all().contains(key) ? map : config;
    if (file.all().contains(key)) {
      take_special(tokens, file.all()[key], fmt::format("{}: '{}'", file.source(), key));
    }
  }
  const std::vector<std::string> keys = config.names_in_order();
  for (const bool objects : {true, false}) {
    for (const std::string& key : keys) {
      const json& token = config.all()[key];
      const bool is_token = key.ends_with("_token") && !ConfigFile::content_of(token).empty();
      if (is_token && token.is_object() == objects && std::ranges::find(roles, key) == roles.end()) {
        take_special(tokens, token, fmt::format("{}: '{}'", config.source(), key));
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
  std::vector<json> extra;              // further special ones
};

// Takes the special tokens that are named, and further ones, by their newer or their older name: of a list, or, with
// names of their own, of an object.
void take_named_and_extra(TokensBeside& tokens, const ConfigFile& config, const ConfigFile& map) {
  tokens.named = named_tokens(config, map);
  for (const ConfigFile* file : {&config, &map}) {
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const json further = file->all().value(key, json());
      if (further.empty()) {
        continue;
      }
      const std::string place = fmt::format("{}: '{}'", file->source(), key);
      if (further.is_object()) {
        for (const std::string& name : file->names_in_order(key)) {
          take_special(tokens.named, further[name], place);
        }
      } else {
        for (const json& token : further) {
          take_special(tokens.extra, token, place);
        }
      }
      break;
    }
  }
}

std::set<std::string> contents_of(const std::vector<json>& tokens) {
  std::set<std::string> contents;
  for (const json& token : tokens) {
    contents.insert(ConfigFile::content_of(token));
  }
  return contents;
}

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
      if (token.contains("content") && is_empty_token(token)) {
        continue;
      }
      json added = read_token(token, id, false, fmt::format("{}: '{}': '{}'", config.source(), key, name));
      check(tokens.listed.emplace(id, std::move(added)).second, "{}: '{}': two tokens have the id {}", config.source(),
            key, id);
    }
    take_named_and_extra(tokens, config, ConfigFile(""));
    return tokens;
  }
  const ConfigFile map(folder / "special_tokens_map.json");
  take_named_and_extra(tokens, config, map);
  std::set<std::string> special = contents_of(tokens.named);
  special.merge(contents_of(tokens.extra));
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

// Adds the tokens that a tokenizer.json does not have, and gives those that are listed their flags (TokenizersBackend
// of tokenization_utils_tokenizers.py). The ids of new ones follow the others, whatever "added_tokens_decoder" says.
bool add_tokens_beside(json& document, const fs::path& folder) {
  const bool has_vocabulary = document.contains("model") && document["model"].is_object() &&
                              document["model"].contains("vocab") && document["model"]["vocab"].is_structured();
  const json before = document.value("added_tokens", json());
  if (!has_vocabulary || !(before.is_null() || before.is_array()) ||
      !std::ranges::all_of(before, [](const json& token) { return token.is_object(); })) {
    return false;  // which whoever reads the document tells
  }
  json added = before.is_null() ? json::array() : before;
  std::map<std::string, std::size_t> places;  // of the tokens in `added`
  for (std::size_t i = 0; i < added.size(); ++i) {
    places.emplace(ConfigFile::content_of(added[i]), i);
  }
  const TokensBeside beside = read_tokens_beside(folder);
  const std::set<std::string> named = contents_of(beside.named);
  std::map<std::string, std::int64_t> ids;  // of the vocabulary, which is read if it is needed
  std::int64_t next = -1;
  const auto put = [&](json token, bool replaces) {
    const std::string content = ConfigFile::content_of(token);
    const auto [place, is_new] = places.emplace(content, added.size());
    if (is_new && next < 0) {
      ids = ids_in_vocabulary(document["model"]["vocab"]);
      next = first_free_id(document["model"]["vocab"], added);
    }
    if (is_new) {
      const auto known = ids.find(content);
      token["id"] = known == ids.end() ? next++ : known->second;
      added.push_back(std::move(token));
    } else if (replaces) {
      json& old = added[place->second];
      token["id"] = old.value("id", json());
      token["special"] = token["special"] == true || old.value("special", json()) == true;  // a set, which only grows
      old = std::move(token);
    }
  };
  for (const auto& [id, listed] : beside.listed) {
    json token = listed;
    token["special"] = token["special"] == true || named.contains(ConfigFile::content_of(token));
    put(std::move(token), true);
  }
  for (const std::vector<json>* tokens : {&beside.named, &beside.extra}) {
    for (const json& token : *tokens) {
      put(token, false);
    }
  }
  const bool changed = added != before && !(before.is_null() && added.empty());
  if (changed) {
    document["added_tokens"] = std::move(added);
  }
  return changed;
}

std::string without_fast(const std::string& name) {
  constexpr std::string_view fast = "Fast";
  return name.ends_with(fast) ? name.substr(0, name.size() - fast.size()) : name;
}

// Sets a field of a part of a document. Whether that changes it.
bool set(json& part, const char* field, const json& value) {
  const bool changes = part.value(field, json()) != value;
  if (changes) {
    part[field] = value;
  }
  return changes;
}

bool is_of(const json& part, const char* type) { return part.is_object() && part.value("type", json()) == type; }

// The part of a document that splits words into bytes, by itself or as one of several; null: there is none.
json* byte_level_of(json& document) {
  json& splitter = document["pre_tokenizer"];
  if (is_of(splitter, "Sequence") && splitter.contains("pretokenizers") && splitter["pretokenizers"].is_array()) {
    const auto found =
        std::ranges::find_if(splitter["pretokenizers"], [](const json& part) { return is_of(part, "ByteLevel"); });
    return found == splitter["pretokenizers"].end() ? nullptr : &*found;
  }
  return is_of(splitter, "ByteLevel") ? &splitter : nullptr;
}

// What these classes make of a tokenizer.json, of which they take the vocabulary, and the rest from the config: what it
// does not say has their defaults.
bool obey_class(json& document, const ConfigFile& config, const std::string& kind) {
  bool changed = false;
  if (kind == "BertTokenizer" || kind == "DistilBertTokenizer" || kind == "ElectraTokenizer") {
    if (document.contains("normalizer") && is_of(document["normalizer"], "BertNormalizer")) {
      json& normalizer = document["normalizer"];
      const auto strip = config.optional<bool>("strip_accents");
      changed = set(normalizer, "lowercase", config.get("do_lower_case", true));
      changed = set(normalizer, "strip_accents", strip ? json(*strip) : json()) || changed;
      changed = set(normalizer, "handle_chinese_chars", config.get("tokenize_chinese_chars", true)) || changed;
    }
    if (document.contains("decoder") && is_of(document["decoder"], "WordPiece")) {
      changed = set(document["decoder"], "cleanup", true) || changed;
    }
  } else if (kind == "CLIPTokenizer") {
    changed = document.value("decoder", json()) != clip_decoder();
    document["decoder"] = clip_decoder();
  } else if (kind == "GPT2Tokenizer" || kind == "RobertaTokenizer" || kind == "BartTokenizer" ||
             kind == "Qwen2Tokenizer") {
    if (json* const splitter = document.contains("pre_tokenizer") ? byte_level_of(document) : nullptr) {
      changed = set(*splitter, "add_prefix_space", config.get("add_prefix_space", false));
    }
  }
  return changed;
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

std::vector<std::string> ConfigFile::names_in_order(const std::string& key) const {
  std::vector<std::string> names;
  if (!json_.empty()) {
    using Ordered = nlohmann::ordered_json;
    const Ordered all = Ordered::parse(io::read_text(source_));  // which was valid when json_ was read
    const Ordered& fields = key.empty() ? all : all.at(key);
    names.reserve(fields.size());
    for (const auto& [name, value] : fields.items()) {
      names.push_back(name);
    }
  }
  return names;
}

ConfigFile tokenizer_config(const fs::path& folder) { return ConfigFile(folder / "tokenizer_config.json"); }

std::string tokenizer_class_in(const fs::path& folder) {
  return without_fast(tokenizer_config(folder).optional<std::string>("tokenizer_class").value_or(""));
}

std::string tokenizer_class_of(const fs::path& folder) {
  static const std::map<std::string, std::string> of_models = {
      {"bart", "BartTokenizer"},       {"bert", "BertTokenizer"},
      {"clip", "CLIPTokenizer"},       {"distilbert", "DistilBertTokenizer"},
      {"electra", "ElectraTokenizer"}, {"gpt2", "GPT2Tokenizer"},
      {"qwen2", "Qwen2Tokenizer"},     {"roberta", "RobertaTokenizer"}};
  if (tokenizer_config(folder).all().contains("tokenizer_class")) {
    return tokenizer_class_in(folder);
  }
  const fs::path file = folder / "config.json";
  const json config = fs::exists(file) ? io::read_json(file) : json();
  const auto text_in = [&](const char* key) {
    const json value = config.is_object() ? config.value(key, json()) : json();
    return value.is_string() ? value.get<std::string>() : "";
  };
  if (const std::string named = without_fast(text_in("tokenizer_class")); !named.empty()) {
    return named;
  }
  const auto known = of_models.find(text_in("model_type"));
  return known == of_models.end() ? "" : known->second;
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
  std::int64_t next = first_free_id(vocab, json::array());
  json& added = document["added_tokens"];
  std::map<std::string, std::size_t> places;  // of the tokens in `added`
  for (std::size_t i = 0; i < added.size(); ++i) {
    places.emplace(ConfigFile::content_of(added[i]), i);
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
  for (std::vector<json>* tokens : {&beside.named, &beside.extra}) {
    for (json& token : *tokens) {
      if (!places.contains(ConfigFile::content_of(token))) {
        token["id"] = id_of(token);
        next += token["id"] == next ? 1 : 0;
        put(std::move(token));
      }
    }
  }
  return document;
}

bool obey_files_beside(json& document, const fs::path& folder) {
  if (!document.is_object()) {
    return false;
  }
  const bool adds = add_tokens_beside(document, folder);
  return obey_class(document, tokenizer_config(folder), tokenizer_class_of(folder)) || adds;
}

}  // namespace vitrail::text
