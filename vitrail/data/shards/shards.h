/// \file
/// Samples in shards: tar archives as the `webdataset` package writes and reads them.
///
/// The files of a sample lie one after the other and have its key before the first dot of their names: `cat/1.jpg`,
/// `cat/1.cls`. Its class is what `.cls` says, or the field `label`, `cls` or `class` of `.json`: a number, or a name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/io/tar.h"

namespace vitrail::data {

/// Whether a source names shards: `shards/train-{000000..000127}.tar` or several joined by `::`, unless a file or
/// folder is called so, an index of them (a `.json`), or any of these on the web (`https://…`), which open_shards()
/// keeps on this machine (io::cached()).
bool is_shard_source(const std::filesystem::path& source);
/// The shards that a source names, in order: `{000..127}` counts, with as many digits, `{a,b}` lists, `::` joins, and
/// an index of the `wids` package (`shardlist`, with `url` and `nsamples`) has paths relative to itself. Throws Error,
/// which says what is wrong, if it names none or more than a million.
std::vector<std::filesystem::path> shards_named(const std::filesystem::path& source);
/// The same source with absolute paths, each of several that are joined.
std::string absolute_shards(const std::filesystem::path& source);
/// The part of which a file is a shard by its name, "train" of `train-000000.tar` and
/// `train-00000-of-00064.tar`; "" if it is none.
std::string part_of_shard(const std::filesystem::path& file);
/// The shards of one part of a folder: `train-000000.tar`, `train-000001.tar` … in order; empty if there are none.
std::vector<std::filesystem::path> shards_of_part(const std::filesystem::path& folder, const std::string& part);

/// An image of a sample.
struct ShardSample {
  std::size_t shard = 0;  ///< index into Shards::files
  std::string key;
  io::TarEntry image;
  std::string cls;  ///< "" if it has none
};

/// The samples of shards, in their order.
struct Shards {
  std::vector<io::Tar> files;
  std::vector<ShardSample> samples;
  std::vector<std::string> classes;   ///< the names of numbered classes, from a `classes.txt` beside the first shard
  std::vector<std::string> left_out;  ///< why shards were skipped, a sentence each
  std::int64_t passed_over = 0;       ///< files of samples without an image, or whose names have no dot
};

/// Whether an archive has samples rather than class folders: files ending in `.cls`, or beside the images such in
/// `.json` that say classes.
bool holds_samples(const io::Tar& tar);
/// Reads where the samples lie. Throws Error, naming the file, if a shard is missing or damaged, if a sample has two
/// images, and, with the index `source` of shards, if a shard has another number of samples than it says; with
/// `skip_broken`, such shards are left out, unless all are.
Shards open_shards(const std::vector<std::filesystem::path>& files, const std::filesystem::path& source = {},
                   bool skip_broken = false);

}  // namespace vitrail::data
