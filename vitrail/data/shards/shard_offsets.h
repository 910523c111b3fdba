/// \file
/// Where the samples of shards lie, kept on this machine.
///
/// The headers of a tar archive are spread over it: to read them all from a disk is to read most of the archive. So
/// what has been found in a shard once is kept in `shards/` of the folder for what can be had again
/// (io::cache_folder()), by the shard's path, with its size and when it was written last.
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

/// What was kept of a shard; nothing if there is none, or if the shard has been changed since.
std::optional<ShardContent> kept_offsets(const std::filesystem::path& shard);
/// Keeps the content of a shard, unless it has too few samples to be worth it, is compressed, has names that a line of
/// text cannot have, or there is no folder to keep it in.
void keep_offsets(const std::filesystem::path& shard, const ShardContent& content);

}  // namespace vitrail::data
