#include "vitrail/data/shards/shards.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/shards/shard_offsets.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/web/download.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_shards = 1000000;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = !text.empty() && status == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

// What stands between braces: the words of a list, or the numbers of a range.
std::vector<std::string> choices(const std::string& inside, const std::string& pattern) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string::npos) {
    std::vector<std::string> words;
    std::istringstream list(inside);
    for (std::string word; std::getline(list, word, ',');) {
      words.push_back(word);
    }
    return words;
  }
  const std::string begin = inside.substr(0, dots);
  const std::string end = inside.substr(dots + 2);
  const std::optional<std::int64_t> first = number_in(begin);
  const std::optional<std::int64_t> last = number_in(end);
  check(first && last && *first <= *last && static_cast<std::size_t>(*last - *first) < most_shards,
        "{}: '{{{}}}' counts from one number to a larger one, as {{000000..000127}}, to at most a million shards",
        pattern, inside);
  const std::size_t digits = begin.size() > 1 && begin.front() == '0' ? begin.size() : 1;
  std::vector<std::string> words;
  for (std::int64_t number = *first; number <= *last; ++number) {
    words.push_back(fmt::format("{:0{}}", number, digits));
  }
  return words;
}

// What is joined by "::".
std::vector<std::string> joined_sources(const fs::path& source) {
  std::vector<std::string> sources;
  std::string text = source.string();
  for (std::size_t end = 0; end != std::string::npos;) {
    end = text.find("::");
    sources.push_back(text.substr(0, end));
    text = end == std::string::npos ? "" : text.substr(end + 2);
  }
  return sources;
}

void expand(const std::string& pattern, std::vector<fs::path>& files) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) {
    check(files.size() < most_shards, "'{}' names more than a million shards", pattern);
    files.emplace_back(pattern);
    return;
  }
  const std::size_t close = pattern.find('}', open);
  check(close != std::string::npos, "{}: the brace of '{}' is not closed", pattern, pattern.substr(open));
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  for (const std::string& word : choices(inside, pattern)) {
    expand(pattern.substr(0, open) + word + pattern.substr(close + 1), files);
  }
}

// A shard as an index of the wids package has it.
struct IndexedShard {
  std::string url;  // as the index says it
  fs::path file;
  std::int64_t samples = 0;
  std::optional<std::int64_t> bytes = std::nullopt;
};

std::vector<IndexedShard> read_index(const fs::path& path) {
  const nlohmann::json index = io::read_json(io::local_file(path));
  check(index.is_object() && index.contains("shardlist") && index["shardlist"].is_array(),
        "{}: not an index of shards: a list 'shardlist' was expected", path.string());
  std::vector<IndexedShard> shards;
  for (const auto& entry : index["shardlist"]) {
    io::Fields fields(entry, fmt::format("{}: shard {}", path.string(), shards.size() + 1));
    const fs::path url = fields.get<std::string>("url");
    const bool whole = url.is_absolute() || io::is_url(url.native());
    IndexedShard& shard = shards.emplace_back();
    shard.url = url.string();
    shard.file = whole ? url : path.parent_path() / url;
    shard.samples = fields.get<std::int64_t>("nsamples");
    shard.bytes = fields.optional<std::int64_t>("filesize");
  }
  return shards;
}

// A file's path from the root; the address of one on the web.
fs::path whole_path(const fs::path& file) {
  return io::is_url(file.native()) ? file : fs::absolute(file).lexically_normal();
}

// What an index says of files, each of which is taken once: by its path or, where the file lies elsewhere than the
// index says, beside it for instance, by its name, if one alone is called so.
class IndexOfShards {
 public:
  explicit IndexOfShards(std::vector<IndexedShard> shards) : shards_(std::move(shards)), taken_(shards_.size(), false) {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      by_path_.emplace(whole_path(shards_[i].file), i);
      by_name_.emplace(shards_[i].file.filename().string(), i);
    }
  }
  const IndexedShard* take(const fs::path& file) {
    const auto path = by_path_.find(whole_path(file));
    const std::string name = file.filename().string();
    if (path == by_path_.end() && by_name_.count(name) != 1) {
      return nullptr;
    }
    const std::size_t at = path != by_path_.end() ? path->second : by_name_.find(name)->second;
    if (taken_[at]) {
      return nullptr;
    }
    taken_[at] = true;
    return &shards_[at];
  }
  std::vector<std::string> not_taken() const {  // as the index names them
    std::vector<std::string> urls;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (!taken_[i]) {
        urls.push_back(shards_[i].url);
      }
    }
    return urls;
  }

 private:
  std::vector<IndexedShard> shards_;
  std::vector<bool> taken_;
  std::map<fs::path, std::size_t> by_path_;
  std::multimap<std::string, std::size_t> by_name_;
};

// The key of a sample, and what the file is of it: "cat/1" and "jpg" of "cat/1.jpg"; no dot, no sample.
std::optional<std::pair<std::string, std::string>> key_of(const std::string& name) {
  const std::size_t base = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base) {
    return std::nullopt;
  }
  return std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

std::string text_of(const io::Tar& tar, const io::TarEntry& entry) {
  const auto bytes = tar.bytes(entry);
  return {bytes.begin(), bytes.end()};
}

// The class that the .json of a sample says; "" if it says none.
std::string class_in(const std::string& text, const std::string& source) {
  const nlohmann::json fields = io::parse_json(text, source);
  for (const char* name : {"label", "cls", "class"}) {
    if (fields.is_object() && fields.contains(name)) {
      const auto& value = fields[name];
      return value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return "";
}

// The lines of a file beside a shard; none if there is no such file.
std::vector<std::string> lines_beside(const fs::path& shard, const char* name) {
  fs::path file = shard.parent_path() / name;
  if (io::is_url(file.native())) {
    try {
      file = io::local_file(file);
    } catch (const Error&) {
      return {};  // the server has none
    }
  }
  return fs::exists(file) ? io::read_lines(file) : std::vector<std::string>();
}

ShardContent content_of(const io::Tar& tar) {
  ShardContent content;
  std::map<std::string, std::size_t, std::less<>> place;  // of a key among the samples
  std::map<std::string, std::string, std::less<>> classes;
  for (const io::TarEntry& entry : tar.entries()) {
    const auto parts = key_of(entry.name);
    if (!parts) {
      ++content.passed_over;
      continue;
    }
    const auto& [key, kind] = *parts;
    if (io::is_image_name(entry.name)) {
      check(place.emplace(key, content.images.size()).second, "{}: the sample '{}' has two images", tar.source(), key);
      content.images.push_back({entry, ""});
    } else if (kind == "cls") {
      classes[key] = io::trimmed(text_of(tar, entry));
    } else if (kind == "json" && !classes.contains(key)) {
      const std::string name = class_in(text_of(tar, entry), fmt::format("{}: {}", tar.source(), entry.name));
      if (!name.empty()) {
        classes[key] = name;
      }
    }
  }
  for (const auto& [key, name] : classes) {
    if (const auto sample = place.find(key); sample != place.end()) {
      content.images[sample->second].cls = name;
    } else {
      ++content.passed_over;
    }
  }
  return content;
}

// Adds a shard, by its headers or by what was kept of them.
void add_shard(const fs::path& file, Shards& shards) {
  const ShardOffsets offsets(file);
  std::optional<ShardContent> content = offsets.kept();
  if (content) {
    std::vector<io::TarEntry> entries;
    entries.reserve(content->images.size());
    for (const ShardImage& image : content->images) {
      entries.push_back(image.entry);
    }
    shards.files.push_back(io::Tar::with_entries(file, std::move(entries)));
  } else {
    shards.files.push_back(io::Tar::open(file));
    content = content_of(shards.files.back());
    const io::Tar& tar = shards.files.back();
    if (!tar.unpacked() && tar.lost_links().empty() && tar.replaced().empty()) {  // which are told each time
      offsets.keep(*content);
    }
  }
  shards.passed_over += content->passed_over;
  for (ShardImage& image : content->images) {
    const std::string key = key_of(image.entry.name).value_or(std::pair{image.entry.name, ""}).first;
    shards.samples.push_back({shards.files.size() - 1, key, std::move(image.entry), std::move(image.cls)});
  }
}

}  // namespace

bool is_shard_source(const fs::path& source) {
  const std::string text = source.string();
  std::error_code error;
  if (io::is_url(text)) {
    return true;
  }
  if (fs::exists(source, error)) {
    return source.extension() == ".json" && !fs::is_directory(source, error);
  }
  return (text.find('{') != std::string::npos && text.find('}') != std::string::npos) ||
         text.find("::") != std::string::npos || source.extension() == ".json";
}

std::string absolute_shards(const fs::path& source) {
  std::string all;
  for (const std::string& one : joined_sources(source)) {
    all += (all.empty() ? "" : "::") + (io::is_url(one) ? one : fs::absolute(one).lexically_normal().string());
  }
  return all;
}

std::vector<fs::path> shards_named(const fs::path& source) {
  std::vector<fs::path> files;
  if (source.extension() == ".json") {
    for (const IndexedShard& shard : read_index(source)) {
      files.push_back(shard.file);
    }
  } else {
    for (const std::string& one : joined_sources(source)) {
      expand(one, files);
    }
  }
  check(!files.empty(), "'{}' names no shards", source.string());
  for (const fs::path& file : files) {
    const std::string ending = io::lower_case(file.extension().native());
    constexpr std::array others = {".csv", ".tsv", ".txt", ".zip", ".parquet", ".html"};
    check(!io::is_url(file.native()) || (!io::is_image_name(file) && std::ranges::find(others, ending) == others.end()),
          "'{}': shards alone are read from the web (.tar, .tar.gz, .tgz, or a .json that lists them)", file.string());
  }
  return files;
}

std::string part_of_shard(const fs::path& file) {
  std::string stem = file.stem().string();
  const auto number_behind = [&](std::string_view mark) {  // where it begins with the mark, if there is one
    const std::size_t at = stem.rfind(mark);
    return at != std::string::npos && number_in(stem.substr(at + mark.size())) ? at : std::string::npos;
  };
  stem = stem.substr(0, number_behind("-of-"));
  const std::size_t number = number_behind("-");
  return file.extension() == ".tar" && number != std::string::npos ? stem.substr(0, number) : "";
}

std::vector<fs::path> shards_of_part(const fs::path& folder, const std::string& part) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (part_of_shard(entry.path()) == part) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

bool holds_samples(const io::Tar& tar) {
  std::set<std::string, std::less<>> images;
  for (const io::TarEntry& entry : tar.entries()) {
    if (const auto parts = key_of(entry.name); parts && io::is_image_name(entry.name)) {
      images.insert(parts->first);
    }
  }
  for (const io::TarEntry& entry : tar.entries()) {
    const auto parts = key_of(entry.name);
    if (parts && parts->second == "cls") {
      return true;
    }
    if (parts && parts->second == "json" && images.contains(parts->first)) {
      return !class_in(text_of(tar, entry), fmt::format("{}: {}", tar.source(), entry.name)).empty();
    }
  }
  return false;
}

Shards open_shards(const std::vector<fs::path>& files, const fs::path& source, bool skip_broken) {
  Shards shards;
  const bool counted = source.extension() == ".json";
  IndexOfShards expected(counted ? read_index(source) : std::vector<IndexedShard>());
  const auto leave_out = [&](const std::string& why) {
    check(skip_broken, "{}", why);
    shards.left_out.push_back("a shard is left out: " + why);
  };
  for (const fs::path& file : files) {
    const std::size_t samples = shards.samples.size();
    const std::size_t opened = shards.files.size();
    const std::int64_t passed_over = shards.passed_over;
    try {
      const IndexedShard* const said = expected.take(file);
      check(!counted || said != nullptr, "the index {} does not name {}", source.string(), file.string());
      const fs::path local = io::local_file(file);
      add_shard(local, shards);
      const std::int64_t own = std::ssize(shards.samples) - static_cast<std::int64_t>(samples);
      check(!counted || own == said->samples,
            "{} has {}, but the index {} says {}: it is cut short, or the index is of other shards", file.string(),
            io::counted(own, "samples"), source.string(), said != nullptr ? said->samples : 0);
      if (const auto bytes = said != nullptr ? said->bytes : std::nullopt) {
        const auto has = static_cast<std::int64_t>(fs::file_size(local));
        check(has == *bytes,
              "{} has {} bytes, but the index {} says {}: it has changed since, and the index is to be made anew",
              file.string(), has, source.string(), *bytes);
      }
    } catch (const Error& error) {
      leave_out(error.what());
      shards.samples.resize(samples);
      shards.files.resize(opened);
      shards.passed_over = passed_over;
    }
  }
  for (const std::string& url : expected.not_taken()) {
    leave_out(fmt::format("the index {} names {}, which is not there", source.string(), url));
  }
  check(!shards.files.empty(), "{}: none of {} can be read: {}", source.string(),
        io::counted(std::ssize(files), "shards"), shards.left_out.empty() ? "" : shards.left_out.front());
  for (const std::string& line : lines_beside(files.front(), "classes.txt")) {
    shards.classes.emplace_back(io::trimmed(line));
  }
  return shards;
}

}  // namespace vitrail::data
