#include "vitrail/text/strings/graphemes.h"

#include <algorithm>
#include <array>

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

UGraphemeClusterBreak break_class(char32_t c) {
  return static_cast<UGraphemeClusterBreak>(
      u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK));
}

// The property Indic_Conjunct_Break of Unicode 15.1, which older data do not have, by its definition.
enum class Conjunct { none, consonant, linker, extend };

Conjunct conjunct_class(char32_t c) {
  constexpr std::array scripts = {USCRIPT_BENGALI,   USCRIPT_DEVANAGARI, USCRIPT_GUJARATI,
                                  USCRIPT_MALAYALAM, USCRIPT_ORIYA,      USCRIPT_TELUGU};
  const auto point = static_cast<UChar32>(c);
  if (c < 0x300) {
    return Conjunct::none;
  }
  const auto syllabic = u_getIntPropertyValue(point, UCHAR_INDIC_SYLLABIC_CATEGORY);
  if (syllabic == U_INSC_VIRAMA || syllabic == U_INSC_CONSONANT) {
    UErrorCode status = U_ZERO_ERROR;
    if (std::ranges::find(scripts, uscript_getScript(point, &status)) != scripts.end()) {
      return syllabic == U_INSC_VIRAMA ? Conjunct::linker : Conjunct::consonant;
    }
  }
  const bool extends = u_getCombiningClass(point) != 0 || break_class(c) == U_GCB_ZWJ;
  return extends ? Conjunct::extend : Conjunct::none;
}

// What must be remembered of the text before a place to know whether a cluster ends there.
class Breaker {
 public:
  bool ends_before(char32_t c) {
    const UGraphemeClusterBreak next = break_class(c);
    const Conjunct conjunct = conjunct_class(c);
    const bool pictograph = u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
    const bool ends = decide(next, conjunct, pictograph);
    pictograph_before_joiner_ = next == U_GCB_ZWJ && after_pictograph_;
    after_pictograph_ = pictograph || (next == U_GCB_EXTEND && after_pictograph_);
    flags_ = next == U_GCB_REGIONAL_INDICATOR ? flags_ + 1 : 0;
    if (conjunct == Conjunct::consonant) {
      consonant_ = true;
      linked_ = false;
    } else if (conjunct == Conjunct::linker) {
      linked_ = consonant_;
    } else if (conjunct == Conjunct::none) {
      consonant_ = false;
      linked_ = false;
    }
    previous_ = next;
    return ends;
  }

 private:
  bool decide(UGraphemeClusterBreak next, Conjunct conjunct, bool pictograph) const {
    const auto is_control = [](UGraphemeClusterBreak c) {
      return c == U_GCB_CONTROL || c == U_GCB_CR || c == U_GCB_LF;
    };
    if (previous_ == U_GCB_CR && next == U_GCB_LF) {
      return false;  // GB3
    }
    if (is_control(previous_) || is_control(next)) {
      return true;  // GB4, GB5
    }
    const bool hangul =
        (previous_ == U_GCB_L && (next == U_GCB_L || next == U_GCB_V || next == U_GCB_LV || next == U_GCB_LVT)) ||
        ((previous_ == U_GCB_LV || previous_ == U_GCB_V) && (next == U_GCB_V || next == U_GCB_T)) ||
        ((previous_ == U_GCB_LVT || previous_ == U_GCB_T) && next == U_GCB_T);                     // GB6 to GB8
    const bool extends = next == U_GCB_EXTEND || next == U_GCB_ZWJ || next == U_GCB_SPACING_MARK;  // GB9, GB9a
    const bool linked = conjunct == Conjunct::consonant && linked_;                                // GB9c
    const bool joined = pictograph && pictograph_before_joiner_;                                   // GB11
    const bool flag = next == U_GCB_REGIONAL_INDICATOR && flags_ % 2 == 1;                         // GB12, GB13
    return !(hangul || extends || previous_ == U_GCB_PREPEND || linked || joined || flag);
  }

  UGraphemeClusterBreak previous_ = U_GCB_OTHER;
  bool after_pictograph_ = false;          // a pictograph and marks on it
  bool pictograph_before_joiner_ = false;  // these, and a zero-width joiner
  int flags_ = 0;                          // regional indicators without anything between
  bool consonant_ = false;                 // an Indic consonant and marks
  bool linked_ = false;                    // these with a virama
};

}  // namespace

std::vector<std::size_t> grapheme_ends(std::string_view text) {
  std::vector<std::size_t> ends;
  Breaker breaker;
  for_each_code_point(text, [&](char32_t c, std::size_t at) {
    if (breaker.ends_before(c) && at > 0) {
      ends.push_back(at);
    }
  });
  if (!text.empty()) {
    ends.push_back(text.size());
  }
  return ends;
}

}  // namespace vitrail::text
