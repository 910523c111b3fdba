/// \file
/// Pickles of Python, read without running anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

enum class PickleKind { none, boolean, integer, long_integer, real, text, tuple, list, dict, global, call, persistent };

/// A value of a pickle. Calls are written down and not made: an object is the function that Python would have called,
/// and with what. Values point to each other and may do so in a circle.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  ///< of a boolean too
  double real = 0;
  std::string_view text = {};  ///< a text; a global's full name ("collections.OrderedDict"); a long integer's bytes
  /// Of a tuple or list its elements, of a dict keys and values in turn, of a call the function and the tuple of its
  /// arguments, of a persistent value its id.
  std::vector<const PickleValue*> items = {};
};

/// What a pickle holds. It refers to the memory that it was read from.
struct Pickle {
  std::deque<PickleValue> values;              ///< all of them
  const PickleValue* root = nullptr;           ///< the value itself
  std::vector<const PickleValue*> persistent;  ///< all persistent values, which stand for something outside
  std::size_t size = 0;                        ///< bytes read, up to the end of this pickle
};

/// Reads the pickle at the start of `bytes`, of the opcodes that `torch.load(weights_only=True)` takes (protocol 2).
/// An OrderedDict becomes a dict; attributes that are set on an object are dropped. Throws Error, naming `source` and
/// the opcode or global, for every other opcode and for a global that is not among `allowed` ("module.name"); and for a
/// pickle that is cut short, damaged or larger than 16 MiB.
Pickle read_pickle(std::span<const std::uint8_t> bytes, std::span<const std::string_view> allowed,
                   const std::string& source);

}  // namespace vitrail::io
