#include "vitrail/cli/option_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/flags.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/kwargs.h"

namespace vitrail::cli {
namespace {

using train::OptionKind;
using train::OptionValue;

// A value of this kind for the parser to write to: that of the option, or an empty one if it is not set.
OptionValue room_for(OptionKind kind, const OptionValue& now) {
  if (!std::holds_alternative<std::monostate>(now) && kind != OptionKind::arguments) {
    return now;
  }
  switch (kind) {
    case OptionKind::flag:
      return false;
    case OptionKind::integer:
      return std::int64_t{0};
    case OptionKind::number:
      return 0.0;
    case OptionKind::text:
      return std::string();
    case OptionKind::integers:
      return std::vector<std::int64_t>();
    case OptionKind::numbers:
      return std::vector<double>();
    case OptionKind::texts:
    case OptionKind::arguments:
      break;
  }
  return std::vector<std::string>();
}

// All names of the flag of an option as CLI11 takes them: "-b,--batch-size,--other".
std::string names_of(const train::Option& option) {
  std::string names;
  for (const std::string& name : {option.short_flag, option.flag(), option.other_flag}) {
    names += (names.empty() || name.empty() ? "" : ",") + name;
  }
  return names;
}

}  // namespace

CLI::Option* OptionFlags::add_flag(Flag& flag, const std::string& names, const train::Option& option,
                                   const OptionValue& now) {
  return std::visit(
      [&]<class Value>(Value& value) -> CLI::Option* {
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Value, bool>) {
          const std::string name = option.flag();
          return command_.add_flag(value ? name + ",!--no-" + name.substr(2) : name, value, option.help);
        } else {
          CLI::Option* added = command_.add_option(names, value, option.help);
          if (option.kind == OptionKind::integer || option.kind == OptionKind::integers) {
            added->check(whole_number());
          } else if (option.kind == OptionKind::number || option.kind == OptionKind::numbers) {
            added->check(finite());
          }
          bool shown = !std::holds_alternative<std::monostate>(now);
          if constexpr (requires { value.empty(); }) {
            shown = shown && !value.empty();
          }
          return shown ? added->capture_default_str() : added;
        }
      },
      flag.value);
}

void OptionFlags::add(const train::Option& option, const std::string& group) {
  if (!option.positional.empty()) {
    add_names(option, option.positional, group);
  }
  add_names(option, names_of(option), group);
}

void OptionFlags::add_names(const train::Option& option, const std::string& names, const std::string& group) {
  const OptionValue now = option.get();
  Flag& flag = flags_.emplace_back();
  flag.name = option.name;
  flag.spelled = names == option.positional ? names : option.flag();
  flag.arguments = option.kind == OptionKind::arguments;
  flag.value = room_for(option.kind, now);
  flag.option = add_flag(flag, names, option, flag.arguments ? OptionValue() : now);
  if (flag.arguments) {
    flag.option->allow_extra_args(false);
  }
  flag.option->group(io::capitalized(group.empty() ? option.group : group));
  if (!option.metavar.empty()) {
    flag.option->type_name(option.metavar);
  }
  if (!option.choices.empty()) {  // named for completion alone: the option checks its value itself
    flag.option->check(
        CLI::Validator([](std::string&) { return ""; }, fmt::format("{{{}}}", fmt::join(option.choices, ","))));
  }
}

void OptionFlags::add_all(const train::OptionList& options) {
  for (const train::Option& option : options.all()) {
    add(option);
  }
}

void OptionFlags::apply(train::OptionList& options) const {
  std::vector<const Flag*> given;
  for (const Flag& flag : flags_) {
    if (flag.option->count() == 0) {
      continue;
    }
    const auto other = std::ranges::find(given, flag.name, &Flag::name);
    if (other != given.end()) {
      const std::string one = train::option_text((*other)->value);
      const std::string two = train::option_text(flag.value);
      check(one == two, "{} is {}, but {} is {}: give one of them", (*other)->spelled, one, flag.spelled, two);
    }
    given.push_back(&flag);
    options.find(flag.name)->set(
        flag.arguments ? OptionValue(models::kwargs_to_json(std::get<std::vector<std::string>>(flag.value)))
                       : flag.value);
  }
}

void OptionFlags::check_effects(train::OptionList& options) const {
  for (const Flag& flag : flags_) {
    if (flag.option->count() == 0) {
      continue;
    }
    for (const auto& why : options.find(flag.name)->idle) {
      const std::string words = why();
      check(words.empty(), "{} has no effect {}", flag.spelled, words);
    }
  }
}

std::string OptionFlags::given(std::string_view name) const {
  const auto it = std::ranges::find(flags_, name, &Flag::name);
  const bool is_given = it != flags_.end() && it->option->count() > 0;
  return is_given && std::holds_alternative<std::string>(it->value) ? std::get<std::string>(it->value) : "";
}

}  // namespace vitrail::cli
