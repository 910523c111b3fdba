/// \file
/// Questions about scenes that are drawn when they are asked for.
#pragma once

#include <filesystem>
#include <string>

#include "vitrail/data/pairs/questions.h"

namespace vitrail::data {

/// The questions that `vitrail scenes` writes about the scenes of `source` (is_scene_source()), of a part as
/// open_questions_of() names it. Question::about is filled in only if `boxes` are asked for: each scene is then drawn
/// once.
ImageQuestions drawn_questions(const std::filesystem::path& source, const std::string& split, bool boxes);

}  // namespace vitrail::data
