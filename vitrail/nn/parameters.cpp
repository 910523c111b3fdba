#include "vitrail/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/quantized.h"

namespace vitrail::nn {
namespace {

// Fan-in and fan-out of a weight [out, in, …]: its inputs and outputs, both multiplied by the size of the receptive
// field.
struct Fans {
  double in = 0;
  double out = 0;
};
Fans fans(const Shape& shape) {
  check(shape.rank() >= 2, "fan-in and fan-out need a weight of at least 2 dimensions, not {}", shape);
  const double field = static_cast<double>(shape.numel()) / static_cast<double>(shape[0] * shape[1]);
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double polynomial(std::initializer_list<double> coefficients, double x) {
  double value = 0;
  for (const double c : coefficients) {
    value = value * x + c;
  }
  return value;
}

// The inverse of normal_cdf() for 0 < p < 1, with a relative error of about 1e-9: Acklam's rational approximation.
double normal_quantile(double p) {
  constexpr double edge = 0.02425;
  const auto tail = [](double q) {
    return polynomial({-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00, -2.549732539343734e+00,
                       4.374664141464968e+00, 2.938163982698783e+00},
                      q) /
           polynomial({7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0},
                      q);
  };
  if (p < edge) {
    return tail(std::sqrt(-2 * std::log(p)));
  }
  if (p > 1 - edge) {
    return -tail(std::sqrt(-2 * std::log1p(-p)));
  }
  const double q = p - 0.5;
  const double r = q * q;
  return q *
         polynomial({-3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02, 1.383577518672690e+02,
                     -3.066479806614716e+01, 2.506628277459239e+00},
                    r) /
         polynomial({-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                     -1.328068155288572e+01, 1.0},
                    r);
}

// Sets `out[i] = map(u_i)`, where u_i in (0, 1) is word i of the stream.
template <class Map>
void fill_from_uniform(std::span<float> out, const Philox& philox, Map map) {
  const auto n = static_cast<std::int64_t>(out.size());
#pragma omp parallel for schedule(static) if (n > 1 << 12)
  for (std::int64_t block = 0; block < (n + 3) / 4; ++block) {
    const auto words = philox.block(static_cast<std::uint64_t>(block));
    for (std::int64_t i = 4 * block; i < std::min(n, 4 * block + 4); ++i) {
      const double u = (static_cast<double>(words[static_cast<std::size_t>(i % 4)]) + 0.5) * 0x1p-32;
      out[static_cast<std::size_t>(i)] = static_cast<float>(map(u));
    }
  }
}

// A held weight as [out, in].
Tensor by_output(const Tensor& like, const Tensor& x) { return like.is_contiguous() ? x : x.transpose(0, 1); }

}  // namespace

Init Init::xavier_uniform(const Shape& shape) {
  const Fans f = fans(shape);
  return uniform(static_cast<float>(std::sqrt(6.0 / (f.in + f.out))));
}

Init Init::kaiming_uniform(const Shape& shape) { return uniform(static_cast<float>(1.0 / std::sqrt(fans(shape).in))); }

Init Init::kaiming_normal(const Shape& shape) { return normal(static_cast<float>(std::sqrt(2.0 / fans(shape).out))); }

Init Init::lecun_normal(const Shape& shape) {
  constexpr double truncated_std = 0.87962566103423978;  // standard deviation of N(0, 1) truncated at ±2
  return trunc_normal_tf(static_cast<float>(std::sqrt(1.0 / fans(shape).in) / truncated_std));
}

void fill(const Tensor& tensor, const Init& init, const Philox& philox) {
  if (!init.parts.empty()) {
    const auto count = static_cast<std::int64_t>(init.parts.size());
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t begin = tensor.size(0) * k / count;
      const std::int64_t end = tensor.size(0) * (k + 1) / count;
      fill(tensor.narrow(0, begin, end - begin), init.parts[static_cast<std::size_t>(k)].scaled(init.scale),
           k == 0 ? philox : Philox(philox.seed(), mix(philox.stream(), static_cast<std::uint64_t>(k))));
    }
    return;
  }
  const std::span<float> out = tensor.span<float>();
  const double a = init.a;
  const double scale = init.scale;
  const double middle = init.middle;
  // Draws from a normal distribution truncated at ±bound standard deviations, by inverting its distribution function.
  const auto truncated = [&](double bound) {
    const double low = normal_cdf(-bound);
    fill_from_uniform(out, philox, [=](double u) {
      return scale * a * std::clamp(normal_quantile(low + u * (1 - 2 * low)), -bound, bound);
    });
  };
  switch (init.kind) {
    case Init::Kind::zeros:
      tensor.fill(0);
      break;
    case Init::Kind::ones:
      tensor.fill(scale);
      break;
    case Init::Kind::constant:
      tensor.fill(scale * a);
      break;
    case Init::Kind::normal:
      fill_from_uniform(out, philox, [=](double u) { return scale * a * normal_quantile(u); });
      break;
    case Init::Kind::trunc_normal:
      truncated(2 / a);
      break;
    case Init::Kind::trunc_normal_tf:
      truncated(2);
      break;
    case Init::Kind::uniform:
      fill_from_uniform(out, philox, [=](double u) { return scale * middle + scale * a * (2 * u - 1); });
      break;
  }
  tensor.touch();
}

Tensor ParameterStore::add(std::string name, const Shape& shape, const Init& init, bool buffer, DType dtype,
                           bool by_columns) {
  check(!index_.contains(name), "the model has two parameters of the name '{}'", name);
  std::optional<Held> held;
  if (const auto it = options_.held.find(name); it != options_.held.end()) {
    held = it->second;
    dtype = held->dtype;
    buffer = true;
  }
  const bool turned = held && by_columns;
  const Shape lying = turned ? Shape{shape[1], shape[0]} : shape;
  Tensor value;
  if (options_.fill == Fill::meta) {
    static const auto nobody = std::make_shared<const int>(0);
    value = Tensor::borrow(nullptr, lying, dtype, nobody);
  } else {
    value = Tensor::empty(lying, dtype);
  }
  value = turned ? value.transpose(0, 1) : value;
  if (!buffer) {
    autograd::require_grad(value);
  }
  index_.emplace(name, parameters_.size());
  parameters_.push_back({name, value, !buffer, buffer, init, held});
  if (options_.fill == Fill::initialize && !held) {
    initialize(name);
  }
  return value;
}

void ParameterStore::set(const Parameter& parameter, const Tensor& value) const {
  const Tensor& to = parameter.value;
  if (!parameter.held || value.dtype() == to.dtype()) {
    to.copy_from(ops::cast(value.detach(), to.dtype()));
    to.touch();
    return;
  }
  // A few rows at a time, so that the whole is never there in another form.
  constexpr std::int64_t at_once = 1 << 20;
  const Tensor rows = by_output(to, to);
  const Tensor from = by_output(to, value.detach());
  const Tensor scales = to.dtype() == DType::i8 ? at(parameter.name + "_scale").value : Tensor();
  const std::int64_t step = std::max<std::int64_t>(1, at_once / std::max<std::int64_t>(1, rows.size(1)));
  for (std::int64_t begin = 0; begin < rows.size(0); begin += step) {
    const std::int64_t count = std::min(step, rows.size(0) - begin);
    const Tensor part = from.narrow(0, begin, count).contiguous();
    if (scales.defined()) {
      const ops::QuantizedWeight rounded = ops::quantize(ops::cast(part, DType::f32));
      rows.narrow(0, begin, count).copy_from(rounded.values);
      scales.narrow(0, begin, count).copy_from(rounded.scale);
    } else {
      rows.narrow(0, begin, count).copy_from(ops::cast(part, to.dtype()));
    }
  }
  to.touch();
}

void ParameterStore::initialize(std::string_view name) const {
  const Parameter& parameter = at(name);
  if (parameter.held) {
    const Tensor value = Tensor::empty(parameter.value.shape());
    fill(value, parameter.init, {options_.seed, hash(name)});
    set(parameter, value);
  } else if (parameter.value.dtype() == DType::f32) {
    fill(parameter.value, parameter.init, {options_.seed, hash(name)});
  } else {
    parameter.value.fill(parameter.init.kind == Init::Kind::ones ? 1 : parameter.init.a);
  }
}

const Parameter* ParameterStore::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &parameters_[it->second];
}

const Parameter& ParameterStore::at(std::string_view name) const {
  const Parameter* parameter = find(name);
  check(parameter != nullptr, "the model has no parameter '{}'", name);
  return *parameter;
}

std::int64_t ParameterStore::count() const {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters_) {
    const bool counts = !parameter.buffer || parameter.held;
    total += counts ? parameter.value.numel() : 0;
  }
  return total;
}

void ParameterStore::set_trainable(std::string_view name, bool trainable) {
  check(find(name) != nullptr, "the model has no parameter '{}'", name);
  Parameter& parameter = parameters_[index_.find(name)->second];
  check(!parameter.buffer || !trainable, "'{}' is a buffer and cannot be trained", name);
  if (!parameter.buffer) {
    autograd::require_grad(parameter.value, trainable);
  }
  parameter.trainable = trainable;
}

void ParameterStore::zero_grad() const {
  for (const Parameter& parameter : parameters_) {
    autograd::zero_grad(parameter.value);
  }
}

Scope Scope::with_init(InitRule rule) const {
  Scope result = *this;
  result.rule_ = rule ? std::make_shared<const InitRule>(std::move(rule)) : nullptr;
  result.rule_path_ = path_;
  return result;
}

Scope Scope::operator/(std::string_view child) const {
  Scope result = *this;
  result.path_ = full(child);
  return result;
}

Tensor Scope::parameter(std::string_view name, const Shape& shape, const Init& init, bool by_columns) const {
  std::string full_name = full(name);
  if (rule_ == nullptr) {
    return store_->add(std::move(full_name), shape, init, false, DType::f32, by_columns);
  }
  const std::string_view within = std::string_view(full_name).substr(rule_path_.empty() ? 0 : rule_path_.size() + 1);
  const Init own = (*rule_)(within, shape, init);
  return store_->add(std::move(full_name), shape, own, false, DType::f32, by_columns);
}

Tensor Scope::buffer(std::string_view name, const Shape& shape, const Init& init, DType dtype) const {
  return store_->add(full(name), shape, init, true, dtype);
}

std::optional<Held> Scope::held() const {
  const auto& held = store_->options().held;
  const auto it = held.find(full("weight"));
  return it == held.end() ? std::nullopt : std::optional(it->second);
}

std::string Scope::full(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

}  // namespace vitrail::nn
