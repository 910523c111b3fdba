/// \file
/// Tar archives, read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/io/file.h"

namespace vitrail::io {

/// A file in an archive.
struct TarEntry {
  std::string name;  ///< relative, without "." or empty parts: "train/cat/0001.jpg"
  std::size_t offset = 0;
  std::size_t size = 0;
};

/// Whether a path is that of a tar archive by its name: `.tar`, `.tar.gz` or `.tgz`, in any case.
bool is_tar_name(const std::filesystem::path& path);

/// The index of a tar archive: POSIX ustar, with the long names and sizes of GNU tar and pax. A hard or symbolic link
/// to a file of the archive is that file once more. Folders, devices and other links are skipped; of two files with the
/// same name the later one counts, as when the archive is unpacked. The archive is not trusted: a wrong checksum, a
/// malformed number, an entry that reaches beyond the end, a name that leads out of the archive ("../x") and sparse
/// files (GNU) throw Error naming the byte; so do archives compressed otherwise than with gzip, naming the program.
class Tar {
 public:
  static Tar open(const std::filesystem::path& path);  ///< one that is compressed is unpacked by unpack_gzip()
  /// An archive that is not compressed, whose files are known: nothing of it is read. Throws Error if one of them
  /// reaches beyond its end.
  static Tar with_entries(const std::filesystem::path& path, std::vector<TarEntry> entries);
  /// Parses an archive that is already in memory, which `owner` keeps alive; `source` stands for the file in errors.
  static Tar parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner, std::string source);

  const std::vector<TarEntry>& entries() const { return entries_; }  ///< in the order of the archive
  /// The names of links to what is no file of the archive.
  const std::vector<std::string>& lost_links() const { return lost_links_; }
  /// The names of files that later ones of the same names replace.
  const std::vector<std::string>& replaced() const { return replaced_; }

  /// The content of the file `entry`, which lies in the archive's memory.
  std::span<const std::uint8_t> bytes(const TarEntry& entry) const { return bytes_.subspan(entry.offset, entry.size); }
  /// Has the system fetch what lies from the first file to the last one from the disk, while this goes on.
  void fetch(const TarEntry& first, const TarEntry& last) const;
  const std::string& source() const { return source_; }
  /// Whether the file is compressed: its files lie in what was unpacked from it, not in the file itself.
  bool unpacked() const { return unpacked_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
  std::vector<TarEntry> entries_;
  std::vector<std::string> lost_links_;
  std::vector<std::string> replaced_;
  std::string source_;
  bool unpacked_ = false;
};

/// Writes a tar archive (POSIX ustar, names of more than 100 bytes in pax headers), whole or not at all, as AtomicFile.
class TarWriter {
 public:
  explicit TarWriter(std::filesystem::path path) : file_(std::move(path)) {}
  void add(const std::string& name, std::span<const std::uint8_t> content);
  void commit();
  std::int64_t bytes() const { return bytes_; }  ///< written so far

 private:
  void write_block(const std::string& name, char type, std::span<const std::uint8_t> content);

  AtomicFile file_;
  std::int64_t bytes_ = 0;
};

}  // namespace vitrail::io
