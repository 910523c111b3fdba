// What the tests share: golden values from the reference implementations, comparison, and gradients by finite
// differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "vitrail/io/safetensors.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::test {

// A file of tests/golden, made by a script of tools/golden: golden("ops/norm.safetensors").
inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(VITRAIL_SOURCE_DIR) / "tests" / "golden" / name;
}
inline io::Safetensors golden(const std::string& name) { return io::Safetensors::open(golden_path(name)); }

// A new empty folder that is removed with all that is in it at the end of its life.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrail-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The largest difference of two tensors over the largest size of the expected one. Any dtypes; shapes must agree.
inline double relative_error(const Tensor& actual, const Tensor& expected) {
  if (!actual.defined() || !expected.defined() || !(actual.shape() == expected.shape())) {
    return INFINITY;
  }
  const std::vector<float> a = actual.values();
  const std::vector<float> e = expected.values();
  double difference = 0;
  double size = 1e-12;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(e[i]));
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
    size = std::max(size, std::abs(static_cast<double>(e[i])));
  }
  return difference / size;
}

// max |actual - expected| <= tolerance · max |expected|.
inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what = "") {
  ASSERT_TRUE(actual.defined()) << what << ": undefined";
  ASSERT_EQ(actual.shape().str(), expected.shape().str()) << what;
  EXPECT_LE(relative_error(actual, expected), tolerance) << what;
}

// Standard normal values, different for each `stream`.
inline Tensor random_tensor(const Shape& shape, std::uint64_t stream = 0, float scale = 1.0F) {
  const Philox philox(20261121, stream);
  Tensor result = Tensor::empty(shape);
  float* values = result.data<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    values[i] = scale * philox.normal(static_cast<std::uint64_t>(i));
  }
  return result;
}

// A copy in another floating dtype.
inline Tensor as(const Tensor& x, DType dtype) {
  const std::vector<float> values = x.values();
  if (dtype == DType::f32) {
    return Tensor::from(values, x.shape());
  }
  std::vector<bf16> rounded;
  for (const float value : values) {
    rounded.emplace_back(value);
  }
  return Tensor::from(rounded, x.shape());
}

}  // namespace vitrail::test
