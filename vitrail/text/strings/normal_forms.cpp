#include "vitrail/text/strings/normal_forms.h"

#include <algorithm>
#include <optional>

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

constexpr int unicode_version = 9;
constexpr char32_t first_mark = 0x300;  // nothing below composes with what stands before it

struct Classified {
  Change change;
  std::uint8_t combining_class;
};

const icu::Normalizer2& instance(bool compatible) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer =
      compatible ? icu::Normalizer2::getNFKCInstance(status) : icu::Normalizer2::getNFCInstance(status);
  check(U_SUCCESS(status), "ICU has no data for normal forms: {}", u_errorName(status));
  return *normalizer;
}

std::uint8_t combining_class(char32_t c) {
  return c < first_mark || !assigned_in_unicode(c, unicode_version) ? 0 : u_getCombiningClass(static_cast<UChar32>(c));
}

// The code points decomposed, those of a combining class other than 0 in the order of their classes.
std::vector<Classified> decompose(std::string_view text, const icu::Normalizer2& normalizer) {
  std::vector<Classified> result;
  result.reserve(text.size());
  std::size_t pending = 0;  // where the code points begin that are not yet in order
  const auto sort_pending = [&] {
    std::stable_sort(result.begin() + static_cast<std::ptrdiff_t>(pending), result.end(),
                     [](const Classified& a, const Classified& b) { return a.combining_class < b.combining_class; });
  };
  const auto put = [&](char32_t c, std::int32_t change) {
    const std::uint8_t order = combining_class(c);
    if (order == 0) {
      sort_pending();
      pending = result.size();
    }
    result.push_back({{c, change}, order});
  };
  icu::UnicodeString parts;
  for_each_code_point(text, [&](char32_t c, std::size_t) {
    if (c < 0xA0 || !assigned_in_unicode(c, unicode_version) ||
        normalizer.getDecomposition(static_cast<UChar32>(c), parts) == 0) {
      put(c, 0);
      return;
    }
    for (std::int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
      put(static_cast<char32_t>(parts.char32At(i)), i == 0 ? 0 : 1);
    }
  });
  sort_pending();
  return result;
}

std::optional<char32_t> compose(char32_t a, char32_t b, const icu::Normalizer2& normalizer) {
  const UChar32 c = normalizer.composePair(static_cast<UChar32>(a), static_cast<UChar32>(b));
  if (c < 0 || !assigned_in_unicode(static_cast<char32_t>(c), unicode_version)) {
    return std::nullopt;
  }
  return static_cast<char32_t>(c);
}

// Unicode's canonical composition: a starter takes up what follows, where nothing between blocks it.
std::vector<Change> recompose(const std::vector<Classified>& decomposed, const icu::Normalizer2& normalizer) {
  std::vector<Change> result;
  result.reserve(decomposed.size());
  std::optional<std::size_t> starter;  // where it lies in the result
  int last = -1;                       // the class of what stands between it and what comes, if anything does
  for (const auto& [change, order] : decomposed) {
    if (starter && change.c >= first_mark && last < order) {
      if (const auto composed = compose(result[*starter].c, change.c, normalizer)) {
        result[*starter] = {*composed, result[*starter].change + change.change - 1};
        continue;
      }
    }
    if (order == 0) {
      starter = result.size();
      last = -1;
    } else if (starter) {
      last = order;
    }
    result.push_back(change);
  }
  return result;
}

}  // namespace

std::vector<Change> normalize(std::string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const std::vector<Classified> decomposed = decompose(text, instance(compatible));
  if (form == NormalForm::nfc || form == NormalForm::nfkc) {
    return recompose(decomposed, instance(false));
  }
  std::vector<Change> result;
  result.reserve(decomposed.size());
  for (const Classified& each : decomposed) {
    result.push_back(each.change);
  }
  return result;
}

}  // namespace vitrail::text
