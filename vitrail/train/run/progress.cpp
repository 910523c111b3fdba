#include "vitrail/train/run/progress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vitrail/tensor/clock.h"

namespace vitrail::train {
namespace {

constexpr int bar_width = 24;
constexpr int least_bar_width = 6;
constexpr std::chrono::milliseconds redraw_every{100};

// The number of columns of the terminal behind `stream`; 100 if it is not known.
std::size_t terminal_width(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

// Whether a line can be drawn anew, which a terminal that is called dumb has no means for.
bool is_terminal(std::FILE* stream) {
  const char* const name = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (name == nullptr || std::string_view(name) != "dumb");
}

// A bar of whole and half blocks.
std::string blocks(double share, int width) {
  const int halves = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 2));
  std::string out;
  for (int i = 0; i < width; ++i) {
    out += halves >= 2 * i + 2 ? "━" : halves == 2 * i + 1 ? "╸" : " ";
  }
  return out;
}

// The first `columns` characters of a UTF-8 text.
std::string_view shorten(std::string_view text, std::size_t columns) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) >> 6) != 2;
    if (begins && columns-- == 0) {
      break;
    }
  }
  return text.substr(0, i);
}

}  // namespace

Progress::Progress(std::FILE* stream) : Progress(stream, is_terminal(stream)) {}

Progress::Progress(std::FILE* stream, bool terminal) : stream_(stream), terminal_(terminal) {}

void Progress::begin(std::string_view title, std::int64_t total, std::int64_t done) {
  end();
  title_ = title;
  total_ = total;
  first_ = done;
  done_ = done;
  began_ = Clock::now();
  drawn_at_ = {};
}

void Progress::update(std::int64_t done, std::string_view details, std::int64_t remaining_after) {
  done_ = done;
  if (terminal_) {
    const Clock::time_point now = Clock::now();
    if (now - drawn_at_ < redraw_every && done != total_) {
      return;
    }
    drawn_at_ = now;
    const std::string text = bar(details, remaining_after);
    put(fmt::format("\r{}\x1b[K", shorten(text, terminal_width(stream_) - 1)));
    drawn_ = true;
  } else if (interval_ > 0 && done % interval_ == 0) {
    put(fmt::format("{} [{}/{}] {}, {} left\n", title_, done, total_, details,
                    duration_text(seconds_left(remaining_after))));
  }
}

double Progress::seconds_left(std::int64_t remaining_after) const {
  const double passed = seconds_since(began_);
  const auto worked = static_cast<double>(std::max<std::int64_t>(done_ - first_, 1));
  return passed / worked * static_cast<double>(total_ - done_ + remaining_after);
}

std::string Progress::bar(std::string_view details, std::int64_t remaining_after) const {
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1;
  // In a narrow terminal the bar gives way to the share and to as much of the rest as there is room for.
  const std::string rest = fmt::format(" {:3.0f}%  {}  {} left", std::floor(100 * share), details,
                                       duration_text(seconds_left(remaining_after)));
  const auto room = static_cast<std::int64_t>(terminal_width(stream_)) - 2 - std::ssize(title_) - std::ssize(rest);
  const auto width = static_cast<int>(std::clamp<std::int64_t>(room, least_bar_width, bar_width));
  return fmt::format("{} {}{}", title_, blocks(share, width), rest);
}

void Progress::end() { clear(); }

void Progress::line(std::string_view text) {
  clear();
  put(fmt::format("{}\n", text));
  drawn_at_ = {};
}

void Progress::clear() {
  if (drawn_) {
    put("\r\x1b[K");
    drawn_ = false;
  }
}

void Progress::put(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream_) == text.size() && std::fflush(stream_) == 0;
  if (!written && errno == EPIPE) {
    std::clearerr(stream_);
  }
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace vitrail::train
