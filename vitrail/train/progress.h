// What a person sees while a run works: a bar on a terminal, plain lines anywhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace vitrail::train {

// Writes to a stream. On a terminal the line of the current phase is redrawn in place, at most ten times a second; else
// no control characters are written, and only line(), and a phase's text every `interval` updates.
class Progress {
 public:
  explicit Progress(std::FILE* stream);
  Progress(std::FILE* stream, bool terminal);  // as if it were one, or not

  void set_interval(std::int64_t interval) { interval_ = interval; }

  // A phase of `total` units begins: "epoch 3/20". `done` of them were done before (a resumed epoch).
  void begin(std::string_view title, std::int64_t total, std::int64_t done = 0);
  // `done` units are done now; `details` ("loss 1.234, lr 9.8e-04, 812 images/s") are shown beside the bar.
  // `remaining_after` units of later phases count for the time left.
  void update(std::int64_t done, std::string_view details, std::int64_t remaining_after = 0);
  // Takes the bar away.
  void end();
  // A lasting line, above the bar if there is one.
  void line(std::string_view text);

  bool terminal() const { return terminal_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(std::string_view details, std::int64_t remaining_after) const;
  double seconds_left(std::int64_t remaining_after) const;
  void clear();

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

// "12 s", "3 min 05 s", "2 h 10 min".
std::string duration_text(double seconds);

}  // namespace vitrail::train
