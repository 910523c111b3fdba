#include "vitrail/data/shards/shard_offsets.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t fewest_samples = 500;  // of a shard whose headers are worth keeping
constexpr std::string_view first_word = "vitrail-shard-1";

// What a file of offsets begins with: it is of this shard, as it is now.
std::string head_of(const fs::path& shard) {
  return fmt::format("{}\t{}\t{}\t{}", first_word, fs::file_size(shard),
                     fs::last_write_time(shard).time_since_epoch().count(), shard.string());
}

fs::path file_of(const fs::path& shard) {
  return io::cache_folder() / "shards" / fmt::format("{:016x}.tsv", hash(shard.string()));
}

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

std::optional<ShardContent> kept_offsets(const fs::path& given) {
  try {
    const fs::path shard = fs::absolute(given);
    const fs::path file = file_of(shard);
    if (!fs::exists(file)) {
      return std::nullopt;
    }
    const std::string text = io::read_text(file);
    std::string_view rest = text;
    if (next_field(rest, '\n') != head_of(shard)) {
      return std::nullopt;
    }
    const std::size_t bytes = fs::file_size(shard);
    ShardContent content;
    content.passed_over = next_number<std::int64_t>(rest, '\t');
    content.images.resize(next_number<std::size_t>(rest, '\n'));
    for (ShardImage& image : content.images) {
      image.entry.offset = next_number<std::size_t>(rest, '\t');
      image.entry.size = next_number<std::size_t>(rest, '\t');
      check(image.entry.offset <= bytes && image.entry.size <= bytes - image.entry.offset, "it is not of this shard");
      image.entry.name = next_field(rest, '\t');
      image.cls = next_field(rest, '\n');
    }
    return content;
  } catch (const std::exception&) {  // damaged, or there is no folder: the shard says it all
    return std::nullopt;
  }
}

void keep_offsets(const fs::path& given, const ShardContent& content) {
  const bool plain = io::lower_case(given.extension().string()) == ".tar" && fits_a_line(given.string()) &&
                     std::ranges::all_of(content.images, [](const ShardImage& image) {
                       return fits_a_line(image.entry.name) && fits_a_line(image.cls);
                     });
  if (!plain || std::ssize(content.images) < fewest_samples) {
    return;
  }
  try {
    const fs::path shard = fs::absolute(given);
    std::string text = fmt::format("{}\n{}\t{}\n", head_of(shard), content.passed_over, content.images.size());
    for (const ShardImage& image : content.images) {
      fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\n", image.entry.offset, image.entry.size,
                     image.entry.name, image.cls);
    }
    const fs::path file = file_of(shard);
    io::make_folder(file.parent_path());
    io::write_atomically(file, text);
  } catch (const std::exception&) {  // no folder, or it is full: the headers are read again
  }
}

}  // namespace vitrail::data
