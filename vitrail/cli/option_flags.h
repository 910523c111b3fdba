// A flag for one field of train::TrainOptions.
#pragma once

#include <string>
#include <type_traits>

#include <CLI/CLI.hpp>

#include "vitrail/train/options.h"

namespace vitrail::cli {

// Adds `names` ("-b,--batch-size", without them "--NAME") bound to `field`: a bool that is true can be turned off by
// --no-NAME, other fields show what they are by default.
template <class Field>
CLI::Option* add_train_flag(CLI::App& command, const std::string& name, Field& field, const char* help,
                            const std::string& names = "") {
  const std::string flag = train::flag_of(name);
  if constexpr (std::is_same_v<Field, bool>) {
    return field ? command.add_flag(flag + ",!--no-" + flag.substr(2), field, help)
                 : command.add_flag(flag, field, help);
  } else {
    CLI::Option* option = command.add_option(names.empty() ? flag : names, field, help);
    if constexpr (requires { field.empty(); }) {
      return field.empty() ? option : option->capture_default_str();
    }
    return option->capture_default_str();
  }
}

}  // namespace vitrail::cli
