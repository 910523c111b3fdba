#include "vitrail/data/shards/shard_offsets.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "vitrail/io/file.h"
#include "vitrail/io/web/download.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t fewest_samples = 500;  // of a shard whose headers are worth keeping
constexpr std::size_t shortest_line = 7;        // of a sample: three tabs, two digits, a name, the end of the line
constexpr std::string_view first_word = "vitrail-shard-1";

bool fits_a_line(std::string_view text) { return text.find_first_of("\t\n") == std::string_view::npos; }

// The text up to the next `end`, which is taken off the front of `rest`.
std::string_view next_field(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  check(at != std::string_view::npos, "a line breaks off");
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return field;
}

template <typename Number>
Number next_number(std::string_view& rest, char end) {
  const std::string_view field = next_field(rest, end);
  Number number = 0;
  const auto [last, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  check(error == std::errc() && last == field.data() + field.size(), "'{}' is no number", field);
  return number;
}

}  // namespace

ShardOffsets::ShardOffsets(const fs::path& shard) {
  try {
    const std::string path = fs::absolute(shard).string();
    struct stat is = {};
    if (!fits_a_line(path) || stat(path.c_str(), &is) != 0) {
      return;
    }
    file_ = io::cache_folder() / "shards" / fmt::format("{:016x}.tsv", hash(path));
    bytes_ = static_cast<std::size_t>(is.st_size);
    head_ = fmt::format("{}\t{}\t{}.{:09}\t{}.{:09}\t{}\t{}", first_word, is.st_size, is.st_mtim.tv_sec,
                        is.st_mtim.tv_nsec, is.st_ctim.tv_sec, is.st_ctim.tv_nsec, is.st_ino, path);
  } catch (const std::exception&) {  // there is no folder
    head_.clear();
  }
}

std::optional<ShardContent> ShardOffsets::kept() const {
  try {
    if (head_.empty() || !fs::exists(file_)) {
      return std::nullopt;
    }
    const std::string text = io::read_text(file_);
    std::string_view rest = text;
    if (next_field(rest, '\n') != head_) {
      return std::nullopt;
    }
    ShardContent content;
    content.passed_over = next_number<std::int64_t>(rest, '\t');
    const auto count = next_number<std::size_t>(rest, '\n');
    check(count <= rest.size() / shortest_line, "it breaks off");
    content.images.resize(count);
    for (ShardImage& image : content.images) {
      image.entry.offset = next_number<std::size_t>(rest, '\t');
      image.entry.size = next_number<std::size_t>(rest, '\t');
      check(image.entry.offset <= bytes_ && image.entry.size <= bytes_ - image.entry.offset, "it is of another shard");
      image.entry.name = next_field(rest, '\t');
      image.cls = next_field(rest, '\n');
    }
    check(rest.empty(), "it has more lines than samples");
    return content;
  } catch (const std::exception&) {  // it is damaged
    return std::nullopt;
  }
}

void ShardOffsets::keep(const ShardContent& content) const {
  if (head_.empty() || std::ssize(content.images) < fewest_samples ||
      !std::ranges::all_of(content.images, [](const ShardImage& image) {
        return fits_a_line(image.entry.name) && fits_a_line(image.cls);
      })) {
    return;
  }
  std::string text = fmt::format("{}\n{}\t{}\n", head_, content.passed_over, content.images.size());
  for (const ShardImage& image : content.images) {
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\n", image.entry.offset, image.entry.size, image.entry.name,
                   image.cls);
  }
  try {
    io::make_folder(file_.parent_path());
    io::write_atomically(file_, text);
  } catch (const std::exception&) {  // there is no room, or another process is writing the same
  }
}

}  // namespace vitrail::data
