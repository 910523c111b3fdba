#include "vitrail/train/option_list.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/dataset.h"
#include "vitrail/io/json.h"
#include "vitrail/io/toml.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// Calls use(number) with each number that a value holds.
template <class Use>
void each_number(const OptionValue& value, Use use) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    use(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    use(*number);
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::ranges::for_each(*integers, use);
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    std::ranges::for_each(*numbers, use);
  }
}

Option& check_numbers(Option& option, const std::function<void(const Option&, double, const std::string&)>& check) {
  return option.check_that([check](const Option& self) {
    each_number(self.get(), [&](auto number) { check(self, static_cast<double>(number), fmt::format("{}", number)); });
  });
}

OptionValue read_value(io::Fields& fields, const Option& option) {
  const std::string& name = option.name;
  switch (option.kind) {
    case OptionKind::flag:
      return fields.get<bool>(name);
    case OptionKind::integer:
      return fields.get<std::int64_t>(name);
    case OptionKind::number:
      return fields.get<double>(name);
    case OptionKind::integers:
      return fields.get<std::vector<std::int64_t>>(name);
    case OptionKind::numbers:
      return fields.get<std::vector<double>>(name);
    case OptionKind::texts:
      return fields.get<std::vector<std::string>>(name);
    case OptionKind::arguments: {
      auto text = fields.get<std::string>(name);
      const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
      check(json.is_object(), "{}: '{}' must be a text with a JSON object, such as '{{\"key\": 32}}', but is '{}'",
            fields.source(), name, io::shown(text));
      return text;
    }
    case OptionKind::text:
      break;
  }
  return fields.get<std::string>(name);
}

}  // namespace

std::string flag_of(std::string_view option) {
  std::string text = fmt::format("--{}", option);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string Option::flag() const { return flag_of(name); }

Option& Option::check_that(std::function<void(const Option&)> check) {
  checks.emplace_back([this, check = std::move(check)] { check(*this); });
  return *this;
}

Option& Option::at_least(double low) {
  return check_numbers(*this, [low](const Option& self, double value, const std::string& text) {
    check(value >= low, "{} must be at least {}, but is {}", self.flag(), low, text);
  });
}

Option& Option::at_most(double high) {
  return check_numbers(*this, [high](const Option& self, double value, const std::string& text) {
    check(value <= high, "{} must be at most {}, but is {}", self.flag(), high, text);
  });
}

Option& Option::positive() {
  return check_numbers(*this, [](const Option& self, double value, const std::string& text) {
    check(value > 0 && std::isfinite(value), "{} must be a positive number, but is {}", self.flag(), text);
  });
}

Option& Option::share() {
  return check_numbers(*this, [](const Option& self, double value, const std::string& text) {
    check(value >= 0 && value <= 1, "{} must be from 0 to 1, but is {}", self.flag(), text);
  });
}

Option& Option::below_one() {
  return check_numbers(*this, [](const Option& self, double value, const std::string& text) {
    check(value >= 0 && value < 1, "{} must be from 0 to below 1, but is {}", self.flag(), text);
  });
}

Option& Option::one_of(std::vector<std::string> names, bool or_empty) {
  choices = std::move(names);
  return check_that([or_empty](const Option& self) {
    const auto value = std::get<std::string>(self.get());
    check((or_empty && value.empty()) || std::ranges::find(self.choices, value) != self.choices.end(),
          "{} must be one of {}, not '{}'", self.flag(), fmt::join(self.choices, ", "), value);
  });
}

Option& Option::ascending() {
  return check_that([](const Option& self) {
    const auto values = std::get<std::vector<double>>(self.get());
    check(values.empty() || (values.size() == 2 && values[0] > 0 && values[0] <= values[1]),
          "{} takes two positive numbers, the smaller first, not [{}]", self.flag(), fmt::join(values, ", "));
  });
}

Option& Option::path() {
  is_path = true;
  return *this;
}

Option& Option::settled() {
  is_settled = true;
  return *this;
}

Option& Option::settled_unless(std::function<bool(const OptionValue&, const OptionValue&)> allowed) {
  may_become = std::move(allowed);
  return settled();
}

Option& Option::idle_if(std::function<std::string()> why) {
  idle.push_back(std::move(why));
  return *this;
}

Option& Option::idle_if(std::string words, std::function<bool()> holds) {
  return idle_if([words = std::move(words), holds = std::move(holds)] { return holds() ? words : ""; });
}

Option& Option::only_with(std::string flag, const std::string& value, std::vector<std::string> values) {
  return idle_if([flag = std::move(flag), &value, values = std::move(values)] {
    return std::ranges::find(values, value) != values.end() ? "" : fmt::format("with {} {}", flag, value);
  });
}

Option& Option::needs(std::string partner, std::function<bool()> is_given) {
  return idle_if([partner = std::move(partner), is_given = std::move(is_given)] {
    return is_given() ? "" : "without " + partner;
  });
}

Option& Option::short_name(std::string flag) {
  short_flag = std::move(flag);
  return *this;
}

Option& Option::also(std::string flag) {
  other_flag = std::move(flag);
  return *this;
}

Option& Option::argument(std::string name) {
  positional = std::move(name);
  return *this;
}

void require_two(const Option& option, const std::vector<double>& values) {
  check(values.empty() || values.size() == 2, "{} takes two numbers, not {}", option.flag(), values.size());
}

Option& OptionList::add_arguments(std::string name, std::string& field, std::string metavar, std::string help) {
  Option& option = add(std::move(name), field, std::move(metavar), std::move(help));
  option.kind = OptionKind::arguments;
  return option;
}

Option* OptionList::find(std::string_view name) {
  const auto it = std::ranges::find(options_, name, &Option::name);
  return it == options_.end() ? nullptr : &*it;
}

void OptionList::resolve_paths() {
  for (Option& option : options_) {
    if (!option.is_path) {
      continue;
    }
    const std::filesystem::path path = std::get<std::string>(option.get());
    std::error_code error;
    if (!data::is_one_path(path) || (path.is_relative() && std::filesystem::exists(path, error))) {
      option.set(data::absolute_source(path));
    }
  }
}

void OptionList::validate() const {
  for (const Option& option : options_) {
    each_number(option.get(), [&](auto number) {
      check(std::isfinite(static_cast<double>(number)), "{} must be a finite number, but is {}", option.flag(), number);
    });
    for (const auto& check : option.checks) {
      check();
    }
  }
}

std::string option_text(const OptionValue& value) {
  return std::visit(
      []<class Value>(const Value& v) -> std::string {
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return "not set";
        } else {
          return io::toml_value(v);
        }
      },
      value);
}

namespace {

// The table of config.toml in which an option stands.
std::string table_of(const Option& option) {
  std::string table = option.group;
  std::ranges::replace(table, ' ', '_');
  return table;
}

}  // namespace

std::string to_toml(const OptionList& options) {
  std::string out;
  std::string_view table;
  for (const Option& option : options.all()) {
    if (option.group != table) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", table_of(option));
      table = option.group;
    }
    const OptionValue value = option.get();
    out += std::holds_alternative<std::monostate>(value) ? fmt::format("# {} is not set\n", option.name)
                                                         : fmt::format("{} = {}\n", option.name, option_text(value));
  }
  return out;
}

void read_toml(const std::filesystem::path& path, OptionList& options, const std::set<std::string>& passed_over) {
  const nlohmann::json file = io::read_toml(path);
  // The tables only order the options for readers: the names are unique over all of them.
  nlohmann::json flat = nlohmann::json::object();
  const auto take = [&](const std::string& name, const nlohmann::json& value) {
    check(!flat.contains(name), "{}: '{}' is given twice", path.string(), name);
    check(!value.is_number_float() || std::isfinite(value.get<double>()), "{}: '{}' is {}, which is no number",
          path.string(), name, value.is_number_float() ? value.get<double>() : 0);
    flat[name] = value;
  };
  for (const auto& [name, value] : file.items()) {
    if (!value.is_object()) {
      take(name, value);
    } else if (name != "facts") {
      const bool known = std::ranges::any_of(
          options.all(), [&, table = name](const Option& option) { return table_of(option) == table; });
      for (const auto& [inner, inner_value] : value.items()) {
        check(known || passed_over.contains(inner), "{}: '{}' stands in the table [{}], which there is not",
              path.string(), inner, name);
        take(inner, inner_value);
      }
    }
  }
  io::Fields fields(flat, path.string());
  for (const Option& option : options.all()) {
    if (fields.kind(option.name) != io::Kind::absent) {
      option.set(read_value(fields, option));
    }
  }
  for (const std::string& name : passed_over) {
    fields.ignore(name);
  }
  fields.finish();
}

std::vector<OptionChange> changes(const OptionList& before, const OptionList& after) {
  std::vector<OptionChange> result;
  for (std::size_t i = 0; i < before.all().size(); ++i) {
    const Option& option = before.all()[i];
    const OptionValue value = option.get();
    const OptionValue now = after.all()[i].get();
    const bool settled = option.is_settled && !(option.may_become && option.may_become(value, now));
    OptionChange change{option.name, option_text(value), option_text(now), settled};
    if (change.before != change.after) {
      result.push_back(std::move(change));
    }
  }
  return result;
}

}  // namespace vitrail::train
