#include "vitrail/tensor/random.h"

#include <cmath>
#include <numbers>

#include "vitrail/tensor/error.h"

namespace vitrail {

std::array<std::uint32_t, 4> Philox::block(std::uint64_t block) const {
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                    static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)};
  auto key0 = static_cast<std::uint32_t>(seed_);
  auto key1 = static_cast<std::uint32_t>(seed_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

float Philox::normal(std::uint64_t index) const {
  const double u = (static_cast<double>(word(2 * index)) + 1.0) * 0x1p-32;  // (0, 1]
  const double v = static_cast<double>(word(2 * index + 1)) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

double Draws::uniform(double low, double high) {
  // These are two statements because the order in which the operands of one expression are evaluated is unspecified.
  const std::uint64_t first = (*this)();
  const std::uint64_t second = (*this)();
  const std::uint64_t bits = (first << 21) | (second >> 11);  // 53 bits
  return low + (high - low) * static_cast<double>(bits) * 0x1p-53;
}

std::int64_t Draws::integer(std::int64_t low, std::int64_t high) {
  check(low < high, "no integer lies in [{}, {})", low, high);
  const auto range = static_cast<std::uint64_t>(high - low);
  // Rejection sampling keeps the result uniform: it drops the words at or above the largest multiple of the range.
  const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % range;
  for (;;) {
    const std::uint64_t first = (*this)();
    const std::uint64_t bits = (first << 32) | (*this)();
    if (bits < limit) {
      return low + static_cast<std::int64_t>(bits % range);
    }
  }
}

double Draws::normal() {
  const double u = 1.0 - uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

// Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; a shape below 1 is reduced to shape + 1
// as they propose.
double Draws::gamma(double shape) {
  if (shape < 1.0) {
    const double boosted = gamma(shape + 1.0);
    return boosted * std::pow(1.0 - uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3.0);
    if (v > 0.0 && std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

double Draws::beta(double a, double b) {
  check(a > 0 && b > 0, "Beta({}, {}) is not defined: both must be positive", a, b);
  const double x = gamma(a);
  const double y = gamma(b);
  return x + y > 0 ? x / (x + y) : 0.5;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return h;
}

}  // namespace vitrail
