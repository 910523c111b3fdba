/// \file
/// Writing shards that vitrail and the `webdataset` package read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "vitrail/io/tar.h"

namespace vitrail::data {

/// Writes the shards of one part into a folder: `train-000000.tar` …, `classes.txt` with the names of the classes, and
/// `train.json`, an index as the `wids` package reads it, last of all: without it the part is not whole.
class ShardWriter {
 public:
  /// Throws Error if the folder has the index or a shard of such a part.
  ShardWriter(std::filesystem::path folder, std::string part, std::int64_t bytes_a_shard,
              std::vector<std::string> classes);
  ~ShardWriter();  ///< removes its shards, unless commit() has ended them: a part of a data set looks like a whole one
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Adds a sample: the bytes of an image file, which has the ending `kind` ("jpg"), and the number of its class (below
  /// 0: none). Its key is `name` without its ending, with "_" for dots, and a number behind it if the key was there.
  void add(const std::string& name, const std::string& kind, std::span<const std::uint8_t> image, std::int64_t label);
  /// Ends the last shard, and writes `classes.txt` and the index. Returns the path of the index.
  std::filesystem::path commit();
  std::int64_t shards() const { return static_cast<std::int64_t>(written_.size()); }

 private:
  struct Written {
    std::string file;
    std::int64_t samples;
    std::int64_t bytes;
  };
  void end_shard();

  std::filesystem::path folder_;
  std::string part_;
  std::int64_t bytes_a_shard_;
  std::vector<std::string> classes_;
  std::vector<Written> written_;
  std::unique_ptr<io::TarWriter> shard_;
  std::int64_t samples_ = 0;  // of the present shard
  bool made_folder_ = false;
  bool committed_ = false;
  std::set<std::string> keys_;
};

}  // namespace vitrail::data
