#include "vitrail/data/sources/parts.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <tuple>

#include <fmt/ranges.h>

#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array training_names = {"train", "training"};
constexpr std::array validation_names = {"validation", "val", "valid", "eval", "evaluation", "dev"};
constexpr std::array testing_names = {"test", "testing"};
// What is taken in place of a part that is not there, and is a part of its own otherwise.
constexpr const char* in_place_of_training = "trainval";  // of Pascal VOC

// The names that are known, in the order in which parts are listed.
const std::vector<std::string>& known_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(training_names.begin(), training_names.end());
    all.emplace_back(in_place_of_training);
    all.insert(all.end(), validation_names.begin(), validation_names.end());
    all.insert(all.end(), testing_names.begin(), testing_names.end());
    return all;
  }();
  return names;
}

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const auto& known) { return is_same_part(known, name); });
}

bool is_of_year(char c) { return c >= '0' && c <= '9'; }

// A name without the four digits of a year behind it.
std::string_view without_year(std::string_view name) {
  constexpr std::size_t digits = 4;
  return name.size() > digits && std::all_of(name.end() - digits, name.end(), is_of_year) &&
                 !is_of_year(name[name.size() - digits - 1])
             ? name.substr(0, name.size() - digits)
             : name;
}

// How well a name fits a part: 0: to the letter, 1: but for capitals, 2: but for a year, 3: but for other words
// ("train_small"); 4: not at all.
int misfit(const Part& part, const std::string& name) {
  return part.name == name                                           ? 0
         : is_same_part(part.name, name)                             ? 1
         : is_same_part(without_year(part.name), name)               ? 2
         : is_same_part(without_year(part_in_name(part.name)), name) ? 3
                                                                     : 4;
}

// The name of the part that is taken if `split` is not there; "" for none. Pascal VOC's "trainval" has all of "val".
std::string in_place_of(const std::string& split, const Parts& parts) {
  const bool has_validation =
      std::ranges::any_of(parts, [](const Part& part) { return is_among(validation_names, without_year(part.name)); });
  return is_training_split(split) && !has_validation ? in_place_of_training
         : is_among(validation_names, split)         ? testing_names.front()
                                                     : "";
}

}  // namespace

bool is_same_part(std::string_view a, std::string_view b) { return io::lower_case(a) == io::lower_case(b); }

bool is_training_split(std::string_view split) { return is_among(training_names, split); }

std::vector<std::string> names_of_split(const std::string& split) {
  std::vector<std::string> names = {split};
  const auto add_others = [&](const auto& group) {
    if (is_among(group, split)) {
      std::ranges::copy_if(group, std::back_inserter(names),
                           [&](const char* name) { return !is_same_part(name, split); });
    }
  };
  add_others(training_names);
  add_others(validation_names);
  add_others(testing_names);
  return names;
}

bool is_part_name(std::string_view name) { return is_among(known_names(), without_year(name)); }

bool is_part_name(std::string_view name, const std::string& split) {
  return is_part_name(name) || is_same_part(name, split) || is_same_part(without_year(name), split);
}

bool is_of_part(std::string_view name, const std::string& split) {
  return std::ranges::any_of(names_of_split(split), [&](const std::string& one) {
    return is_same_part(one, name) || is_same_part(one, without_year(name));
  });
}

std::string part_in_name(std::string_view file) {
  while (!file.empty()) {
    const std::string_view word = file.substr(0, file.find_first_of("_. "));
    file.remove_prefix(std::min(file.size(), word.size() + 1));
    if (const std::string_view before = word.substr(0, word.find('-')); is_part_name(before)) {
      // What counts shards is no part of the name: "train-000000", "train-00000-of-00064".
      const std::string_view last = word.substr(word.rfind('-') == std::string_view::npos ? 0 : word.rfind('-') + 1);
      return std::string(std::ranges::all_of(last, is_of_year) ? before : word);
    }
  }
  return "";
}

void sort_parts(Parts& parts) {
  const auto rank = [](const Part& part) {
    const std::string_view name = without_year(part.name);
    return std::ranges::find_if(known_names(), [&](const std::string& known) { return is_same_part(known, name); }) -
           known_names().begin();
  };
  const auto year = [](const Part& part) { return std::string_view(part.name).substr(without_year(part.name).size()); };
  std::ranges::stable_sort(parts, [&](const Part& a, const Part& b) {
    return std::tuple(rank(a), !year(a).empty(), year(b)) < std::tuple(rank(b), !year(b).empty(), year(a));
  });
}

Parts parts_named(const std::vector<std::string>& names) {
  Parts parts;
  std::ranges::transform(names, std::back_inserter(parts), [](const std::string& name) {
    return Part{name, name.empty() ? "what is of no part" : fmt::format("'{}'", name)};
  });
  sort_parts(parts);
  return parts;
}

Parts part_folders(const fs::path& folder, const std::string& split,
                   const std::function<bool(const fs::path&)>& wanted) {
  Parts parts;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;  // of a broken link, which is no folder
    if (is_part_name(name, split) && at->is_directory(unknown) && (!wanted || wanted(at->path()))) {
      parts.push_back({name, fmt::format("'{}'", name), at->path()});
    }
  }
  std::ranges::sort(parts, {}, &Part::name);
  sort_parts(parts);
  return parts;
}

std::string names_in(const Parts& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) {
    if (!part.name.empty() && std::ranges::find(names, part.name) == names.end()) {
      names.push_back(part.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

namespace {

// The parts that fit a name, the best first: by any of its names, or else by one that has such a word.
std::vector<const Part*> fitting(const Parts& parts, const std::string& split) {
  std::vector<const Part*> found;
  const auto find = [&](const std::string& name, std::initializer_list<int> misfits) {
    for (const int wanted : misfits) {
      for (const Part& part : parts) {
        if (misfit(part, name) == wanted && std::ranges::find(found, &part) == found.end()) {
          found.push_back(&part);
        }
      }
    }
  };
  for (const std::string& name : names_of_split(split)) {
    find(name, {0, 1, 2});
  }
  if (found.empty()) {
    for (const std::string& name : names_of_split(split)) {
      find(name, {3});
    }
  }
  return found;
}

// The name of the part `split` that another name was probably meant to be: one of as many letters or so, of which one
// or two are wrong; "" for none.
std::string meant(const std::string& name, const std::string& split) {
  if (is_part_name(name) || name.size() < 3) {
    return "";
  }
  const std::vector<std::string> names = names_of_split(split);
  const auto near = std::ranges::find_if(names, [&](const std::string& known) {
    return io::edit_distance(name, known) <= std::max<std::size_t>(1, std::min(name.size(), known.size()) / 4);
  });
  return near == names.end() ? "" : *near;
}

}  // namespace

bool has_part(const Parts& parts, const std::string& split) {
  const std::string other = in_place_of(split, parts);
  return !fitting(parts, split).empty() || (!other.empty() && !fitting(parts, other).empty());
}

bool is_all_for_training(const Parts& parts) {
  return std::ranges::all_of(parts, [](const Part& part) {
    return part.name.empty() || is_of_part(part.name, "train") ||
           is_same_part(without_year(part.name), in_place_of_training);
  });
}

namespace {

std::string without_digits(std::string name) {
  std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
  return name;
}

}  // namespace

const Part* choose_part(const Parts& parts, const std::string& split, const std::string& source,
                        std::vector<std::string>& notes, const PartSearch& search) {
  std::vector<const Part*> found = fitting(parts, split);
  if (const std::string other = found.empty() ? in_place_of(split, parts) : ""; !other.empty()) {
    found = fitting(parts, other);
    if (!found.empty()) {
      notes.push_back(
          fmt::format("{}: takes {} in place of '{}', which is not there", source, found.front()->shown, split));
    }
  }
  if (found.empty()) {
    if (is_training_split(split) && (search.whole || parts.empty())) {
      return nullptr;
    }
    check(parts.empty(), "{}: there is no part '{}', only {}", source, split, names_in(parts));
    fail("{}: there is no part '{}'{}", source, split, search.looked_for);
  }
  std::vector<std::string> left;
  std::transform(found.begin() + 1, found.end(), std::back_inserter(left),
                 [](const Part* part) { return part->shown; });
  for (const Part& part : parts) {
    if (part.name.empty()) {
      left.push_back(part.shown);
    } else if (const std::string name = meant(part.name, split);
               !name.empty() && std::ranges::find(found, &part) == found.end() &&
               without_digits(part.name) != without_digits(split)) {  // fold1 is no slip for fold0
      left.push_back(fmt::format("{} (is '{}' meant?)", part.shown, name));
    }
  }
  if (!left.empty()) {
    notes.push_back(fmt::format("{}: takes {} and leaves {}", source, found.front()->shown, fmt::join(left, " and ")));
  }
  return found.front();
}

void check_whole(const Parts& parts, const std::string& source, bool one_is_whole) {
  check(std::ssize(parts) < (one_is_whole ? 2 : 1),
        "{}: split into parts ({}): choose one of them (--split, in training --train-split){}", source, names_in(parts),
        parts.empty() || parts[0].path.empty() ? "" : ", or name its own folder or file");
}

std::string note_of_all(const Parts& parts, const std::string& source) {
  return parts.size() < 2 ? "" : fmt::format("{}: all of its parts are taken: {}", source, names_in(parts));
}

bool is_drawn_for_validation(const std::string& split, std::string_view what) {
  if (split.empty() || is_training_split(split)) {
    return false;
  }
  check(is_among(validation_names, split),
        "{} have no part '{}', only train and validation: others are those of another 'start'", what, split);
  return true;
}

}  // namespace vitrail::data
