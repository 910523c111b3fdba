#include "vitrail/text/unknown.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/wording.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {

std::optional<std::int64_t> unknown_token(const Tokenizer& tokenizer) {
  const std::optional<std::int64_t> bracketed = tokenizer.id_of("[UNK]");
  return bracketed ? bracketed : tokenizer.id_of("<unk>");
}

std::vector<std::string> unknown_words(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> words;
  const std::optional<std::int64_t> unknown = unknown_token(tokenizer);
  const Encoding encoding = tokenizer.encode(text, false);
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.ids[i] != unknown) {
      continue;
    }
    const auto [begin, end] = encoding.offsets[i];
    words.push_back(code_points(text, begin, end));
  }
  return words;
}

std::vector<std::string> spelt_words(const Tokenizer& tokenizer, std::string_view text) {
  constexpr std::int64_t smallest = 520;  // a vocabulary of bytes, at the end of words too, with nothing else
  std::vector<std::string> words;
  if (tokenizer.kind() == "WordLevel" || tokenizer.vocab_size() <= smallest) {
    return words;
  }
  std::string word;
  std::size_t letters = 0;
  const auto judge = [&] {
    if (letters >= 3 && tokenizer.encode(word, false).size() >= letters) {
      words.push_back(word);
    }
    word.clear();
    letters = 0;
  };
  for_each_code_point(text, [&](char32_t c, std::size_t) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0xc0;
    if (letter) {
      append_utf8(word, c);
      ++letters;
    } else {
      judge();
    }
  });
  judge();
  return words;
}

UnknownTokens::UnknownTokens(const Tokenizer& tokenizer)
    : token_(unknown_token(tokenizer)), name_(token_ ? tokenizer.token_of(*token_) : "") {}

void UnknownTokens::add(std::span<const std::int64_t> ids) {
  all_ += std::ssize(ids);
  count_ += token_ ? std::ranges::count(ids, *token_) : 0;
}

std::string UnknownTokens::note(std::string_view source) const {
  return count_ == 0 ? ""
                     : fmt::format("{}: {} of {} {} {}: the tokenizer does not know what stands there", source, count_,
                                   io::counted(all_, "tokens"), count_ == 1 ? "is" : "are", name_);
}

}  // namespace vitrail::text
