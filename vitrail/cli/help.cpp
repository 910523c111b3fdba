#include "vitrail/cli/help.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/io/wording.h"

namespace vitrail::cli {
namespace {

constexpr std::size_t names_width = 34;  // of the column with the names
constexpr std::size_t line_width = 110;  // of a whole line

// The default of an option as it is typed: "30 60 90" for "[30,60,90]".
std::string default_text(const CLI::Option& option) {
  std::string text = option.get_default_str();
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    std::ranges::replace(text, ',', ' ');
  }
  return text;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

}  // namespace

std::vector<std::string> shown_names(const CLI::Option& option) {
  std::vector<std::string> names;
  if (!option.get_group().empty()) {
    for (const std::string& name : option.get_snames()) {
      names.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string value_name(const CLI::Option& option) {
  if (!takes_value(option)) {
    return "";
  }
  const std::string full = option.get_type_name();  // with what it is checked for: "INT:POSITIVE"
  const std::string name = full.substr(0, full.find(':'));
  return name == "INT" || name == "UINT" || name == "FLOAT" ? "N" : name == "TEXT" ? "NAME" : name;
}

HelpFormatter::HelpFormatter() {
  column_width(names_width);
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return CLI::detail::find_and_replace(Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = option->get_name(true, false);
  if (!is_positional) {
    name = fmt::format("{}", fmt::join(shown_names(*option), ", "));
    if (const std::string value = value_name(*option); !value.empty()) {
      const bool one = option->get_expected_max() == 1 || value.find_first_of(" ,") != std::string::npos;
      name += " " + value + (one ? "" : " ...");
    }
  }
  const bool is_on = !takes_value(*option) && name.find(", --no-") != std::string::npos;
  std::string text = option->get_description() + (is_on ? " (default: on)" : "");
  if (const std::string usual = takes_value(*option) ? default_text(*option) : ""; !usual.empty()) {
    if (const std::size_t general = text.find(" (default"); general != std::string::npos) {
      text.erase(general, text.find(')', general) + 1 - general);  // it holds where nothing more particular is set
    }
    text += fmt::format(" (default: {})", usual);
  }
  if (option->get_required() && !is_positional) {
    text += " (required)";
  }
  std::ostringstream out;
  CLI::detail::format_help(out, name, io::wrapped(text, line_width - names_width), names_width);
  return out.str();
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  const std::string text = command->get_description();
  return fmt::format("  {:<{}}{}\n", command->get_name(), 14, text.substr(0, text.find('\n')));
}

}  // namespace vitrail::cli
