/// \file
/// Where the samples of shards lie, kept on this machine.
///
/// The headers of a tar archive are spread over it: to read them all from a disk is to read most of the archive. So
/// what has been found in a shard once is kept in `shards/` of the folder for what can be had again
/// (io::cache_folder()).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/io/tar.h"

namespace vitrail::data {

/// An image of a shard, and what its sample says.
struct ShardImage {
  io::TarEntry entry;
  std::string cls;  ///< "" if it has none
};

/// The samples of one shard, in its order.
struct ShardContent {
  std::vector<ShardImage> images;
  std::int64_t passed_over = 0;  ///< files of samples without an image, or whose names have no dot
};

/// What is kept of a shard, as the shard was when this was made: its path, its place on the disk, its size, and when it
/// was written and changed last. Nothing that fails here is an error: the headers are read again.
class ShardOffsets {
 public:
  explicit ShardOffsets(const std::filesystem::path& shard);

  /// What was kept; nothing if there is none, or if the shard has been changed since.
  std::optional<ShardContent> kept() const;
  /// Keeps the content, unless it is too little to be worth it, or has names that a line of text cannot have.
  void keep(const ShardContent& content) const;

 private:
  std::string head_;            // what the file begins with; "": nothing can be kept
  std::filesystem::path file_;  // that keeps it
  std::size_t bytes_ = 0;       // of the shard
};

}  // namespace vitrail::data
