/// \file
/// Counter-based random numbers: a value depends on (seed, stream, index) alone.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace vitrail {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). The key is the seed and the
/// counter is (stream, index), so values can be computed in any order, on any thread, and more than once: dropout masks
/// need not be stored.
class Philox {
 public:
  Philox(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  /// The four 32-bit words of block `block`.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const;
  /// Word `index` of the stream (word i of block b is index 4 b + i).
  std::uint32_t word(std::uint64_t index) const { return block(index / 4)[index % 4]; }
  /// A number uniform in [0, 1), with 24 random bits.
  float uniform(std::uint64_t index) const { return static_cast<float>(word(index) >> 8) * 0x1p-24F; }
  /// A standard normal number, by the Box-Muller transform of words 2 i and 2 i + 1, where i is `index`.
  float normal(std::uint64_t index) const;

  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() const { return stream_; }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

/// A sequence of Philox streams: each call of next() returns a new one. Two RandomStreams with equal seed and position
/// return the same streams.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed = 0, std::uint64_t position = 0) : seed_(seed), position_(position) {}
  Philox next() { return {seed_, position_++}; }

 private:
  std::uint64_t seed_;
  std::uint64_t position_;
};

/// Draws the values of one Philox stream in order, with the interface of a standard library generator.
class Draws {
 public:
  using result_type = std::uint32_t;
  explicit Draws(Philox philox) : philox_(philox) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffffU; }
  result_type operator()() { return philox_.word(index_++); }
  /// A number uniform in [low, high).
  double uniform(double low = 0, double high = 1);
  /// An integer uniform in low … high - 1; Error unless low < high.
  std::int64_t integer(std::int64_t low, std::int64_t high);
  double normal();
  /// A draw from Beta(a, b), as x / (x + y) of two gamma draws; Error unless a and b are positive.
  double beta(double a, double b);
  double gamma(double shape);  ///< a draw from Gamma(shape, 1), shape > 0

 private:
  Philox philox_;
  std::uint64_t index_ = 0;
};

/// A 64-bit hash of two numbers (splitmix64), for seeds and stream numbers.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);
/// A 64-bit hash of a text (FNV-1a), for seeds and stream numbers.
std::uint64_t hash(std::string_view text);

}  // namespace vitrail
