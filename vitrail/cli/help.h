/// \file
/// How the help of a command is set.
#pragma once

#include <CLI/CLI.hpp>

namespace vitrail::cli {

/// Sets the help as argparse does: names, what a value is called, and a description that is broken into lines and ends
/// with the default.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

/// The names of a flag, the short one first: "-b", "--batch-size". Empty for an argument and for a flag that the help
/// does not show.
std::vector<std::string> shown_names(const CLI::Option& option);

/// What the help calls the value of a flag: "N"; empty if it takes none.
std::string value_name(const CLI::Option& option);

}  // namespace vitrail::cli
