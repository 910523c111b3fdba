// Any bytes as a tar archive: an Error, or files that lie inside it under names that stay inside a folder.
#include "vitrail/io/tar.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "memory_limit.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(tar)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  using namespace vitrail;
  try {
    const io::Tar tar = io::Tar::parse({data, size}, nullptr, "input");
    for (const io::TarEntry& entry : tar.entries()) {
      const std::filesystem::path path(entry.name);
      bool inside =
          !entry.name.empty() && path.is_relative() && entry.offset <= size && entry.size <= size - entry.offset;
      for (const std::filesystem::path& part : path) {
        inside = inside && part != ".." && part != "." && !part.empty();
      }
      if (!inside || tar.bytes(entry).size() != entry.size) {
        std::abort();
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
