#include "vitrail/text/parts/post_processors.h"

#include <algorithm>
#include <iterator>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

using Encodings = std::vector<Encoding>;

Encoding special_encoding(std::span<const SpecialToken> tokens, std::int64_t type_id) {
  Encoding encoding;
  for (const auto& [token, id] : tokens) {
    encoding.ids.push_back(id);
    encoding.tokens.push_back(token);
  }
  encoding.type_ids.assign(tokens.size(), type_id);
  encoding.offsets.assign(tokens.size(), {0, 0});
  encoding.special.assign(tokens.size(), true);
  encoding.attention_mask.assign(tokens.size(), true);
  return encoding;
}

// Special tokens before and after an encoding, in which nothing else is special any more.
Encoding surrounded(std::span<const SpecialToken> before, Encoding encoding, const SpecialToken& after,
                    std::int64_t type_id) {
  Encoding result = special_encoding(before, type_id);
  encoding.special.assign(encoding.size(), false);
  encoding.attention_mask.assign(encoding.size(), true);
  append(result, encoding);
  append(result, special_encoding({&after, 1}, type_id));
  return result;
}

bool is_space(char32_t c) { return c == character_of_byte(' ') || is_whitespace(c); }

void trim(const TrimOffsets& options, Encoding& encoding) {
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    std::int64_t leading = 0;
    std::int64_t trailing = 0;
    bool only_spaces = true;
    for_each_code_point(encoding.tokens[i], [&](char32_t c, std::size_t) {
      const bool space = is_space(c);
      only_spaces = only_spaces && space;
      leading += only_spaces ? 1 : 0;
      trailing = space ? trailing + 1 : 0;
    });
    auto& [begin, end] = encoding.offsets[i];
    if (leading == 1 && options.add_prefix_space && (i == 0 || begin == 0)) {
      leading = 0;
    }
    begin = leading > 0 ? std::min(begin + leading, end) : begin;
    if (trailing > 0 && end >= trailing) {
      end = std::max(end - trailing, begin);
    }
  }
}

Encodings apply_to(const TrimOffsets& options, Encodings encodings, bool /*add_special_tokens*/) {
  if (options.trim_offsets) {
    for (Encoding& encoding : encodings) {
      trim(options, encoding);
    }
  }
  return encodings;
}

Encodings apply_to(const BertProcessing& bert, Encodings encodings, bool add_special_tokens) {
  if (!add_special_tokens) {
    return encodings;
  }
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    const std::span<const SpecialToken> before(&bert.cls, i == 0 ? 1 : 0);
    encodings[i] = surrounded(before, std::move(encodings[i]), bert.sep, i == 0 ? 0 : 1);
  }
  return encodings;
}

Encodings apply_to(const RobertaProcessing& roberta, Encodings encodings, bool add_special_tokens) {
  encodings = apply_to(roberta.trim, std::move(encodings), add_special_tokens);
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    encodings[i].type_ids.assign(encodings[i].size(), 0);
    if (add_special_tokens) {
      encodings[i] = surrounded({i == 0 ? &roberta.cls : &roberta.sep, 1}, std::move(encodings[i]), roberta.sep, 0);
    }
  }
  return encodings;
}

Encodings apply_to(const TemplateProcessing& processing, Encodings encodings, bool add_special_tokens) {
  check(encodings.size() <= 2, "a template comes after what has already made {} parts of a text", encodings.size());
  Encodings result;
  for (const auto& [text, special, type_id] : encodings.size() == 2 ? processing.pair : processing.single) {
    if (!special.empty()) {
      if (add_special_tokens) {
        result.push_back(special_encoding(special, type_id));
      }
      continue;
    }
    Encoding& encoding = encodings[text];
    encoding.type_ids.assign(encoding.size(), type_id);
    result.push_back(encoding);
  }
  return result;
}

std::int64_t added_by(const TrimOffsets& /*trim*/, bool /*pair*/) { return 0; }
std::int64_t added_by(const BertProcessing& /*bert*/, bool pair) { return pair ? 3 : 2; }
std::int64_t added_by(const RobertaProcessing& /*roberta*/, bool pair) { return pair ? 4 : 2; }
std::int64_t added_by(const TemplateProcessing& processing, bool pair) {
  std::int64_t count = 0;
  for (const TemplateProcessing::Piece& piece : pair ? processing.pair : processing.single) {
    count += static_cast<std::int64_t>(piece.special.size());
  }
  return count;
}

}  // namespace

std::int64_t count_added(std::span<const PostProcessor> processors, bool pair) {
  std::int64_t count = 0;
  for (const PostProcessor& processor : processors) {
    count += std::visit([&](const auto& each) { return added_by(each, pair); }, processor);
  }
  return count;
}

Encoding post_process(std::span<const PostProcessor> processors, std::vector<Encoding> encodings,
                      bool add_special_tokens) {
  for (const PostProcessor& processor : processors) {
    encodings = std::visit([&](const auto& each) { return apply_to(each, std::move(encodings), add_special_tokens); },
                           processor);
  }
  if (encodings.empty()) {
    return {};
  }
  Encoding result = std::move(encodings.front());
  for (std::size_t i = 1; i < encodings.size(); ++i) {
    append(result, encodings[i]);
  }
  return result;
}

}  // namespace vitrail::text
