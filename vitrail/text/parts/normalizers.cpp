#include "vitrail/text/parts/normalizers.h"

#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

constexpr char32_t replacement_point = 0xFFFD;

// The blocks of ideographs that BERT's own code takes for Chinese.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void apply(const BertNormalizer& bert, NormalizedString& text) {
  if (bert.clean_text) {
    text.filter([](char32_t c) { return c != 0 && c != replacement_point && !is_bert_control(c); });
    text.map([](char32_t c) { return is_whitespace(c) ? U' ' : c; });
  }
  if (bert.handle_chinese_chars) {
    std::vector<Change> changes;
    for_each_code_point(text.text(), [&](char32_t c, std::size_t) {
      if (is_chinese(c)) {
        changes.insert(changes.end(), {{U' ', 0}, {c, 1}, {U' ', 1}});
      } else {
        changes.push_back({c, 0});
      }
    });
    text.transform(changes);
  }
  if (bert.strip_accents) {
    text.transform(normalize(text.text(), NormalForm::nfd));
    text.filter([](char32_t c) { return !is_nonspacing_mark(c); });
  }
  if (bert.lowercase) {
    text.lowercase();
  }
}

void apply(const Strip& strip, NormalizedString& text) { text.strip(strip.left, strip.right); }

void apply(StripAccents /*unused*/, NormalizedString& text) {
  text.filter([](char32_t c) { return !is_combining_mark(c); });
}

void apply(Lowercase /*unused*/, NormalizedString& text) { text.lowercase(); }

// https://github.com/google/sentencepiece/blob/master/src/builder.cc, BuildNmtNFKCMap
void apply(Nmt /*unused*/, NormalizedString& text) {
  text.filter([](char32_t c) {
    return !((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F);
  });
  text.map([](char32_t c) {
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                       c == replacement_point;
    return space ? U' ' : c;
  });
}

void apply(const Prepend& prepend, NormalizedString& text) { text.prepend(prepend.prepend); }

void apply(const Replace& replace, NormalizedString& text) {
  text.replace(replace.pattern.find(text.text()), replace.content);
}

void apply(BytesAsCharacters /*unused*/, NormalizedString& text) {
  if (!text.empty()) {
    to_byte_characters(text);
  }
}

void apply(NormalForm form, NormalizedString& text) { text.transform(normalize(text.text(), form)); }

void apply(const Precompiled& charsmap, NormalizedString& text) { charsmap->normalize(text); }

}  // namespace

void normalize(std::span<const Normalizer> normalizers, NormalizedString& text) {
  for (const Normalizer& normalizer : normalizers) {
    std::visit([&](const auto& each) { apply(each, text); }, normalizer);
  }
}

void to_byte_characters(NormalizedString& string) {
  const std::string_view text = string.text();
  std::vector<Change> changes;
  changes.reserve(text.size());
  for (const char byte : text) {
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    changes.push_back({character_of_byte(static_cast<unsigned char>(byte)), continues ? 1 : 0});
  }
  string.transform(changes);
}

}  // namespace vitrail::text
