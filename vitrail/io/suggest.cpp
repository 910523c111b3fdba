#include "vitrail/io/suggest.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/io/wording.h"

namespace vitrail::io {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string x = lower_case(a);
  const std::string y = lower_case(b);
  // Rows i - 2, i - 1 and i of the table of distances between the first i letters of x and the first j letters of y.
  std::vector<std::size_t> before(y.size() + 1);
  std::vector<std::size_t> last(y.size() + 1);
  std::vector<std::size_t> row(y.size() + 1);
  for (std::size_t j = 0; j <= y.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= x.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= y.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x[i - 1] == y[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[y.size()];
}

// The words of a name or flag by the alphabet: "clip-grad" of "grad-clip".
static std::string sorted_words(const std::string& name) {
  std::vector<std::string> words = {""};
  for (const char c : name) {
    if (c == '-' || c == '_') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::ranges::sort(words);
  return fmt::format("{}", fmt::join(words, "-"));
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t most) {
  const std::string wanted = lower_case(word);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const std::string known = lower_case(candidate);
    const std::size_t shorter = std::min(wanted.size(), known.size());
    const std::size_t longer = std::max(wanted.size(), known.size());
    const bool begins = shorter >= 3 && wanted.compare(0, shorter, known, 0, shorter) == 0;
    if (longer - shorter > longer / 3 && !begins) {
      continue;  // their lengths alone differ by too much
    }
    // A candidate that merely begins alike ranks after those with a typing error.
    std::size_t distance = longer <= 256 ? edit_distance(wanted, known) : longer;
    if (distance > 1 && sorted_words(wanted) == sorted_words(known)) {
      distance = 1;
    }
    if (distance <= std::max<std::size_t>(1, longer / 3)) {
      near.emplace_back(distance, candidate);
    } else if (begins) {
      near.emplace_back(longer + distance, candidate);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(most, near.size()); ++i) {
    result.push_back(std::move(near[i].second));
  }
  return result;
}

std::string quoted_list(const std::vector<std::string>& words, std::string_view joint) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      text += i + 1 < words.size() ? ", " : fmt::format(" {} ", joint);
    }
    text += fmt::format("'{}'", words[i]);
  }
  return text;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::size_t most) {
  const std::vector<std::string> near = nearest(word, candidates, most);
  return near.empty() ? "" : " (did you mean " + quoted_list(near) + "?)";
}

std::string some_of(const std::vector<std::string>& words) {
  constexpr std::size_t most = 5;
  const std::size_t shown = std::min(words.size(), most);
  return fmt::format("{}{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     words.size() > most ? fmt::format(" and {} more", words.size() - most) : "");
}

std::string some_lines_of(std::span<const std::string> words, std::size_t most) {
  const std::size_t shown = std::min(words.size(), most);
  return fmt::format("  {}{}", fmt::join(words.first(shown), "\n  "),
                     words.size() > most ? fmt::format("\n  and {} more", words.size() - most) : "");
}

}  // namespace vitrail::io
