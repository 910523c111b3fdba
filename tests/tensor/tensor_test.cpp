#include "vitrail/tensor/tensor.h"

#include <numeric>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "vitrail/tensor/strided.h"

namespace vitrail::test {
namespace {

using testing::Each;
using testing::ElementsAre;

// 0, 1, 2, … in row-major order.
Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  Tensor result = Tensor::empty(shape, dtype);
  visit(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      result.data<T>()[i] = static_cast<T>(static_cast<float>(i % 128));
    }
  });
  return result;
}

// The element at `index` by the strides alone.
float at(const Tensor& x, const Shape& index) {
  std::int64_t place = x.offset();
  for (int d = 0; d < x.rank(); ++d) {
    place += index[d] * x.stride(d);
  }
  return reinterpret_cast<const float*>(x.storage().data())[place];
}

// values() by single elements.
std::vector<float> one_by_one(const Tensor& x) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    Shape index = x.shape();
    std::int64_t rest = i;
    for (int d = x.rank() - 1; d >= 0; --d) {
      index[d] = rest % x.size(d);
      rest /= x.size(d);
    }
    values.push_back(at(x, index));
  }
  return values;
}

TEST(Tensor, IsAHandleOnSharedElements) {
  EXPECT_FALSE(Tensor().defined());
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_FALSE(x.is_shared());
  const Tensor y = x;
  EXPECT_TRUE(x.is_shared());
  y.data<float>()[4] = 7;
  EXPECT_THAT(x.values(), ElementsAre(0, 0, 0, 0, 7, 0));
  const Tensor copy = x.clone();
  x.fill(1);
  EXPECT_THAT(copy.values(), ElementsAre(0, 0, 0, 0, 7, 0));
  EXPECT_EQ(x.bytes(), 24U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.raw()) % 64, 0U);
}

TEST(Tensor, IsMadeFromValues) {
  EXPECT_THAT(Tensor::full({2}, 1.5).values(), Each(1.5F));
  EXPECT_EQ(Tensor::scalar(3).item(), 3.0F);
  EXPECT_THAT(Tensor::from(std::vector<std::int64_t>{5, -6}, {2, 1}).values(), ElementsAre(5, -6));
  EXPECT_EQ(Tensor::full({1}, 16777217, DType::i64).data<std::int64_t>()[0], 16777217);
  EXPECT_EQ(Tensor::full({1}, -3, DType::i8).data<std::int8_t>()[0], -3);
  EXPECT_TRUE(Tensor::full({1}, 2, DType::boolean).data<bool>()[0]);
  EXPECT_EQ(error_of([] {
              Tensor::from(std::vector<float>{1, 2, 3}, {2, 2});
            }),
            "3 values do not fill the shape [2, 2]");
  EXPECT_EQ(error_of([] { (void)Tensor::zeros({2}).data<std::int64_t>(); }), "the tensor holds f32, not i64");
  EXPECT_EQ(error_of([] { (void)Tensor::zeros({2}).item(); }), "item() needs a tensor with one element, not [2]");
}

TEST(Tensor, BorrowsMemoryAndKeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor x = Tensor::borrow(owner->data(), {2, 2}, DType::f32, owner).transpose(0, 1);
    EXPECT_TRUE(x.is_shared());
    owner.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_THAT(x.values(), ElementsAre(1, 3, 2, 4));
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, ViewsShareTheElements) {
  const Tensor x = counting({2, 3, 4});
  const std::vector<Tensor> views = {
      x.reshape({4, 6}), x.reshape({-1}), x.transpose(0, -1),     x.permute({2, 0, 1}), x.narrow(1, 1, 2),
      x.select(-1, 2),   x.unsqueeze(1),  x.expand({5, 2, 3, 4}), x.detach(),           x.narrow(0, 1, 1).squeeze(0)};
  for (const Tensor& view : views) {
    EXPECT_EQ(&view.storage(), &x.storage());
    EXPECT_EQ(view.values(), one_by_one(view)) << view.shape().str();
  }
  EXPECT_EQ(views[2].shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(views[3].shape(), (Shape{4, 2, 3}));
  EXPECT_THAT(views[5].values(), ElementsAre(2, 6, 10, 14, 18, 22));
  EXPECT_EQ(views[6].shape(), (Shape{2, 1, 3, 4}));
  EXPECT_EQ(views[7].stride(0), 0);
  EXPECT_TRUE(views[9].is_contiguous());
  EXPECT_FALSE(views[2].is_contiguous());
}

TEST(Tensor, ViewsSayWhatDoesNotFit) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(error_of([&] { (void)x.reshape({5, -1}); }), "the shape [2, 3, 4] cannot become [5, -1]");
  EXPECT_EQ(error_of([&] { (void)x.reshape({-1, -1}); }), "only one size of [-1, -1] may be -1");
  EXPECT_EQ(error_of([&] { (void)x.reshape({2, 3}); }), "the shape [2, 3, 4] cannot become [2, 3]");
  EXPECT_EQ(error_of([&] { (void)x.reshape({-2, -12}); }), "the shape [2, 3, 4] cannot become [-2, -12]");
  EXPECT_EQ(error_of([&] { (void)x.permute({0, 1}); }), "permute() of the shape [2, 3, 4] needs 3 dimensions, not 2");
  EXPECT_EQ(error_of([&] { (void)x.permute({0, 1, -2}); }), "permute() names dimension 1 twice");
  EXPECT_EQ(error_of([&] { (void)x.narrow(1, 2, 2); }), "[2, 4) does not lie inside dimension 1 of [2, 3, 4]");
  EXPECT_EQ(error_of([&] {
              (void)x.expand({2, 3, 5});
            }),
            "the shapes [2, 3, 4] and [2, 3, 5] cannot be broadcast together");
  EXPECT_EQ(error_of([&] { (void)x.expand({3, 4}); }), "the shape [2, 3, 4] cannot be expanded to [3, 4]");
  EXPECT_EQ(error_of([&] { (void)x.squeeze(1); }), "dimension 1 of [2, 3, 4] has not the size 1");
}

// Against element-by-element reading: reshape() of views with and without sizes of 1, splits and joins of dimensions.
TEST(Tensor, ReshapesStridedTensors) {
  const Tensor x = counting({4, 6, 1, 10});
  const std::vector<Tensor> views = {x,
                                     x.transpose(0, 1),
                                     x.permute({3, 2, 1, 0}),
                                     x.narrow(3, 2, 5),
                                     x.narrow(1, 1, 4),
                                     x.select(1, 3),
                                     x.expand({2, 4, 6, 3, 10}),
                                     x.narrow(0, 1, 1).expand({4, 6, 1, 10}),
                                     x.permute({1, 2, 0, 3}).unsqueeze(0)};
  for (const Tensor& view : views) {
    const std::int64_t n = view.numel();
    const std::vector<float> expected = one_by_one(view);
    std::vector<Shape> shapes = {{n}, {-1, 10}, {2, -1}, {1, n, 1}, {-1, 5}, {n / 10, 1, 2, 5}, view.shape()};
    shapes.push_back(view.shape().inserted(0, 1).inserted(-1, 1));
    for (const Shape& shape : shapes) {
      std::int64_t known = 1;
      for (const std::int64_t size : shape) {
        known *= size == -1 ? 1 : size;
      }
      if (n % known != 0) {
        continue;
      }
      const Tensor shaped = view.reshape(shape);
      EXPECT_EQ(one_by_one(shaped), expected) << view.shape().str() << " → " << shaped.shape().str();
    }
  }
  EXPECT_EQ(&x.narrow(3, 2, 5).reshape({24, 5}).storage(), &x.storage());  // a view where there can be one
  EXPECT_EQ(&x.transpose(0, 1).reshape({6, 2, 2, 10}).storage(), &x.storage());
  EXPECT_NE(&x.transpose(0, 1).reshape({24, 10}).storage(), &x.storage());
}

TEST(Tensor, ReshapesNothing) {
  const Tensor none = Tensor::empty({0, 3});
  EXPECT_EQ(none.reshape({3, 0, 2}).shape(), (Shape{3, 0, 2}));
  EXPECT_EQ(none.transpose(0, 1).reshape({0}).numel(), 0);
  EXPECT_TRUE(none.transpose(0, 1).is_contiguous());
  EXPECT_EQ(none.clone().shape(), none.shape());
  EXPECT_EQ(Tensor::scalar(4).reshape({1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(counting({1, 1}).reshape({}).rank(), 0);
}

// Tiles with rests, rows, repeated elements, several threads, every dtype.
TEST(Tensor, CopiesAnyLayout) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::i64}) {
    for (const Shape& shape :
         {Shape{3, 5, 7}, Shape{2, 65, 130}, Shape{1, 200, 257}, Shape{70, 1, 3}, Shape{2, 16, 64}}) {
      const Tensor x = counting(shape, dtype);
      const std::vector<float> dense = x.values();
      for (const auto& dims : {std::array{0, 2, 1}, std::array{2, 0, 1}, std::array{2, 1, 0}, std::array{1, 0, 2}}) {
        const Tensor view = x.permute(dims);
        const Tensor copy = view.clone();
        EXPECT_TRUE(copy.is_contiguous());
        std::array<int, 3> back{};
        for (int d = 0; d < 3; ++d) {
          back[static_cast<std::size_t>(dims[static_cast<std::size_t>(d)])] = d;
        }
        // Written through a permuted view and read in order, then the other way round.
        const Tensor target = Tensor::zeros(shape, dtype);
        target.permute(dims).copy_from(copy);
        EXPECT_EQ(target.values(), dense) << shape.str() << " " << name_of(dtype);
        const Tensor there = Tensor::zeros(copy.shape(), dtype);
        there.permute(back).copy_from(x);
        EXPECT_EQ(there.values(), copy.values()) << shape.str() << " " << name_of(dtype);
      }
      const Tensor wide = Tensor::empty(shape.inserted(1, 4), dtype);
      wide.copy_from(x.unsqueeze(1));
      EXPECT_EQ(wide.select(1, 3).values(), dense);
    }
  }
}

TEST(Tensor, PermutedCopiesHoldTheRightElements) {
  const Tensor x = counting({3, 37, 45});
  EXPECT_EQ(x.permute({2, 0, 1}).clone().values(), one_by_one(x.permute({2, 0, 1})));
  EXPECT_EQ(x.permute({0, 2, 1}).clone().values(), one_by_one(x.permute({0, 2, 1})));
  EXPECT_EQ(x.narrow(2, 3, 40).transpose(1, 2).clone().values(), one_by_one(x.narrow(2, 3, 40).transpose(1, 2)));
}

TEST(Tensor, CopiesAndFillsPartsOnly) {
  const Tensor x = Tensor::zeros({3, 4});
  x.narrow(1, 1, 2).fill(5);
  x.select(0, 2).copy_from(Tensor::scalar(7));
  EXPECT_THAT(x.values(), ElementsAre(0, 5, 5, 0, 0, 5, 5, 0, 7, 7, 7, 7));
  EXPECT_EQ(error_of([&] {
              x.copy_from(Tensor::zeros({3, 4}, DType::i32));
            }),
            "cannot copy i32 into f32: cast it first");
}

TEST(Tensor, ThatIsUndefinedSaysWhichCallNeedsElements) {
  const Tensor none;
  const Tensor some = Tensor::zeros({1});
  EXPECT_EQ(error_of([&] { none.span<float>(); }), "span() needs a tensor with elements, but this one is undefined");
  EXPECT_THAT(error_of([&] { none.data<float>(); }), testing::StartsWith("data() needs"));
  EXPECT_THAT(error_of([&] { none.raw(); }), testing::StartsWith("raw() needs"));
  EXPECT_THAT(error_of([&] { none.values(); }), testing::StartsWith("values() needs"));
  EXPECT_THAT(error_of([&] { none.item(); }), testing::StartsWith("item() needs"));
  EXPECT_THAT(error_of([&] { none.storage(); }), testing::StartsWith("storage() needs"));
  EXPECT_THAT(error_of([&] { none.is_shared(); }), testing::StartsWith("is_shared() needs"));
  EXPECT_THAT(error_of([&] { none.touch(); }), testing::StartsWith("touch() needs"));
  EXPECT_THAT(error_of([&] { none.fill(1); }), testing::StartsWith("fill() needs"));
  EXPECT_THAT(error_of([&] { none.clone(); }), testing::StartsWith("clone() needs"));
  EXPECT_THAT(error_of([&] { none.contiguous(); }), testing::StartsWith("contiguous() needs"));
  EXPECT_THAT(error_of([&] { none.reshape({1}); }), testing::StartsWith("reshape() needs"));
  EXPECT_THAT(error_of([&] { none.unsqueeze(0); }), testing::StartsWith("unsqueeze() needs"));
  EXPECT_THAT(error_of([&] { none.narrow(0, 0, 1); }), testing::StartsWith("narrow() needs"));
  EXPECT_THAT(error_of([&] { none.copy_from(some); }), testing::StartsWith("copy_from() needs"));
  EXPECT_THAT(error_of([&] { some.copy_from(none); }), testing::StartsWith("expand() needs"));
  EXPECT_FALSE(none.detach().defined());
}

TEST(Tensor, ToldOfAChangeRaisesTheVersionOfItsElements) {
  const Tensor x = Tensor::zeros({4});
  const std::uint64_t version = x.storage().version();
  x.narrow(0, 1, 2).touch();
  EXPECT_GT(x.storage().version(), version);
}

TEST(Loops, JoinWhatEveryOperandWalksInOneGo) {
  const Shape shape = {2, 3, 1, 4};
  const std::array both = {Shape{12, 4, 4, 1}, Shape{0, 4, 4, 1}};
  const Loops loops(shape, both);
  EXPECT_EQ(loops.shape, (Shape{2, 12}));
  EXPECT_EQ(loops.strides[0], (Shape{12, 1}));
  EXPECT_EQ(loops.strides[1], (Shape{0, 1}));
  EXPECT_EQ(loops.offset(0, 17), 17);
  EXPECT_EQ(loops.offset(1, 17), 5);
  EXPECT_EQ(Loops(shape, std::span(both).first(1)).shape, Shape{24});
  const std::array scalar = {Shape{}};
  EXPECT_EQ(Loops(Shape{}, scalar).shape, Shape{1});
}

}  // namespace
}  // namespace vitrail::test
