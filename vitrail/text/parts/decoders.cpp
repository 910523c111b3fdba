#include "vitrail/text/parts/decoders.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

using Tokens = std::vector<std::string>;

constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t begin = 0;
  if (from.empty()) {  // between all characters, as Rust's str::replace
    result = to;
    for_each_code_point(text, [&](char32_t c, std::size_t) { append_utf8(result, c), result += to; });
    return result;
  }
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    result += text.substr(begin, at - begin);
    result += to;
    begin = at + from.size();
  }
  return result += text.substr(begin);
}

std::string cleaned(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> changes = {{{" .", "."},
                                                                                      {" ?", "?"},
                                                                                      {" !", "!"},
                                                                                      {" ,", ","},
                                                                                      {" ' ", "'"},
                                                                                      {" n't", "n't"},
                                                                                      {" 'm", "'m"},
                                                                                      {" do not", " don't"},
                                                                                      {" 's", "'s"},
                                                                                      {" 've", "'ve"},
                                                                                      {" 're", "'re"}}};
  for (const auto& [from, to] : changes) {
    text = replaced(text, from, to);
  }
  return text;
}

Tokens apply_to(const BpeDecoder& decoder, Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], decoder.suffix, i + 1 == tokens.size() ? "" : " ");
  }
  return tokens;
}

// The byte of a token <0x00> to <0xFF>; the digits may be small, and the first may be a plus sign as in Rust's parser.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) {
    return std::nullopt;
  }
  const std::string_view digits = token.substr(token[3] == '+' ? 4 : 3, token[3] == '+' ? 1 : 2);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return static_cast<char>(value);
}

Tokens apply_to(ByteFallback /*unused*/, Tokens tokens) {
  Tokens result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) {
      return;
    }
    if (find_invalid_utf8(bytes) == std::string_view::npos) {
      result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), std::string(replacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes.push_back(*byte);
      continue;
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  return result;
}

Tokens apply_to(ByteLevelDecoder /*unused*/, const Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    const std::size_t before = bytes.size();
    bool all = true;
    for_each_code_point(token, [&](char32_t c, std::size_t) {
      const auto byte = byte_of_character(c);
      all = all && byte.has_value();
      bytes.push_back(static_cast<char>(byte.value_or(0)));
    });
    if (!all) {
      bytes.replace(before, std::string::npos, token);
    }
  }
  return {to_valid_utf8(bytes)};
}

Tokens apply_to(const CtcDecoder& decoder, const Tokens& tokens) {
  Tokens result;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && tokens[i] == tokens[i - 1]) {
      continue;
    }
    std::string token = replaced(tokens[i], decoder.pad_token, "");
    if (decoder.cleanup) {
      token = replaced(cleaned(std::move(token)), decoder.word_delimiter_token, " ");
    }
    if (!token.empty()) {
      result.push_back(std::move(token));
    }
  }
  return result;
}

Tokens apply_to(Fuse /*unused*/, const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) {
    all += token;
  }
  return {all};
}

Tokens apply_to(const Metaspace& metaspace, Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string text;
    for_each_code_point(tokens[i], [&](char32_t c, std::size_t) {
      if (c != metaspace.replacement) {
        append_utf8(text, c);
      } else if (i > 0 || metaspace.prepend_scheme == Metaspace::Prepend::never) {
        text.push_back(' ');
      }
    });
    tokens[i] = std::move(text);
  }
  return tokens;
}

Tokens apply_to(const Replace& replace, Tokens tokens) {
  for (std::string& token : tokens) {
    std::string text;
    for (const auto& [range, matches] : replace.pattern.find(token)) {
      text += matches ? replace.content : token.substr(range.begin, range.end - range.begin);
    }
    token = std::move(text);
  }
  return tokens;
}

Tokens apply_to(const StripDecoder& strip, Tokens tokens) {
  const std::string content = to_utf8(strip.content);
  for (std::string& token : tokens) {
    // The two ends are looked at on their own, and may overlap where the token has nothing else.
    std::string_view rest = token;
    for (std::size_t i = 0; i < strip.start && rest.starts_with(content); ++i) {
      rest.remove_prefix(content.size());
    }
    std::string_view front = token;
    for (std::size_t i = 0; i < strip.stop && front.ends_with(content); ++i) {
      front.remove_suffix(content.size());
    }
    const std::size_t begin = token.size() - rest.size();
    token = begin < front.size() ? token.substr(begin, front.size() - begin) : "";
  }
  return tokens;
}

Tokens apply_to(const WordPieceDecoder& decoder, Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      tokens[i] = tokens[i].starts_with(decoder.prefix) ? tokens[i].substr(decoder.prefix.size()) : " " + tokens[i];
    }
    if (decoder.cleanup) {
      tokens[i] = cleaned(std::move(tokens[i]));
    }
  }
  return tokens;
}

}  // namespace

bool is_byte_token(std::string_view token) { return byte_of(token).has_value(); }

std::string decode(std::span<const Decoder> decoders, std::vector<std::string> tokens) {
  const auto bytes_of = [](const Tokens& all) {
    return std::accumulate(all.begin(), all.end(), all.size(),
                           [](std::size_t sum, const std::string& token) { return sum + token.size(); });
  };
  const std::size_t before = bytes_of(tokens);
  for (const Decoder& decoder : decoders) {
    tokens = std::visit([&](const auto& each) { return apply_to(each, std::move(tokens)); }, decoder);
    check(bytes_of(tokens) <= most_bytes_of(before),
          "the decoders of the tokenizer make {} bytes of {}: {} are allowed", bytes_of(tokens), before,
          most_bytes_of(before));
  }
  return apply_to(Fuse{}, tokens).front();
}

}  // namespace vitrail::text
