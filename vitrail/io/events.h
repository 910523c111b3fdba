// TensorBoard's event files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vitrail::io {

// Appends scalars to a folder's event file, "events.out.tfevents.SECONDS.HOST.PID", which TensorBoard shows as a run: a
// sequence of TFRecords (length, masked CRC-32C, data, masked CRC-32C), each a protobuf message tensorflow.Event.
// https://github.com/tensorflow/tensorboard (tensorboard/compat/proto/event.proto, summary.proto)
class EventWriter {
 public:
  // Goes on with the newest event file in `folder`, or begins one. Of an old file everything stays up to the first
  // record of a step after `last_step` (a resumed run does those steps again) or the first that a crash left broken.
  explicit EventWriter(const std::filesystem::path& folder,
                       std::int64_t last_step = std::numeric_limits<std::int64_t>::max());
  ~EventWriter();  // flushes; what cannot be written is lost silently: call flush() to know
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // `wall_time` in seconds since 1970; the default is now.
  void scalar(std::string_view tag, std::int64_t step, double value, std::optional<double> wall_time = std::nullopt);
  // Writes what is buffered to the file, so that TensorBoard sees it. Error names the file and the system's reason.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string buffer_;
};

// CRC-32C (Castagnoli: reflected polynomial 0x82f63b78), as RFC 3720 uses it.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

}  // namespace vitrail::io
