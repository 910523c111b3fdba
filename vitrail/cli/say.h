/// \file
/// Words on stderr.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace vitrail::cli {

/// Prints to stderr. What cannot be written there, because it is closed or full, is lost, and the work goes on.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace vitrail::cli
