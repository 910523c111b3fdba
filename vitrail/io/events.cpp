#include "vitrail/io/events.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/host.h"

namespace vitrail::io {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so must the machine be");

constexpr std::size_t flush_at = 1 << 16;
constexpr std::size_t record_frame = 16;  // bytes: length 8, its checksum 4, the data's checksum 4

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    table[i] = crc;
  }
  return table;
}();

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// TFRecord's masked checksum: a rotated CRC plus a constant, since the CRC of data that contain their own CRC means
// little.
std::uint32_t masked_crc(std::string_view data) { return std::rotr(crc32c(bytes_of(data)), 15) + 0xa282ead8U; }

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
T value_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// Protobuf's wire format: a field is a key, `number << 3 | type`, and a value.
enum Wire : std::uint64_t { varint_type = 0, fixed64_type = 1, text_type = 2, fixed32_type = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80U);
  }
  return bytes + static_cast<char>(value);
}
std::string key(std::uint64_t number, Wire type) { return varint(number << 3 | type); }
std::string number_field(std::uint64_t number, std::int64_t value) {
  return value == 0 ? "" : key(number, varint_type) + varint(static_cast<std::uint64_t>(value));
}
std::string number_field(std::uint64_t number, double value) { return key(number, fixed64_type) + raw(value); }
std::string number_field(std::uint64_t number, float value) { return key(number, fixed32_type) + raw(value); }
std::string text_field(std::uint64_t number, std::string_view value) {
  return key(number, text_type) + varint(value.size()) + std::string(value);
}

// Removes a varint from the front of `bytes` and returns it, or nothing if it is malformed.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

// The step of an event (field 2), or nothing if the event is malformed.
std::optional<std::int64_t> step_of(std::string_view event) {
  std::int64_t step = 0;
  while (!event.empty()) {
    const std::optional<std::uint64_t> field = take_varint(event);
    if (!field) {
      return std::nullopt;
    }
    std::size_t length = 0;
    switch (*field & 7U) {
      case varint_type: {
        const std::optional<std::uint64_t> value = take_varint(event);
        if (!value) {
          return std::nullopt;
        }
        step = *field >> 3 == 2 ? static_cast<std::int64_t>(*value) : step;
        continue;
      }
      case fixed64_type:
        length = 8;
        break;
      case fixed32_type:
        length = 4;
        break;
      case text_type: {
        const std::optional<std::uint64_t> size = take_varint(event);
        length = size.value_or(SIZE_MAX);
        break;
      }
      default:
        return std::nullopt;
    }
    if (length > event.size()) {
      return std::nullopt;
    }
    event.remove_prefix(length);
  }
  return step;
}

// Number of bytes at the start of an event file that are intact records of steps up to `last_step`.
std::size_t kept_bytes(std::string_view file, std::int64_t last_step) {
  std::size_t kept = 0;
  while (file.size() - kept >= record_frame) {
    const std::string_view rest = file.substr(kept);
    const auto length = value_at<std::uint64_t>(rest, 0);
    if (length > rest.size() - record_frame || value_at<std::uint32_t>(rest, 8) != masked_crc(rest.substr(0, 8))) {
      break;
    }
    const std::string_view event = rest.substr(12, length);
    const std::optional<std::int64_t> step = step_of(event);
    if (value_at<std::uint32_t>(rest, 12 + length) != masked_crc(event) || !step || *step > last_step) {
      break;
    }
    kept += record_frame + length;
  }
  return kept;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// The newest event file of the folder, or the path of a new one.
fs::path event_file(const fs::path& folder) {
  fs::path newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.") && entry.is_regular_file()) {
      newest = std::max(newest, entry.path());
    }
  }
  if (!newest.empty()) {
    return newest;
  }
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<std::int64_t>(now()), host_name(),
                              static_cast<std::int64_t>(::getpid()));
}

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t byte : bytes) {
    crc = crc >> 8 ^ crc_table[(crc ^ byte) & 0xffU];
  }
  return ~crc;
}

EventWriter::EventWriter(const fs::path& folder, std::int64_t last_step) {
  std::size_t kept = 0;
  try {
    path_ = event_file(folder);
    kept = fs::exists(path_) ? kept_bytes(read_text(path_), last_step) : 0;
  } catch (const fs::filesystem_error& error) {
    fail_writing(folder, error.code().value());
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(kept)) != 0) {
    const int error = errno;
    ::close(descriptor_);
    fail_writing(path_, error);
  }
  if (kept == 0) {
    append(number_field(1, now()) + text_field(3, "brain.Event:2"));
  }
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error&) {
    // A destructor cannot report the error.
  }
  ::close(descriptor_);
}

void EventWriter::scalar(std::string_view tag, std::int64_t step, double value, std::optional<double> wall_time) {
  const std::string scalar = text_field(1, tag) + number_field(2, static_cast<float>(value));
  append(number_field(1, wall_time.value_or(now())) + number_field(2, step) + text_field(5, text_field(1, scalar)));
}

void EventWriter::append(std::string_view event) {
  const std::string length = raw(static_cast<std::uint64_t>(event.size()));
  buffer_ += length;
  buffer_ += raw(masked_crc(length));
  buffer_ += event;
  buffer_ += raw(masked_crc(event));
  if (buffer_.size() >= flush_at) {
    flush();
  }
}

void EventWriter::flush() {
  while (!buffer_.empty()) {
    const ssize_t written = ::write(descriptor_, buffer_.data(), buffer_.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      fail_writing(path_, written < 0 ? errno : ENOSPC);
    }
    buffer_.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace vitrail::io
