#include "vitrail/text/parts/encoding.h"

namespace vitrail::text {

void append(Encoding& to, const Encoding& from, std::int64_t shift) {
  to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
  to.type_ids.insert(to.type_ids.end(), from.type_ids.begin(), from.type_ids.end());
  to.tokens.insert(to.tokens.end(), from.tokens.begin(), from.tokens.end());
  for (const auto& [begin, end] : from.offsets) {
    to.offsets.emplace_back(begin + shift, end + shift);
  }
  to.special.insert(to.special.end(), from.special.begin(), from.special.end());
  to.attention_mask.insert(to.attention_mask.end(), from.attention_mask.begin(), from.attention_mask.end());
}

}  // namespace vitrail::text
