#include "vitrail/io/gzip.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <zlib.h>

#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // zlib counts bytes in 32 bits
constexpr std::size_t always_allowed = std::size_t{256} << 20;
constexpr std::size_t largest_ratio = 100;

// Reads the members of a gzip file, one after another: pigz and `cat a.gz b.gz` make several.
class Inflater {
 public:
  Inflater(std::span<const std::uint8_t> bytes, const std::string& source) : rest_(bytes), source_(source) {
    constexpr int gzip_window = 15 + 16;  // the largest window, with gzip's header and checksum
    check(inflateInit2(&stream_, gzip_window) == Z_OK, "{}: zlib cannot be used", source_);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` from its beginning and returns the number of bytes, which is 0 at the end of the file.
  std::size_t read(std::span<std::uint8_t> out) {
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !finished_) {
      const std::size_t given = std::min(rest_.size(), most_at_once);
      stream_.next_in = const_cast<Bytef*>(rest_.data());
      stream_.avail_in = static_cast<uInt>(given);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      rest_ = rest_.subspan(given - stream_.avail_in);
      if (status == Z_STREAM_END) {
        next_member();
        continue;
      }
      check(status != Z_BUF_ERROR || !rest_.empty(), "{}: cut short: the gzip file ends too early", source_);
      check(status == Z_OK, "{}: the gzip file is damaged: {}", source_,
            stream_.msg == nullptr ? "a checksum is wrong" : stream_.msg);
    }
    return out.size() - stream_.avail_out;
  }

 private:
  // Tapes and disks leave zeros behind the last member.
  void next_member() {
    finished_ = std::all_of(rest_.begin(), rest_.end(), [](std::uint8_t byte) { return byte == 0; });
    if (!finished_) {
      inflateReset(&stream_);
    }
  }

  std::span<const std::uint8_t> rest_;
  const std::string& source_;
  z_stream stream_ = {};
  bool finished_ = false;
};

std::shared_ptr<const MappedFile> unpack(const MappedFile& packed, const std::string& source) {
  const std::size_t limit = std::max(always_allowed, largest_ratio * packed.bytes().size());
  Inflater inflater(packed.bytes(), source);
  UnnamedFile file(source);
  std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
  std::size_t size = 0;
  while (const std::size_t got = inflater.read(buffer)) {
    size += got;
    check(size <= limit, "{}: unpacks to more than {} times its size, which no archive of images does", source,
          largest_ratio);
    file.write(buffer.data(), got);
  }
  return file.map();
}

std::mutex unpacking;  // guards what unpack_gzip() shares
std::function<void(const fs::path& path, std::size_t bytes)> unpacking_notice;

}  // namespace

bool is_gzip(const MappedFile& file) {
  const std::span<const std::uint8_t> bytes = file.bytes();
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

std::shared_ptr<const MappedFile> unpack_gzip(const fs::path& path) {
  using Key = std::tuple<fs::path, std::uintmax_t, fs::file_time_type>;
  static std::map<Key, std::weak_ptr<const MappedFile>> unpacked;
  const std::shared_ptr<const MappedFile> packed = MappedFile::open(path);
  const Key key = {fs::canonical(path), packed->bytes().size(), fs::last_write_time(path)};
  const std::lock_guard lock(unpacking);
  std::weak_ptr<const MappedFile>& kept = unpacked[key];
  std::shared_ptr<const MappedFile> file = kept.lock();
  if (file == nullptr) {
    if (unpacking_notice) {
      unpacking_notice(path, packed->bytes().size());
    }
    file = unpack(*packed, path.string());
    kept = file;
  }
  return file;
}

void on_unpacking(std::function<void(const fs::path& path, std::size_t bytes)> notice) {
  const std::lock_guard lock(unpacking);
  unpacking_notice = std::move(notice);
}

}  // namespace vitrail::io
