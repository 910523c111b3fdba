// `vitrail completion` prints completion scripts for shells, which it makes from the commands and flags themselves.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/help.h"

namespace vitrail::cli {
namespace {

struct CompletedFlag {
  std::vector<std::string> names;  // "-b", "--batch-size"
  std::string help;
  std::string value;      // what the help calls its value; empty if it takes none
  bool is_model = false;  // whether the value may be the name of a model
};

struct CompletedCommand {
  std::string name;
  std::string help;
  std::vector<CompletedFlag> flags;
  bool begins_with_model = false;  // whether the first argument may be the name of a model
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The commands as the help shows them.
std::vector<CompletedCommand> commands_of(const CLI::App& app) {
  std::vector<CompletedCommand> commands;
  for (const CLI::App* added : app.get_subcommands([](const CLI::App*) { return true; })) {
    CompletedCommand& command = commands.emplace_back();
    command.name = added->get_name();
    command.help = first_line(added->get_description());
    bool first = true;
    for (const CLI::Option* option : added->get_options()) {
      if (option->get_positional()) {
        const std::string name = option->get_name(true, false);
        command.begins_with_model = command.begins_with_model || (first && (name == "MODEL" || name == "PATTERN"));
        first = false;
      }
      if (std::vector<std::string> names = shown_names(*option); !names.empty()) {
        const std::string value = value_name(*option);
        command.flags.push_back({std::move(names), first_line(option->get_description()), value, value == "MODEL"});
      }
    }
  }
  return commands;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  return CLI::detail::find_and_replace(text, from, to);
}

std::string bash_script(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  std::string cases;
  std::string models;
  for (const CompletedCommand& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> flags;
    for (const CompletedFlag& flag : command.flags) {
      for (const std::string& name : flag.names) {
        if (name.starts_with("--")) {
          flags.push_back(name);
        }
        if (flag.is_model) {
          models += fmt::format("{}{}:*:{}", models.empty() ? "" : " | ", command.name, name);
        }
      }
    }
    if (command.begins_with_model) {
      models += fmt::format("{}{}:2:*", models.empty() ? "" : " | ", command.name);
    }
    cases += fmt::format("    {}) flags=\"{}\" ;;\n", command.name, fmt::join(flags, " "));
  }
  return fmt::format(R"(# bash completion for vitrail:  source <(vitrail completion bash)
_vitrail() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    return
  fi
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$word"))
  # Where a model may stand: names besides folders.
  case "${{COMP_WORDS[1]}}:$COMP_CWORD:$before" in
    {})
      COMPREPLY+=($("${{COMP_WORDS[0]}}" models --names "$word*" 2>/dev/null)) ;;
  esac
}}
complete -F _vitrail vitrail
)",
                     fmt::join(names, " "), cases, models);
}

// The text for single quotes in a specification of zsh's _arguments, where brackets and colons have a meaning.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = replaced(text, special, std::string("\\") + special);
  }
  return replaced(text, "'", "'\\''");
}

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
  std::string names;
  std::string cases;
  for (const CompletedCommand& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, replaced(command.help, "'", "'\\''"));
    cases += fmt::format("        {})\n          _arguments", command.name);
    for (const CompletedFlag& flag : command.flags) {
      const std::string exclusive = flag.names.size() > 1 ? fmt::format("({})", fmt::join(flag.names, " ")) : "";
      const std::string value = flag.value.empty() ? ""
                                                   : fmt::format(":{}:{}", zsh_text(flag.value),
                                                                 flag.is_model ? "_vitrail_models" : "_files");
      for (const std::string& name : flag.names) {
        cases += fmt::format(" \\\n            '{}{}[{}]{}'", exclusive, name, zsh_text(flag.help), value);
      }
    }
    cases += fmt::format("{} \\\n            '*: :_files' ;;\n",
                         command.begins_with_model ? " \\\n            '1: :_vitrail_models'" : "");
  }
  return fmt::format(R"zsh(#compdef vitrail
# zsh completion for vitrail:  source <(vitrail completion zsh)
_vitrail_models() {{
  local -a models=(${{(f)"$(vitrail models --names 2>/dev/null)"}})
  _alternative 'models:model:compadd -a models' 'files:folder:_files'
}}
_vitrail() {{
  local curcontext=$curcontext state line
  local -a commands=(
{})
  _arguments -C '(- *)'{{-h,--help}}'[Print this help message and exit]' '(- *)--version[Print the version and exit]' \
    '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $line[1] in
{}      esac ;;
  esac
}}
if [ "${{funcstack[1]-}}" = _vitrail ]; then
  _vitrail "$@"
else
  compdef _vitrail vitrail
fi
)zsh",
                     names, cases);
}

// The text for single quotes in fish, where a backslash escapes a quote.
std::string fish_text(const std::string& text) { return replaced(replaced(text, "\\", "\\\\"), "'", "\\'"); }

std::string fish_script(const std::vector<CompletedCommand>& commands) {
  std::string script =
      "# fish completion for vitrail:  vitrail completion fish | source\n"
      "complete -c vitrail -n __fish_use_subcommand -f\n"
      "complete -c vitrail -n __fish_use_subcommand -s h -l help -d 'Print this help message and exit'\n"
      "complete -c vitrail -n __fish_use_subcommand -l version -d 'Print the version and exit'\n";
  for (const CompletedCommand& command : commands) {
    script += fmt::format("complete -c vitrail -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                          fish_text(command.help));
    const std::string here = fmt::format("complete -c vitrail -n '__fish_seen_subcommand_from {}'", command.name);
    if (command.begins_with_model) {
      script += here + " -a '(vitrail models --names 2>/dev/null)'\n";
    }
    for (const CompletedFlag& flag : command.flags) {
      script += here;
      for (const std::string& name : flag.names) {
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      script += flag.value.empty() ? "" : " -r";
      script += flag.is_model ? " -a '(vitrail models --names 2>/dev/null)'" : "";
      script += fmt::format(" -d '{}'\n", fish_text(flag.help));
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("completion", "Print a script that completes commands, flags and models in a shell");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "Shell: bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(command, {"# `cmake --install` puts them where the shells look; for this session alone",
                         "source <(vitrail completion bash)", "source <(vitrail completion zsh)     # behind compinit",
                         "vitrail completion fish | source"});
  command.callback([shell, &app] {
    const std::vector<CompletedCommand> commands = commands_of(app);
    fmt::print("{}", *shell == "bash"  ? bash_script(commands)
                     : *shell == "zsh" ? zsh_script(commands)
                                       : fish_script(commands));
  });
}

}  // namespace vitrail::cli
