/// \file
/// Files that are read whole or mapped into memory, and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

// Both read a whole file. They throw Error, naming the path and the system's reason, if it cannot be read.

std::string read_text(const std::filesystem::path& path);
/// What follows the byte order mark with which some programs begin a UTF-8 file.
std::string_view without_byte_order_mark(std::string_view text);
/// The lines of a text without their ends, "\n" or "\r\n". What follows the last end is a line unless it is empty.
std::vector<std::string> lines_of(std::string_view text);
/// The lines of a file, without a byte order mark.
std::vector<std::string> read_lines(const std::filesystem::path& path);
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path);

/// Whether a file of that name can be read: a regular one, or a pipe, such as a shell's `<(…)`. A pipe gives its
/// content once; read_text() and read_bytes() keep what they have read of one, so that it may be asked for again.
bool is_file(const std::filesystem::path& path);

/// While an object of this class exists, its thread waits for what somebody types or another program writes, and does
/// nothing else: who asks the program to stop need not be kept waiting for it to answer (train::Interrupt).
class WaitForInput {
 public:
  WaitForInput();
  ~WaitForInput();
  WaitForInput(const WaitForInput&) = delete;
  WaitForInput& operator=(const WaitForInput&) = delete;

  static bool any();  ///< whether there is such an object
};
/// All of standard input.
std::string read_standard_input();
/// The next line of standard input without its end; whether there was one.
bool next_input_line(std::string& line);

/// What tells cheaply whether a file has changed: zeros of one that is not there.
struct FileStamp {
  std::int64_t bytes = 0;
  std::int64_t modified = 0;  ///< the time of its last change, in the file system's units
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::filesystem::path& path);

/// Writes to a temporary file beside `path` (`.NAME.tmp`), syncs it, renames it to `path` and syncs the folder. After a
/// crash at any moment, either the old or the new content is there, whole. Throws Error, naming the path and the
/// system's reason (disk full, not writable, another process is writing it), and leaves no temporary file behind.
void write_atomically(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// A file that is written piece by piece with the guarantees of write_atomically(): `path` is untouched until commit().
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  ///< removes the temporary file unless commit() was called
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

/// Throws Error: "cannot write PATH", with the system's reason for the error number `error` (errno).
[[noreturn]] void fail_writing(const std::filesystem::path& path, int error);

/// Makes the folder `path` and its missing parents. Throws Error naming the folder and the system's reason.
void make_folder(const std::filesystem::path& path);

/// A folder that is filled with the guarantees of AtomicFile: it is made under a temporary name, and commit() syncs it
/// and renames it to `path`. The old folder, if any, stays whole until the new one is there.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::filesystem::path& path);
  ~AtomicFolder();  ///< removes the temporary folder unless commit() was called
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  const std::filesystem::path& temporary() const { return temporary_; }  ///< where its files are to be written
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Replaces the folder `path` by a new one that `fill(temporary_folder)` has filled, as an AtomicFolder.
template <class Fill>
void replace_folder(const std::filesystem::path& path, Fill&& fill) {
  AtomicFolder folder(path);
  fill(folder.temporary());
  folder.commit();
}

/// A file mapped read-only into memory. It stays mapped as long as anyone holds the pointer, so tensors may borrow from
/// it.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// Maps an open regular file; `path` stands for it in errors. The descriptor may be closed afterwards.
  static std::shared_ptr<const MappedFile> map(int descriptor, const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file without a name in the folder for temporary files (TMPDIR). It is gone when nobody uses it any more, even if
/// the process is killed.
class UnnamedFile {
 public:
  explicit UnnamedFile(std::string source);  ///< `source`: the file whose content is written here, for errors
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  void write(const void* data, std::size_t bytes);  ///< appends; Error if there is no room
  std::shared_ptr<const MappedFile> map() const;    ///< what was written so far

 private:
  std::string source_;
  std::filesystem::path folder_;
  int descriptor_ = -1;
};

}  // namespace vitrail::io
