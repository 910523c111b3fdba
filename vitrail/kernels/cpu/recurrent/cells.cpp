#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/recurrent/cells.cpp"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/recurrent.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using VF = V<F32>;

// Some units of one row of a CellStep, as vectors.
template <class T, class Part>
struct UnitsForward {
  const CellStep& step;
  std::int64_t row, unit;
  Part part;
  std::int64_t kept_width;
  std::int64_t gates_width;

  HWY_INLINE std::int64_t gate(std::int64_t k) const { return (row * gates_width + k) * step.hidden + unit; }
  HWY_INLINE VF x(std::int64_t k) const { return load(F32(), static_cast<const T*>(step.x) + gate(k), part); }
  HWY_INLINE VF u(std::int64_t k) const { return load(F32(), step.u + gate(k), part); }
  HWY_INLINE VF a(std::int64_t k) const { return hn::Add(x(k), u(k)); }
  HWY_INLINE VF state() const { return load(F32(), step.state + row * step.hidden + unit, part); }

  HWY_INLINE void set_state(VF v) const { store(v, F32(), step.state + row * step.hidden + unit, part); }
  HWY_INLINE void set_memory(VF v) const {
    if (step.memory != nullptr) {
      store(v, F32(), static_cast<T*>(step.memory) + row * step.hidden + unit, part);
    }
  }
  HWY_INLINE void set_h(VF v) const { store(v, F32(), static_cast<T*>(step.h) + row * step.hidden + unit, part); }
  template <class... Values>
  HWY_INLINE void keep(Values... values) const {
    if (step.kept == nullptr) {
      return;
    }
    T* to = static_cast<T*>(step.kept) + row * kept_width * step.hidden + unit;
    (keep_one(values, to), ...);
  }

 private:
  HWY_INLINE void keep_one(VF v, T*& to) const {
    store(v, F32(), to, part);
    to += step.hidden;
  }
};

// Some units of one row of a CellGradient, as vectors.
template <class T, class Part>
struct UnitsBackward {
  const CellGradient& step;
  std::int64_t row, unit;
  Part part;
  std::int64_t kept_width;
  std::int64_t gates_width;

  HWY_INLINE std::int64_t at() const { return row * step.hidden + unit; }
  HWY_INLINE VF read(const void* rows) const { return load(F32(), static_cast<const T*>(rows) + at(), part); }
  HWY_INLINE VF kept(std::int64_t k) const {
    return load(F32(), static_cast<const T*>(step.kept) + (row * kept_width + k) * step.hidden + unit, part);
  }
  HWY_INLINE VF dh() const {
    const auto dh = load(F32(), step.dh + at(), part);
    return step.dy == nullptr ? dh : hn::Add(dh, read(step.dy));
  }
  HWY_INLINE VF dstate() const { return load(F32(), step.dstate + at(), part); }

  HWY_INLINE void set_dstate(VF v) const { store(v, F32(), step.dstate + at(), part); }
  // Sets the gradients of xₖ and uₖ …
  HWY_INLINE void set_both(std::int64_t k, VF v) const {
    store(v, F32(), static_cast<T*>(step.dproduct) + (row * gates_width + k) * step.hidden + unit, part);
  }
  // … or, where they differ, each.
  HWY_INLINE void set_apart(std::int64_t k, VF dx, VF du) const {
    set_both(k, du);
    store(dx, F32(), static_cast<T*>(step.dx_apart) + at(), part);
  }
};

HWY_INLINE VF one() { return hn::Set(F32(), 1.0F); }
HWY_INLINE VF relu(VF x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(F32())), x); }  // NaN stays NaN
// The derivatives of tanh, σ and relu from their values.
HWY_INLINE VF tanh_slope(VF y) { return hn::NegMulAdd(y, y, one()); }
HWY_INLINE VF sigmoid_slope(VF y) { return hn::NegMulAdd(y, y, y); }
HWY_INLINE VF where_positive(VF y, VF v) { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(F32())), v); }

// Each cell is a struct with a step of some units and its gradient; enum Cell has the equations.

template <bool kTanh>
struct Elman {
  template <class T, class Units>
  static HWY_INLINE void forward(const Units& in) {
    in.set_h(kTanh ? tanh(F32(), in.a(0)) : relu(in.a(0)));
  }
  template <class T, class Units>
  static HWY_INLINE void backward(const Units& in) {
    const auto h = in.read(in.step.h);
    in.set_both(0, kTanh ? hn::Mul(in.dh(), tanh_slope(h)) : where_positive(h, in.dh()));
  }
};

struct Lstm {
  template <class T, class Units>
  static HWY_INLINE void forward(const Units& in) {
    const F32 d;
    const auto i = sigmoid<T>(d, in.a(0));
    const auto f = sigmoid<T>(d, in.a(1));
    const auto g = tanh(d, in.a(2));
    const auto o = sigmoid<T>(d, in.a(3));
    const auto c = hn::MulAdd(f, in.state(), hn::Mul(i, g));
    in.keep(i, f, g, o);
    in.set_state(c);
    in.set_memory(c);
    in.set_h(hn::Mul(o, tanh(d, c)));
  }
  template <class T, class Units>
  static HWY_INLINE void backward(const Units& in) {
    const auto i = in.kept(0);
    const auto f = in.kept(1);
    const auto g = in.kept(2);
    const auto o = in.kept(3);
    const auto t = tanh(F32(), in.read(in.step.memory));
    const auto dh = in.dh();
    const auto dc = hn::MulAdd(hn::Mul(dh, o), tanh_slope(t), in.dstate());
    in.set_dstate(hn::Mul(dc, f));
    in.set_both(0, hn::Mul(hn::Mul(dc, g), sigmoid_slope(i)));
    in.set_both(1, hn::Mul(hn::Mul(dc, in.read(in.step.memory_before)), sigmoid_slope(f)));
    in.set_both(2, hn::Mul(hn::Mul(dc, i), tanh_slope(g)));
    in.set_both(3, hn::Mul(hn::Mul(dh, t), sigmoid_slope(o)));
  }
};

struct Gru {
  template <class T, class Units>
  static HWY_INLINE void forward(const Units& in) {
    const F32 d;
    const auto r = sigmoid<T>(d, in.a(0));
    const auto z = sigmoid<T>(d, in.a(1));
    const auto u = in.u(2);
    const auto n = tanh(d, hn::MulAdd(r, u, in.x(2)));
    const auto h = hn::MulAdd(z, hn::Sub(in.state(), n), n);
    in.keep(r, z, n, u);
    in.set_state(h);
    in.set_h(h);
  }
  template <class T, class Units>
  static HWY_INLINE void backward(const Units& in) {
    const auto r = in.kept(0);
    const auto z = in.kept(1);
    const auto n = in.kept(2);
    const auto dh = hn::Add(in.dh(), in.dstate());
    const auto dn = hn::Mul(hn::Mul(dh, hn::Sub(one(), z)), tanh_slope(n));
    in.set_dstate(hn::Mul(dh, z));
    in.set_both(0, hn::Mul(hn::Mul(dn, in.kept(3)), sigmoid_slope(r)));
    in.set_both(1, hn::Mul(hn::Mul(dh, hn::Sub(in.read(in.step.h_before), n)), sigmoid_slope(z)));
    in.set_apart(2, dn, hn::Mul(dn, r));
  }
};

struct Nas {
  // m₀ … m₃ of the equations.
  struct Merged {
    VF m0, m1, m2, m3;
  };
  template <class T>
  static HWY_INLINE Merged merged(VF l0, VF l1, VF l2, VF l3, VF l4, VF l5, VF l6, VF l7) {
    const F32 d;
    return {tanh(d, hn::Mul(l0, l1)), tanh(d, hn::Add(l2, l3)), tanh(d, hn::Mul(l4, l5)),
            sigmoid<T>(d, hn::Add(l6, l7))};
  }

  template <class T, class Units>
  static HWY_INLINE void forward(const Units& in) {
    const F32 d;
    const auto l0 = sigmoid<T>(d, in.a(0));
    const auto l1 = relu(in.a(1));
    const auto l2 = sigmoid<T>(d, in.a(2));
    const auto x3 = in.x(3);
    const auto u3 = in.u(3);
    const auto l4 = tanh(d, in.a(4));
    const auto l5 = sigmoid<T>(d, in.a(5));
    const auto l6 = tanh(d, in.a(6));
    const auto l7 = sigmoid<T>(d, in.a(7));
    const Merged m = merged<T>(l0, l1, l2, relu(hn::Mul(x3, u3)), l4, l5, l6, l7);
    const auto c = hn::Mul(tanh(d, hn::Add(m.m0, in.state())), m.m1);
    in.keep(l0, l1, l2, x3, u3, l4, l5, l6, l7);
    in.set_state(c);
    in.set_memory(c);
    in.set_h(tanh(d, hn::Mul(c, tanh(d, hn::Add(m.m2, m.m3)))));
  }

  template <class T, class Units>
  static HWY_INLINE void backward(const Units& in) {
    const F32 d;
    const auto l0 = in.kept(0);
    const auto l1 = in.kept(1);
    const auto l2 = in.kept(2);
    const auto x3 = in.kept(3);
    const auto u3 = in.kept(4);
    const auto l3 = relu(hn::Mul(x3, u3));
    const auto l4 = in.kept(5);
    const auto l5 = in.kept(6);
    const auto l6 = in.kept(7);
    const auto l7 = in.kept(8);
    const Merged m = merged<T>(l0, l1, l2, l3, l4, l5, l6, l7);
    const auto a = tanh(d, hn::Add(m.m0, in.read(in.step.memory_before)));
    const auto b = tanh(d, hn::Add(m.m2, m.m3));
    const auto c = hn::Mul(a, m.m1);

    const auto dcb = hn::Mul(in.dh(), tanh_slope(tanh(d, hn::Mul(c, b))));
    const auto dc = hn::MulAdd(dcb, b, in.dstate());
    const auto da = hn::Mul(hn::Mul(dc, m.m1), tanh_slope(a));
    const auto db = hn::Mul(hn::Mul(dcb, c), tanh_slope(b));
    in.set_dstate(da);
    const auto d01 = hn::Mul(da, tanh_slope(m.m0));
    const auto d23 = hn::Mul(hn::Mul(dc, a), tanh_slope(m.m1));
    const auto d45 = hn::Mul(db, tanh_slope(m.m2));
    const auto d67 = hn::Mul(db, sigmoid_slope(m.m3));
    const auto d3 = where_positive(l3, d23);
    in.set_both(0, hn::Mul(hn::Mul(d01, l1), sigmoid_slope(l0)));
    in.set_both(1, where_positive(l1, hn::Mul(d01, l0)));
    in.set_both(2, hn::Mul(d23, sigmoid_slope(l2)));
    in.set_apart(3, hn::Mul(d3, u3), hn::Mul(d3, x3));
    in.set_both(4, hn::Mul(hn::Mul(d45, l5), tanh_slope(l4)));
    in.set_both(5, hn::Mul(hn::Mul(d45, l4), sigmoid_slope(l5)));
    in.set_both(6, hn::Mul(d67, tanh_slope(l6)));
    in.set_both(7, hn::Mul(d67, sigmoid_slope(l7)));
  }
};

// Calls use(C{}) with the struct C of that cell.
template <class Use>
HWY_INLINE void with_cell(Cell cell, Use&& use) {
  switch (cell) {
    case Cell::rnn_tanh:
      return use(Elman<true>{});
    case Cell::rnn_relu:
      return use(Elman<false>{});
    case Cell::lstm:
      return use(Lstm{});
    case Cell::gru:
      return use(Gru{});
    case Cell::nas:
      return use(Nas{});
  }
}

void forward_rows(const CellStep& step, std::int64_t begin, std::int64_t end) {
  const CellTraits traits = traits_of(step.cell);
  visit_floating(step.dtype, [&]<class T>(T) HWY_ATTR {
    with_cell(step.cell, [&]<class C>(C) HWY_ATTR {
      for (std::int64_t row = begin; row < end; ++row) {
        for_lanes(F32(), step.hidden, [&]<class Part>(std::int64_t unit, Part part) HWY_ATTR {
          C::template forward<T>(UnitsForward<T, Part>{step, row, unit, part, traits.kept, traits.gates});
        });
      }
    });
  });
}

void backward_rows(const CellGradient& gradient, std::int64_t begin, std::int64_t end) {
  const CellTraits traits = traits_of(gradient.cell);
  visit_floating(gradient.dtype, [&]<class T>(T) HWY_ATTR {
    with_cell(gradient.cell, [&]<class C>(C) HWY_ATTR {
      for (std::int64_t row = begin; row < end; ++row) {
        for_lanes(F32(), gradient.hidden, [&]<class Part>(std::int64_t unit, Part part) HWY_ATTR {
          C::template backward<T>(UnitsBackward<T, Part>{gradient, row, unit, part, traits.kept, traits.gates});
        });
      }
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_rows);

constexpr std::int64_t least_units = 1 << 9;  // for a thread, whose start costs as much as about a hundred units

}  // namespace

CellTraits traits_of(Cell cell) {
  switch (cell) {
    case Cell::rnn_tanh:
    case Cell::rnn_relu:
      return {.gates = 1, .kept = 0, .memory = false, .apart = -1};
    case Cell::lstm:
      return {.gates = 4, .kept = 4, .memory = true, .apart = -1};
    case Cell::gru:
      return {.gates = 3, .kept = 4, .memory = false, .apart = 2};
    case Cell::nas:
      return {.gates = 8, .kept = 9, .memory = true, .apart = 3};
  }
  fail("no such cell: {}", static_cast<int>(cell));
}

void cell_forward(const CellStep& step) {
  const CellTraits traits = traits_of(step.cell);
  Profile::traffic(step.rows * step.hidden, step.dtype, static_cast<int>(traits.gates + traits.kept + 1));
  Profile::traffic(step.rows * step.hidden, DType::f32, static_cast<int>(traits.gates));
  parallel_for(step.rows, least_units / step.hidden + 1, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(forward_rows)(step, begin, end);
  });
}

void cell_backward(const CellGradient& gradient) {
  const CellTraits traits = traits_of(gradient.cell);
  Profile::traffic(gradient.rows * gradient.hidden, gradient.dtype, static_cast<int>(traits.gates + traits.kept + 1));
  parallel_for(gradient.rows, least_units / gradient.hidden + 1, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(backward_rows)(gradient, begin, end);
  });
}

}  // namespace vitrail::kernels
#endif
