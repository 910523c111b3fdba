/// \file
/// The progress of a run for the user: a bar on a terminal, plain lines anywhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace vitrail::train {

/// Writes progress to a stream. On a terminal, the line of the current phase is redrawn in place, at most ten times a
/// second. Elsewhere no control characters are written, but only the lines of line() and, each time that another
/// `interval` units are done, the text of the phase. What cannot be written is dropped; unless the reader has gone, the
/// stream's error (std::ferror) tells of it in the end.
class Progress {
 public:
  explicit Progress(std::FILE* stream);
  Progress(std::FILE* stream, bool terminal);  ///< `terminal`: whether to write as on a terminal

  void set_interval(std::int64_t interval) { interval_ = interval; }

  /// Begins a phase of `total` units, such as "epoch 3/20". `done` of them had been done before (a resumed epoch).
  void begin(std::string_view title, std::int64_t total, std::int64_t done = 0);
  /// Reports that `done` units are done. `details` ("loss 1.234, lr 9.8e-04, 812 images/s") are shown beside the bar.
  /// `remaining_after` are the units of later phases, which count in the time left.
  void update(std::int64_t done, std::string_view details, std::int64_t remaining_after = 0);
  /// Removes the bar.
  void end();
  /// Prints a line that stays, above the bar if there is one.
  void line(std::string_view text);

  bool terminal() const { return terminal_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(std::string_view details, std::int64_t remaining_after) const;
  double seconds_left(std::int64_t remaining_after) const;
  void clear();
  void put(std::string_view text);

  std::FILE* stream_;
  bool terminal_;
  bool drawn_ = false;
  std::int64_t interval_ = 50;
  std::string title_;
  std::int64_t total_ = 0;
  std::int64_t first_ = 0;
  std::int64_t done_ = 0;
  Clock::time_point began_;
  Clock::time_point drawn_at_;
};

/// A duration as text: "12 s", "3 min 05 s", "2 h 10 min".
std::string duration_text(double seconds);

}  // namespace vitrail::train
