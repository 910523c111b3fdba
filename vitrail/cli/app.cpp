#include "vitrail/cli/app.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <regex>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include "vitrail/cli/help.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/say_why.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/gzip.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/web/download.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::cli {
namespace {

constexpr std::size_t long_to_unpack = std::size_t{100} << 20;  // bytes of an archive of which a user is told

// The names of long flags may have underscores in place of dashes, as argparse's often do, and a switch of the methods
// of `pretrain` may be given as there: `--norm_last_layer false`.
std::vector<std::string> with_dashes(std::vector<std::string> arguments) {
  const bool pretrains = !arguments.empty() && arguments.front() == "pretrain";
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string& word = arguments[i];
    if (word.starts_with("--")) {
      std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size())), '_',
                   '-');
    }
    result.push_back(word);
    const bool is_switch = word == "--norm-last-layer" || word == "--use-bn-in-head";
    if (pretrains && is_switch && i + 1 < arguments.size()) {
      const std::string& next = arguments[i + 1];
      if (next == "true" || next == "True" || next == "1") {
        ++i;
      } else if (next == "false" || next == "False" || next == "0") {
        result.back() += "=false";
        ++i;
      }
    }
  }
  return result;
}

// Rewrites what the parser cannot take as it is typed. In `--model-kwargs a=1 b=2 photo.jpg` it would take the image
// for an item of the list, so each key=value gets a flag of its own, and these flags take one value. Short flags
// of several letters are timm's and sacrebleu's.
std::vector<std::string> prepared(const std::vector<std::string>& arguments) {
  const auto is_item = [](const std::string& word) {
    return !word.starts_with('-') && word.find('=') != std::string::npos && !word.starts_with('=');
  };
  const std::map<std::string, std::string> short_flags =
      !arguments.empty() && arguments[0] == "bleu"
          ? std::map<std::string, std::string>{{"-tok", "--tokenize"},
                                               {"-lc", "--lowercase"},
                                               {"-sv", "--smooth-value"},
                                               {"-sl", "--sentence-level"},
                                               {"-cc", "--chrf-char-order"},
                                               {"-cw", "--chrf-word-order"},
                                               {"-sh", "--short"}}
          : std::map<std::string, std::string>{{"-vb", "--validation-batch-size"}};
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string flag = arguments[i].substr(0, arguments[i].find('='));
    const bool takes_items = flag.starts_with("--") && flag.ends_with("-kwargs");
    if (takes_items && flag.size() < arguments[i].size()) {  // the first item stands behind a sign
      result.push_back(arguments[i]);
    } else if (!takes_items || i + 1 == arguments.size() || !is_item(arguments[i + 1])) {
      const auto full = short_flags.find(arguments[i]);
      result.push_back(full == short_flags.end() ? arguments[i] : full->second);
      continue;
    }
    while (i + 1 < arguments.size() && is_item(arguments[i + 1])) {
      result.push_back(flag + "=" + arguments[++i]);
    }
  }
  return result;
}

// This sign in front of a value says that it is meant as it stands, until it is taken: the parser takes a word in
// brackets for a list, which a text or the name of a file is not, `--stop=--json` means the word, and `--split=` an
// empty one.
constexpr char as_it_stands = '\x01';

std::vector<std::string> with_values_marked(std::vector<std::string> arguments) {
  for (std::string& word : arguments) {
    if (word.starts_with('[') && word.ends_with(']')) {
      word.insert(word.begin(), as_it_stands);
    } else if (const std::size_t equals = word.find('=');
               word.starts_with("--") && equals != std::string::npos &&
               (equals + 1 == word.size() || word.find("--", equals) == equals + 1)) {
      word.insert(equals + 1, 1, as_it_stands);
    }
  }
  return arguments;
}

// Has the options of a command take the marks off their values, and refuse another flag where a value was expected.
void take_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_type_size_max() == 0) {
      continue;  // it takes no value
    }
    const bool is_flag = !option->get_lnames().empty();
    const auto take = [&command, is_flag](std::string& word) -> std::string {
      const bool is_other = is_flag && word.starts_with("--") && command.get_option_no_throw(word) != nullptr;
      if (!is_other && word.starts_with(as_it_stands)) {
        word.erase(word.begin());
      }
      return is_other ? fmt::format("a value was expected, and not the flag {}", word) : "";
    };
    option->transform(CLI::Validator(take, ""));
  }
  for (CLI::App* inner : command.get_subcommands([](CLI::App*) { return true; })) {
    take_values(*inner);
  }
}

// The commands and flags that may have been meant by a word that the parser does not know.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
  }
  return words;
}

// Says which tasks have a flag that the one at hand does not have, and how they are named; "" if none has.
std::string tasks_with(const std::string& flag) {
  std::vector<std::string_view> trained;
  std::vector<std::string_view> pretrained;
  for (const train::TaskKind& kind : train::task_kinds()) {
    const std::unique_ptr<train::TaskOptions> options = kind.defaults();
    train::OptionList list;
    options->describe(list);
    const bool has = std::ranges::any_of(list.all(), [&](const train::Option& option) {
      return option.flag() == flag || option.short_flag == flag || option.other_flag == flag;
    });
    if (has) {
      (kind.command == "train" ? trained : pretrained).push_back(kind.name);
    }
  }
  std::vector<std::string> commands;
  if (!trained.empty()) {
    commands.push_back(fmt::format("vitrail train --task {}", fmt::join(trained, ", ")));
  }
  if (!pretrained.empty()) {
    commands.push_back(fmt::format("vitrail pretrain {}", fmt::join(pretrained, ", ")));
  }
  return commands.empty() ? ""
                          : fmt::format(" here, but {} {} it", fmt::join(commands, ", and "),
                                        trained.size() + pretrained.size() == 1 ? "has" : "have");
}

// Names the flags of a command that end as one that it does not have: "--vision-kwargs" for "--model-kwargs"; "" if
// there are none, or many.
std::string flags_ending_as(const CLI::App& command, const std::string& flag) {
  const std::string ending = flag.substr(std::min(flag.size(), flag.rfind('-')));
  std::vector<std::string> found;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (ending.size() > 1 && name.ends_with(ending)) {
        found.push_back("--" + name);
      }
    }
  }
  constexpr std::size_t most = 3;
  return found.empty() || found.size() > most ? "" : fmt::format(" (here there is {})", fmt::join(found, ", "));
}

// The message with a flag that has several names called by the one that was typed.
std::string as_typed(std::string message, const CLI::App& command, const std::vector<std::string>& arguments) {
  const auto is_typed = [&](const std::string& name) {
    return std::ranges::any_of(arguments,
                               [&](const std::string& word) { return word.substr(0, word.find('=')) == "--" + name; });
  };
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    const auto typed = std::ranges::find_if(names, is_typed);
    for (const std::string& name : names) {
      if (typed != names.end() && !is_typed(name)) {
        message = std::regex_replace(message, std::regex("--" + name + "(?![-a-z])"), "--" + *typed);
      }
    }
  }
  return message;
}

// Where something is missing that a flag of several values may have taken: which flag it was.
std::string taken_by_a_list(const CLI::App& command, std::string_view message) {
  if (message.find("is required") == std::string_view::npos && message.find("is missing") == std::string_view::npos) {
    return "";
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty() && option->get_allow_extra_args() && option->results().size() > 1 &&
        option->results().back().find_first_not_of("0123456789.eE+-") != std::string::npos) {
      return fmt::format(" (--{} has taken '{}' as one of its values: name what is missing in front of it)",
                         option->get_lnames().front(), option->results().back());
    }
  }
  return "";
}

int report_usage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path = "vitrail";
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = command->get_subcommands()) {
    command = chosen.front();
    path += " " + command->get_name();
  }
  std::string message = error.what();
  std::erase(message, as_it_stands);
  message = message.starts_with(": ") ? message.substr(2) : message;  // a flag that the help does not show
  std::vector<std::string> rest = command->remaining();
  std::erase(rest, "--");  // behind which no word is a flag
  const auto unknown = std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with("-"); });
  // A word that is left over may follow from a value that was wrong, an unknown flag may not.
  const bool is_of_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  if (unknown != rest.end() || (!rest.empty() && !is_of_value)) {
    const std::string word = unknown == rest.end() ? rest.front() : *unknown;
    const std::string name = word.substr(0, word.find('='));
    const bool trains = command->get_name() == "train" || command->get_name() == "pretrain";
    const std::string tasks = trains ? tasks_with(name) : "";
    const std::string others = tasks.empty() ? "" : tasks + flags_ending_as(*command, name);
    std::error_code none;
    message = fmt::format("there is no {} '{}'{}{}",
                          word.starts_with("-") ? "flag" : (command == &app ? "command" : "argument"), name,
                          others.empty() ? io::did_you_mean(name, known_words(*command)) : others,
                          word.starts_with("-") && std::filesystem::exists(word, none)
                              ? fmt::format(" (the file of this name is ./{})", word)
                              : "");
  }
  if (command != &app && !arguments.empty() && arguments.front() != app.get_subcommands().front()->get_name()) {
    message = arguments.front().starts_with("-")
                  ? fmt::format("{} stands in front of the command: flags stand behind it", arguments.front())
                  : fmt::format("there is no command '{}'{}", arguments.front(),
                                io::did_you_mean(arguments.front(), known_words(app)));
  }
  message += taken_by_a_list(*command, message);
  if (command->get_name() == "launch" && std::ranges::find(arguments, "--") == arguments.end()) {
    message += "; what is started, and its flags, follow --: vitrail launch -n 2 -- train …";
  }
  say_why(path, fmt::format("{}\nSee: {} --help", as_typed(message, *command, arguments), path));
  return usage_status;
}

// A command: how it is called, the part of the help that shows it, and what adds it to the program.
struct Command {
  const char* name;
  const char* group;
  void (*add)(CLI::App& app, const std::vector<std::string>& arguments);
};

template <void (*Add)(CLI::App&)>
void add_by(CLI::App& app, const std::vector<std::string>& /*arguments*/) {
  Add(app);
}

constexpr const char* makes_models = "Make a model";
constexpr const char* uses_models = "Use a model";
constexpr const char* looks = "Look at models, runs and images";
constexpr const char* makes_data = "Make data";
constexpr const char* is_about = "About models and this program";

constexpr Command all_commands[] = {
    {"train", makes_models, add_train},
    {"pretrain", makes_models, add_pretrain},
    {"launch", makes_models, add_by<add_launch>},
    {"soup", makes_models, add_by<add_soup>},
    {"quantize", makes_models, add_by<add_quantize>},
    {"eval", uses_models, add_by<add_eval>},
    {"predict", uses_models, add_by<add_predict>},
    {"detect", uses_models, add_by<add_detect>},
    {"caption", uses_models, add_by<add_caption>},
    {"ask", uses_models, add_by<add_ask>},
    {"fill-mask", uses_models, add_by<add_fill_mask>},
    {"embed", uses_models, add_by<add_embed>},
    {"knn", uses_models, add_by<add_knn>},
    {"probe", uses_models, add_by<add_probe>},
    {"zeroshot", uses_models, add_by<add_zeroshot>},
    {"index", uses_models, add_by<add_index>},
    {"search", uses_models, add_by<add_search>},
    {"duplicates", uses_models, add_by<add_duplicates>},
    {"forward", uses_models, add_by<add_forward>},
    {"generate", uses_models, add_by<add_generate>},
    {"translate", uses_models, add_by<add_translate>},
    {"convert", uses_models, add_by<add_convert>},
    {"encoder", uses_models, add_by<add_encoder>},
    {"tokenizer", uses_models, add_by<add_tokenizer>},
    {"bleu", uses_models, add_bleu},
    {"eval-captions", uses_models, add_by<add_eval_captions>},
    {"gallery", looks, add_by<add_gallery>},
    {"attention", looks, add_by<add_attention>},
    {"patches", looks, add_by<add_patches>},
    {"reconstruct", looks, add_by<add_reconstruct>},
    {"positions", looks, add_by<add_positions>},
    {"gradients", looks, add_by<add_gradients>},
    {"project", looks, add_by<add_project>},
    {"latent", looks, add_by<add_latent>},
    {"report", looks, add_by<add_report>},
    {"compare", looks, add_by<add_compare>},
    {"augment", looks, add_by<add_augment>},
    {"scenes", makes_data, add_by<add_scenes>},
    {"shard", makes_data, add_by<add_shard>},
    {"info", is_about, add_by<add_info>},
    {"models", is_about, add_by<add_models>},
    {"bench", is_about, add_by<add_bench>},
    {"scale", is_about, add_by<add_scale>},
    {"completion", is_about, add_by<add_completion>},
};

// Adds the command that the arguments begin with, or all of them where the arguments begin with something else, or with
// what is about all of them: the flags of each take their time, several milliseconds of every start.
void add_commands(CLI::App& app, const std::vector<std::string>& arguments) {
  app.set_version_flag("--version", "vitrail " VITRAIL_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as in argparse, the last one counts
  const std::string_view first = arguments.empty() ? "" : std::string_view(arguments.front());
  const bool is_one =
      first != "completion" && std::ranges::find(all_commands, first, &Command::name) != std::end(all_commands);
  for (const Command& command : all_commands) {
    if (!is_one || first == command.name) {
      command.add(app, arguments);
      app.get_subcommand(command.name)->group(command.group);
    }
  }
  app.footer(
      "Examples:\n"
      "  # train on photos/train/cat/1.jpg, photos/validation/dog/7.png …\n"
      "  vitrail train photos --model vit_tiny_patch16_224 --epochs 20 --output runs --experiment photos\n"
      "  # accuracy and confusion matrix; what it says about an image; where it looks\n"
      "  vitrail eval runs/photos/best photos --split validation\n"
      "  vitrail predict runs/photos/best cat.jpg\n"
      "  vitrail attention runs/photos/best cat.jpg --output maps\n"
      "\n"
      "Threads that wait fall asleep after a while (5,000 turns, 1,000 on an AMD CPU), for the sake of other "
      "programs;\n"
      "the environment variables GOMP_SPINCOUNT and OMP_WAIT_POLICY say otherwise.\n"
      "\n"
      "vitrail COMMAND --help says more.");
}

constexpr const char* lost_output = "the output could not be written";

// Whether all that was printed has been written, or nobody reads it any more, as in `vitrail … | head`.
bool output_is_written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return true;
  }
  struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// Shows how a download gets on, under a bar on a terminal. A run that is asked to stop meanwhile stops.
io::DownloadProgress shown_download(const std::string& url) {
  const auto bar = std::make_shared<train::Progress>(stderr);
  if (!bar->terminal()) {
    say("downloading {}\n", url);
  }
  return [bar, url, begun = false](std::int64_t done, std::int64_t total) mutable {
    constexpr double mega = 1e-6;
    if (bar->terminal()) {
      if (!std::exchange(begun, true)) {
        bar->begin("downloading " + std::filesystem::path(url).filename().string(), std::max(total, done), done);
      }
      bar->update(done, fmt::format("{:.0f} MB", static_cast<double>(done) * mega));
      if (done == total) {
        bar->end();
      }
    }
    return !train::Interrupt::requested();
  };
}

// Says so where several processes were started of a command that does not share its work.
void note_on_ranks(const std::vector<std::string>& arguments) {
  const int ranks = dist::announced_ranks();
  const std::vector<std::string> sharing = {"train", "pretrain", "bench"};
  const auto has = [&](const char* word) { return std::ranges::find(arguments, word) != arguments.end(); };
  if (ranks > 1 && dist::announced_rank() == 0 && !arguments.empty() && !has("--help") && !has("-h") &&
      std::ranges::find(all_commands, arguments.front(), &Command::name) != std::end(all_commands) &&
      std::ranges::find(sharing, arguments.front()) == sharing.end()) {
    say_note(fmt::format("each of the {} processes does all of the work: train, pretrain and bench comm share theirs",
                         ranks));
  }
}

// Runs the command that the arguments name, and says on stderr what it failed of. Returns the exit status.
int run_command(std::vector<std::string> arguments) {
  CLI::App app{"Vision transformers on the CPU: train, evaluate, explain, run", "vitrail"};
  io::on_unpacking([](const std::filesystem::path& path, std::size_t bytes) {
    if (bytes >= long_to_unpack) {
      say("unpacking {} of {:.1f} GB …\n", path.string(), static_cast<double>(bytes) * 1e-9);
    }
  });
  io::on_downloading(shown_download);
  const bool asks = !arguments.empty() && arguments.front() == "help";  // `help`, `help train`
  if (asks) {
    arguments.erase(arguments.begin());
  }
  try {
    arguments = with_values_marked(prepared(with_dashes(arguments)));
    add_commands(app, arguments);
    take_values(app);
    if (arguments.empty()) {
      fmt::print("{}", app.help());
      return 0;
    }
    const std::vector<const CLI::App*> commands =
        std::as_const(app).get_subcommands([](const CLI::App*) { return true; });
    if (asks && std::ranges::find(commands, arguments.front(), &CLI::App::get_name) != commands.end()) {
      arguments.emplace_back("--help");  // else it is told that there is none
    }
    note_on_ranks(arguments);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
    return 0;
  } catch (const CLI::Success& done) {  // `--help`, `--version`
    return app.exit(done);
  } catch (const CLI::RuntimeError& stopped) {
    return stopped.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, arguments);
  } catch (const Error& error) {
    say_why("vitrail", error.what());
  } catch (const std::bad_alloc&) {
    say_why("vitrail", "out of memory: try a smaller --batch-size or a smaller image");
  } catch (const std::exception& error) {  // of fmt::print, if nothing can be written
    say_why("vitrail", std::ferror(stdout) != 0 ? lost_output : error.what());
  }
  return 1;
}

}  // namespace

int run(std::vector<std::string> arguments) {
  const int status = run_command(std::move(arguments));
  if (!output_is_written() && status == 0) {
    say_why("vitrail", lost_output);
    return 1;
  }
  return status;
}

}  // namespace vitrail::cli
