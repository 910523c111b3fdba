/// \file
/// Writing of TensorBoard's event files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vitrail::io {

/// Appends scalars to the event file of a folder, `events.out.tfevents.SECONDS.HOST.PID`, which TensorBoard shows as a
/// run. The file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data),
/// and the data of each are one protobuf message tensorflow.Event. Source: https://github.com/tensorflow/tensorboard
/// (tensorboard/compat/proto/event.proto, summary.proto).
class EventWriter {
 public:
  /// Continues the newest event file in `folder`, or begins one. An existing file is cut in front of the first record
  /// whose step is after `last_step` (a resumed run repeats those steps) or that a crash left damaged. Throws Error if
  /// the file cannot be read or written.
  explicit EventWriter(const std::filesystem::path& folder,
                       std::int64_t last_step = std::numeric_limits<std::int64_t>::max());
  ~EventWriter();  ///< flushes, but ignores errors: call flush() to see them
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Adds the value of `tag` at `step`. `wall_time` is in seconds since 1970; the default is now. Values are buffered.
  void scalar(std::string_view tag, std::int64_t step, double value, std::optional<double> wall_time = std::nullopt);
  /// Writes the buffered records to the file, so that TensorBoard sees them. Throws Error, naming the file and the
  /// system's reason, if that fails.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string buffer_;
};

/// The CRC-32C checksum of `bytes` (Castagnoli: reflected polynomial 0x82f63b78), as in RFC 3720.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

}  // namespace vitrail::io
