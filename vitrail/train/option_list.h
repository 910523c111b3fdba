/// \file
/// Options as lists, from which the command line makes flags, and config.toml lines.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace vitrail::train {

/// The value of an option, whatever the type of its field. std::monostate stands for an option that is not set.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                 std::vector<double>, std::vector<std::string>>;

enum class OptionKind {
  flag,
  integer,
  number,
  text,
  integers,
  numbers,
  texts,
  arguments  ///< a JSON object as text, which the command line takes as KEY=VALUE items
};

/// One option, bound to the field that holds its value. Everything about it is stated where it is added to its list:
/// name, help, checks, and whether a resumed run may change it.
struct Option {
  std::string group;    ///< heading of its flag in the help, and of its line in config.toml
  std::string name;     ///< "batch_size" is --batch-size
  std::string metavar;  ///< what the help calls the value
  std::string help;
  OptionKind kind = OptionKind::text;
  bool unset = false;       ///< whether the option may have no value (std::monostate)
  bool is_path = false;     ///< names a file or folder; where it may also be something else, only if there is one
  bool is_settled = false;  ///< fixed when a run begins: a run cannot be resumed with another value
  std::string short_flag;   ///< "-b"
  std::string other_flag;   ///< another name of the flag, "--teacher-model"
  std::string positional;   ///< its name as an argument without a flag, "DATA"
  std::vector<std::string> choices;  ///< of one_of()
  std::function<OptionValue()> get;
  std::function<void(const OptionValue&)> set;  ///< throws Error if the number of values is wrong
  std::vector<std::function<void()>> checks;    ///< each throws an Error that names the flag
  std::function<bool(const OptionValue&, const OptionValue&)> may_become;  ///< of settled_unless(); empty: never
  std::vector<std::function<std::string()>> idle;                          ///< of idle_if()

  std::string flag() const;  ///< "--batch-size"

  /// These functions add a check of the value, which a value that is not set passes, or set a field of this struct.
  /// They return *this, to be chained.
  Option& at_least(double low);
  Option& at_most(double high);
  Option& positive();
  Option& share();      ///< from 0 to 1
  Option& below_one();  ///< from 0 to below 1
  Option& one_of(std::vector<std::string> names, bool or_empty = false);
  Option& ascending();  ///< none or two positive numbers, the smaller first
  Option& check_that(std::function<void(const Option&)> check);

  Option& path();
  Option& settled();
  /// As settled(), but for changes for which `may_become` holds.
  Option& settled_unless(std::function<bool(const OptionValue& before, const OptionValue& after)> may_become);
  /// States when the option does nothing: `why` returns the end of "--NAME has no effect …", or "" where it has one.
  Option& idle_if(std::function<std::string()> why);
  /// States that the option does nothing "with FLAG VALUE" (or "beside …") where `holds`, in these `words`.
  Option& idle_if(std::string words, std::function<bool()> holds);
  /// States that the option does nothing "with FLAG VALUE" unless `value`, the field of FLAG, is one of `values`.
  Option& only_with(std::string flag, const std::string& value, std::vector<std::string> values);
  /// States that the option does nothing "without PARTNER" unless `is_given` holds.
  Option& needs(std::string partner, std::function<bool()> is_given);
  Option& short_name(std::string flag);
  Option& also(std::string flag);
  Option& argument(std::string name);
};

/// Says for a type of fields whether a field may have no value, and converts between fields and option values.
template <class Field>
struct OptionField {
  static constexpr bool unset = false;
  static OptionValue get(const Field& field) { return field; }
  static void set(Field& field, const OptionValue& value, const Option&) { field = std::get<Field>(value); }
};
template <class Number>
struct OptionField<std::optional<Number>> {
  static constexpr bool unset = true;
  static OptionValue get(const std::optional<Number>& field) { return field ? OptionValue(*field) : OptionValue(); }
  static void set(std::optional<Number>& field, const OptionValue& value, const Option&) {
    field = std::holds_alternative<std::monostate>(value) ? std::nullopt : std::optional(std::get<Number>(value));
  }
};
/// Throws Error, naming the flag of `option`, unless `values` are two or none.
void require_two(const Option& option, const std::vector<double>& values);
/// The conversions for a field that holds two numbers or none; the value of its option is a list.
template <class Two>
struct OptionTwo {
  static constexpr bool unset = false;
  static OptionValue get(const std::optional<Two>& field) {
    return field ? std::vector{std::get<0>(*field), std::get<1>(*field)} : std::vector<double>();
  }
  static void set(std::optional<Two>& field, const OptionValue& value, const Option& option) {
    const auto& values = std::get<std::vector<double>>(value);
    require_two(option, values);
    field = values.empty() ? std::nullopt : std::optional(Two{values[0], values[1]});
  }
};
template <>
struct OptionField<std::optional<std::pair<double, double>>> : OptionTwo<std::pair<double, double>> {};
template <>
struct OptionField<std::optional<std::array<double, 2>>> : OptionTwo<std::array<double, 2>> {};

/// The options of one object, in the order of the help. The object must outlive the list, whose options refer to its
/// fields.
class OptionList {
 public:
  /// Sets the group of the options that are added from now on.
  void group(std::string name) { group_ = std::move(name); }
  /// Adds the option `name` for `field`, which is a bool, std::int64_t, double or std::string, a std::vector of one of
  /// the last three, or a std::optional of a number or of two numbers. Its checks and other properties are set at the
  /// option that is returned.
  template <class Field>
  Option& add(std::string name, Field& field, std::string metavar, std::string help) {
    Option& option = options_.emplace_back();
    option.group = group_;
    option.name = std::move(name);
    option.metavar = std::move(metavar);
    option.help = std::move(help);
    option.kind = kind_of(static_cast<const Field*>(nullptr));
    option.unset = OptionField<Field>::unset;
    option.get = [&field] { return OptionField<Field>::get(field); };
    option.set = [&field, &option](const OptionValue& value) { OptionField<Field>::set(field, value, option); };
    return option;
  }
  /// Adds an option whose field holds a JSON object as text (OptionKind::arguments).
  Option& add_arguments(std::string name, std::string& field, std::string metavar, std::string help);

  std::deque<Option>& all() { return options_; }
  const std::deque<Option>& all() const { return options_; }
  Option* find(std::string_view name);  ///< null if there is none

  /// Makes the paths of files and folders that exist absolute, so that they can be found from any folder.
  void resolve_paths();
  /// Checks that all numbers are finite, and runs the checks of every option. The Error that is thrown names the flag.
  void validate() const;

  OptionList() = default;
  OptionList(OptionList&&) = default;
  OptionList& operator=(OptionList&&) = default;
  OptionList(const OptionList&) = delete;  ///< the functions of its options hold pointers to them
  OptionList& operator=(const OptionList&) = delete;

 private:
  static OptionKind kind_of(const bool*) { return OptionKind::flag; }
  static OptionKind kind_of(const std::int64_t*) { return OptionKind::integer; }
  static OptionKind kind_of(const double*) { return OptionKind::number; }
  static OptionKind kind_of(const std::string*) { return OptionKind::text; }
  static OptionKind kind_of(const std::vector<std::int64_t>*) { return OptionKind::integers; }
  static OptionKind kind_of(const std::vector<double>*) { return OptionKind::numbers; }
  static OptionKind kind_of(const std::vector<std::string>*) { return OptionKind::texts; }
  static OptionKind kind_of(const std::optional<std::pair<double, double>>*) { return OptionKind::numbers; }
  static OptionKind kind_of(const std::optional<std::array<double, 2>>*) { return OptionKind::numbers; }
  template <class Number>
  static OptionKind kind_of(const std::optional<Number>*) {
    return kind_of(static_cast<const Number*>(nullptr));
  }

  std::string group_;
  std::deque<Option> options_;
};

/// The value as config.toml writes it; "not set" if there is none.
std::string option_text(const OptionValue& value);

/// The options as TOML, with a table for each group.
std::string to_toml(const OptionList& options);
/// Sets the options that a TOML file gives. Its tables only order them for readers; entries of [facts] are no options.
/// Names in `passed_over` may be present and are ignored. Throws Error, naming the key, if one is unknown or given
/// twice, or if a value is of the wrong kind.
void read_toml(const std::filesystem::path& path, OptionList& options, const std::set<std::string>& passed_over = {});

/// An option that differs between two lists of the same options, named and written as in config.toml.
struct OptionChange {
  std::string name;
  std::string before;
  std::string after;
  bool settled = false;
};
/// The options whose values in `after` are not those in `before`, a list of the same options.
std::vector<OptionChange> changes(const OptionList& before, const OptionList& after);

/// The flag of an option as the command line spells it: that of "batch_size" is "--batch-size".
std::string flag_of(std::string_view option);

}  // namespace vitrail::train
