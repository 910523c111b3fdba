#include "vitrail/data/pairs/counted_captions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/scene.h"
#include "vitrail/io/wording.h"

namespace vitrail::data {
namespace {

constexpr std::string_view without_objects = "nothing";

// What one object of a class is called.
std::string one_of(const std::string& name) {
  constexpr std::array<std::string_view, 3> cell_words = {"red cell", "white cell", "platelet"};
  const auto* const cell = std::ranges::find(cell_kinds, std::string_view(name));
  return cell == cell_kinds.end() ? name : std::string(cell_words[static_cast<std::size_t>(cell - cell_kinds.begin())]);
}

std::string several_of(const std::string& name) {
  const std::string one = one_of(name);
  return one.ends_with('s') ? one : one + "s";
}

std::string number_in_words(std::int64_t number) {
  return number < std::ssize(scene_numbers) ? std::string(scene_numbers[static_cast<std::size_t>(number)])
                                            : std::to_string(number);
}

std::optional<std::int64_t> number_of_words(std::string_view words) {
  if (const auto* const at = std::ranges::find(scene_numbers, words); at != scene_numbers.end()) {
    return at - scene_numbers.begin();
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  return error == std::errc() && end == words.data() + words.size() && number >= 0 ? std::optional(number)
                                                                                   : std::nullopt;
}

}  // namespace

std::string caption_of_counts(const std::vector<std::int64_t>& counts, const std::vector<std::string>& classes) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) {
      parts.push_back(number_in_words(counts[i]) + " " +
                      (counts[i] == 1 ? one_of(classes[i]) : several_of(classes[i])));
    }
  }
  std::string caption = parts.empty() ? std::string(without_objects) : parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    caption += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return caption;
}

std::optional<std::vector<std::int64_t>> counts_of_caption(std::string_view caption,
                                                           const std::vector<std::string>& classes) {
  std::vector<std::int64_t> counts(classes.size(), 0);
  std::string rest = io::lower_case(caption);
  if (rest == without_objects) {
    return counts;
  }
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const std::optional<std::int64_t> number = number_of_words(rest.substr(0, space));
    if (space == std::string::npos || !number) {
      return std::nullopt;
    }
    rest.erase(0, space + 1);
    // The longest name that fits, up to what joins the parts.
    std::size_t taken = 0;
    std::size_t which = 0;
    std::size_t joint = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      for (const std::string& name : {io::lower_case(several_of(classes[i])), io::lower_case(one_of(classes[i]))}) {
        if (name.size() <= taken || !rest.starts_with(name)) {
          continue;
        }
        const std::string_view behind = std::string_view(rest).substr(name.size());
        const std::size_t length = behind.starts_with(" and ") ? 5 : behind.starts_with(", ") ? 2 : 0;
        if (behind.empty() || length > 0) {
          taken = name.size();
          which = i;
          joint = length;
        }
      }
    }
    if (taken == 0 || counts[which] > 0) {
      return std::nullopt;
    }
    counts[which] = *number;
    rest.erase(0, taken + joint);
    if (rest.empty() && joint > 0) {
      return std::nullopt;
    }
  }
  return counts;
}

CaptionedImages counted_captions(const std::filesystem::path& source, const std::string& split, bool skip_broken) {
  BoxedImages boxed = open_boxed_images(source, {.split = split, .skip_broken = skip_broken});
  CaptionedImages result;
  result.texts.reserve(boxed.objects.size());
  result.counts.reserve(boxed.objects.size());
  for (const std::vector<BoxedObject>& objects : boxed.objects) {
    std::vector<std::int64_t>& counts = result.counts.emplace_back(boxed.classes.size(), 0);
    for (const BoxedObject& object : objects) {
      counts[static_cast<std::size_t>(object.label)] += object.crowd ? 0 : 1;
    }
    result.texts.push_back({caption_of_counts(counts, boxed.classes)});
  }
  result.images = std::move(boxed.images);
  result.counted = std::move(boxed.classes);
  return result;
}

}  // namespace vitrail::data
