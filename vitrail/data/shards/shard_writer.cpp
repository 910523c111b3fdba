#include "vitrail/data/shards/shard_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/shards/shards.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

std::string without_ending(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.rfind('.');
  const bool has = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  std::string key = has ? name.substr(0, dot) : name;
  std::ranges::replace(key, '.', '_');
  return key;
}

std::string lines_of(const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) {
    lines += name + "\n";
  }
  return lines;
}

}  // namespace

ShardWriter::ShardWriter(fs::path folder, std::string part, std::int64_t bytes_a_shard,
                         std::vector<std::string> classes)
    : folder_(std::move(folder)), part_(std::move(part)), bytes_a_shard_(bytes_a_shard), classes_(std::move(classes)) {
  check(!fs::exists(folder_ / (part_ + ".json")) && shards_of_part(folder_, part_).empty(),
        "'{}' has shards of '{}' already: take another folder, or delete them", folder_.string(), part_);
  const fs::path names = folder_ / "classes.txt";
  check(classes_.empty() || !fs::exists(names) || io::read_text(names) == lines_of(classes_),
        "{} has other classes than '{}': the labels of the shards beside it would be wrong; take another folder, or "
        "parts "
        "that have the same classes",
        names.string(), part_);
  made_folder_ = !fs::exists(folder_);
  io::make_folder(folder_);
}

ShardWriter::~ShardWriter() {
  if (committed_) {
    return;
  }
  shard_.reset();
  std::error_code ignored;
  for (const Written& one : written_) {
    fs::remove(folder_ / one.file, ignored);
  }
  if (made_folder_) {
    fs::remove(folder_, ignored);
  }
}

void ShardWriter::add(const std::string& name, const std::string& kind, std::span<const std::uint8_t> image,
                      std::int64_t label) {
  const std::string stem = without_ending(name);
  std::string key = stem;
  for (int number = 2; !keys_.insert(key).second; ++number) {
    key = fmt::format("{}-{}", stem, number);
  }
  if (shard_ == nullptr) {
    shard_ = std::make_unique<io::TarWriter>(folder_ / fmt::format("{}-{:06}.tar", part_, written_.size()));
    samples_ = 0;
  }
  shard_->add(key + "." + kind, image);
  if (label >= 0) {
    const std::string text = fmt::format("{}", label);
    shard_->add(key + ".cls", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  ++samples_;
  if (shard_->bytes() >= bytes_a_shard_) {
    end_shard();
  }
}

void ShardWriter::end_shard() {
  shard_->commit();
  written_.push_back({fmt::format("{}-{:06}.tar", part_, written_.size()), samples_, shard_->bytes()});
  shard_.reset();
}

fs::path ShardWriter::commit() {
  if (shard_ != nullptr) {
    end_shard();
  }
  if (!classes_.empty()) {
    io::write_atomically(folder_ / "classes.txt", lines_of(classes_));
  }
  nlohmann::ordered_json index = {{"__kind__", "wids-shard-index-v1"}, {"wids_version", 1}, {"name", part_}};
  for (const Written& one : written_) {
    index["shardlist"].push_back({{"url", one.file}, {"nsamples", one.samples}, {"filesize", one.bytes}});
  }
  const fs::path path = folder_ / (part_ + ".json");
  io::write_atomically(path, index.dump(2) + "\n");
  committed_ = true;
  return path;
}

}  // namespace vitrail::data
