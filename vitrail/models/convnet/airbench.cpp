#include "vitrail/models/convnet/airbench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/convnet/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/symmetric.h"

namespace vitrail::models {
namespace {

constexpr float airbench_eps = 1e-12F;
constexpr ops::PoolOptions head_pool{.kernel = {3, 3}, .stride = {3, 3}};

AirbenchConfig read_airbench(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  AirbenchConfig c;
  const io::Range count{1, most_channels};
  c.widths = f.get<std::vector<std::int64_t>>("widths", c.widths, count);
  check(!c.widths.empty() && c.widths.size() <= 8, "{}: 'widths' names {} groups, expected from 1 to 8", source,
        c.widths.size());
  c.batchnorm_momentum = f.get<double>("batchnorm_momentum", c.batchnorm_momentum, {0, 1});
  c.scaling_factor = f.get<double>("scaling_factor", c.scaling_factor);
  c.whiten_kernel_size = f.get<std::int64_t>("whiten_kernel_size", c.whiten_kernel_size, {1, 16});
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, 64});
  c.img_size = read_size(f, "img_size", c.img_size);
  f.finish();
  return c;
}

std::string_view airbench_table() {
  return R"(
airbench94 (airbench)
  untrained: size=32 crop_pct=1 normalization=cifar10
)";
}

// torch.nn.init.dirac_ of the first filters [in, in, K, K] of a weight [out, in, K, K]: they hand their input on.
void set_identity(const Tensor& weight) {
  const std::int64_t inputs = weight.size(1);
  const std::int64_t area = weight.size(2) * weight.size(3);
  const std::int64_t centre = weight.size(2) / 2 * weight.size(3) + weight.size(3) / 2;
  float* w = weight.data<float>();
  for (std::int64_t i = 0; i < std::min(weight.size(0), inputs); ++i) {
    float* filter = w + i * inputs * area;
    std::fill_n(filter, inputs * area, 0.0F);
    filter[i * area + centre] = 1;
  }
  weight.touch();
}

nn::Conv2d identity_conv(const nn::Scope& scope, std::int64_t in, std::int64_t out) {
  nn::Conv2d conv(scope, in, out, {3, 3}, {.padding = {1, 1}}, false);
  if (scope.options().fill == nn::Fill::initialize) {
    set_identity(conv.weight);
  }
  return conv;
}

// The size of the map behind the first layer and `groups` groups; negative sides mean that nothing is left.
nn::Size2 size_behind(const AirbenchConfig& c, std::int64_t height, std::int64_t width, std::size_t groups) {
  nn::Size2 size = {height - c.whiten_kernel_size + 1, width - c.whiten_kernel_size + 1};
  for (std::size_t i = 0; i < groups; ++i) {
    size = {size[0] / 2, size[1] / 2};
  }
  return size;
}

}  // namespace

constinit const Family airbench_family = {
    .name = "airbench", .table = airbench_table, .build = build<Airbench, read_airbench>, .first_conv = "0"};

BiasNorm::BiasNorm(const nn::Scope& scope, std::int64_t channels, float norm_momentum)
    : momentum(norm_momentum),
      weight(scope.buffer("weight", {channels}, nn::Init::ones())),
      bias(scope.parameter("bias", {channels}, nn::Init::zeros())),
      running_mean(scope.buffer("running_mean", {channels}, nn::Init::zeros())),
      running_var(scope.buffer("running_var", {channels}, nn::Init::ones())),
      num_batches_tracked(scope.buffer("num_batches_tracked", {}, nn::Init::zeros(), DType::i64)) {}

Tensor BiasNorm::operator()(const Tensor& x, const nn::Pass& pass) const {
  if (pass.training && !pass.again) {
    ++*num_batches_tracked.data<std::int64_t>();
  }
  return ops::batch_norm(x, weight, bias, running_mean, running_var, pass.training, pass.again ? 0.0F : momentum,
                         airbench_eps, ops::Activation::identity, {}, pass.batch_sum);
}

AirbenchGroup::AirbenchGroup(const nn::Scope& scope, std::int64_t in, std::int64_t out, float momentum)
    : conv1(identity_conv(scope / "conv1", in, out)),
      norm1(scope / "norm1", out, momentum),
      conv2(identity_conv(scope / "conv2", out, out)),
      norm2(scope / "norm2", out, momentum) {}

Tensor AirbenchGroup::operator()(const Tensor& x, const nn::Pass& pass) const {
  const Tensor y = norm1(ops::max_pool2d(conv1(x), {}), pass);
  return nn::activate_image(norm2(conv2(nn::activate_image(y, ops::Activation::gelu)), pass), ops::Activation::gelu);
}

Airbench::Airbench(const nn::Scope& scope, const AirbenchConfig& config) : config_(config) {
  features_size_ = size_behind(config_, config_.img_size[0], config_.img_size[1], config_.widths.size());
  check(features_size_[0] >= 3 && features_size_[1] >= 3,
        "img_size {}x{} is too small for whiten_kernel_size {} and {} groups: less than 3x3 places are left",
        config_.img_size[0], config_.img_size[1], config_.whiten_kernel_size, config_.widths.size());
  const std::int64_t kernel = config_.whiten_kernel_size;
  const Shape shape = {2 * config_.in_chans * kernel * kernel, config_.in_chans, kernel, kernel};
  whitening_ = (scope / 0).buffer("weight", shape, nn::Init::kaiming_uniform(shape));
  bias_ = (scope / 0).parameter("bias", {shape[0]}, nn::Init::zeros());
  whitening_bias_ = (scope / 0 / "bias").path();
  std::int64_t width = shape[0];
  std::int64_t place = 2;  // in the Sequential, behind the activation
  for (const std::int64_t next : config_.widths) {
    const nn::Scope group = scope / place++;
    groups_.emplace_back(group, width, next, static_cast<float>(1 - config_.batchnorm_momentum));
    group_names_.push_back(group.path());
    width = next;
  }
  place += 2;  // pooling and flattening
  head_name_ = std::to_string(place) + ".weight";
  if (config_.num_classes > 0) {
    head_.emplace(scope / place, num_features(), config_.num_classes, false);
  }
}

std::int64_t Airbench::num_features() const {
  return config_.widths.back() * (features_size_[0] / 3) * (features_size_[1] / 3);
}

Tensor Airbench::forward_features(const Tensor& x, nn::Pass& pass) const {
  const Shape expected = {config_.in_chans, config_.img_size[0], config_.img_size[1]};
  check(x.rank() == 4 && x.shape().removed(0) == expected, "the model takes images [B, {}, {}, {}], not {}",
        config_.in_chans, config_.img_size[0], config_.img_size[1], x.shape());
  Tensor y = nn::activate_image(ops::conv2d(ops::cast(x, pass.dtype), whitening_, bias_), ops::Activation::gelu);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const AirbenchGroup& group = groups_[i];
    y = nn::run_block([&group](const Tensor& input, nn::Pass& own) { return group(input, own); }, std::move(y), pass);
    if (pass.wants_features()) {
      pass.recorder->feature(group_names_[i], y);
    }
  }
  return y;
}

Tensor Airbench::forward_head(const Tensor& features, nn::Pass& /*pass*/, bool pre_logits) const {
  const Tensor pooled = ops::cast(ops::max_pool2d(features, head_pool), DType::f32);  // the head runs in f32
  const Tensor flat = ops::reshape(pooled, {pooled.size(0), num_features()});
  return head_ && !pre_logits ? (*head_)(flat) * static_cast<float>(config_.scaling_factor) : flat;
}

TokenLayout Airbench::token_layout(std::int64_t height, std::int64_t width) const {
  const nn::Size2 size = size_behind(config_, height, width, groups_.size());
  return {0, size[0], size[1], false};
}

std::int64_t Airbench::flops(std::int64_t height, std::int64_t width) const {
  nn::Size2 size = size_behind(config_, height, width, 0);
  std::int64_t total = size[0] * size[1] * whitening_.numel();
  for (const AirbenchGroup& group : groups_) {
    const std::int64_t channels = group.norm1.bias.numel();
    total += group.conv1.flops(size[0], size[1]);
    size = {size[0] / 2, size[1] / 2};
    total += group.conv2.flops(size[0], size[1]) + 4 * size[0] * size[1] * channels;
  }
  return total + (head_ ? head_->flops(1) : 0);
}

std::int64_t Airbench::layer_of(const std::string& parameter) const {
  const auto place = static_cast<std::int64_t>(std::stoll(parameter));
  return place == 0 ? 0 : std::min(place - 1, depth() + 1);
}

void Airbench::whiten(const Tensor& images) const {
  whitening_.copy_from(whitening_filters(images, config_.whiten_kernel_size));
  whitening_.touch();
}

Tensor whitening_filters(const Tensor& images, std::int64_t kernel_size, double eps) {
  check(images.rank() == 4 && images.size(0) > 0 && images.size(2) >= kernel_size && images.size(3) >= kernel_size,
        "patches of {0}x{0} pixels cannot be taken from images {1}", kernel_size, images.shape());
  const Tensor x = images.contiguous();
  const std::int64_t channels = x.size(1);
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  const std::int64_t d = channels * kernel_size * kernel_size;
  std::vector<std::int64_t> offsets;  // of a patch's entries from its first
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < kernel_size; ++i) {
      for (std::int64_t j = 0; j < kernel_size; ++j) {
        offsets.push_back((c * height + i) * width + j);
      }
    }
  }
  std::vector<double> moments(static_cast<std::size_t>(d * d));
  for (std::int64_t a = 0; a < d; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::int64_t n = 0; n < x.size(0); ++n) {
        const float* image = x.data<float>() + n * channels * height * width;
        const float* from = image + offsets[static_cast<std::size_t>(a)];
        const float* to = image + offsets[static_cast<std::size_t>(b)];
        for (std::int64_t i = 0; i + kernel_size <= height; ++i) {
          float row = 0;
          for (std::int64_t j = 0; j + kernel_size <= width; ++j) {
            row += from[i * width + j] * to[i * width + j];
          }
          sum += static_cast<double>(row);
        }
      }
      moments[static_cast<std::size_t>(a * d + b)] = moments[static_cast<std::size_t>(b * d + a)] = sum;
    }
  }
  const auto patches = static_cast<double>(x.size(0) * (height - kernel_size + 1) * (width - kernel_size + 1));
  std::ranges::for_each(moments, [patches](double& moment) { moment /= patches; });
  const SymmetricEigen eigen = symmetric_eigen(std::move(moments), d);
  Tensor filters = Tensor::empty({2 * d, channels, kernel_size, kernel_size});
  for (std::int64_t i = 0; i < d; ++i) {
    const auto begin = eigen.vectors.begin() + i * d;
    const double largest =
        *std::max_element(begin, begin + d, [](double a, double b) { return std::abs(a) < std::abs(b); });
    const double scale =
        (largest < 0 ? -1 : 1) / std::sqrt(std::max(eigen.values[static_cast<std::size_t>(i)], 0.0) + eps);
    float* filter = filters.data<float>() + i * d;
    for (std::int64_t j = 0; j < d; ++j) {
      filter[j] = static_cast<float>(begin[j] * scale);
      filter[d * d + j] = -filter[j];
    }
  }
  return filters;
}

}  // namespace vitrail::models
