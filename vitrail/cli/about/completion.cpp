// `vitrail completion bash` prints a completion script, which it makes from the commands and flags themselves.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"

namespace vitrail::cli {
namespace {

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
  }
  return words;
}

std::string bash_script(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    cases += fmt::format("    {}) flags=\"{}\" ;;\n", command->get_name(), fmt::join(flags_of(*command), " "));
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
    train:*:--model | eval:2:* | predict:2:* | embed:2:* | knn:*:--model | attention:2:* | positions:2:* | forward:2:* | info:2:* | models:2:* | bench:*:--model)
      COMPREPLY+=($("${{COMP_WORDS[0]}}" models --names "$word*" 2>/dev/null)) ;;
  esac
}}
complete -F _vitrail vitrail
)",
                     fmt::join(commands, " "), cases);
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("completion", "A script that completes commands, flags and models in bash");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash")->required()->type_name("");
  add_examples(command, {"source <(vitrail completion bash)",
                         "vitrail completion bash > ~/.local/share/bash-completion/completions/vitrail"});
  command.callback([shell, &app] {
    check_usage(*shell == "bash", "there is no completion for '{}': expected bash", *shell);
    fmt::print("{}", bash_script(app));
  });
}

}  // namespace vitrail::cli
