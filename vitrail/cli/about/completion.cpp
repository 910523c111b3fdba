// `vitrail completion` prints scripts that complete command lines in shells. A script asks the program itself, as
// `vitrail completion SHELL -- WORDS`, what may stand in place of the last word, and offers files beside it unless the
// program ends with the status that says there is nothing else.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/help.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::cli {
namespace {

struct Candidate {
  std::string word;
  std::string help;  // "" if there is none
};
struct Candidates {
  std::vector<Candidate> words;
  bool closed = false;  // nothing else may stand there, such as a file
};

constexpr int closed_status = 3;  // as the scripts know it

constexpr const char* bash_script = R"(# bash completion for vitrail:  source <(vitrail completion bash)
_vitrail() {
  local word=${COMP_WORDS[COMP_CWORD]} files=() found closed=0
  found=$("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || closed=$?
  COMPREPLY=()
  [[ -n $found ]] && mapfile -t COMPREPLY <<<"$found"
  if [[ $COMP_CWORD -gt 1 && $word != -* && $closed -ne 3 ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t files < <(compgen -f -- "$word")
    COMPREPLY+=("${files[@]}")
  fi
}
complete -F _vitrail vitrail
)";

constexpr const char* zsh_script = R"(#compdef vitrail
# zsh completion for vitrail:  source <(vitrail completion zsh)
_vitrail() {
  local -a found
  local -i nothing=1 closed=0
  found=("${(@f)$(${~words[1]} completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}") || closed=$?
  [[ -n $found ]] && _describe vitrail found && nothing=0
  [[ CURRENT -gt 2 && $words[CURRENT] != -* && closed -ne 3 ]] && _files && nothing=0
  return nothing
}
if [ "${funcstack[1]-}" = _vitrail ]; then
  _vitrail "$@"
else
  compdef _vitrail vitrail
fi
)";

constexpr const char* fish_script = R"(# fish completion for vitrail:  vitrail completion fish | source
function __vitrail_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] completion fish -- $words[2..-1] 2>/dev/null
  if test $status -ne 3 -a (count $words) -gt 2
    string match -q -- '-*' $words[-1]; or __fish_complete_path $words[-1]
  end
end
complete -c vitrail -f -a '(__vitrail_complete)'
)";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The values that an option is checked for; empty if it takes others too.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "NAME:{lm,tag}"
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  return begin < end && end != std::string::npos ? CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',')
                                                 : std::vector<std::string>();
}

bool is_model(const std::string& name) { return name == "MODEL" || name == "PATTERN"; }

// A command or a task of `train` that takes models of one kind alone.
struct Taker {
  std::string_view name;
  models::ModelKind kind;
  std::vector<std::string> (*new_ones)();  // names that a task makes models of; null: none
};
constexpr std::array<Taker, 13> takers = {{{"detect", models::ModelKind::detector, nullptr},
                                           {"ask", models::ModelKind::answerer, nullptr},
                                           {"caption", models::ModelKind::captioner, nullptr},
                                           {"zeroshot", models::ModelKind::joint, nullptr},
                                           {"translate", models::ModelKind::texts, nullptr},
                                           {"generate", models::ModelKind::texts, nullptr},
                                           {"fill-mask", models::ModelKind::texts, nullptr},
                                           {"--task detect", models::ModelKind::detector, models::detector_names},
                                           {"--task vqa", models::ModelKind::answerer, models::vqa_names},
                                           {"--task translate", models::ModelKind::texts, models::text_models},
                                           {"--task lm", models::ModelKind::texts, models::text_models},
                                           {"--task classify-text", models::ModelKind::texts, models::text_models},
                                           {"--task tag", models::ModelKind::texts, models::text_models}}};

// What takes the model that is typed: the command, or the task of a training.
std::string taker_in(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--task=")) {
      return "--task " + words[i].substr(words[i].find('=') + 1);
    }
    if (words[i] == "--task" && i + 1 < words.size()) {
      return "--task " + words[i + 1];
    }
  }
  return words.empty() ? "" : words.front();
}

std::vector<Candidate> models_for(const std::string& taker) {
  const auto* const own = std::ranges::find(takers, taker, &Taker::name);
  std::vector<std::string> names;
  if (own == takers.end()) {
    for (const models::Architecture& architecture : models::architectures()) {
      names.push_back(architecture.name);
    }
    std::ranges::copy(models::text_models(), std::back_inserter(names));
  } else if (own->new_ones != nullptr) {
    names = own->new_ones();
  }
  std::vector<Candidate> candidates;
  candidates.reserve(names.size());
  for (std::string& name : names) {
    candidates.push_back({std::move(name), ""});
  }
  for (const models::ShippedModel& model : models::shipped_models()) {
    if (own == takers.end() || models::kind_of(model.card.name) == own->kind) {
      candidates.push_back({model.card.name, model.card.what});
    }
  }
  return candidates;
}

Candidates values_of(const CLI::Option& option, const std::string& name, const std::string& taker) {
  if (is_model(name)) {
    return {models_for(taker)};
  }
  Candidates values;
  for (std::string& choice : choices_of(option)) {
    values.words.push_back({std::move(choice), ""});
  }
  values.closed = !values.words.empty();
  return values;
}

std::vector<Candidate> commands_of(const CLI::App& app) {
  std::vector<Candidate> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back({command->get_name(), first_line(command->get_description())});
  }
  return commands;
}

std::vector<Candidate> flags_of(const CLI::App& command) {
  std::vector<Candidate> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (std::string& name : shown_names(*option)) {
      if (name.starts_with("--")) {
        flags.push_back({std::move(name), first_line(option->get_description())});
      }
    }
  }
  return flags;
}

// What may stand behind `words`, in a command that has been found, whose own words begin at `begin`; `taker` is what
// takes a model.
Candidates candidates_in(const CLI::App& command, const std::vector<std::string>& words, std::size_t begin,
                         bool begins_with_dash, const std::string& taker) {
  const std::string before = words.size() > begin ? words.back() : "";
  const CLI::Option* flag = before.starts_with('-') ? command.get_option_no_throw(before) : nullptr;
  if (flag != nullptr && !value_name(*flag).empty() && !begins_with_dash) {
    return values_of(*flag, value_name(*flag), taker);
  }
  if (begins_with_dash) {
    return {flags_of(command)};
  }
  if (words.size() > begin) {
    return {};
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      return values_of(*option, option->get_name(true, false), taker);
    }
  }
  return {commands_of(command), true};
}

// What may stand in place of the last word. Flags of `train` and `pretrain` are those of the task that the words are
// about.
Candidates candidates(const CLI::App& app, std::vector<std::string> words) {
  const auto launched = std::ranges::find(words, "--");
  if (words.front() == "launch" && launched != words.end() && launched + 1 != words.end()) {  // a training
    words.erase(words.begin(), launched + 1);
  }
  const std::string last = words.back();
  words.pop_back();
  CLI::App own;
  own.formatter(app.get_formatter());
  const CLI::App* command = &app;
  std::size_t begin = 0;
  if (!words.empty() && (words[0] == "train" || words[0] == "pretrain")) {
    (words[0] == "train" ? add_train : add_pretrain)(own, words);
    command = &own;
  }
  while (begin < words.size()) {
    const auto named =
        command->get_subcommands([&](const CLI::App* inner) { return inner->get_name() == words[begin]; });
    if (named.empty()) {
      break;
    }
    command = named.front();
    ++begin;
  }
  if (begin == 0 && !words.empty()) {
    return {};  // no command
  }
  Candidates found = candidates_in(*command, words, begin, last.starts_with('-'), taker_in(words));
  std::erase_if(found.words, [&](const Candidate& candidate) { return !candidate.word.starts_with(last); });
  return found;
}

void print_for(const std::string& shell, const Candidate& candidate) {
  if (shell == "bash" || candidate.help.empty()) {
    fmt::print("{}\n", candidate.word);
  } else if (shell == "zsh") {
    fmt::print("{}:{}\n", CLI::detail::find_and_replace(candidate.word, ":", "\\:"), candidate.help);
  } else {
    fmt::print("{}\t{}\n", candidate.word, candidate.help);
  }
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("completion", "Print a script that completes commands, flags and models in a shell");
  struct Flags {
    std::string shell;
    std::vector<std::string> words;
  };
  const auto flags = std::make_shared<Flags>();
  command.add_option("SHELL", flags->shell, "Shell: bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command
      .add_option("WORDS", flags->words,
                  "What is typed behind vitrail so far: what may stand in place of the last word is printed, a line "
                  "each; the status is 3 if nothing else may, such as a file (the scripts ask so)")
      ->type_name("");
  add_examples(command, {"# `cmake --install` puts them where the shells look; for this session alone",
                         "source <(vitrail completion bash)", "source <(vitrail completion zsh)     # behind compinit",
                         "vitrail completion fish | source", "# what may be typed here",
                         "vitrail completion bash -- train --task lm --b"});
  command.callback([flags, &app] {
    if (flags->words.empty()) {
      fmt::print("{}", flags->shell == "bash" ? bash_script : flags->shell == "zsh" ? zsh_script : fish_script);
      return;
    }
    const Candidates found = candidates(app, flags->words);
    for (const Candidate& candidate : found.words) {
      print_for(flags->shell, candidate);
    }
    if (found.closed) {
      throw CLI::RuntimeError(closed_status);
    }
  });
}

}  // namespace vitrail::cli
