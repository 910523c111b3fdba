#include "vitrail/text/parts/pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include <unicode/uscript.h>

#include "vitrail/text/parts/normalizers.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

using Parts = std::vector<NormalizedString>;

constexpr char32_t prolonged_sound_mark = 0x30FC;

// https://github.com/openai/gpt-2/blob/master/src/encoder.py
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

template <class Test>
Parts split_at(const NormalizedString& text, SplitBehavior behavior, const Test& test) {
  return text.split(find_code_points(text.text(), test), behavior);
}

Parts one(NormalizedString text) {
  Parts parts;
  if (!text.empty()) {
    parts.push_back(std::move(text));
  }
  return parts;
}

Parts split(BertPreTokenizer /*unused*/, const NormalizedString& text) {
  Parts parts;
  for (const NormalizedString& word : split_at(text, SplitBehavior::removed, is_whitespace)) {
    std::ranges::move(split_at(word, SplitBehavior::isolated, is_bert_punctuation), std::back_inserter(parts));
  }
  return parts;
}

Parts split(const ByteLevel& byte_level, NormalizedString text) {
  static const Regex pattern(gpt2_pattern);
  if (byte_level.add_prefix_space && !text.text().starts_with(' ')) {
    text.prepend(" ");
  }
  Parts parts =
      byte_level.use_regex ? text.split(pattern.find(text.text()), SplitBehavior::isolated) : one(std::move(text));
  for (NormalizedString& part : parts) {
    to_byte_characters(part);
  }
  return parts;
}

Parts split(CharDelimiterSplit delimiter, const NormalizedString& text) {
  return split_at(text, SplitBehavior::removed, [&](char32_t c) { return c == delimiter.delimiter; });
}

Parts split(Digits digits, const NormalizedString& text) {
  return split_at(text, digits.individual_digits ? SplitBehavior::isolated : SplitBehavior::contiguous, is_numeric);
}

Parts split(FixedLength fixed, const NormalizedString& text) {
  Parts parts;
  const auto size = static_cast<std::uint32_t>(text.text().size());
  for (std::uint32_t begin = 0; begin < size;) {
    std::uint32_t end = begin;
    for (std::size_t i = 0; i < fixed.length && end < size; ++i) {
      end += utf8_length(text.text()[end]);
    }
    parts.push_back(text.slice({begin, end}));
    begin = end;
  }
  return parts;
}

Parts split(const Metaspace& metaspace, NormalizedString text) {
  const std::string replacement = to_utf8(metaspace.replacement);
  text.replace(find_code_points(text.text(), [](char32_t c) { return c == U' '; }), replacement);
  using enum Metaspace::Prepend;
  const bool prepend = metaspace.prepend_scheme == always || (metaspace.prepend_scheme == first && text.begin() == 0);
  if (prepend && !text.text().starts_with(replacement)) {
    text.prepend(replacement);
  }
  if (!metaspace.split) {
    return one(std::move(text));
  }
  return split_at(text, SplitBehavior::merged_with_next, [&](char32_t c) { return c == metaspace.replacement; });
}

Parts split(Punctuation punctuation, const NormalizedString& text) {
  return split_at(text, punctuation.behavior, is_bert_punctuation);
}

Parts split(const Split& by, const NormalizedString& text) {
  std::vector<Match> matches = by.pattern.find(text.text());
  if (by.invert) {
    for (Match& match : matches) {
      match.matches = !match.matches;
    }
  }
  return text.split(matches, by.behavior);
}

// As sentencepiece, which takes the scripts of Japanese for one, and a space for part of any. The reference's table has
// Unicode 9.
UScriptCode script_of(char32_t c) {
  if (c == U' ' || !assigned_in_unicode(c, 9)) {
    return USCRIPT_INVALID_CODE;
  }
  if (c == 0x0589 || c == 0x061C) {
    return USCRIPT_COMMON;  // as it was in Unicode 9; the same holds of the next two
  }
  if (c == 0x0953 || c == 0x0954) {
    return USCRIPT_DEVANAGARI;
  }
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &status);
  const bool japanese = script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || c == prolonged_sound_mark;
  return japanese ? USCRIPT_HAN : script == USCRIPT_UNKNOWN ? USCRIPT_INVALID_CODE : script;
}

Parts split(UnicodeScripts /*unused*/, const NormalizedString& text) {
  std::vector<std::uint32_t> ends;
  UScriptCode last = USCRIPT_INVALID_CODE;
  bool begun = false;
  for_each_code_point(text.text(), [&](char32_t c, std::size_t at) {
    const UScriptCode script = script_of(c);
    if (script == USCRIPT_INVALID_CODE) {
      return;
    }
    if (begun ? script != last : true) {
      ends.push_back(static_cast<std::uint32_t>(at));
    }
    last = script;
    begun = true;
  });
  ends.push_back(static_cast<std::uint32_t>(text.text().size()));
  Parts parts;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    parts.push_back(text.slice({ends[i], ends[i + 1]}));
  }
  return parts;
}

Parts split(Whitespace /*unused*/, const NormalizedString& text) {
  std::vector<Match> matches;
  enum class Kind { space, word, other };
  Kind last = Kind::space;
  for_each_code_point(text.text(), [&](char32_t c, std::size_t at) {
    const Kind kind = is_word(c) ? Kind::word : is_whitespace(c) ? Kind::space : Kind::other;
    const auto begin = static_cast<std::uint32_t>(at);
    if (matches.empty() || kind != last) {
      matches.push_back({{begin, begin}, kind == Kind::space});
    }
    matches.back().range.end = begin + utf8_length(c);
    last = kind;
  });
  return text.split(matches, SplitBehavior::removed);
}

Parts split(WhitespaceSplit /*unused*/, const NormalizedString& text) {
  return split_at(text, SplitBehavior::removed, is_whitespace);
}

}  // namespace

std::vector<NormalizedString> pre_tokenize(const PreTokenizer& pre_tokenizer, NormalizedString text) {
  return std::visit([&](const auto& each) { return split(each, std::move(text)); }, pre_tokenizer);
}

}  // namespace vitrail::text
