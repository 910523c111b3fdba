/// \file
/// JSON on stdout.
#pragma once

#include <nlohmann/json.hpp>

#include "vitrail/cli/say.h"

namespace vitrail::cli {

/// Prints an object or a list, indented by two. Bytes that are no UTF-8, as names of files may have, become U+FFFD.
template <class Json>
void print_json(const Json& json) {
  tell("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace vitrail::cli
