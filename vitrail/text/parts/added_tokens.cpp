#include "vitrail/text/parts/added_tokens.h"

#include <algorithm>
#include <utility>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

bool ends_with_word(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[at - 1]) & 0xC0) == 0x80) {
    --at;
  }
  return at > 0 && is_word(code_point_at(text, at - 1).value);
}

bool begins_with_word(std::string_view text) { return !text.empty() && is_word(code_point_at(text, 0).value); }

// The bytes of white space at the beginning, and the place where that at the end begins.
std::size_t leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_whitespace(code_point_at(text, at).value)) {
    at += utf8_length(text[at]);
  }
  return at;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t begin = text.size();
  for (std::size_t at = begin; at > 0;) {
    --at;
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
      continue;
    }
    if (!is_whitespace(code_point_at(text, at).value)) {
      break;
    }
    begin = at;
  }
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(std::span<const AddedToken> tokens, const Model& model,
                         std::span<const Normalizer> normalizers, bool splits_special)
    : splits_special_(splits_special) {
  auto next = static_cast<std::uint32_t>(model.vocab_size());
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) {
      continue;
    }
    std::optional<std::uint32_t> id = find(token.content);
    id = id ? id : model.find(token.content);
    if (!id) {
      id = next++;
    }
    ids_[token.content] = *id;
    if (token.special) {
      special_.insert(token.content);
    }
    std::string written = token.content;
    if (token.normalized) {
      NormalizedString normalized(token.content);
      normalize(normalizers, normalized);
      written = normalized.text();
    }
    tokens_.insert_or_assign(*id, Entry{token, std::move(written)});
  }
  for (const auto& [id, entry] : tokens_) {
    check(!entry.written.empty(), "the added token '{}' is empty when normalized", entry.token.content);
    ByteTrie& trie = entry.token.normalized ? in_normalized_ : in_text_;
    check(trie.insert(entry.written, static_cast<std::uint32_t>(id)), "two added tokens are both found as '{}'",
          entry.written);
  }
}

void AddedTokens::split(const NormalizedString& string, const ByteTrie& trie, std::vector<Part>& parts) const {
  const std::string_view text = string.text();
  std::size_t done = 0;
  const auto put = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> id) {
    if (begin < end) {
      parts.push_back({string.slice({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}), id});
    }
  };
  for (std::size_t at = 0; !trie.empty() && at < text.size();) {
    std::size_t length = 0;
    std::uint32_t id = 0;
    trie.for_each_prefix(text.substr(at), [&](std::size_t bytes, std::uint32_t value) {
      length = bytes;
      id = value;
    });
    if (length == 0) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + length;
    at = end;
    const AddedToken& token = tokens_.at(id).token;
    if (token.special && splits_special_) {
      continue;
    }
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) {
      begin = std::max(trailing_space(text.substr(0, begin)), done);
    }
    if (token.rstrip) {
      end += leading_space(text.substr(end));
    }
    put(done, begin, std::nullopt);
    put(begin, end, id);
    done = end;
  }
  put(done, text.size(), std::nullopt);
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text,
                                                  std::span<const Normalizer> normalizers) const {
  std::vector<Part> found;
  split(NormalizedString(text), in_text_, found);
  std::vector<Part> parts;
  for (Part& part : found) {
    if (part.id) {
      parts.push_back(std::move(part));
      continue;
    }
    normalize(normalizers, part.text);
    split(part.text, in_normalized_, parts);
  }
  return parts;
}

std::optional<std::uint32_t> AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* AddedTokens::token(std::int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second.written;
}

std::size_t AddedTokens::beyond(const Model& model) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(ids_, [&](const auto& entry) { return !model.find(entry.first).has_value(); }));
}

}  // namespace vitrail::text
