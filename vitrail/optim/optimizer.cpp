#include "vitrail/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/suggest.h"
#include "vitrail/kernels/optimizer.h"
#include "vitrail/optim/state.h"

namespace vitrail::optim {
namespace {

bool trained(const nn::Parameter& parameter) { return parameter.trainable && !parameter.buffer; }

// The contiguous f32 gradient of a trainable parameter, or an undefined tensor.
Tensor gradient_of(const nn::Parameter& parameter) {
  return trained(parameter) ? autograd::grad(parameter.value) : Tensor();
}

float norm_of(const float* x, std::int64_t n) { return static_cast<float>(std::sqrt(kernels::sum_of_squares(x, n))); }

bool is_lamb(std::string_view opt) { return opt == "lamb" || opt == "lambc"; }

bool is_lars(std::string_view opt) { return opt.ends_with("lars") || opt.ends_with("larc"); }

// What LARS (You et al. 2017, "Large batch training of convolutional networks", equation 6) multiplies the gradient and
// the decay of n parameters by, as timm's Lars: a thousandth of the ratio of their norms, or 1 without weight decay;
// with `clips`, no more than makes the step that of SGD.
double lars_ratio(const kernels::Sgd& sgd, const float* p, const float* gradient, std::int64_t n, double eps,
                  bool clips) {
  constexpr double trust = 0.001;
  if (sgd.weight_decay == 0) {
    return 1;
  }
  const double p_norm = std::sqrt(kernels::sum_of_squares(p, n));
  const double g_norm = sgd.gradient_scale * std::sqrt(kernels::sum_of_squares(gradient, n));
  const double ratio = p_norm > 0 && g_norm > 0 ? trust * p_norm / (g_norm + p_norm * sgd.weight_decay + eps) : 1;
  return clips ? std::min(ratio / sgd.lr, 1.0) : ratio;
}

// Clips the gradient g of each unit of the weights w (a row of the first dimension; a vector is one unit) so that |g|
// <= limit · max(|w|, 1e-3), as timm's adaptive_clip_grad.
void clip_adaptively(const Tensor& weight, const Tensor& gradient, double limit, double gradient_scale) {
  const std::int64_t units = weight.rank() <= 1 ? 1 : weight.size(0);
  const std::int64_t width = units == 0 ? 0 : weight.numel() / units;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    float* g = gradient.data<float>() + unit * width;
    const double allowed = limit * std::max(1e-3F, norm_of(weight.data<float>() + unit * width, width));
    const double norm = gradient_scale * norm_of(g, width);
    if (norm >= allowed) {
      kernels::scale(g, static_cast<float>(allowed / std::max(norm, 1e-6)), width);
    }
  }
}

}  // namespace

std::vector<ParameterGroup> groups_by_weight_decay(const nn::ParameterStore& store, double weight_decay,
                                                   const NamePredicate& no_weight_decay) {
  ParameterGroup kept{{}, 0, 1};
  ParameterGroup decayed{{}, weight_decay, 1};
  for (const nn::Parameter& parameter : store.all()) {
    if (trained(parameter)) {
      const bool exempt = weight_decay == 0 || parameter.value.rank() <= 1 || parameter.name.ends_with(".bias") ||
                          no_weight_decay(parameter.name);
      (exempt ? kept : decayed).names.push_back(parameter.name);
    }
  }
  std::vector<ParameterGroup> groups = {std::move(kept), std::move(decayed)};
  std::erase_if(groups, [](const ParameterGroup& group) { return group.names.empty(); });
  return groups;
}

std::vector<ParameterGroup> one_group(const nn::ParameterStore& store, double weight_decay) {
  ParameterGroup all{{}, weight_decay, 1};
  for (const nn::Parameter& parameter : store.all()) {
    if (trained(parameter)) {
      all.names.push_back(parameter.name);
    }
  }
  return {std::move(all)};
}

std::vector<ParameterGroup> groups_by_layer(const nn::ParameterStore& store, double weight_decay,
                                            const NamePredicate& no_weight_decay, const LayerDecay& decay) {
  std::map<std::pair<std::int64_t, bool>, std::size_t> places;  // (layer, decayed) → index of the group
  std::vector<ParameterGroup> groups;
  for (const nn::Parameter& parameter : store.all()) {
    if (!trained(parameter)) {
      continue;
    }
    const std::int64_t layer = decay.layer_of(parameter.name);
    check(layer >= 0 && layer < decay.layers, "the parameter '{}' lies in layer {}, but there are only {}",
          parameter.name, layer, decay.layers);
    const bool decayed = parameter.value.rank() > 1 && !no_weight_decay(parameter.name);
    const auto [place, added] = places.try_emplace({layer, decayed}, groups.size());
    if (added) {
      const double scale = std::pow(decay.rate, static_cast<double>(decay.layers - 1 - layer));
      groups.push_back({{}, decayed ? weight_decay : 0, std::max(decay.min_scale, scale)});
    }
    groups[place->second].names.push_back(parameter.name);
  }
  return groups;
}

bool scale_rates(std::vector<ParameterGroup>& groups, const NamePredicate& whose, double rate, double decay) {
  const std::size_t before = groups.size();
  bool any = false;
  for (std::size_t i = 0; i < before; ++i) {
    std::vector<std::string>& names = groups[i].names;
    const auto chosen = std::stable_partition(names.begin(), names.end(), std::not_fn(whose));
    ParameterGroup scaled{{chosen, names.end()}, groups[i].weight_decay * decay, groups[i].lr_scale * rate};
    names.erase(chosen, names.end());
    if (!scaled.names.empty()) {
      groups.push_back(std::move(scaled));
      any = true;
    }
  }
  std::erase_if(groups, [](const ParameterGroup& group) { return group.names.empty(); });
  return any;
}

bool scale_norm_biases(std::vector<ParameterGroup>& groups, const nn::ParameterStore& store, double scaler) {
  constexpr std::string_view ending = ".bias";
  const auto is_norm_bias = [&](const std::string& name) {
    return name.ends_with(ending) &&
           store.find(name.substr(0, name.size() - ending.size()) + ".running_mean") != nullptr;
  };
  return scale_rates(groups, is_norm_bias, scaler, 1 / scaler);
}

std::vector<std::string_view> optimizer_names() {
  return {"adamw", "adam", "nadamw", "lion", "lamb", "lambc", "lars", "larc", "nlars", "nlarc", "sgd", "momentum"};
}

bool has_trust_ratio(std::string_view opt) { return is_lamb(opt) || is_lars(opt); }

std::vector<std::string_view> moment_names(const OptimizerOptions& options) {
  using Names = std::vector<std::string_view>;
  if (options.opt == "sgd" || options.opt == "momentum" || is_lars(options.opt)) {
    return options.momentum == 0 ? Names{} : Names{"momentum_buffer"};
  }
  return options.opt == "lion" ? Names{"exp_avg"} : Names{"exp_avg", "exp_avg_sq"};
}

std::vector<std::string> optimizers_that_keep(std::string_view moment) {
  std::vector<std::string> result;
  for (const std::string_view name : optimizer_names()) {
    const std::vector<std::string_view> kept = moment_names({.opt = std::string(name)});
    if (std::ranges::find(kept, moment) != kept.end()) {
      result.emplace_back(name);
    }
  }
  return result;
}

Optimizer::Optimizer(nn::ParameterStore& store, const OptimizerOptions& options,
                     const std::vector<ParameterGroup>& groups, std::optional<Sharding> sharding)
    : store_(&store), options_(options), sharding_(std::move(sharding)) {
  const std::vector<std::string_view> names = optimizer_names();
  check(std::ranges::find(names, options.opt) != names.end(), "unknown optimizer '{}': expected one of {}", options.opt,
        fmt::join(names, ", "));
  check(!sharding_ || !has_trust_ratio(options.opt),
        "{} needs whole parameters for its trust ratio: it cannot be sharded", options.opt);
  moment_names_ = moment_names(options);
  std::set<std::string, std::less<>> seen;
  for (const ParameterGroup& group : groups) {
    for (const std::string& name : group.names) {
      check(seen.insert(name).second, "the parameter '{}' is named twice in the groups of the optimizer", name);
      const nn::Parameter& parameter = store.at(name);
      check(parameter.value.dtype() == DType::f32, "the parameter '{}' of {} cannot be optimized: it must be f32", name,
            name_of(parameter.value.dtype()));
      Entry entry{static_cast<std::size_t>(&parameter - store.all().data()),
                  group.weight_decay,
                  group.weight_decay != 0,
                  group.lr_scale,
                  Tensor::zeros({}, DType::i64),
                  0,
                  parameter.value.numel(),
                  {}};
      if (sharding_) {
        std::tie(entry.begin, entry.end) = sharding_->owned(parameter);
      }
      for (std::size_t i = 0; i < moment_names_.size(); ++i) {
        entry.moments.push_back(Tensor::zeros(sharding_ ? Shape{entry.end - entry.begin} : parameter.value.shape()));
      }
      by_leaf_[parameter.value.slot().get()] = entries_.size();
      entries_.push_back(std::move(entry));
    }
  }
}

void Optimizer::set_weight_decay(double weight_decay) {
  for (Entry& entry : entries_) {
    entry.weight_decay = entry.decays ? weight_decay : 0;
  }
}

bool Optimizer::needs_all_gradients() const { return is_lamb(options_.opt) && options_.max_grad_norm > 0; }

void Optimizer::step(double lr, double gradient_scale) {
  if (needs_all_gradients()) {
    const double norm = gradient_scale * gradient_norm(*store_);
    gradient_scale /= std::max(norm / options_.max_grad_norm, 1.0);
  }
  for (Entry& entry : entries_) {
    update(entry, lr * entry.lr_scale, gradient_scale);
  }
  if (sharding_) {
    sharding_->gather_weights();
  }
}

void Optimizer::step_leaf(autograd::Slot& leaf, double lr, double gradient_scale) {
  check(!sharding_, "a sharded optimizer updates all parameters together");
  check(!needs_all_gradients(),
        "{} clips all gradients together: no parameter can be updated before the others are known", options_.opt);
  const auto it = by_leaf_.find(&leaf);
  if (it != by_leaf_.end()) {
    Entry& entry = entries_[it->second];
    update(entry, lr * entry.lr_scale, gradient_scale);
    leaf.grad = Tensor();
  }
}

void Optimizer::update(Entry& entry, double lr, double gradient_scale) {
  const nn::Parameter& parameter = store_->all()[entry.index];
  const Tensor gradient = gradient_of(parameter);
  const std::string& opt = options_.opt;
  const bool lamb = is_lamb(opt);
  std::int64_t& step = *entry.step.data<std::int64_t>();
  if (gradient.defined() || lamb) {  // timm's LAMB counts steps for all parameters together
    ++step;
  }
  if (!gradient.defined()) {
    return;
  }
  float* p = parameter.value.span<float>().data() + entry.begin;
  const std::int64_t n = entry.end - entry.begin;
  const bool whole = gradient.numel() == parameter.value.numel();
  check(whole || gradient.numel() == n, "the gradient of '{}' has {} elements, but {} are updated", parameter.name,
        gradient.numel(), n);
  const float* g = gradient.span<float>().data() + (whole ? entry.begin : 0);
  const auto moment = [&](std::size_t i) {
    return i < entry.moments.size() ? entry.moments[i].data<float>() : nullptr;
  };
  if (opt == "sgd" || opt == "momentum" || is_lars(opt)) {
    const bool nesterov = opt == "sgd" || opt.starts_with("nlar");
    kernels::Sgd sgd{lr, options_.momentum, entry.weight_decay, nesterov, gradient_scale};
    if (is_lars(opt)) {
      const double ratio = lars_ratio(sgd, p, g, n, options_.eps.value_or(1e-8), opt.ends_with("larc"));
      sgd.weight_decay *= ratio;
      sgd.gradient_scale *= ratio;
    }
    kernels::sgd_step(sgd, p, g, moment(0), n);
  } else if (opt == "lion") {
    const auto [beta1, beta2] = options_.betas.value_or(std::array{0.9, 0.99});
    kernels::lion_step({lr, beta1, beta2, entry.weight_decay, gradient_scale}, p, g, moment(0), n);
  } else if (const auto [beta1, beta2] = options_.betas.value_or(std::array{0.9, 0.999}); lamb) {
    const kernels::Lamb settings{
        lr, beta1, beta2, options_.eps.value_or(1e-6), entry.weight_decay, opt == "lambc", step, gradient_scale};
    kernels::lamb_step(settings, p, g, moment(0), moment(1), n);
  } else {
    const kernels::Adam adam{
        lr,   beta1,         beta2, options_.eps.value_or(1e-8), entry.weight_decay, opt != "adam", opt == "nadamw",
        step, gradient_scale};
    kernels::adam_step(adam, p, g, moment(0), moment(1), n);
  }
  parameter.value.touch();
}

// Calls visit(name, parameter, entry, tensor) for each tensor of the state; a step has no parameter.
template <class Visitor>
void Optimizer::visit_state(Visitor&& visit) const {
  for (const Entry& entry : entries_) {
    const nn::Parameter& parameter = store_->all()[entry.index];
    visit(parameter.name + ".step", nullptr, entry, entry.step);
    for (std::size_t i = 0; i < entry.moments.size(); ++i) {
      visit(fmt::format("{}.{}", parameter.name, moment_names_[i]), &parameter, entry, entry.moments[i]);
    }
  }
}

io::NamedTensors Optimizer::state() const {
  io::NamedTensors result;
  visit_state([&](const std::string& name, const nn::Parameter* parameter, const Entry&, const Tensor& kept) {
    result.emplace_back(name, sharding_ && parameter != nullptr ? sharding_->whole(*parameter, kept) : kept);
  });
  return result;
}

void Optimizer::load_state(const io::NamedTensors& state) {
  std::map<std::string, Tensor> from(state.begin(), state.end());
  io::NamedTensors to;
  visit_state([&](const std::string& name, const nn::Parameter* parameter, const Entry& entry, const Tensor& kept) {
    to.emplace_back(name, kept);
    const auto whole = from.find(name);
    if (sharding_ && parameter != nullptr && whole != from.end() && whole->second.shape() == parameter->value.shape()) {
      whole->second = whole->second.reshape({-1}).narrow(0, entry.begin, entry.end - entry.begin);
    }
  });
  copy_state("optimizer", {from.begin(), from.end()}, to);
}

const std::vector<std::string>& clip_mode_names() {
  static const std::vector<std::string> names = {"norm", "value", "agc", "parameter"};
  return names;
}

ClipMode clip_mode_named(std::string_view name) {
  const std::vector<std::string>& names = clip_mode_names();
  const auto found = std::ranges::find(names, name);
  check(found != names.end(), "unknown clip mode '{}': expected {}", name, io::quoted_list(names));
  return static_cast<ClipMode>(found - names.begin());
}

double gradient_norm(const nn::ParameterStore& store) {
  double sum = 0;
  for (const nn::Parameter& parameter : store.all()) {
    const Tensor gradient = gradient_of(parameter);
    if (gradient.defined()) {
      sum += kernels::sum_of_squares(gradient.span<float>().data(), gradient.numel());
    }
  }
  return std::sqrt(sum);
}

Clipping clip_by_norm(double norm, double limit, double gradient_scale) {
  norm *= gradient_scale;
  const double factor = limit / (norm + 1e-6);
  return {norm, gradient_scale * (factor >= 1 ? 1 : factor)};  // NaN is passed on, so that it is noticed
}

Clipping clip_gradients(const nn::ParameterStore& store, double limit, ClipMode mode, double gradient_scale,
                        const std::function<bool(const std::string&)>& is_last) {
  check(limit > 0 && gradient_scale > 0, "gradients cannot be clipped to {} (scaled by {}): both must be positive",
        limit, gradient_scale);
  if (mode == ClipMode::norm) {
    return clip_by_norm(gradient_norm(store), limit, gradient_scale);
  }
  for (const nn::Parameter& parameter : store.all()) {
    const Tensor gradient = gradient_of(parameter);
    if (!gradient.defined()) {
      continue;
    }
    if (mode == ClipMode::value) {
      kernels::clamp(gradient.span<float>().data(), static_cast<float>(limit / gradient_scale), gradient.numel());
    } else if (mode == ClipMode::parameter) {
      float* g = gradient.span<float>().data();
      const double factor = limit / (gradient_scale * norm_of(g, gradient.numel()) + 1e-6);
      if (factor < 1) {
        kernels::scale(g, static_cast<float>(factor), gradient.numel());
      }
    } else if (!is_last || !is_last(parameter.name)) {
      clip_adaptively(parameter.value, gradient, limit, gradient_scale);
    }
  }
  return {0, gradient_scale};
}

}  // namespace vitrail::optim
