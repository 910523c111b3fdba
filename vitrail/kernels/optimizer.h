// What optimizers do with parameters and gradients, each in one pass over memory; all in f32.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

// One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) or Adam (Kingma & Ba 2015) with torch.optim's conventions:
//   g = gradient_scale · gradient
//   decoupled: p = p - lr weight_decay p            else: g = g + weight_decay p
//   m = m + (1 - beta1) (g - m)                     v = beta2 v + (1 - beta2) g²
//   p = p - lr / (1 - beta1ᵗ) · m / (√v / √(1 - beta2ᵗ) + eps)
struct Adam {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW
  std::int64_t step = 1;  // t: 1 for the first
  double gradient_scale = 1;
};
void adam_step(const Adam& adam, float* p, const float* gradient, float* m, float* v, std::int64_t n);

// One step of stochastic gradient descent with torch.optim.SGD's conventions:
//   g = gradient_scale · gradient + weight_decay p  b = momentum b + g
//   p = p - lr (nesterov ? g + momentum b : b)
struct Sgd {
  double lr = 0;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = true;
  double gradient_scale = 1;
};
void sgd_step(const Sgd& sgd, float* p, const float* gradient, float* b, std::int64_t n);  // b may be null: momentum 0

// a = a + weight (b - a)
void lerp(float* a, const float* b, float weight, std::int64_t n);
// x = factor · x
void scale(float* x, float factor, std::int64_t n);
// x = min(max(x, -limit), limit)
void clamp(float* x, float limit, std::int64_t n);
// Σ x²; the same for any number of threads.
double sum_of_squares(const float* x, std::int64_t n);
// Exchanges the contents.
void exchange(float* a, float* b, std::int64_t n);

}  // namespace vitrail::kernels
