#include "vitrail/models/base/arguments.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"

namespace vitrail::models {

using io::Fields;
using io::Kind;

namespace {

std::string plain(std::string name) {
  std::erase(name, '_');
  return io::lower_case(name);
}

}  // namespace

std::string read_choice(Fields& fields, const std::string& key, const std::string& fallback,
                        const std::vector<std::string>& allowed) {
  const std::string name = plain(fields.get<std::string>(key, fallback));
  check(std::ranges::find(allowed, name) != allowed.end(), "{}: '{}' is '{}', expected {}", fields.source(), key, name,
        io::quoted_list(allowed));
  return name;
}

nn::Size2 read_size(Fields& fields, const std::string& key, const nn::Size2& fallback) {
  const Kind kind = fields.kind(key);
  if (kind == Kind::absent) {
    return fallback;
  }
  if (kind != Kind::list) {
    const auto side = fields.get<std::int64_t>(key, io::Range{1, largest_size});
    return {side, side};
  }
  const auto sides = fields.get<std::vector<std::int64_t>>(key, io::Range{1, largest_size});
  check(sides.size() == 2, "{}: '{}' is a number or a pair of numbers (rows, columns), not a list of {}",
        fields.source(), key, sides.size());
  return {sides[0], sides[1]};
}

nn::NormConfig read_norm(Fields& fields, const nn::NormConfig& fallback, const std::string& key) {
  if (fields.kind(key) == Kind::absent) {
    return fallback;
  }
  if (fields.kind(key) != Kind::list) {
    std::string name =
        read_choice(fields, key, "layernorm", {"layernorm", "layernormfp32", "rmsnorm", "rmsnormfp32", "tokennorm"});
    name = name.ends_with("fp32") ? name.substr(0, name.size() - 4) : name;  // the statistics are f32 in any case
    return {nn::norm_named(name), 1e-6F};
  }
  const nlohmann::json& pair = fields.raw(key);
  check(pair.size() == 2 && pair[0].is_string() && pair[1].is_number() && pair[1].get<double>() > 0,
        "{}: '{}' is a name, or a pair of a name and an epsilon above 0", fields.source(), key);
  return {nn::norm_named(plain(pair[0].get<std::string>())), pair[1].get<float>()};
}

ops::Activation read_activation(Fields& fields, const std::string& fallback) {
  const std::string name = fields.get<std::string>("act_layer", fallback);
  try {
    return ops::activation_named(name == "swish" ? "silu" : name);
  } catch (const Error& error) {
    fail("{}: 'act_layer': {}", fields.source(), error.what());
  }
}

std::int64_t make_divisible(double value, std::int64_t divisor, double round_limit) {
  const auto whole = static_cast<std::int64_t>(value + static_cast<double>(divisor) / 2);
  const std::int64_t multiple = std::max(divisor, whole / divisor * divisor);
  return static_cast<double>(multiple) < round_limit * value ? multiple + divisor : multiple;
}

std::optional<float> as_float(const std::optional<double>& value) {
  return value ? std::optional<float>(static_cast<float>(*value)) : std::nullopt;
}

}  // namespace vitrail::models
