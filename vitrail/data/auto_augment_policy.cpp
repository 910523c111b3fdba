// timm's policies and the strings that name them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "vitrail/data/auto_augment.h"
#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

using SubPolicies = std::vector<std::vector<PolicyStep>>;

// The ImageNet policy of TensorFlow's EfficientNet.
const SubPolicies v0 = {
    {{Operation::equalize, 0.8, 1}, {Operation::shear_y, 0.8, 4}},
    {{Operation::color, 0.4, 9}, {Operation::equalize, 0.6, 3}},
    {{Operation::color, 0.4, 1}, {Operation::rotate, 0.6, 8}},
    {{Operation::solarize, 0.8, 3}, {Operation::equalize, 0.4, 7}},
    {{Operation::solarize, 0.4, 2}, {Operation::solarize, 0.6, 2}},
    {{Operation::color, 0.2, 0}, {Operation::equalize, 0.8, 8}},
    {{Operation::equalize, 0.4, 8}, {Operation::solarize_add, 0.8, 3}},
    {{Operation::shear_x, 0.2, 9}, {Operation::rotate, 0.6, 8}},
    {{Operation::color, 0.6, 1}, {Operation::equalize, 1.0, 2}},
    {{Operation::invert, 0.4, 9}, {Operation::rotate, 0.6, 0}},
    {{Operation::equalize, 1.0, 9}, {Operation::shear_y, 0.6, 3}},
    {{Operation::color, 0.4, 7}, {Operation::equalize, 0.6, 0}},
    {{Operation::posterize, 0.4, 6}, {Operation::auto_contrast, 0.4, 7}},
    {{Operation::solarize, 0.6, 8}, {Operation::color, 0.6, 9}},
    {{Operation::solarize, 0.2, 4}, {Operation::rotate, 0.8, 9}},
    {{Operation::rotate, 1.0, 7}, {Operation::translate_y_rel, 0.8, 9}},
    {{Operation::shear_x, 0.0, 0}, {Operation::solarize, 0.8, 4}},
    {{Operation::shear_y, 0.8, 0}, {Operation::color, 0.6, 4}},
    {{Operation::color, 1.0, 0}, {Operation::rotate, 0.6, 2}},
    {{Operation::equalize, 0.8, 4}, {Operation::equalize, 0.0, 8}},
    {{Operation::equalize, 1.0, 4}, {Operation::auto_contrast, 0.6, 2}},
    {{Operation::shear_y, 0.4, 7}, {Operation::solarize_add, 0.6, 7}},
    {{Operation::posterize, 0.8, 2}, {Operation::solarize, 0.6, 10}},
    {{Operation::solarize, 0.6, 8}, {Operation::equalize, 0.6, 1}},
    {{Operation::color, 0.8, 6}, {Operation::rotate, 0.4, 5}},
};

// The ImageNet policy of AutoAugment's paper (table 9).
const SubPolicies original = {
    {{Operation::posterize_original, 0.4, 8}, {Operation::rotate, 0.6, 9}},
    {{Operation::solarize, 0.6, 5}, {Operation::auto_contrast, 0.6, 5}},
    {{Operation::equalize, 0.8, 8}, {Operation::equalize, 0.6, 3}},
    {{Operation::posterize_original, 0.6, 7}, {Operation::posterize_original, 0.6, 6}},
    {{Operation::equalize, 0.4, 7}, {Operation::solarize, 0.2, 4}},
    {{Operation::equalize, 0.4, 4}, {Operation::rotate, 0.8, 8}},
    {{Operation::solarize, 0.6, 3}, {Operation::equalize, 0.6, 7}},
    {{Operation::posterize_original, 0.8, 5}, {Operation::equalize, 1.0, 2}},
    {{Operation::rotate, 0.2, 3}, {Operation::solarize, 0.6, 8}},
    {{Operation::equalize, 0.6, 8}, {Operation::posterize_original, 0.4, 6}},
    {{Operation::rotate, 0.8, 8}, {Operation::color, 0.4, 0}},
    {{Operation::rotate, 0.4, 9}, {Operation::equalize, 0.6, 2}},
    {{Operation::equalize, 0.0, 7}, {Operation::equalize, 0.8, 8}},
    {{Operation::invert, 0.6, 4}, {Operation::equalize, 1.0, 8}},
    {{Operation::color, 0.6, 4}, {Operation::contrast, 1.0, 8}},
    {{Operation::rotate, 0.8, 8}, {Operation::color, 1.0, 2}},
    {{Operation::color, 0.8, 8}, {Operation::solarize, 0.8, 7}},
    {{Operation::sharpness, 0.4, 7}, {Operation::invert, 0.6, 8}},
    {{Operation::shear_x, 0.6, 5}, {Operation::equalize, 1.0, 9}},
    {{Operation::color, 0.4, 0}, {Operation::equalize, 0.6, 3}},
    {{Operation::equalize, 0.4, 7}, {Operation::solarize, 0.2, 4}},
    {{Operation::solarize, 0.6, 5}, {Operation::auto_contrast, 0.6, 5}},
    {{Operation::invert, 0.6, 4}, {Operation::equalize, 1.0, 8}},
    {{Operation::color, 0.6, 4}, {Operation::contrast, 1.0, 8}},
    {{Operation::equalize, 0.8, 8}, {Operation::equalize, 0.6, 3}},
};

const SubPolicies three_augment = {
    {{Operation::solarize, 1.0, 5}}, {{Operation::desaturate, 1.0, 10}}, {{Operation::gaussian_blur_rand, 1.0, 10}}};

// The variants "v0r" and "originalr": posterizing discards more bits at higher levels.
SubPolicies with_increasing_posterize(SubPolicies policies) {
  for (std::vector<PolicyStep>& steps : policies) {
    for (PolicyStep& step : steps) {
      if (step.operation == Operation::posterize || step.operation == Operation::posterize_original) {
        step.operation = Operation::posterize_increasing;
      }
    }
  }
  return policies;
}

using Weighted = std::vector<std::pair<Operation, double>>;  // relative weights; all 0: no weights

Weighted alike(const std::vector<Operation>& operations) {
  Weighted result;
  for (const Operation operation : operations) {
    result.emplace_back(operation, 0);
  }
  return result;
}

Weighted rand_operations(bool increasing) {
  using enum Operation;
  return alike({auto_contrast, equalize, invert, rotate, increasing ? posterize_increasing : posterize,
                increasing ? solarize_increasing : solarize, solarize_add, increasing ? color_increasing : color,
                increasing ? contrast_increasing : contrast, increasing ? brightness_increasing : brightness,
                increasing ? sharpness_increasing : sharpness, shear_x, shear_y, translate_x_rel, translate_y_rel});
}

// RandAugment's sets of operations, which the part "t" of a policy string names.
const std::map<std::string, Weighted, std::less<>>& rand_sets() {
  using enum Operation;
  static const std::map<std::string, Weighted, std::less<>> sets = {
      {"3a", alike({solarize_increasing, desaturate, gaussian_blur})},
      {"3aw",
       {{solarize_increasing, 6},
        {desaturate, 6},
        {gaussian_blur, 6},
        {rotate, 3},
        {shear_x, 2},
        {shear_y, 2},
        {posterize_increasing, 1},
        {auto_contrast, 1},
        {color_increasing, 1},
        {sharpness_increasing, 1},
        {contrast_increasing, 1},
        {brightness_increasing, 1},
        {equalize, 1},
        {invert, 1}}},
      {"weights",
       {{rotate, 3},
        {shear_x, 2},
        {shear_y, 2},
        {translate_x_rel, 1},
        {translate_y_rel, 1},
        {color_increasing, 0.25},
        {sharpness_increasing, 0.25},
        {auto_contrast, 0.25},
        {solarize_increasing, 0.05},
        {solarize_add, 0.05},
        {contrast_increasing, 0.05},
        {brightness_increasing, 0.05},
        {equalize, 0.05},
        {posterize_increasing, 0.05},
        {invert, 0.05}}}};
  return sets;
}

Weighted augmix_operations() {
  using enum Operation;
  return alike({auto_contrast, color_increasing, contrast_increasing, brightness_increasing, sharpness_increasing,
                equalize, rotate, posterize_increasing, solarize_increasing, shear_x, shear_y, translate_x_rel,
                translate_y_rel});
}

void set_choices(AutoAugment& policy, const Weighted& operations, double probability, double magnitude) {
  double sum = 0;
  for (const auto& [operation, weight] : operations) {
    policy.choices.push_back({{operation, probability, magnitude}});
    sum += weight;
  }
  for (std::size_t i = 0; sum > 0 && i < operations.size(); ++i) {
    policy.weights.push_back(operations[i].second / sum);
  }
}

// A policy string taken apart: "rand-m9-mstd0.5" is the name "rand" and the parts m = "9" and mstd = "0.5".
class PolicyWords {
 public:
  PolicyWords(const std::string& policy, std::vector<std::string> known) : policy_(policy), known_(std::move(known)) {
    std::size_t begin = policy.find('-');
    while (begin != std::string::npos) {
      const std::size_t end = policy.find('-', ++begin);
      add(policy.substr(begin, end == std::string::npos ? end : end - begin));
      begin = end;
    }
  }

  double number(const std::string& key, double standard, double low, double high) const {
    const auto found = parts_.find(key);
    if (found == parts_.end()) {
      return standard;
    }
    const std::string& text = found->second;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc() && end == text.data() + text.size() && value >= low && value <= high,
          "--aa {}: {} takes a number from {} to {}, not '{}'", policy_, key, low, high, text);
    return value;
  }
  std::int64_t integer(const std::string& key, std::int64_t standard, std::int64_t low, std::int64_t high) const {
    const double value =
        number(key, static_cast<double>(standard), static_cast<double>(low), static_cast<double>(high));
    check(value == std::floor(value), "--aa {}: {} takes a whole number, not {}", policy_, key, value);
    return static_cast<std::int64_t>(value);
  }
  std::string text(const std::string& key) const {
    const auto found = parts_.find(key);
    return found == parts_.end() ? "" : found->second;
  }

 private:
  // The key is what stands before the first digit, as timm splits it; only "t", which a name follows, is one letter.
  void add(const std::string& part) {
    const bool is_set = part.starts_with("t") && std::ranges::find(known_, "t") != known_.end();
    const std::size_t digit = is_set ? 1 : std::min(part.find_first_of("0123456789"), part.size());
    const std::string key = part.substr(0, digit);
    check(std::ranges::find(known_, key) != known_.end(), "--aa {}: '{}' is none of its parts, which are {}{}", policy_,
          part, io::quoted_list(known_, "and"), io::did_you_mean(key, known_));
    check(digit < part.size(), "--aa {}: '{}' lacks its value", policy_, part);
    check(parts_.emplace(key, part.substr(digit)).second, "--aa {}: {} is given twice", policy_, key);
  }

  const std::string& policy_;
  std::vector<std::string> known_;
  std::map<std::string, std::string> parts_;
};

constexpr double highest_magnitude = 100;

AutoAugment rand_augment(const std::string& name) {
  const PolicyWords parts(name, {"m", "n", "p", "mstd", "mmax", "inc", "t"});
  AutoAugment policy;
  policy.kind = AutoAugment::Kind::rand_augment;
  const auto magnitude = static_cast<double>(parts.integer("m", 10, 0, 100));
  policy.num_layers = parts.integer("n", 2, 1, 100);
  policy.magnitude_std = parts.number("mstd", 0, 0, std::numeric_limits<double>::max());
  if (policy.magnitude_std > 100) {
    policy.magnitude_std = std::numeric_limits<double>::infinity();
  }
  policy.magnitude_max = static_cast<double>(parts.integer("mmax", 10, 0, 100));
  policy.magnitude_max = policy.magnitude_max == 0 ? 10 : policy.magnitude_max;  // as timm does
  const bool increasing = parts.integer("inc", 0, 0, 1) == 1;
  Weighted operations = rand_operations(increasing);
  if (const std::string set = parts.text("t"); !set.empty()) {
    std::vector<std::string> names;
    for (const auto& [known, members] : rand_sets()) {
      names.push_back(known);
    }
    const auto found = rand_sets().find(set);
    check(found != rand_sets().end(), "--aa {}: t takes {}, not '{}'", name, io::quoted_list(names), set);
    operations = found->second;
  }
  set_choices(policy, operations, parts.number("p", 0.5, 0, 1), magnitude);
  check(policy.weights.empty() || policy.num_layers <= std::ssize(policy.choices),
        "--aa {}: {} operations cannot be chosen from {} without taking one twice", name, policy.num_layers,
        policy.choices.size());
  return policy;
}

AutoAugment augmix(const std::string& name) {
  const PolicyWords parts(name, {"m", "w", "d", "a", "b", "mstd"});
  AutoAugment policy;
  policy.kind = AutoAugment::Kind::augmix;
  policy.translate_pct = 0.3;
  policy.mix_width = parts.integer("w", 3, 1, 100);
  policy.mix_depth = parts.integer("d", -1, 1, 100);
  policy.mix_alpha = parts.number("a", 1, 1e-3, 1000);
  policy.mix_blended = parts.integer("b", 0, 0, 1) == 1;
  policy.magnitude_std = parts.number("mstd", std::numeric_limits<double>::infinity(), 0, highest_magnitude);
  set_choices(policy, augmix_operations(), 1, static_cast<double>(parts.integer("m", 3, 0, 100)));
  return policy;
}

AutoAugment auto_augment(const std::string& name, SubPolicies choices) {
  AutoAugment policy;
  policy.choices = std::move(choices);
  policy.magnitude_std = PolicyWords(name, {"mstd"}).number("mstd", 0, 0, highest_magnitude);
  return policy;
}

}  // namespace

AutoAugment auto_augment_named(const std::string& policy) {
  using Make = std::function<AutoAugment()>;
  const std::vector<std::pair<std::string, Make>> policies = {
      {"rand", [&] { return rand_augment(policy); }},
      {"original", [&] { return auto_augment(policy, original); }},
      {"originalr", [&] { return auto_augment(policy, with_increasing_posterize(original)); }},
      {"v0", [&] { return auto_augment(policy, v0); }},
      {"v0r", [&] { return auto_augment(policy, with_increasing_posterize(v0)); }},
      {"3a", [&] { return auto_augment(policy, three_augment); }},
      {"augmix", [&] { return augmix(policy); }},
  };
  const std::string wanted = policy.substr(0, policy.find('-'));
  std::vector<std::string> names;
  for (const auto& [name, make] : policies) {
    if (name == wanted) {
      return make();
    }
    names.push_back(name);
  }
  fail("--aa {}: there is no policy '{}'{}: expected {}, e.g. rand-m9-mstd0.5-inc1", policy, wanted,
       io::did_you_mean(wanted, names), io::quoted_list(names));
}

}  // namespace vitrail::data
