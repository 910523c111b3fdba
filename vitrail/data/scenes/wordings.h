/// \file
/// Other words for the questions about scenes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

/// The ways in which people ask what scene_questions() ask in one: "how many birds are there?" first, then "how many
/// birds are in this image?", "what is the number of birds?" …; "things" are "objects" too. A text that is no such
/// question is its only wording.
std::vector<std::string> wordings_of(std::string_view question);

}  // namespace vitrail::data
