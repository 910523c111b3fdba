#include "vitrail/io/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vitrail/io/gzip.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {

namespace {

constexpr std::size_t block = 512;
constexpr std::size_t max_extension = 1 << 20;  // bytes of a long name or of a pax header
constexpr int most_links = 40;                  // that lead from one to another, as the kernel has it

// A field of the header block: where it begins and how long it is (POSIX.1-2001, pax, "ustar Interchange Format").
struct Field {
  std::size_t offset;
  std::size_t length;
};
constexpr Field name_field{0, 100};
constexpr Field size_field{124, 12};
constexpr Field checksum_field{148, 8};
constexpr std::size_t type_offset = 156;
constexpr Field link_field{157, 100};
constexpr Field magic_field{257, 6};
constexpr Field prefix_field{345, 155};

using Block = std::span<const std::uint8_t>;

// The text up to the first NUL byte.
std::string text_of(Block bytes) { return {bytes.begin(), std::find(bytes.begin(), bytes.end(), std::uint8_t{0})}; }
std::string text_of(Block header, Field field) { return text_of(header.subspan(field.offset, field.length)); }

// Reads an archive from its first block to its last.
class TarReader {
 public:
  TarReader(Block bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  std::vector<TarEntry> read() {
    check_kind();
    while (position_ < bytes_.size()) {
      check(bytes_.size() - position_ >= block, "{}: {}: {} bytes at byte {} are no whole block", source_,
            position_ == 0 ? "not a tar archive" : "cut short", bytes_.size() - position_, position_);
      const Block header = bytes_.subspan(position_, block);
      if (std::all_of(header.begin(), header.end(), [](std::uint8_t byte) { return byte == 0; })) {
        break;  // the end mark
      }
      read_entry(header);
    }
    check(!name_ && !size_, "{}: cut short: a long name or pax header at its end belongs to no file", source_);
    follow_links();
    drop_replaced();
    return std::move(entries_);
  }

  std::vector<std::string> lost_links() { return std::move(lost_links_); }
  std::vector<std::string> replaced() { return std::move(replaced_); }

 private:
  void check_kind() const {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), std::min<std::size_t>(bytes_.size(), 6));
    check(!bytes_.empty(), "{}: not a tar archive: the file is empty", source_);
    using namespace std::string_view_literals;
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> compressed = {
        {{"\x1f\x8b"sv, "gzip"},
         {"BZh"sv, "bzip2"},
         {"\xfd"
          "7zXZ\0"sv,
          "xz"},
         {"\x28\xb5\x2f\xfd"sv, "zstd"}}};
    for (const auto& [magic, program] : compressed) {
      check(!start.starts_with(magic), "{}: compressed with {}: unpack it to a plain .tar first", source_, program);
    }
  }

  void read_entry(Block header) {
    check_sum(header);
    const std::size_t at = position_;
    const char type = static_cast<char>(header[type_offset]);
    const std::size_t stored = number(header, size_field);
    position_ += block;
    switch (type) {
      case 'L':  // GNU: the next entry's name
        name_ = text_of(payload(extension(stored, at), at));
        return;
      case 'K':  // GNU: what the next entry is a link to
        link_ = text_of(payload(extension(stored, at), at));
        return;
      case 'g':  // pax: comments and the like for all entries
        payload(extension(stored, at), at);
        return;
      case 'x':  // pax: the next entry's name and size, if the header has no room for them
        read_pax(payload(extension(stored, at), at), at);
        return;
      case 'S':
        fail("{}: the file '{}' at byte {} is sparse, which is not supported", source_, name_of(header), at);
      case '\0':
      case '0':
      case '7':
        add_file(header, stored, at);
        break;
      case '1':
      case '2':
        add_link(header, type == '2', at);
        break;
      case '3':
      case '4':
      case '5':
      case '6':
        break;  // devices, folders: if they state a size, as links may, no data of that size follow
      default:
        payload(size_.value_or(stored), at);  // POSIX: unknown types are skipped like files
    }
    name_.reset();
    link_.reset();
    size_.reset();
  }

  void add_file(Block header, std::size_t stored, std::size_t at) {
    std::string name = name_ ? *name_ : name_of(header);
    const std::size_t size = size_.value_or(stored);
    const std::size_t offset = position_;
    payload(size, at);
    if (!name.ends_with('/')) {  // archives from before POSIX mark folders by this
      entries_.push_back({sanitized(name, at), offset, size});
    }
  }

  // A symbolic link is read from the folder that it lies in, a hard one from the archive's root.
  void add_link(Block header, bool symbolic, std::size_t at) {
    const std::string name = sanitized(name_ ? *name_ : name_of(header), at);
    const std::string target = link_ ? *link_ : text_of(header, link_field);
    const std::filesystem::path path = target;
    const std::filesystem::path inside =
        symbolic ? std::filesystem::path(name).parent_path() / path : path.relative_path();
    targets_.emplace(entries_.size(), inside.lexically_normal().string());
    entries_.push_back({name, 0, 0});
  }

  // Gives each link the place of the file that it leads to, over other links if need be, and drops those that lead to
  // no file in the archive.
  void follow_links() {
    if (targets_.empty()) {
      return;
    }
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      last[entries_[i].name] = i;
    }
    std::vector<TarEntry> kept;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      TarEntry entry = entries_[i];
      auto link = targets_.find(i);
      for (int steps = 0; link != targets_.end(); ++steps) {
        const auto at = last.find(link->second);
        if (at == last.end() || steps == most_links) {
          break;
        }
        entry.offset = entries_[at->second].offset;
        entry.size = entries_[at->second].size;
        link = targets_.find(at->second);
      }
      if (link == targets_.end()) {
        kept.push_back(std::move(entry));
      } else {
        lost_links_.push_back(std::move(entry.name));
      }
    }
    entries_ = std::move(kept);
  }

  // Returns the `size` bytes that follow the header at `at`, and moves past them and their padding.
  Block payload(std::size_t size, std::size_t at) {
    check(size <= bytes_.size() - position_, "{}: cut short: the entry at byte {} has {} bytes, but only {} follow",
          source_, at, size, bytes_.size() - position_);
    const Block data = bytes_.subspan(position_, size);
    position_ += (size + block - 1) / block * block;
    check(position_ <= bytes_.size(), "{}: cut short: the last block of the entry at byte {} is not whole", source_,
          at);
    return data;
  }

  std::size_t extension(std::size_t size, std::size_t at) const {
    check(size <= max_extension, "{}: the long name or pax header at byte {} has {} bytes, more than {}", source_, at,
          size, max_extension);
    return size;
  }

  std::string name_of(Block header) const {
    const std::string name = text_of(header, name_field);
    // GNU tar's older format ("ustar  ") keeps times where POSIX keeps the first part of the name.
    const std::string prefix = text_of(header, magic_field) == "ustar" ? text_of(header, prefix_field) : "";
    return prefix.empty() ? name : prefix + "/" + name;
  }

  // Checks the header's checksum, the sum of all bytes of the block with its own field taken as spaces. Some old
  // programs summed signed bytes, which is accepted too.
  void check_sum(Block header) const {
    std::int64_t plain = 0;
    std::int64_t with_sign = 0;
    for (std::size_t i = 0; i < block; ++i) {
      const bool own = i >= checksum_field.offset && i < checksum_field.offset + checksum_field.length;
      const std::uint8_t byte = own ? std::uint8_t{' '} : header[i];
      plain += byte;
      with_sign += static_cast<std::int8_t>(byte);
    }
    const auto stored = static_cast<std::int64_t>(number(header, checksum_field));
    check(stored == plain || stored == with_sign, "{}: {} (the checksum of the header at byte {} is wrong)", source_,
          position_ == 0 ? "not a tar archive" : "the tar archive is damaged", position_);
  }

  // Reads an octal number, or GNU's binary number for sizes of 8 GiB and more.
  std::size_t number(Block header, Field field) const {
    const Block digits = header.subspan(field.offset, field.length);
    std::size_t value = 0;
    if ((digits[0] & 0x80U) != 0) {
      bool fits = (digits[0] & 0x7fU) == 0;
      for (const std::uint8_t byte : digits.subspan(1)) {
        fits = fits && value <= SIZE_MAX >> 8;
        value = value << 8 | byte;
      }
      check(fits, "{}: the header at byte {} has a negative or too large a number", source_, position_);
      return value;
    }
    std::string text = text_of(digits);
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t last = text.find_last_not_of(' ');
    text = text.substr(first, last == std::string::npos ? 0 : last - first + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
    check(text.empty() || (error == std::errc() && end == text.data() + text.size()),
          "{}: {} (the header at byte {} has no octal number at its place {})", source_,
          position_ == 0 ? "not a tar archive" : "the tar archive is damaged", position_, field.offset);
    return value;
  }

  // Reads records of the form `LENGTH KEY=VALUE\n`, whose length counts the whole record.
  void read_pax(Block data, std::size_t at) {
    std::string_view rest(reinterpret_cast<const char*>(data.data()), data.size());
    const auto broken = [&] { fail("{}: the pax header at byte {} is damaged", source_, at); };
    while (!rest.empty()) {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto prefix = static_cast<std::size_t>(end - rest.data());
      if (error != std::errc() || prefix >= rest.size() || *end != ' ' || length > rest.size() || length < prefix + 2 ||
          rest[length - 1] != '\n') {
        broken();
      }
      const std::string_view record = rest.substr(prefix + 1, length - prefix - 2);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos) {
        broken();
      }
      const std::string_view key = record.substr(0, equals);
      const std::string_view value = record.substr(equals + 1);
      check(!key.starts_with("GNU.sparse."), "{}: the file at byte {} is sparse, which is not supported", source_, at);
      if (key == "path") {
        check(value.find('\0') == std::string_view::npos, "{}: the name in the pax header at byte {} has a NUL byte",
              source_, at);
        name_ = value;
      } else if (key == "linkpath") {
        link_ = value;
      } else if (key == "size") {
        std::size_t size = 0;
        const auto [last, problem] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (problem != std::errc() || last != value.data() + value.size()) {
          broken();
        }
        size_ = size;
      }
      rest.remove_prefix(length);
    }
  }

  std::string sanitized(std::string_view name, std::size_t at) const {
    std::string result;
    std::size_t begin = 0;
    while (begin <= name.size()) {
      const std::size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = name.substr(begin, end - begin);
      check(part != "..", "{}: the name '{}' of the entry at byte {} leads out of the archive", source_, name, at);
      if (!part.empty() && part != ".") {
        result += result.empty() ? "" : "/";
        result += part;
      }
      begin = end + 1;
    }
    check(!result.empty(), "{}: the entry at byte {} has no name", source_, at);
    return result;
  }

  void drop_replaced() {
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      last[entries_[i].name] = i;
    }
    if (last.size() == entries_.size()) {
      return;
    }
    std::vector<TarEntry> kept;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (last[entries_[i].name] == i) {
        kept.push_back(entries_[i]);
      } else {
        replaced_.push_back(entries_[i].name);
      }
    }
    entries_ = std::move(kept);
  }

  Block bytes_;
  const std::string& source_;
  std::size_t position_ = 0;
  std::optional<std::string> name_;  // from a long name or pax header, for the next entry
  std::optional<std::string> link_;  // the same: what it leads to
  std::optional<std::size_t> size_;
  std::vector<TarEntry> entries_;
  std::map<std::size_t, std::string> targets_;  // of entries that are links
  std::vector<std::string> lost_links_;
  std::vector<std::string> replaced_;
};

}  // namespace

bool is_tar_name(const std::filesystem::path& path) {
  const std::string name = lower_case(path.filename().native());
  return name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

void Tar::fetch(const TarEntry& first, const TarEntry& last) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data() + first.offset) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes_.data() + last.offset + last.size);
  // Linux fetches no more at once than its read-ahead or what the disk takes. It is only advice: what is not fetched is
  // read when it is used.
  constexpr std::uintptr_t at_once = std::uintptr_t{1} << 20;
  for (std::uintptr_t at = begin; at < end; at += at_once) {
    static_cast<void>(::madvise(reinterpret_cast<void*>(at), std::min(at_once, end - at), MADV_WILLNEED));
  }
}

void TarWriter::write_block(const std::string& name, char type, std::span<const std::uint8_t> content) {
  std::array<char, block> header{};
  const auto put = [&](Field field, const std::string& text) {
    std::copy_n(text.begin(), std::min(text.size(), field.length),
                header.begin() + static_cast<std::ptrdiff_t>(field.offset));
  };
  put(name_field, name);
  put({100, 8}, "0000644");
  put({108, 8}, "0000000");
  put({116, 8}, "0000000");
  put(size_field, fmt::format("{:011o}", content.size()));
  put({136, 12}, "00000000000");
  put(checksum_field, "        ");
  header[type_offset] = type;
  put(magic_field, std::string("ustar\0", 6));
  put({263, 2}, "00");
  std::uint32_t sum = 0;
  for (const char byte : header) {
    sum += static_cast<std::uint8_t>(byte);
  }
  put(checksum_field, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  constexpr std::array<char, block> zeros{};
  const std::size_t padding = (block - content.size() % block) % block;
  file_.write(header.data(), block);
  file_.write(content.data(), content.size());
  file_.write(zeros.data(), padding);
  bytes_ += static_cast<std::int64_t>(block + content.size() + padding);
}

void TarWriter::add(const std::string& name, std::span<const std::uint8_t> content) {
  check(content.size() < std::size_t{1} << 33, "the file '{}' has {} bytes: too large for a tar archive", name,
        content.size());
  if (name.size() > name_field.length) {
    // The length of a record "LENGTH path=NAME\n" counts its own digits.
    std::string record;
    std::size_t length = 0;
    do {
      length = record.size();
      record = fmt::format("{} path={}\n", length, name);
    } while (record.size() != length);
    write_block("pax", 'x', {reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
  }
  write_block(name, '0', content);
}

void TarWriter::commit() {
  constexpr std::array<char, 2 * block> end{};
  file_.write(end.data(), end.size());
  bytes_ += static_cast<std::int64_t>(end.size());
  file_.commit();
}

Tar Tar::open(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const bool packed = is_gzip(*file);
  if (packed) {
    file = unpack_gzip(path);
  }
  Tar tar = parse(file->bytes(), file, path.string());
  tar.unpacked_ = packed;
  return tar;
}

Tar Tar::with_entries(const std::filesystem::path& path, std::vector<TarEntry> entries) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  Tar tar;
  tar.bytes_ = file->bytes();
  tar.owner_ = file;
  tar.source_ = path.string();
  for (const TarEntry& entry : entries) {
    check(entry.offset <= tar.bytes_.size() && entry.size <= tar.bytes_.size() - entry.offset,
          "{}: {} reaches beyond the end of the archive", tar.source_, entry.name);
  }
  tar.entries_ = std::move(entries);
  return tar;
}

Tar Tar::parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner, std::string source) {
  Tar tar;
  TarReader reader(bytes, source);
  tar.entries_ = reader.read();
  tar.lost_links_ = reader.lost_links();
  tar.replaced_ = reader.replaced();
  tar.bytes_ = bytes;
  tar.owner_ = std::move(owner);
  tar.source_ = std::move(source);
  return tar;
}

}  // namespace vitrail::io
