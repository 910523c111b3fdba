#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/activation.cpp"
#include "vitrail/kernels/activation.h"

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr float quick_slope = 1.702F;
constexpr float tanh_scale = 1.5957691216F;  // 2 √(2/π)
constexpr float tanh_cubic = 0.044715F;

// Each activation is a struct with the function `y<T>(d, x)` and its derivative dy/dx, `slope<T>(d, saved)`, where
// `saved` is x or y as backward_from_output() says. Both are computed to the precision that T needs.

struct Relu {
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D d, V<D> y) {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), hn::Set(d, 1.0F));
  }
};

struct Gelu {
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    return hn::Mul(x, normal<T>(d, x).cdf);
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D d, V<D> x) {  // Φ(x) + x φ(x)
    const auto n = normal<T>(d, x);
    return hn::MulAdd(hn::Mul(x, hn::Set(d, 0.3989422804F)), n.gauss, n.cdf);
  }
};

// x/2 (1 + tanh u) = x σ(2u), with u = √(2/π) (x + 0.044715 x³).
struct GeluTanh {
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    const auto cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, tanh_cubic * tanh_scale), hn::Set(d, tanh_scale));
    return hn::Mul(x, sigmoid<T>(d, hn::Mul(x, cubic)));
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D d, V<D> x) {  // σ + x σ (1 - σ) d(2u)/dx
    const auto square = hn::Mul(x, x);
    const auto scale = hn::Set(d, tanh_scale);
    const auto s = sigmoid<T>(d, hn::Mul(x, hn::MulAdd(square, hn::Set(d, tanh_cubic * tanh_scale), scale)));
    const auto inner = hn::Mul(x, hn::MulAdd(square, hn::Set(d, 3 * tanh_cubic * tanh_scale), scale));
    return hn::Mul(s, hn::MulAdd(inner, hn::Sub(hn::Set(d, 1.0F), s), hn::Set(d, 1.0F)));
  }
};

// x σ(a x): quick GELU with a = 1.702, SiLU with a = 1.
template <bool quick>
struct Swish {
  template <class D>
  static HWY_INLINE V<D> scaled(D d, V<D> x) {
    return quick ? hn::Mul(x, hn::Set(d, quick_slope)) : x;
  }
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    return hn::Mul(x, sigmoid<T>(d, scaled(d, x)));
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D d, V<D> x) {  // σ (1 + a x (1 - σ))
    const auto one = hn::Set(d, 1.0F);
    const auto ax = scaled(d, x);
    const auto s = sigmoid<T>(d, ax);
    return hn::Mul(s, hn::MulAdd(ax, hn::Sub(one, s), one));
  }
};

struct Tanh {
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    return tanh(d, x);
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D d, V<D> y) {
    return hn::NegMulAdd(y, y, hn::Set(d, 1.0F));
  }
};

struct Sigmoid {
  template <class T, class D>
  static HWY_INLINE V<D> y(D d, V<D> x) {
    return sigmoid<T>(d, x);
  }
  template <class T, class D>
  static HWY_INLINE V<D> slope(D, V<D> y) {
    return hn::NegMulAdd(y, y, y);
  }
};

// Calls use(F{}) with the struct F of that activation.
template <class Use>
HWY_INLINE void with_function(Activation activation, Use&& use) {
  switch (activation) {
    case Activation::relu:
      return use(Relu{});
    case Activation::gelu:
      return use(Gelu{});
    case Activation::gelu_tanh:
      return use(GeluTanh{});
    case Activation::quick_gelu:
      return use(Swish<true>{});
    case Activation::silu:
      return use(Swish<false>{});
    case Activation::tanh:
      return use(Tanh{});
    case Activation::sigmoid:
      return use(Sigmoid{});
    case Activation::identity:
      fail("the identity needs no kernel");
  }
}

template <class F, class T>
void apply(const T* x, T* y, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(F::template y<T>(d, load(d, x + i, part)), d, y + i, part);
  });
}

template <class F, class T>
void apply_slope(const T* saved, const T* dy, T* dx, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(load(d, dy + i, part), F::template slope<T>(d, load(d, saved + i, part))), d, dx + i, part);
  });
}

void forward(Activation activation, const void* x, void* y, std::int64_t begin, std::int64_t end, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    with_function(activation, [&]<class F>(F) HWY_ATTR {
      apply<F>(static_cast<const T*>(x) + begin, static_cast<T*>(y) + begin, end - begin);
    });
  });
}

void backward(Activation activation, const void* saved, const void* dy, void* dx, std::int64_t begin, std::int64_t end,
              DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    with_function(activation, [&]<class F>(F) HWY_ATTR {
      apply_slope<F>(static_cast<const T*>(saved) + begin, static_cast<const T*>(dy) + begin,
                     static_cast<T*>(dx) + begin, end - begin);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

constexpr std::int64_t grain = 1 << 13;  // least elements per thread
}  // namespace

bool backward_from_output(Activation activation) {
  return activation == Activation::relu || activation == Activation::tanh || activation == Activation::sigmoid;
}

void activation_forward(Activation activation, const void* x, void* y, std::int64_t n, DType dtype) {
  Profile::traffic(n, dtype, 2);
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(forward)(activation, x, y, begin, end, dtype);
  });
}

void activation_backward(Activation activation, const void* saved, const void* dy, void* dx, std::int64_t n,
                         DType dtype) {
  Profile::traffic(n, dtype, 3);
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(backward)(activation, saved, dy, dx, begin, end, dtype);
  });
}

}  // namespace vitrail::kernels
#endif
