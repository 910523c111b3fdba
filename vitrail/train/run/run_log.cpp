#include "vitrail/train/run/run_log.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/curves.h"

namespace vitrail::train {
namespace {

constexpr const char* way_out = "put it back, or begin a new run from the model in last/";

std::string system_reason() { return std::generic_category().message(errno); }

}  // namespace

RunLock::RunLock(std::filesystem::path folder, bool fresh) : folder_(std::move(folder)) {
  const std::filesystem::path path = folder_ / "metrics.jsonl";
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (fresh ? O_CREAT : 0), 0666);
  check(file_ >= 0 || errno != ENOENT, "'{}' is gone, with the history of the run: {}", path.string(), way_out);
  check(file_ >= 0, "cannot write '{}': {}", path.string(), system_reason());
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    fail("another process is training in '{}': wait for it or stop it", folder_.string());
  }
}

RunLock::~RunLock() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

RunLog::RunLog(RunLock lock, std::int64_t keep, RecordKind kind)
    : lock_(std::move(lock)), kind_(std::move(kind)), length_(keep) {
  const std::filesystem::path path = lock_.folder() / "metrics.jsonl";
  const std::int64_t size = ::lseek(lock_.file(), 0, SEEK_END);
  check(size >= keep, "'{}' is shorter ({} bytes) than when the checkpoint was saved ({} bytes): {}", path.string(),
        size, keep, way_out);
  check(::ftruncate(lock_.file(), keep) == 0 && ::lseek(lock_.file(), keep, SEEK_SET) == keep, "cannot write '{}': {}",
        path.string(), system_reason());
  history_ = read_history(path);
  events_.emplace(lock_.folder(), history_.steps.empty() ? 0 : history_.steps.back().step);
}

void RunLog::append(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(lock_.file(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      const std::string reason = system_reason();
      // Part of a line is not valid JSON, so it is cut off again.
      [[maybe_unused]] const int cut = ::ftruncate(lock_.file(), length_);
      fail("cannot write '{}': {}", (lock_.folder() / "metrics.jsonl").string(), reason);
    }
    done += static_cast<std::size_t>(written);
  }
  length_ += static_cast<std::int64_t>(text.size());
}

void RunLog::add(const StepRecord& record) {
  append(to_json(record, kind_.units));
  events_->scalar("train/loss", record.step, record.loss);
  events_->scalar("train/lr", record.step, record.lr);
  events_->scalar(fmt::format("train/{}{}", kind_.units, rate_ending), record.step, record.rate);
  if (record.grad_norm) {
    events_->scalar("train/grad_norm", record.step, *record.grad_norm);
  }
  history_.steps.push_back(record);
}

void RunLog::add(const EvaluationRecord& record) {
  append(to_json(record));
  const std::string group = record.ema ? "evaluation_ema/" : "evaluation/";
  for (const Figure& figure : record.figures) {
    events_->scalar(group + figure.name, record.step, figure.value);
  }
  history_.evaluations.push_back(record);
}

std::int64_t RunLog::commit(double steps_per_epoch) {
  check(::fsync(lock_.file()) == 0 || errno == EINVAL, "cannot write '{}': {}",
        (lock_.folder() / "metrics.jsonl").string(), system_reason());
  events_->flush();
  if (!history_.steps.empty()) {
    io::write_atomically(lock_.folder() / "curves.svg", curves_svg(history_, kind_, steps_per_epoch));
  }
  return length_;
}

}  // namespace vitrail::train
