/// \file
/// Values as bytes for a message, and back.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

/// Puts values one behind the other. The ranks of a run have the same layout of memory: they run the same program.
class Packer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class T>
  void put_all(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void put_text(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void put_texts(const std::vector<std::string>& texts) {
    put(static_cast<std::uint64_t>(texts.size()));
    for (const std::string& text : texts) {
      put_text(text);
    }
  }
  void put_tensor(const Tensor& tensor) {
    const Tensor whole = tensor.contiguous();
    put(whole.dtype());
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < whole.rank(); ++i) {
      sizes.push_back(whole.size(i));
    }
    put_all(sizes);
    put_text({reinterpret_cast<const char*>(whole.raw()), whole.bytes()});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Takes values out again, in the order in which they were put in. Throws Error if there are fewer. `bytes` must
/// outlive it.
class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(1, sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_all() {
    const auto count = get<std::uint64_t>();
    const char* from = take(count, sizeof(T));
    std::vector<T> values(count);
    if (count > 0) {
      std::memcpy(values.data(), from, count * sizeof(T));
    }
    return values;
  }
  std::string get_text() {
    const auto size = get<std::uint64_t>();
    return {take(size, 1), size};
  }
  Tensor get_tensor() {
    const auto dtype = get<DType>();
    const auto sizes = get_all<std::int64_t>();
    const std::string values = get_text();
    const Tensor tensor = Tensor::empty(Shape(std::span(sizes)), dtype);
    check(values.size() == tensor.bytes(), "a rank has sent a tensor that is cut short: is it another version?");
    std::memcpy(tensor.raw(), values.data(), values.size());
    return tensor;
  }
  std::vector<std::string> get_texts() {
    std::vector<std::string> texts;
    for (auto left = get<std::uint64_t>(); left > 0; --left) {
      texts.push_back(get_text());
    }
    return texts;
  }

 private:
  const char* take(std::uint64_t count, std::size_t size) {
    check(count <= (bytes_.size() - at_) / size, "a rank has sent a message that is cut short: is it another version?");
    const char* from = bytes_.data() + at_;
    at_ += count * size;
    return from;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace vitrail::dist
