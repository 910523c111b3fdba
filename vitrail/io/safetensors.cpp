#include "vitrail/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_header = 100'000'000;  // bytes; the limit of the reference implementation
constexpr std::size_t alignment = 64;            // bytes; of the data in files that we write

// The fields of one tensor's object in the header.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offsets;
  Shape checked;  // the shape, once it has been checked
};

// Takes the header event by event from the JSON parser. No document is built in memory, so neither nesting nor repeated
// keys cost anything, and each misplaced value has its own error message.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& source) : source_(source) {}

  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = in_metadata_ ? Place::metadata : Place::entry;
      seen_.clear();
    } else {
      misplaced("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        check(seen_.contains(field), "{}: the tensor '{}' has no '{}' in the header", source_,
              shown(entries.back().name), field);
      }
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool key(std::string& text) override {
    if (place_ == Place::top) {
      check(names_.insert(text).second, "{}: the header has the name '{}' twice", source_, shown(text));
      in_metadata_ = text == "__metadata__";
      if (!in_metadata_) {
        entries.emplace_back().name = text;
      }
    } else {
      check(seen_.insert(text).second, "{}: {} has the key '{}' twice", source_, whose(), shown(text));
      check(place_ == Place::metadata || text == "dtype" || text == "shape" || text == "data_offsets",
            "{}: {} has the unknown key '{}' in the header", source_, whose(), shown(text));
    }
    key_ = text;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      metadata[key_] = text;
    } else if (place_ == Place::entry && key_ == "dtype") {
      entries.back().dtype = text;
    } else {
      misplaced("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::entry || key_ == "dtype") {
      misplaced("a list");
    }
    place_ = Place::list;
    return true;
  }

  bool end_array() override {
    place_ = Place::entry;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::list) {
      misplaced("a number");
    }
    auto& list = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    // No list of a valid file is longer than this, and a malicious one must not fill the memory.
    check(list.size() < 64, "{}: '{}' of {} is too long a list", source_, key_, whose());
    list.push_back(value);
    return true;
  }

  bool number_integer(std::int64_t value) override {
    fail("{}: '{}' of {} holds the negative number {}", source_, shown(key_), whose(), value);
  }
  bool number_float(double, const std::string& text) override {
    fail("{}: '{}' of {} holds {}, which is not a whole number of 64 bits", source_, shown(key_), whose(), shown(text));
  }
  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("a truth value"); }
  bool binary(Json::binary_t&) override { misplaced("binary data"); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fail("{}: the header is not valid JSON: {}", source_, json_reason(error.what()));
  }

 private:
  enum class Place { outside, top, entry, list, metadata };

  std::string whose() const {
    return in_metadata_ ? "'__metadata__'" : fmt::format("the tensor '{}'", shown(entries.back().name));
  }

  [[noreturn]] void misplaced(std::string_view what) const {
    switch (place_) {
      case Place::outside:
        fail("{}: the header must be a JSON object, but is {}", source_, what);
      case Place::top:
        fail("{}: the header's '{}' must be an object, but is {}", source_, shown(key_), what);
      case Place::metadata:
        fail("{}: '{}' in '__metadata__' must be a string, but is {}", source_, shown(key_), what);
      case Place::list:
        fail("{}: '{}' of {} must hold whole numbers only, but holds {}", source_, key_, whose(), what);
      case Place::entry:
        break;
    }
    fail("{}: '{}' of {} must be {}, but is {}", source_, key_, whose(), key_ == "dtype" ? "a string" : "a list", what);
  }

  const std::string& source_;
  Place place_ = Place::outside;
  bool in_metadata_ = false;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> seen_;  // keys of the current object so far
};

// Checks that the entry's shape and dtype take exactly the bytes between its offsets, and returns the shape.
Shape shape_of(const HeaderEntry& entry, std::size_t data_size, const std::string& source) {
  const std::string name = shown(entry.name);
  const std::optional<unsigned> bits_each = stored_bits(entry.dtype);
  check(bits_each.has_value(), "{}: the tensor '{}' has the unknown dtype '{}'", source, name, shown(entry.dtype));
  check(entry.offsets.size() == 2, "{}: 'data_offsets' of the tensor '{}' must be two numbers, not {}", source, name,
        entry.offsets.size());
  const std::uint64_t begin = entry.offsets[0];
  const std::uint64_t end = entry.offsets[1];
  check(begin <= end, "{}: the tensor '{}' ends (byte {}) before it begins (byte {})", source, name, end, begin);
  check(end <= data_size, "{}: the tensor '{}' ends at byte {}, but the file holds {} bytes of data", source, name, end,
        data_size);
  const Shape shape = checked_shape(entry.shape, *bits_each, name, source);
  const std::uint64_t bits = static_cast<std::uint64_t>(shape.numel()) * *bits_each;
  check(bits % 8 == 0 && bits / 8 == end - begin,
        "{}: the tensor '{}' of shape [{}] and dtype {} takes {} bytes, but {} to {} are {}", source, name,
        fmt::join(entry.shape, ", "), entry.dtype, (bits + 7) / 8, begin, end, end - begin);
  return shape;
}

// Checks that each byte of the data belongs to exactly one tensor: `entries`, ordered by offset, lie side by side from
// the first byte to the last.
void check_tiling(const std::vector<HeaderEntry>& entries, std::size_t data_size, const std::string& source) {
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t begin = entries[i].offsets[0];
    check(begin >= next, "{}: the tensors '{}' and '{}' overlap", source, i > 0 ? shown(entries[i - 1].name) : "",
          shown(entries[i].name));
    check(begin == next, "{}: bytes {} to {} of the data belong to no tensor", source, next, begin);
    next = entries[i].offsets[1];
  }
  check(next == data_size, "{}: bytes {} to {} of the data belong to no tensor", source, next, data_size);
}

}  // namespace

Safetensors Safetensors::open(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  Safetensors result = parse(file->bytes(), file, path.string());
  result.owned_by_file(file);
  return result;
}

Safetensors Safetensors::parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner,
                               std::string name) {
  check(bytes.size() >= 8, "{}: not a safetensors file: {} bytes are less than the 8 that hold the header's length",
        name, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  check(length <= max_header, "{}: not a safetensors file: a header of {} bytes is more than {}", name, length,
        max_header);
  check(length <= bytes.size() - 8, "{}: cut short: the header should have {} bytes, but only {} follow its length",
        name, length, bytes.size() - 8);
  const std::span<const std::uint8_t> header = bytes.subspan(8, length);
  check(!header.empty() && header[0] == '{', "{}: not a safetensors file: the header must begin with '{{'", name);

  // The parser would take a NUL byte for the end of the header, and what follows would go unseen.
  check(std::find(header.begin(), header.end(), std::uint8_t{0}) == header.end(),
        "{}: the header is not valid JSON: it has a NUL byte", name);

  HeaderReader reader(name);
  Json::sax_parse(header.begin(), header.end(), &reader);

  const std::span<const std::uint8_t> data = bytes.subspan(8 + length);
  for (HeaderEntry& entry : reader.entries) {
    entry.checked = shape_of(entry, data.size(), name);
  }
  std::stable_sort(reader.entries.begin(), reader.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) { return a.offsets < b.offsets; });
  check_tiling(reader.entries, data.size(), name);
  Safetensors result(std::move(name));
  result.metadata_ = std::move(reader.metadata);
  for (HeaderEntry& entry : reader.entries) {
    result.add(std::move(entry.name), {std::move(entry.dtype), entry.checked, entry.checked.contiguous_strides(),
                                       data.data() + entry.offsets[0], owner});
  }
  return result;
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  // The widest elements come first, as in the reference implementation, so that each tensor is aligned to its element.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "cannot write '{}': the tensor '{}' is undefined", path.string(), name);
    check(name != "__metadata__" && names.insert(name).second, "cannot write '{}': the tensor's name '{}' is {}",
          path.string(), name, name == "__metadata__" ? "reserved" : "there twice");
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].second.dtype()) > size_of(tensors[b].second.dtype());
  });

  std::string header = "{";
  try {
    if (!metadata.empty()) {
      header += R"("__metadata__":)" + Json(metadata).dump();
    }
    std::size_t offset = 0;
    for (const std::size_t i : order) {
      const auto& [name, tensor] = tensors[i];
      const std::size_t end = offset + tensor.bytes();
      header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            header.size() > 1 ? "," : "", Json(name).dump(), stored_name(tensor.dtype()),
                            fmt::join(tensor.shape().begin(), tensor.shape().end(), ","), offset, end);
      offset = end;
    }
  } catch (const Json::exception&) {
    fail("cannot write '{}': a name or its metadata is not valid UTF-8", path.string());
  }
  header += "}";
  header.resize((8 + header.size() + alignment - 1) / alignment * alignment - 8, ' ');
  check(header.size() <= max_header, "cannot write '{}': the names of {} tensors make too large a header",
        path.string(), tensors.size());

  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(&length, sizeof(length));
  file.write(header.data(), header.size());
  for (const std::size_t i : order) {
    const Tensor dense = tensors[i].second.contiguous();
    file.write(dense.raw(), dense.bytes());
  }
  file.commit();
}

}  // namespace vitrail::io
