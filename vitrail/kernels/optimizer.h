/// \file
/// The update rules of optimizers and other arithmetic on parameters and gradients, all in f32.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

/// One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) or Adam (Kingma & Ba 2015) with torch.optim's conventions:
///
/// ```text
/// g = gradient_scale · gradient
/// decoupled: p = p - lr weight_decay p            else: g = g + weight_decay p
/// m = m + (1 - beta1) (g - m)                     v = beta2 v + (1 - beta2) g²
/// p = p - lr / (1 - beta1ᵗ) · m / (√v / √(1 - beta2ᵗ) + eps)
/// ```
///
/// or, if `nesterov`, of timm's NAdamW (Dozat 2016), which has beta1 m + (1 - beta1) g in place of m in the last line.
struct Adam {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  ///< AdamW
  bool nesterov = false;  ///< NAdamW
  std::int64_t step = 1;  ///< t: 1 for the first
  double gradient_scale = 1;
};
/// Performs one step of Adam, AdamW or NAdamW on n parameters p with their gradient and the moments m and v.
void adam_step(const Adam& adam, float* p, const float* gradient, float* m, float* v, std::int64_t n);

/// One step of stochastic gradient descent with torch.optim.SGD's conventions:
///
/// ```text
/// g = gradient_scale · gradient + weight_decay p  b = momentum b + g
/// p = p - lr (nesterov ? g + momentum b : b)
/// ```
struct Sgd {
  double lr = 0;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = true;
  double gradient_scale = 1;
};
/// Performs one step of SGD on n parameters p with their gradient and the momentum buffer b (may be null if momentum is
/// 0).
void sgd_step(const Sgd& sgd, float* p, const float* gradient, float* b, std::int64_t n);

/// One step of Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2):
///
/// ```text
/// g = gradient_scale · gradient                   p = p - lr weight_decay p - lr sign(m + (1 - beta1) (g - m))
/// m = m + (1 - beta2) (g - m)
/// ```
struct Lion {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  double gradient_scale = 1;
};
/// Performs one step of Lion on n parameters p with their gradient and the momentum m.
void lion_step(const Lion& lion, float* p, const float* gradient, float* m, std::int64_t n);

/// One step of LAMB (You et al. 2020, "Large batch optimization for deep learning", algorithm 2) as timm's Lamb has it:
///
/// ```text
/// g, m and v as Adam's                            u = m / (1 - beta1ᵗ) / (√v / √(1 - beta2ᵗ) + eps) + weight_decay p
/// p = p - lr ratio u                              ratio = |p| / |u|, 1 if either is 0 or weight_decay is 0
/// ```
///
/// The norms are over all n elements and do not depend on the number of threads; u is computed twice instead of stored.
struct Lamb {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
  bool trust_clip = false;  ///< LAMBC: the ratio is at most 1
  std::int64_t step = 1;    ///< t: 1 for the first
  double gradient_scale = 1;
};
/// Performs one step of LAMB on n parameters p with their gradient and the moments m and v.
void lamb_step(const Lamb& lamb, float* p, const float* gradient, float* m, float* v, std::int64_t n);

/// a = a + weight (b - a), for n elements.
void lerp(float* a, const float* b, float weight, std::int64_t n);
/// x = factor · x, for n elements.
void scale(float* x, float factor, std::int64_t n);
/// x = min(max(x, -limit), limit), for n elements; NaN stays NaN.
void clamp(float* x, float limit, std::int64_t n);
/// Σ x² over n elements; it does not depend on the number of threads.
double sum_of_squares(const float* x, std::int64_t n);
/// Exchanges the n elements of a and b.
void exchange(float* a, float* b, std::int64_t n);

}  // namespace vitrail::kernels
