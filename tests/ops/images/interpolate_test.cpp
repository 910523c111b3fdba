#include "vitrail/ops/images/interpolate.h"

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

using ops::interpolate;
using ops::Interpolation;

void expect_golden_interpolation(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/interpolate.safetensors");
  int i = 0;
  for (;; ++i) {
    const Case one(file, "interpolate." + std::to_string(i));
    if (!one.exists()) {
      break;
    }
    const auto size = one.numbers("size");
    const auto mode = one.numbers("mode");
    expect_golden(one, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
      return interpolate(in.at("x"), size[0], size[1], static_cast<Interpolation>(mode[0]), mode[1] != 0, mode[2] != 0);
    });
  }
  EXPECT_EQ(i, 72);
}

TEST(Interpolate, GivesPyTorchsValuesAndGradients) { expect_golden_interpolation(DType::f32, 2e-6); }
TEST(Interpolate, GivesThemInBf16) { expect_golden_interpolation(DType::bf16, 2e-2); }

TEST(Interpolate, HasTheGradientsOfFiniteDifferences) {
  for (const Interpolation mode : {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic}) {
    check_gradients([&](const std::vector<Tensor>& in) { return interpolate(in[0], 5, 3, mode); },
                    {random_tensor({2, 3, 4, 7})});
  }
}

// Positions as they lie in a model: [1, N, D] seen as [1, D, H, W].
TEST(Interpolate, TakesManyPlanesAndStridedInput) {
  const Tensor positions = random_tensor({1, 14, 14, 192});
  const Tensor planes = positions.permute({0, 3, 1, 2});
  const Tensor all = interpolate(planes, 9, 17, Interpolation::bicubic, true);
  for (const std::int64_t plane : {0, 100, 191}) {
    EXPECT_EQ(all.narrow(1, plane, 1).values(),
              interpolate(planes.narrow(1, plane, 1), 9, 17, Interpolation::bicubic, true).values());
  }
  EXPECT_EQ(interpolate(Tensor::empty({0, 3, 4, 4}), 2, 2, Interpolation::bilinear).shape(), (Shape{0, 3, 2, 2}));
}

TEST(Interpolate, SaysWhatIsWrong) {
  const Tensor x = random_tensor({1, 3, 4, 4});
  EXPECT_EQ(error_of([&] { interpolate(x, 0, 2, Interpolation::bilinear); }),
            "interpolate() needs images [B, C, H, W] and a size that are not empty, not [1, 3, 4, 4] to 0 x 2");
  EXPECT_EQ(error_of([&] { interpolate(x, 2, 2, Interpolation::nearest, true); }),
            "interpolate() has neither antialias nor align_corners with nearest");
}

}  // namespace
}  // namespace vitrail::test
