/// \file
/// What does the work behind a Tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/parts/encoding.h"
#include "vitrail/text/parts/limits.h"

namespace vitrail::text {

/// A tokenizer as one of the two libraries has it. Methods may be called by several threads; their meaning is that of
/// the methods of Tokenizer.
class Engine {
 public:
  virtual ~Engine() = default;
  /// The tokens of one text or two, which are UTF-8, cut but not padded.
  virtual Encoding encode(std::span<const std::string_view> texts, bool add_special_tokens,
                          const std::optional<Truncation>& truncation) const = 0;
  /// All ids are in the vocabulary.
  virtual std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const = 0;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<std::int64_t> id_of(std::string_view token) const = 0;
  /// The token of `id`, or nullptr.
  virtual const std::string* token(std::int64_t id) const = 0;
  virtual bool is_special(std::int64_t id) const = 0;
  virtual const std::string& kind() const = 0;
  virtual void save(const std::filesystem::path& folder, bool type_ids) const = 0;
  /// The cuts and pads that the tokenizer's file asks for.
  virtual std::optional<Truncation> truncation() const { return std::nullopt; }
  virtual std::optional<Padding> padding() const { return std::nullopt; }
};

}  // namespace vitrail::text
