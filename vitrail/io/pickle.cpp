#include "vitrail/io/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

constexpr std::size_t max_pickle = std::size_t{16} << 20;  // bytes; a tensor takes about 200
constexpr std::string_view ordered_dict = "collections.OrderedDict";

// The opcodes that are refused, by the names of Python's pickle module.
constexpr std::pair<std::uint8_t, std::string_view> refused_opcodes[] = {
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'V', "UNICODE"},
    {'d', "DICT"},
    {'g', "GET"},
    {'i', "INST"},
    {'l', "LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4"},
    {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

// Takes a pickle opcode by opcode, on a stack of values.
class PickleReader {
 public:
  PickleReader(std::span<const std::uint8_t> bytes, std::span<const std::string_view> allowed,
               const std::string& source)
      : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), allowed_(allowed), source_(source) {}

  Pickle read() {
    const std::size_t all = rest_.size();
    while (pickle_.root == nullptr) {
      check(all - rest_.size() <= max_pickle, "{}: a pickle of more than {} bytes", source_, max_pickle);
      step(static_cast<std::uint8_t>(take(1)[0]));
    }
    pickle_.size = all - rest_.size();
    return std::move(pickle_);
  }

 private:
  using Items = std::vector<const PickleValue*>;

  void step(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        take(1);
        return;
      case '.':  // STOP
        check(stack_.size() == 1 && marks_.empty(), "{}: the pickle is damaged: it ends with {} values", source_,
              stack_.size());
        pickle_.root = stack_.back();
        return;
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return;
      case 'N':  // NONE
        push({.kind = PickleKind::none});
        return;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push({.kind = PickleKind::boolean, .integer = opcode == 0x88 ? 1 : 0});
        return;
      case 'J':  // BININT
        push({.kind = PickleKind::integer, .integer = number<std::int32_t>()});
        return;
      case 'K':  // BININT1
        push({.kind = PickleKind::integer, .integer = number<std::uint8_t>()});
        return;
      case 'M':  // BININT2
        push({.kind = PickleKind::integer, .integer = number<std::uint16_t>()});
        return;
      case 0x8a:  // LONG1
        push_long(take(number<std::uint8_t>()));
        return;
      case 'G':  // BINFLOAT, the one number whose first byte is the highest
        push({.kind = PickleKind::real, .real = std::bit_cast<double>(__builtin_bswap64(number<std::uint64_t>()))});
        return;
      case 'X':  // BINUNICODE
        push({.kind = PickleKind::text, .text = take(number<std::uint32_t>())});
        return;
      case 'U':  // SHORT_BINSTRING
        push({.kind = PickleKind::text, .text = take(number<std::uint8_t>())});
        return;
      case 'q':  // BINPUT
        memo_[number<std::uint8_t>()] = top();
        return;
      case 'r':  // LONG_BINPUT
        memo_[number<std::uint32_t>()] = top();
        return;
      case 'h':  // BINGET
        recall(number<std::uint8_t>());
        return;
      case 'j':  // LONG_BINGET
        recall(number<std::uint32_t>());
        return;
      default:
        build(opcode);
    }
  }

  // The opcodes that make a value of others, or add to one.
  void build(std::uint8_t opcode) {
    switch (opcode) {
      case ']':  // EMPTY_LIST
        push({.kind = PickleKind::list});
        return;
      case '}':  // EMPTY_DICT
        push({.kind = PickleKind::dict});
        return;
      case ')':  // EMPTY_TUPLE
        push({.kind = PickleKind::tuple});
        return;
      case 't':  // TUPLE
        push({.kind = PickleKind::tuple, .items = pop_to_mark()});
        return;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        push({.kind = PickleKind::tuple, .items = pop(opcode - 0x84U)});
        return;
      case 'a':  // APPEND
        extend(PickleKind::list, pop(1));
        return;
      case 'e':  // APPENDS
        extend(PickleKind::list, pop_to_mark());
        return;
      case 's':  // SETITEM
        extend(PickleKind::dict, pop(2));
        return;
      case 'u':  // SETITEMS
        extend(PickleKind::dict, pop_to_mark());
        return;
      case 'c':  // GLOBAL
        push_global();
        return;
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        push_call(pop(2));
        return;
      case 'b':  // BUILD: attributes, which no value here has
        pop(1);
        check(top()->kind == PickleKind::dict || top()->kind == PickleKind::call,
              "{}: the pickle is damaged: attributes of what is no object", source_);
        return;
      case 'Q':  // BINPERSID
        push({.kind = PickleKind::persistent, .items = pop(1)});
        pickle_.persistent.push_back(stack_.back());
        return;
      default:
        refuse(opcode);
    }
  }

  [[noreturn]] void refuse(std::uint8_t opcode) const {
    const auto* known = std::find_if(std::begin(refused_opcodes), std::end(refused_opcodes),
                                     [&](const auto& entry) { return entry.first == opcode; });
    check(known != std::end(refused_opcodes), "{}: the pickle is damaged: there is no opcode {:#04x}", source_, opcode);
    fail(
        "{}: the pickle has the opcode {} ({:#04x}), which no checkpoint of torch.save needs (its pickle_protocol is "
        "2)",
        source_, known->second, opcode);
  }

  std::string_view take(std::size_t count) {
    check(count <= rest_.size(), "{}: the pickle is cut short", source_);
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  void push(PickleValue value) {
    pickle_.values.push_back(std::move(value));
    stack_.push_back(&pickle_.values.back());
  }

  // The bytes of a number in two's complement, the lowest first.
  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(std::int64_t)) {
      push({.kind = PickleKind::long_integer, .text = bytes});
      return;
    }
    std::int64_t value = !bytes.empty() && static_cast<std::int8_t>(bytes.back()) < 0 ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push({.kind = PickleKind::integer, .integer = value});
  }

  void push_global() {
    const std::string_view module = line();
    const std::string name = fmt::format("{}.{}", module, line());
    const auto allowed = std::find(allowed_.begin(), allowed_.end(), name);
    check(allowed != allowed_.end(),
          "{}: the pickle asks for Python's {}, which a checkpoint of tensors does not need: nothing of it was run",
          source_, as_utf8(shown(name)));
    push({.kind = PickleKind::global, .text = *allowed});
  }

  std::string_view line() {
    const std::size_t end = rest_.find('\n');
    check(end != std::string_view::npos, "{}: the pickle is cut short", source_);
    const std::string_view text = take(end);
    take(1);
    return text;
  }

  void push_call(Items function_and_arguments) {
    const PickleValue& function = *function_and_arguments[0];
    const PickleValue& arguments = *function_and_arguments[1];
    check(function.kind == PickleKind::global && arguments.kind == PickleKind::tuple,
          "{}: the pickle is damaged: a call of what is no function", source_);
    if (function.text == ordered_dict) {
      check(arguments.items.empty(), "{}: the pickle makes an OrderedDict of arguments, which is not supported",
            source_);
      push({.kind = PickleKind::dict});
      return;
    }
    push({.kind = PickleKind::call, .items = std::move(function_and_arguments)});
  }

  // Adds items to the list or dict on top.
  void extend(PickleKind kind, const Items& items) {
    PickleValue* value = top();
    check(value->kind == kind && (kind == PickleKind::list || items.size() % 2 == 0),
          "{}: the pickle is damaged: items for what is no {}", source_, kind == PickleKind::list ? "list" : "dict");
    value->items.insert(value->items.end(), items.begin(), items.end());
  }

  void recall(std::uint32_t index) {
    const auto found = memo_.find(index);
    check(found != memo_.end(), "{}: the pickle is damaged: it remembers nothing as number {}", source_, index);
    stack_.push_back(found->second);
  }

  // Values above the last mark are there for the opcode that pops it.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleValue* top() const {
    check(stack_.size() > floor(), "{}: the pickle is damaged: a value is missing", source_);
    return stack_.back();
  }

  Items pop(std::size_t count) {
    check(stack_.size() - floor() >= count, "{}: the pickle is damaged: a value is missing", source_);
    const Items items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  Items pop_to_mark() {
    check(!marks_.empty(), "{}: the pickle is damaged: a mark is missing", source_);
    Items items = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  std::string_view rest_;
  std::span<const std::string_view> allowed_;
  const std::string& source_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::uint8_t> bytes, std::span<const std::string_view> allowed,
                   const std::string& source) {
  return PickleReader(bytes, allowed, source).read();
}

}  // namespace vitrail::io
