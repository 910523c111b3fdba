/// \file
/// ZIP archives, read in place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail::io {

/// A file in an archive, whose content lies in the archive's memory.
struct ZipEntry {
  std::string name;
  std::span<const std::uint8_t> bytes;
  bool compressed = false;  ///< then `bytes` are what the compression made of the content
};

/// Whether a file begins as ZIP archives do that hold something.
bool is_zip(std::span<const std::uint8_t> bytes);

/// The files of an archive by its central directory (PKWARE's APPNOTE 6.3, sections 4.3 to 4.5), that of Zip64 too,
/// so that it may have more than 4 GiB. Folders are left out. An archive that is cut short, a file that lies beyond its
/// end and one that is encrypted throw Error. Checksums are not compared, for that would read the whole file. `source`
/// stands for the archive in errors.
std::vector<ZipEntry> read_zip(std::span<const std::uint8_t> bytes, const std::string& source);

}  // namespace vitrail::io
