// Class folders inside a .tar, read where they lie.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "vitrail/data/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

struct Member {
  std::string name;
  std::size_t offset = 0;
  std::size_t size = 0;
};

std::vector<Member> read_members(std::span<const std::uint8_t> bytes) {
  std::vector<Member> members;
  for (std::size_t at = 0; at + 512 <= bytes.size() && bytes[at] != 0;) {
    const char* header = reinterpret_cast<const char*>(bytes.data() + at);
    Member member;
    member.name = std::string(header, strnlen(header, 100));
    std::from_chars(header + 124, header + 135, member.size, 8);
    member.offset = at + 512;
    if (header[156] == '0' || header[156] == 0) {
      members.push_back(member);
    }
    at += 512 + (member.size + 511) / 512 * 512;
  }
  return members;
}

}  // namespace

Listing list_tar(const std::filesystem::path& path, const std::string& prefix) {
  const auto file = io::MappedFile::open(path);
  std::map<std::string, std::span<const std::uint8_t>> found;
  Listing listing;
  for (const Member& member : read_members(file->bytes())) {
    const std::string name = std::filesystem::path(member.name).lexically_normal().string();
    if (name.starts_with(prefix) && !is_hidden(name) && io::is_image_name(name)) {
      found[name] = file->bytes().subspan(member.offset, member.size);
      listing.names.push_back(name);
    }
  }
  label_by_folder(listing, path.string());
  std::vector<std::span<const std::uint8_t>> parts;
  for (const std::string& name : listing.names) {
    parts.push_back(found[name]);
  }
  listing.image = [file, parts, names = listing.names](std::int64_t i) {
    return io::decode_image(parts[static_cast<std::size_t>(i)], names[static_cast<std::size_t>(i)]);
  };
  return listing;
}

bool tar_contains(const std::filesystem::path& path, const std::string& prefix) {
  const auto file = io::MappedFile::open(path);
  const std::vector<Member> members = read_members(file->bytes());
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.name.starts_with(prefix + "/"); });
}

}  // namespace vitrail::data
