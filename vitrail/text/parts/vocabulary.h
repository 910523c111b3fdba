/// \file
/// Tokens and their ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrail::text {

/// The largest id that any vocabulary may have.
inline constexpr std::int64_t largest_id = (std::int64_t{1} << 22) - 1;

/// A map of tokens to ids and back. Ids may have gaps, but not much more of these than tokens: a file must not make us
/// take memory for nothing.
class Vocabulary {
 public:
  /// For so many tokens.
  explicit Vocabulary(std::size_t count = 0);

  /// Adds a token. Throws Error if the token or the id is there already, or the id is out of range.
  void add(std::string_view token, std::int64_t id);
  std::optional<std::uint32_t> find(std::string_view token) const;
  /// The token of `id`, or nullptr.
  const std::string* token(std::int64_t id) const;
  std::size_t size() const { return ids_.size(); }
  /// One more than the largest id.
  std::int64_t end() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The number of bytes of the longest token.
  std::size_t longest() const { return longest_; }

 private:
  std::int64_t end_limit_;
  std::vector<std::unique_ptr<const std::string>> tokens_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::size_t longest_ = 0;
};

}  // namespace vitrail::text
