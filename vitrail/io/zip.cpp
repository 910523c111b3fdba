#include "vitrail/io/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

using Bytes = std::span<const std::uint8_t>;

// Signatures of the records (APPNOTE, 4.3.7 to 4.3.16), and their sizes without names and comments.
constexpr std::uint32_t local_header = 0x04034b50;
constexpr std::uint32_t central_header = 0x02014b50;
constexpr std::uint32_t end_record = 0x06054b50;
constexpr std::uint32_t end_record_64 = 0x06064b50;
constexpr std::uint32_t end_locator_64 = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t central_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end_size_64 = 56;
constexpr std::size_t locator_size = 20;

constexpr std::uint16_t extra_64 = 0x0001;          // the field with sizes and offsets of 64 bits (4.5.3)
constexpr std::uint32_t in_extra_64 = 0xffffffffU;  // stands for a number that is in that field

// The number at `offset`, which must lie inside.
template <class T>
T number_at(Bytes bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool has_signature(Bytes bytes, std::uint64_t offset, std::uint32_t signature, std::size_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset &&
         number_at<std::uint32_t>(bytes, offset) == signature;
}

// Reads the files that the central directory lists.
class ZipReader {
 public:
  ZipReader(Bytes bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  std::vector<ZipEntry> read() {
    Bytes directory = central_directory();
    std::vector<ZipEntry> entries;
    while (!directory.empty()) {
      check(has_signature(directory, 0, central_header, central_size), "{}: the ZIP archive's directory is damaged",
            source_);
      const std::size_t name_size = number_at<std::uint16_t>(directory, 28);
      const std::size_t extra_size = number_at<std::uint16_t>(directory, 30);
      const std::size_t size = central_size + name_size + extra_size + number_at<std::uint16_t>(directory, 32);
      check(size <= directory.size(), "{}: the ZIP archive's directory is damaged", source_);
      std::string name(reinterpret_cast<const char*>(directory.data()) + central_size, name_size);
      if (!name.ends_with('/')) {
        const Bytes content = content_of(name, directory, directory.subspan(central_size + name_size, extra_size));
        entries.push_back({std::move(name), content, number_at<std::uint16_t>(directory, 10) != 0});
      }
      directory = directory.subspan(size);
    }
    return entries;
  }

 private:
  // Finds the record at the end of the archive, behind which only its own comment may stand.
  std::size_t end_of_directory() const {
    constexpr std::size_t longest_comment = 0xffff;
    for (std::size_t comment = 0; comment <= longest_comment && end_size + comment <= bytes_.size(); ++comment) {
      const std::size_t at = bytes_.size() - end_size - comment;
      if (has_signature(bytes_, at, end_record, end_size) && number_at<std::uint16_t>(bytes_, at + 20) == comment) {
        return at;
      }
    }
    fail("{}: cut short: the ZIP archive has no directory at its end", source_);
  }

  Bytes central_directory() const {
    const std::size_t end = end_of_directory();
    std::uint64_t size = number_at<std::uint32_t>(bytes_, end + 12);
    std::uint64_t offset = number_at<std::uint32_t>(bytes_, end + 16);
    if (end >= locator_size && has_signature(bytes_, end - locator_size, end_locator_64, locator_size)) {
      const auto at = number_at<std::uint64_t>(bytes_, end - locator_size + 8);
      check(has_signature(bytes_, at, end_record_64, end_size_64), "{}: the ZIP archive's directory is damaged",
            source_);
      size = number_at<std::uint64_t>(bytes_, at + 40);
      offset = number_at<std::uint64_t>(bytes_, at + 48);
    }
    check(offset <= end && size <= end - offset, "{}: cut short: the ZIP archive's directory lies beyond its end",
          source_);
    return bytes_.subspan(offset, size);
  }

  // The content of the file with this header in the directory and these extra fields.
  Bytes content_of(const std::string& name, Bytes header, Bytes extra) const {
    check((number_at<std::uint16_t>(header, 8) & 1U) == 0, "{}: '{}' is encrypted", source_, shown(name));
    std::uint64_t stored = number_at<std::uint32_t>(header, 20);
    std::uint64_t size = number_at<std::uint32_t>(header, 24);
    std::uint64_t offset = number_at<std::uint32_t>(header, 42);
    Bytes wide = extra_field_64(extra);
    for (std::uint64_t* number : {&size, &stored, &offset}) {  // in this order, each only if it is needed
      if (*number == in_extra_64) {
        check(wide.size() >= 8, "{}: the size of '{}' is missing in the ZIP archive", source_, shown(name));
        *number = number_at<std::uint64_t>(wide, 0);
        wide = wide.subspan(8);
      }
    }
    // The names in front of the content have lengths of their own.
    check(has_signature(bytes_, offset, local_header, local_size), "{}: '{}' is not where the ZIP archive says",
          source_, shown(name));
    const std::uint64_t begin = offset + local_size + number_at<std::uint16_t>(bytes_, offset + 26) +
                                number_at<std::uint16_t>(bytes_, offset + 28);
    check(begin <= bytes_.size() && stored <= bytes_.size() - begin, "{}: cut short: '{}' has {} bytes from byte {} on",
          source_, shown(name), stored, begin);
    return bytes_.subspan(begin, stored);
  }

  static Bytes extra_field_64(Bytes extra) {
    while (extra.size() >= 4) {
      const std::size_t size = std::min<std::size_t>(number_at<std::uint16_t>(extra, 2), extra.size() - 4);
      if (number_at<std::uint16_t>(extra, 0) == extra_64) {
        return extra.subspan(4, size);
      }
      extra = extra.subspan(4 + size);
    }
    return {};
  }

  Bytes bytes_;
  const std::string& source_;
};

}  // namespace

bool is_zip(std::span<const std::uint8_t> bytes) { return has_signature(bytes, 0, local_header, local_size); }

std::vector<ZipEntry> read_zip(std::span<const std::uint8_t> bytes, const std::string& source) {
  return ZipReader(bytes, source).read();
}

}  // namespace vitrail::io
