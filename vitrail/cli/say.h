/// \file
/// Words on stderr and stdout.
#pragma once

#include <csignal>
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

/// Prints to stdout. What cannot be written there is told at the end of the command (app.cpp), and the work goes on.
template <class... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Prints a note to stderr; an empty one is none.
inline void say_note(const std::string& note) {
  if (!note.empty()) {
    say("note: {}\n", note);
  }
}

/// That nobody reads what is printed any more, as in `vitrail … | head`, does not end a command that writes files too.
inline void outlive_reader() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace vitrail::cli
