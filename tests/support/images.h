// Images for tests: from golden tensors, and compared with them.
#pragma once

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::test {

// An image from a u8 tensor [height, width, 3].
inline io::Image to_image(const Tensor& pixels) {
  io::Image image(pixels.size(1), pixels.size(0));
  std::ranges::copy(pixels.contiguous().span<std::uint8_t>(), image.pixels.begin());
  return image;
}

inline void expect_same_pixels(const io::Image& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.height, expected.size(0)) << what;
  ASSERT_EQ(actual.width, expected.size(1)) << what;
  EXPECT_TRUE(std::ranges::equal(actual.pixels, expected.contiguous().span<std::uint8_t>())) << what;
}

// An image of noise, different for each `stream`.
inline io::Image noise_image(std::int64_t width, std::int64_t height, std::uint64_t stream = 0) {
  io::Image image(width, height);
  Draws draws(Philox(20261121, stream));
  for (std::uint8_t& sample : image.pixels) {
    sample = static_cast<std::uint8_t>(draws());
  }
  return image;
}

}  // namespace vitrail::test
