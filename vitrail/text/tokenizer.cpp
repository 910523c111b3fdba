#include "vitrail/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/side_by_side.h"
#include "vitrail/text/engine.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {

Tokenizer::Tokenizer(std::shared_ptr<const Engine> engine)
    : engine_(std::move(engine)), truncation_(engine_->truncation()), padding_(engine_->padding()) {}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  check_utf8(text, "the text");
  Encoding encoding = engine_->encode({&text, 1}, add_special_tokens, truncation_);
  if (padding_) {
    pad({&encoding, 1}, *padding_);
  }
  return encoding;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, bool add_special_tokens) const {
  check_utf8(first, "the first text");
  check_utf8(second, "the second text");
  Encoding encoding = engine_->encode(std::array{first, second}, add_special_tokens, truncation_);
  if (padding_) {
    pad({&encoding, 1}, *padding_);
  }
  return encoding;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts, bool add_special_tokens,
                                              int threads) const {
  std::vector<Encoding> encodings(texts.size());
  side_by_side(texts.size(), threads, [&](std::size_t i) { encodings[i] = encode(texts[i], add_special_tokens); });
  if (padding_) {
    pad(encodings, *padding_);
  }
  return encodings;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(has(ids[i]), "the id {} at position {} is not in the vocabulary of {} tokens", ids[i], i, vocab_size());
  }
  return engine_->decode(ids, skip_special_tokens);
}

std::int64_t Tokenizer::vocab_size() const { return engine_->vocab_size(); }

bool Tokenizer::has(std::int64_t id) const { return engine_->token(id) != nullptr; }

std::optional<std::int64_t> Tokenizer::id_of(std::string_view token) const { return engine_->id_of(token); }

const std::string& Tokenizer::token_of(std::int64_t id) const {
  const std::string* token = engine_->token(id);
  check(token != nullptr, "the id {} is not in the vocabulary of {} tokens", id, vocab_size());
  return *token;
}

bool Tokenizer::is_special(std::int64_t id) const { return engine_->is_special(id); }

const std::optional<Truncation>& Tokenizer::truncation() const { return truncation_; }

const std::optional<Padding>& Tokenizer::padding() const { return padding_; }

Tokenizer Tokenizer::with_truncation(std::optional<Truncation> truncation) const {
  Tokenizer copy = *this;
  copy.truncation_ = truncation;
  return copy;
}

Tokenizer Tokenizer::with_padding(std::optional<Padding> padding) const {
  check(!padding || padding->multiple_of > 0, "padding to a multiple of {}", padding ? padding->multiple_of : 0);
  Tokenizer copy = *this;
  copy.padding_ = std::move(padding);
  return copy;
}

const std::string& Tokenizer::kind() const { return engine_->kind(); }

void Tokenizer::save(const std::filesystem::path& folder, bool type_ids) const { engine_->save(folder, type_ids); }

std::int64_t ordinary_tokens(const Tokenizer& tokenizer) {
  std::int64_t count = tokenizer.vocab_size();
  while (count > 0 && tokenizer.has(count - 1) && tokenizer.is_special(count - 1)) {
    --count;
  }
  for (const std::int64_t id : tokenizer.with_padding(std::nullopt).encode("").ids) {
    count = std::max(count, id + 1);
  }
  return count;
}

}  // namespace vitrail::text
