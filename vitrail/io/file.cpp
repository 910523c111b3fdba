#include "vitrail/io/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vitrail/tensor/error.h"

namespace vitrail::io {

namespace fs = std::filesystem;

namespace {

std::atomic<int> waiting_for_input = 0;

std::string reason(int error) { return error == EISDIR ? "that is a folder" : std::generic_category().message(error); }

[[noreturn]] void fail_reading(const fs::path& path, int error) {
  fail("cannot read '{}': {}", path.string(), reason(error));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

template <class Container>
Container read_once(const fs::path& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    fail_reading(path, errno);
  }
  Container content;
  // The buffer is one byte larger than a regular file, so that the end of the file is found without growing it.
  content.resize(S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : 65536);
  std::size_t length = 0;
  while (true) {
    if (length == content.size()) {
      content.resize(content.size() * 2);
    }
    const ssize_t got = ::read(file.get(), content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_reading(path, errno);
    }
    if (got == 0) {
      break;
    }
    length += static_cast<std::size_t>(got);
  }
  content.resize(length);
  return content;
}

// What a pipe has given, which it gives to its first reader alone. Another pipe may get the number of one that is gone,
// but hardly its name too.
const std::string& content_of_pipe(const fs::path& path, const struct stat& status) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, dev_t, ino_t>, std::string> read;
  const std::scoped_lock lock(mutex);
  const auto [at, fresh] = read.try_emplace({path.native(), status.st_dev, status.st_ino});
  if (fresh) {
    try {
      at->second = read_once<std::string>(path);
    } catch (...) {
      read.erase(at);
      throw;
    }
  }
  return at->second;
}

template <class Container>
Container read_whole(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return read_once<Container>(path);
  }
  const WaitForInput wait;
  const std::string& content = content_of_pipe(path, status);
  return Container(content.begin(), content.end());
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Makes the content of a file, or the names in a folder, survive a loss of power. File systems that cannot sync report
// EINVAL, which is ignored.
void sync(const fs::path& path, int flags) {
  const Descriptor file(path, flags);
  if (!file || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    fail_writing(path, errno);
  }
}
void sync_file(const fs::path& path) { sync(path, O_RDONLY | O_NOFOLLOW); }
void sync_folder(const fs::path& path) { sync(path, O_RDONLY | O_DIRECTORY); }

// Follows a symbolic link to its target, so that writing to the link keeps it.
fs::path target_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_symlink(fs::symlink_status(path, ignored))) {
    return path;
  }
  const fs::path target = fs::weakly_canonical(path, ignored);
  return ignored ? path : target;
}

fs::path temporary_name(const fs::path& path) {
  return folder_of(path) / fmt::format(".{}.tmp", path.filename().string());
}

// Whether the open file or folder is the one of that name.
bool is_named(int descriptor, const fs::path& name) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

// Opens and locks what `open` makes under the temporary name. That name is fixed, so that a leftover of a killed
// process is used again; the lock keeps two writers apart. Between open and lock another writer may have renamed it to
// its final name. Then what is locked is no longer the temporary one, and the next attempt makes a new one.
template <class Open>
int open_locked(const fs::path& temporary, const fs::path& path, const Open& open) {
  while (true) {
    const int descriptor = open();
    if (descriptor < 0) {
      fail_writing(path, errno);
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      fail("cannot write '{}': another process is writing it", path.string());
    }
    if (is_named(descriptor, temporary)) {
      return descriptor;
    }
    ::close(descriptor);
  }
}

// Writes all bytes; returns the error number of the system, or 0.
int write_all(int descriptor, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, std::min<std::size_t>(bytes, 1U << 30));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return written < 0 ? errno : ENOSPC;
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace

void fail_writing(const fs::path& path, int error) { fail("cannot write '{}': {}", path.string(), reason(error)); }

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    lines.emplace_back(line);
  }
  return lines;
}

std::vector<std::string> read_lines(const fs::path& path) { return lines_of(without_byte_order_mark(read_text(path))); }

bool is_file(const fs::path& path) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  return fs::exists(status) && !fs::is_directory(status);
}

WaitForInput::WaitForInput() { ++waiting_for_input; }
WaitForInput::~WaitForInput() { --waiting_for_input; }
bool WaitForInput::any() { return waiting_for_input > 0; }

std::string read_standard_input() {
  const WaitForInput wait;
  const std::string all(std::istreambuf_iterator<char>(std::cin), {});
  return std::string(without_byte_order_mark(all));
}

bool next_input_line(std::string& line) {
  const WaitForInput wait;
  return static_cast<bool>(std::getline(std::cin, line));
}

FileStamp stamp_of(const fs::path& path) {
  FileStamp stamp;
  std::error_code error;
  if (const auto bytes = fs::file_size(path, error); !error) {
    stamp.bytes = static_cast<std::int64_t>(bytes);
  }
  if (const auto time = fs::last_write_time(path, error); !error) {
    stamp.modified = static_cast<std::int64_t>(time.time_since_epoch().count());
  }
  return stamp;
}

std::string read_text(const fs::path& path) { return read_whole<std::string>(path); }

std::vector<std::uint8_t> read_bytes(const fs::path& path) { return read_whole<std::vector<std::uint8_t>>(path); }

void write_atomically(const fs::path& path, std::span<const std::uint8_t> bytes) {
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void write_atomically(const fs::path& path, std::string_view text) {
  write_atomically(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

AtomicFile::AtomicFile(fs::path path) : path_(target_of(path)), temporary_(temporary_name(path_)) {
  check(path_.has_filename(), "cannot write '{}': that is not the name of a file", path_.string());
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  check(!exists || S_ISREG(status.st_mode), "cannot write '{}': {}", path_.string(),
        S_ISDIR(status.st_mode) ? "that is a folder" : "that is not a regular file");
  descriptor_ = open_locked(temporary_, path_, [this] {
    return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  });
  if (::ftruncate(descriptor_, 0) != 0) {
    const int error = errno;
    discard();
    fail_writing(path_, error);
  }
  if (exists) {
    ::fchmod(descriptor_, status.st_mode & 07777);  // the new file keeps the old permissions if it may
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ >= 0) {
    ::unlink(temporary_.c_str());  // before close(), which releases the lock
    ::close(std::exchange(descriptor_, -1));
  }
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  check(descriptor_ >= 0, "'{}' is already finished: nothing can be added to it", path_.string());
  if (const int error = write_all(descriptor_, data, bytes); error != 0) {
    discard();
    fail_writing(path_, error);
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "'{}' is already finished", path_.string());
  if ((::fsync(descriptor_) != 0 && errno != EINVAL) || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    discard();
    fail_writing(path_, error);
  }
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  check(!error && fs::is_directory(path, error), "cannot make the folder '{}': {}", path.string(),
        error ? error.message() : "a file is in its place");
}

namespace {

// Renames the folder `temporary` to `path`. What was at `path` before is at `temporary` afterwards, or gone.
void exchange(const fs::path& temporary, const fs::path& path) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) {
    return;  // for each series: x, and y below the first row
  }
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
#endif
  // This file system cannot exchange two names at once, so the old folder is moved aside between two renames.
  fs::path aside = temporary;
  aside += ".old";
  fs::remove_all(aside);
  fs::rename(path, aside);
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) {
    fs::rename(aside, path);
    fail_writing(path, error.value());
  }
  fs::rename(aside, temporary);
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& path) : path_(target_of(path)) {
  if (!path_.has_filename()) {
    path_ = path_.parent_path();  // `runs/last/` means `runs/last`
  }
  temporary_ = temporary_name(path_);
  std::error_code error;
  check(!fs::exists(path_, error) || fs::is_directory(path_, error), "cannot write the folder '{}': that is a file",
        path.string());
  descriptor_ = open_locked(temporary_, path, [&] {
    fs::create_directories(temporary_, error);
    if (error) {
      errno = error.value();
      return -1;
    }
    return ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  });
  for (auto leftover = fs::directory_iterator(temporary_, error); !error && leftover != fs::directory_iterator();) {
    fs::remove_all(leftover->path(), error);
    if (!error) {
      leftover.increment(error);
    }
  }
  if (error) {
    ::close(descriptor_);
    fail_writing(path, error.value());
  }
}

AtomicFolder::~AtomicFolder() {
  if (is_named(descriptor_, temporary_)) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
  ::close(descriptor_);
}

void AtomicFolder::commit() {
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary_)) {
      if (entry.is_directory() && !entry.is_symlink()) {
        sync_folder(entry.path());
      } else if (entry.is_regular_file() && !entry.is_symlink()) {
        sync_file(entry.path());
      }
    }
    sync_folder(temporary_);
    // The old folder gets the temporary name: it is locked too, so that no other writer takes it for a leftover before
    // it is removed.
    const Descriptor old(path_, O_RDONLY | O_DIRECTORY);
    if (old) {
      ::flock(old.get(), LOCK_EX | LOCK_NB);
    }
    exchange(temporary_, path_);
    if (old && is_named(old.get(), temporary_)) {
      fs::remove_all(temporary_);
    }
    sync_folder(folder_of(path_));
  } catch (const fs::filesystem_error& error) {
    fail_writing(path_, error.code().value());
  }
}

std::shared_ptr<const MappedFile> MappedFile::open(const fs::path& path) {
  const Descriptor descriptor(path, O_RDONLY);
  if (!descriptor) {
    fail_reading(path, errno);
  }
  return map(descriptor.get(), path);
}

std::shared_ptr<const MappedFile> MappedFile::map(int descriptor, const fs::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    fail_reading(path, errno);
  }
  check(S_ISREG(status.st_mode), "cannot read '{}': {}", path.string(),
        S_ISDIR(status.st_mode) ? "that is a folder" : "that is not a regular file");
  std::shared_ptr<MappedFile> file(new MappedFile);
  if (status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      fail_reading(path, errno);
    }
    file->data_ = static_cast<const std::uint8_t*>(data);
    file->size_ = size;
  }
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::uint8_t*>(data_), size_);
  }
}

UnnamedFile::UnnamedFile(std::string source) : source_(std::move(source)) {
  std::error_code error;
  folder_ = fs::temp_directory_path(error);
  check(!error, "{}: there is no folder for temporary files to unpack it into: {}", source_, error.message());
  std::string name = (folder_ / "vitrail-XXXXXX").string();
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  check(descriptor_ >= 0, "{}: cannot be unpacked into '{}': {}", source_, folder_.string(), reason(errno));
  ::unlink(name.c_str());
}

UnnamedFile::~UnnamedFile() { ::close(descriptor_); }

void UnnamedFile::write(const void* data, std::size_t bytes) {
  const int error = write_all(descriptor_, data, bytes);
  check(error == 0, "{}: cannot be unpacked into '{}': {} (TMPDIR names another folder)", source_, folder_.string(),
        reason(error));
}

std::shared_ptr<const MappedFile> UnnamedFile::map() const { return MappedFile::map(descriptor_, source_); }

}  // namespace vitrail::io
