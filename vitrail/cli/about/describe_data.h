/// \file
/// What `vitrail info` says of data.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace vitrail::cli {

/// Whether a name is of data rather than of a model: a file, shards, scenes that are drawn, or a folder in which there
/// is neither a model nor a run.
bool names_data(const std::string& name);

/// What data hold, by the tasks that learn from them, as one JSON object. Throws Error if there is nothing.
nlohmann::ordered_json describe_data(const std::string& source);
/// The same as lines for people.
void print_data(const std::string& source);

}  // namespace vitrail::cli
