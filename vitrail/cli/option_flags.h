/// \file
/// Flags of the command line for the options of an OptionList.
#pragma once

#include <deque>

#include "vitrail/train/option_list.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vitrail::cli {

/// The flags of the options that are added. The help shows the value that an option has then as its default; values
/// that the command line gives are kept until apply().
class OptionFlags {
 public:
  explicit OptionFlags(CLI::App& command) : command_(command) {}

  /// Adds a flag for one option, in the group `group` of the help, or in the option's own if that is empty.
  void add(const train::Option& option, const std::string& group = "");
  /// Adds a flag for each option of a list.
  void add_all(const train::OptionList& options);
  /// Sets the options whose flags were given in a list that has all of their names. Throws Error if a value is not
  /// valid, or if the flag and the argument of an option were given different ones.
  void apply(train::OptionList& options) const;
  /// Throws Error if an option that was given does nothing beside the others (Option::idle), which are all set and
  /// valid.
  void check_effects(train::OptionList& options) const;
  /// The text that the command line gives for an option; "" if it gives none.
  std::string given(std::string_view name) const;

 private:
  struct Flag {
    std::string name;
    std::string spelled;       ///< "--data-dir", or "DATA" for the argument
    bool arguments = false;    ///< whether the value is given as KEY=VALUE items
    train::OptionValue value;  ///< where the parser writes to
    CLI::Option* option = nullptr;
  };
  void add_names(const train::Option& option, const std::string& names, const std::string& group);
  CLI::Option* add_flag(Flag& flag, const std::string& names, const train::Option& option,
                        const train::OptionValue& now);

  CLI::App& command_;
  std::deque<Flag> flags_;
};

}  // namespace vitrail::cli
