// The kernels of activations, norms, softmax, losses, dropout, casts and optimizers on every set of instructions
// against their definitions in double.
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/targets.h"
#include "vitrail/kernels/activation.h"
#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/dropout.h"
#include "vitrail/kernels/loss.h"
#include "vitrail/kernels/norm.h"
#include "vitrail/kernels/optimizer.h"
#include "vitrail/kernels/softmax.h"

namespace vitrail::test {
namespace {

using kernels::Activation;

const std::vector<std::int64_t> odd_sizes = {1, 3, 15, 17, 31, 33, 65, 193};

Tensor random_of(const Shape& shape, DType dtype, std::uint64_t stream, float scale = 1) {
  const Tensor wide = random_tensor(shape, stream, scale);
  const Tensor result = Tensor::empty(shape, dtype);
  kernels::cast(wide.raw(), DType::f32, result.raw(), dtype, wide.numel());
  return result;
}

double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 6e-3 : 2e-6; }

// |actual - expected| <= tolerance · max(1, max |expected|)
void expect_near(const Tensor& actual, const std::vector<double>& expected, double tolerance, const std::string& what) {
  const std::vector<float> values = actual.values();
  ASSERT_EQ(values.size(), expected.size()) << what;
  double size = 1;
  for (const double e : expected) {
    size = std::max(size, std::abs(e));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance * size) << what << ", element " << i;
  }
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct Curve {
  Activation activation;
  std::function<double(double)> y;
  std::function<double(double)> slope;  // of x
};
std::vector<Curve> curves() {
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  const double k = std::sqrt(2 / std::numbers::pi);
  const auto inner = [k](double x) { return k * (x + 0.044715 * x * x * x); };
  const auto swish_slope = [](double a, double x) {
    const double s = logistic(a * x);
    return s + a * x * s * (1 - s);
  };
  return {
      {Activation::relu, [](double x) { return std::max(0.0, x); }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
      {Activation::gelu, [=](double x) { return x * cdf(x); },
       [=](double x) { return cdf(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }},
      {Activation::gelu_tanh, [=](double x) { return 0.5 * x * (1 + std::tanh(inner(x))); },
       [=](double x) {
         const double t = std::tanh(inner(x));
         return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
       }},
      {Activation::quick_gelu, [](double x) { return x * logistic(1.702 * x); },
       [=](double x) { return swish_slope(1.702, x); }},
      {Activation::silu, [](double x) { return x * logistic(x); }, [=](double x) { return swish_slope(1, x); }},
      {Activation::tanh, [](double x) { return std::tanh(x); },
       [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
      {Activation::sigmoid, logistic, [](double x) { return logistic(x) * (1 - logistic(x)); }},
  };
}

class NnKernels : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(OfBothPrecisions, NnKernels, testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(NnKernels, Activations) {
  for_each_target([&](const std::string& target) {
    for (const Curve& curve : curves()) {
      for (const std::int64_t n : odd_sizes) {
        const std::string what = target + ", activation " + std::to_string(static_cast<int>(curve.activation));
        const Tensor x = random_of({n}, GetParam(), 1, 3);
        const Tensor dy = random_of({n}, GetParam(), 2);
        const Tensor y = Tensor::empty_like(x);
        const Tensor dx = Tensor::empty_like(x);
        kernels::activation_forward(curve.activation, x.raw(), y.raw(), n, x.dtype());
        const bool from_output = kernels::backward_from_output(curve.activation);
        kernels::activation_backward(curve.activation, from_output ? y.raw() : x.raw(), dy.raw(), dx.raw(), n,
                                     x.dtype());
        std::vector<double> expected_y;
        std::vector<double> expected_dx;
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
          expected_y.push_back(curve.y(x.values()[i]));
          expected_dx.push_back(dy.values()[i] * curve.slope(x.values()[i]));
        }
        expect_near(y, expected_y, tolerance_of(x.dtype()), what);
        // Where y is rounded to bf16 near 1, 1 - y has few digits left.
        expect_near(dx, expected_dx, (from_output ? 2 : 1) * tolerance_of(x.dtype()), what);
      }
    }
  });
}

TEST_P(NnKernels, Norms) {
  for_each_target([&](const std::string& target) {
    for (const bool centered : {true, false}) {
      for (const std::int64_t width : odd_sizes) {
        const std::int64_t rows = 5;
        const auto w = static_cast<std::size_t>(width);
        const std::string what = target + ", width " + std::to_string(width);
        const kernels::RowNorm norm{rows, width, GetParam(), centered};
        const Tensor x = random_of({rows, width}, GetParam(), 1, 2);
        const Tensor dy = random_of({rows, width}, GetParam(), 2);
        const Tensor weight = random_tensor({width}, 3);
        const Tensor bias = random_tensor({width}, 4);
        const Tensor y = Tensor::empty_like(x), dx = Tensor::empty_like(x);
        const Tensor mean = Tensor::empty({rows}), rstd = Tensor::empty({rows});
        const Tensor dweight = Tensor::empty({width}), dbias = Tensor::empty({width});
        const float eps = 0.1F;  // large, so that one feature is no singular case
        kernels::norm_forward(norm, x.raw(), weight.data<float>(), bias.data<float>(), eps, y.raw(), mean.data<float>(),
                              rstd.data<float>());
        kernels::norm_backward(norm, x.raw(), weight.data<float>(), mean.data<float>(), rstd.data<float>(), dy.raw(),
                               nullptr, dx.raw(), dweight.data<float>(), dbias.data<float>());
        std::vector<double> ey, edx, edweight(w), edbias(w);
        const std::vector<float> xs = x.values(), dys = dy.values(), ws = weight.values(), bs = bias.values();
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
          const float* xr = xs.data() + row * w;
          const float* dyr = dys.data() + row * w;
          double m = 0, v = 0, g_mean = 0, gx_mean = 0;
          for (std::size_t i = 0; i < w; ++i) {
            m += centered ? xr[i] / static_cast<double>(width) : 0;
          }
          for (std::size_t i = 0; i < w; ++i) {
            v += (xr[i] - m) * (xr[i] - m) / static_cast<double>(width);
          }
          const double r = 1 / std::sqrt(v + eps);
          for (std::size_t i = 0; i < w; ++i) {
            const double n = (xr[i] - m) * r;
            g_mean += centered ? dyr[i] * ws[i] / static_cast<double>(width) : 0;
            gx_mean += dyr[i] * ws[i] * n / static_cast<double>(width);
            edweight[i] += dyr[i] * n;
            edbias[i] += dyr[i];
            ey.push_back(n * ws[i] + bs[i]);
          }
          for (std::size_t i = 0; i < w; ++i) {
            edx.push_back(r * (dyr[i] * ws[i] - g_mean - (xr[i] - m) * r * gx_mean));
          }
        }
        expect_near(y, ey, tolerance_of(x.dtype()), what);
        expect_near(dx, edx, tolerance_of(x.dtype()), what);
        kernels::norm_backward(norm, x.raw(), weight.data<float>(), mean.data<float>(), rstd.data<float>(), dy.raw(),
                               dy.raw(), dx.raw(), dweight.data<float>(), dbias.data<float>());
        for (std::size_t i = 0; i < edx.size(); ++i) {
          edx[i] += dys[i];
        }
        expect_near(dx, edx, tolerance_of(x.dtype()), what);
        const Tensor sum = dy.clone();
        kernels::norm_backward(norm, x.raw(), weight.data<float>(), mean.data<float>(), rstd.data<float>(), dy.raw(),
                               sum.raw(), sum.raw(), dweight.data<float>(), dbias.data<float>());
        EXPECT_EQ(sum.values(), dx.values()) << what;
        expect_near(dweight, edweight, 2e-6, what);
        expect_near(dbias, edbias, 2e-6, what);
      }
    }
  });
}

TEST_P(NnKernels, SoftmaxAndCrossEntropy) {
  for_each_target([&](const std::string& target) {
    for (const std::int64_t width : odd_sizes) {
      const std::string what = target + ", width " + std::to_string(width);
      const Tensor x = random_of({width}, GetParam(), 1, 3);
      const Tensor dy = random_of({width}, GetParam(), 2);
      const std::vector<float> xs = x.values(), dys = dy.values();
      const std::vector<std::int64_t> label = {width / 2};
      double total = 0;
      for (const float value : xs) {
        total += std::exp(static_cast<double>(value));
      }
      for (const bool logarithm : {false, true}) {
        const kernels::RowSoftmax softmax{1, width, GetParam(), logarithm};
        const Tensor y = Tensor::empty_like(x), dx = Tensor::empty_like(x);
        kernels::softmax_forward(softmax, x.raw(), y.raw());
        kernels::softmax_backward(softmax, y.raw(), dy.raw(), dx.raw());
        // The backward pass knows y as it was rounded.
        const std::vector<float> ys = y.values();
        std::vector<double> ey, edx;
        double sum = 0;
        for (std::size_t i = 0; i < xs.size(); ++i) {
          ey.push_back(logarithm ? xs[i] - std::log(total) : std::exp(static_cast<double>(xs[i])) / total);
          sum += logarithm ? dys[i] : static_cast<double>(dys[i]) * ys[i];
        }
        for (std::size_t i = 0; i < xs.size(); ++i) {
          edx.push_back(logarithm ? dys[i] - std::exp(static_cast<double>(ys[i])) * sum : ys[i] * (dys[i] - sum));
        }
        expect_near(y, ey, tolerance_of(x.dtype()), what);
        expect_near(dx, edx, tolerance_of(x.dtype()), what);
      }
      float loss = 0, maximum = 0, log_sum = 0;
      const kernels::CrossEntropy entropy{1, width, GetParam(), label.data(), nullptr, 0.0F, -100};
      kernels::cross_entropy_forward(entropy, x.raw(), &loss, &maximum, &log_sum);
      EXPECT_NEAR(loss, std::log(total) - xs[static_cast<std::size_t>(label[0])], 5e-6) << what;
      const Tensor dx = Tensor::empty_like(x);
      kernels::cross_entropy_backward(entropy, x.raw(), &maximum, &log_sum, 0.5F, dx.raw());
      std::vector<double> edx;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const double p = static_cast<std::int64_t>(i) == label[0] ? 1 : 0;
        edx.push_back(0.5 * (std::exp(static_cast<double>(xs[i])) / total - p));
      }
      expect_near(dx, edx, tolerance_of(x.dtype()), what);
    }
  });
}

TEST_P(NnKernels, DropoutAndSamples) {
  for_each_target([&](const std::string& target) {
    for (const std::int64_t n : odd_sizes) {
      const Philox draws(99, 0x1234567890abcdefU);
      const Tensor x = random_of({n}, GetParam(), 1);
      const Tensor y = Tensor::empty_like(x);
      kernels::dropout(draws, 0.25F, x.raw(), y.raw(), n, x.dtype());
      std::vector<double> expected;
      for (std::int64_t i = 0; i < n; ++i) {
        const bool kept = draws.uniform(static_cast<std::uint64_t>(i)) >= 0.25F;
        expected.push_back(kept ? x.values()[static_cast<std::size_t>(i)] / 0.75 : 0.0);
      }
      expect_near(y, expected, tolerance_of(x.dtype()), target);
    }
    const std::vector<float> factors = {2, 0, 0.5F};
    const Tensor x = random_of({3, 19}, GetParam(), 2);
    const Tensor y = Tensor::empty_like(x);
    kernels::scale_samples(factors, x.raw(), y.raw(), 19, x.dtype());
    std::vector<double> expected;
    for (std::size_t i = 0; i < 57; ++i) {
      expected.push_back(factors[i / 19] * x.values()[i]);
    }
    expect_near(y, expected, tolerance_of(x.dtype()), target);
  });
}

TEST(NnKernel, BinaryCrossEntropyAndSquaredError) {
  for_each_target([&](const std::string& target) {
    for (const std::int64_t n : {1, 17, 5000}) {
      const Tensor x = random_tensor({n}, 1, 5), t = random_tensor({n}, 2);
      double entropy = 0, squares = 0;
      std::vector<double> entropy_gradient, squares_gradient;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const double a = x.values()[i], b = t.values()[i];
        entropy += std::max(a, 0.0) - a * b + std::log1p(std::exp(-std::abs(a)));
        squares += (a - b) * (a - b);
        entropy_gradient.push_back(0.5 * (logistic(a) - b));
        squares_gradient.push_back(a - b);
      }
      const Tensor dx = Tensor::empty({n}), dt = Tensor::empty({n});
      const auto run = [&](kernels::PointLoss loss, double sum, const std::vector<double>& gradient) {
        EXPECT_NEAR(kernels::point_loss_sum(loss, x.data<float>(), t.data<float>(), n), sum, 1e-5 * (1 + std::abs(sum)))
            << target;
        kernels::point_loss_gradient(loss, x.data<float>(), t.data<float>(), 0.5F, dx.data<float>(), dt.data<float>(),
                                     n);
        expect_near(dx, gradient, 2e-6, target);
      };
      run(kernels::PointLoss::binary_cross_entropy, entropy, entropy_gradient);
      run(kernels::PointLoss::squared_error, squares, squares_gradient);
    }
  });
}

TEST(NnKernel, CastsRoundToNearestEven) {
  for_each_target([&](const std::string& target) {
    // Every pattern of upper bits with lower halves on both sides of the middle.
    std::vector<float> values;
    for (std::uint32_t upper = 0; upper < 0x10000; upper += 37) {
      for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
        values.push_back(std::bit_cast<float>((upper << 16) | lower));
      }
    }
    const auto n = static_cast<std::int64_t>(values.size());
    std::vector<bf16> rounded(values.size());
    kernels::cast(values.data(), DType::f32, rounded.data(), DType::bf16, n);
    std::vector<float> back(values.size());
    kernels::cast(rounded.data(), DType::bf16, back.data(), DType::f32, n);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i].bits, bf16(values[i]).bits) << target << ", " << values[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::uint32_t{rounded[i].bits} << 16) << target;
    }
  });
}

TEST(NnKernel, OptimizersAndSpans) {
  for_each_target([&](const std::string& target) {
    for (const std::int64_t n : odd_sizes) {
      const Tensor gradient = random_tensor({n}, 1), start = random_tensor({n}, 2), start_m = random_tensor({n}, 3);
      const Tensor start_v = random_tensor({n}, 4);
      for (float& value : start_v.span<float>()) {
        value *= value;
      }
      const Tensor p = start.clone(), m = start_m.clone(), v = start_v.clone();
      const kernels::Adam adam{
          .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1, .step = 3, .gradient_scale = 0.5};
      kernels::adam_step(adam, p.data<float>(), gradient.data<float>(), m.data<float>(), v.data<float>(), n);
      std::vector<double> ep, es, el;
      double squares = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const double g = 0.5 * gradient.values()[i], b = start.values()[i];
        const double em = 0.9 * start_m.values()[i] + 0.1 * g;
        const double ev = 0.99 * start_v.values()[i] + 0.01 * g * g;
        ep.push_back(b - 0.001 * b -
                     0.01 * em / (1 - std::pow(0.9, 3)) / (std::sqrt(ev / (1 - std::pow(0.99, 3))) + 1e-3));
        const double buffer = 0.8 * start_m.values()[i] + 0.5 * gradient.values()[i] + 0.1 * b;
        es.push_back(b - 0.01 * (0.5 * gradient.values()[i] + 0.1 * b + 0.8 * buffer));
        el.push_back(b + 0.3 * (gradient.values()[i] - b));
        squares += b * b;
      }
      expect_near(p, ep, 2e-6, target);
      p.copy_from(start);
      m.copy_from(start_m);
      kernels::sgd_step({0.01, 0.8, 0.1, true, 0.5}, p.data<float>(), gradient.data<float>(), m.data<float>(), n);
      expect_near(p, es, 2e-6, target);
      p.copy_from(start);
      kernels::lerp(p.data<float>(), gradient.data<float>(), 0.3F, n);
      expect_near(p, el, 1e-6, target);
      EXPECT_NEAR(kernels::sum_of_squares(start.data<float>(), n), squares, 1e-5 * (1 + squares)) << target;
      p.copy_from(start);
      kernels::exchange(p.data<float>(), m.data<float>(), n);
      EXPECT_EQ(m.values(), start.values()) << target;
      kernels::clamp(m.data<float>(), 0.5F, n);
      kernels::scale(m.data<float>(), 2, n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        ASSERT_EQ(m.values()[i], 2 * std::clamp(start.values()[i], -0.5F, 0.5F)) << target;
      }
    }
  });
}

}  // namespace
}  // namespace vitrail::test
