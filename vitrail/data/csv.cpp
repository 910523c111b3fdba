// Tables of images and labels.
#include "vitrail/io/csv.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "vitrail/data/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

using io::CsvRow;

struct Columns {
  bool header = false;
  std::size_t path = 0;
  std::size_t label = 1;
  std::optional<std::size_t> split;
};

// Finds the columns by the first line, which is a header if no field of it is the name of an image.
Columns find_columns(const CsvRow& first, const std::string& source) {
  Columns columns;
  columns.header = std::none_of(first.fields.begin(), first.fields.end(),
                                [](const std::string& field) { return io::is_image_name(field); });
  if (!columns.header) {
    return columns;
  }
  const auto path = column_named(first, {"path", "file", "filename", "file_name", "filepath", "image", "picture"});
  const auto label = column_named(first, {"label", "class", "class_name", "target", "category"});
  check(path.has_value() && label.has_value(),
        "{}: line 1 names neither an image nor the columns 'path' and 'label' (also understood: file, filename, image; "
        "class, target)",
        source);
  columns.path = *path;
  columns.label = *label;
  columns.split = column_named(first, {"split", "set", "subset"});
  return columns;
}

}  // namespace

std::optional<std::size_t> column_named(const CsvRow& header, const std::vector<std::string_view>& names) {
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    std::string name = header.fields[i];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::string> chosen_part(const std::set<std::string>& parts, const std::vector<std::string>& splits,
                                       const std::string& source) {
  const auto wanted = std::ranges::find_if(splits, [&](const std::string& split) { return parts.contains(split); });
  check(splits.empty() || wanted != splits.end(), "{}: there are no '{}' images, only parts called '{}'", source,
        splits.empty() ? "" : splits[0], fmt::join(parts, "', '"));
  return splits.empty() ? std::nullopt : std::optional(*wanted);
}

Listing list_csv(const fs::path& path, const std::vector<std::string>& asked, bool labeled) {
  const std::string source = path.string();
  const std::vector<CsvRow> rows = io::parse_csv(io::read_text(path), source);
  check(!rows.empty(), "{}: the file is empty; lines of path,label were expected", source);
  const Columns columns = find_columns(rows[0], source);
  check(!columns.header || rows.size() > 1, "{}: there are no lines below the header", source);
  check(asked.empty() || columns.split.has_value() || is_training_split(asked[0]),
        "{}: there are no '{}' images: no column 'split' says which they are", source, asked.empty() ? "" : asked[0]);
  const std::vector<std::string> splits = columns.split.has_value() ? asked : std::vector<std::string>();
  Listing listing;
  std::vector<std::string> classes;
  const std::size_t first = columns.header ? 1 : 0;
  const std::size_t needed = std::max({columns.path, columns.label, columns.split.value_or(0)}) + 1;
  for (std::size_t i = first; i < rows.size(); ++i) {
    check(rows[i].fields.size() >= needed, "{}: line {} has {} of the {} columns", source, rows[i].line,
          rows[i].fields.size(), needed);
  }
  std::set<std::string> parts;
  for (std::size_t i = first; i < rows.size() && columns.split.has_value(); ++i) {
    parts.insert(rows[i].fields[*columns.split]);
  }
  const std::optional<std::string> wanted = chosen_part(parts, splits, source);
  check(!labeled || !splits.empty() || parts.size() < 2, "{}: the table is split into parts ({}): choose one of them",
        source, fmt::join(parts, ", "));
  const fs::path folder = path.parent_path();
  for (std::size_t i = first; i < rows.size(); ++i) {
    const auto& [line, fields] = rows[i];
    if (wanted && fields[*columns.split] != *wanted) {
      continue;
    }
    check(!fields[columns.label].empty(), "{}: line {} has no label", source, line);
    const fs::path image = folder / fields[columns.path];
    std::error_code error;  // a name may be too long for the system
    check(fs::exists(image, error), "{}: line {} names the image {}, which does not exist", source, line,
          image.string());
    listing.names.push_back(fields[columns.path]);
    classes.push_back(fields[columns.label]);
  }
  label_by_name(listing, classes);
  listing.file = [folder, names = listing.names](std::int64_t i) {
    return folder / names[static_cast<std::size_t>(i)];
  };
  listing.image = [file = listing.file](std::int64_t i) { return io::read_image(file(i)); };
  return listing;
}

}  // namespace vitrail::data
