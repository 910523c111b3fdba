#include "vitrail/text/parts/vocabulary.h"

#include <algorithm>

#include "vitrail/tensor/error.h"

namespace vitrail::text {

namespace {

constexpr std::int64_t spare_ids = 1 << 16;

}  // namespace

Vocabulary::Vocabulary(std::size_t count)
    : end_limit_(std::min(largest_id + 1, 2 * static_cast<std::int64_t>(count) + spare_ids)) {}

void Vocabulary::add(std::string_view token, std::int64_t id) {
  check(id >= 0 && id < end_limit_, "the token '{}' has the id {}, which is not between 0 and {}", token, id,
        end_limit_ - 1);
  if (id >= end()) {
    tokens_.resize(static_cast<std::size_t>(id) + 1);
  }
  std::unique_ptr<const std::string>& place = tokens_[static_cast<std::size_t>(id)];
  check(place == nullptr, "the tokens '{}' and '{}' have the same id {}", place ? *place : "", token, id);
  place = std::make_unique<const std::string>(token);
  check(ids_.emplace(*place, static_cast<std::uint32_t>(id)).second, "the token '{}' is there twice", token);
  longest_ = std::max(longest_, token.size());
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token(std::int64_t id) const {
  return id < 0 || id >= end() ? nullptr : tokens_[static_cast<std::size_t>(id)].get();
}

}  // namespace vitrail::text
