// Files read whole or by mapping, and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

std::string read_text(const std::filesystem::path& path);
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path);

// Writes to a temporary file beside `path` (".NAME.tmp"), syncs it, renames it over `path` and syncs the folder: after
// a crash at any moment the old or the new content is there, whole. Error names the path and the system's reason (disk
// full, not writable, another process writes it), and the temporary file is gone.
void write_atomically(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
void write_atomically(const std::filesystem::path& path, std::string_view text);

// A file written piece by piece under the same promise: nothing is at `path` until commit().
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // without commit(): removes the temporary file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, std::size_t bytes);
  void commit();

 private:
  void discard();
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

// Error: "cannot write PATH", with the system's reason for its error number (errno).
[[noreturn]] void fail_writing(const std::filesystem::path& path, int error);

// Makes the folder `path` and those above it, where they are missing. Error names it and the system's reason.
void make_folder(const std::filesystem::path& path);

// Replaces the folder `path` by a new one that `fill(temporary_folder)` has filled: temporary folder, sync, rename. The
// old folder, if any, is there whole until the new one is.
template <class Fill>
void replace_folder(const std::filesystem::path& path, Fill&& fill);
std::filesystem::path begin_folder(const std::filesystem::path& path);                          // the temporary one
void finish_folder(const std::filesystem::path& temporary, const std::filesystem::path& path);  // syncs and renames

// A file mapped read-only. Tensors may borrow from it; it stays mapped as long as anyone holds the pointer.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class Fill>
void replace_folder(const std::filesystem::path& path, Fill&& fill) {
  const std::filesystem::path temporary = begin_folder(path);
  try {
    fill(temporary);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    throw;
  }
  finish_folder(temporary, path);
}

}  // namespace vitrail::io
