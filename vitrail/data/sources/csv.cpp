// Tables of images and labels.
#include "vitrail/io/csv.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "vitrail/data/sources/sources.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

using io::CsvRow;

constexpr std::array<std::string_view, 7> path_names = {"path",     "file",  "filename", "file_name",
                                                        "filepath", "image", "picture"};
constexpr std::array<std::string_view, 5> label_names = {"label", "class", "class_name", "target", "category"};

struct Columns {
  bool header = false;
  std::size_t path = 0;
  std::size_t label = 1;
  std::optional<io::PartColumn> split;
};

// Finds the columns by the first line; that of labels may be missing unless they are needed.
Columns find_columns(const std::vector<CsvRow>& rows, const std::string& source, bool labeled) {
  const CsvRow& first = rows[0];
  Columns columns;
  columns.header = is_table_header(first);
  if (!columns.header) {
    columns.label = labeled || first.fields.size() > 1 ? columns.label : columns.path;
    return columns;
  }
  const auto path = path_column(first, source);
  const auto label = labeled ? label_column(first, source) : path;
  check(path.has_value() && label.has_value(),
        "{}: line 1 names neither an image nor the column{} (also understood: file, filename, image; class, target)",
        source, labeled ? "s 'path' and 'label'" : " 'path'");
  columns.path = *path;
  columns.label = *label;
  columns.split = io::part_column(rows, source);
  return columns;
}

// Notes the columns that might have been taken as well.
void note_other_columns(Listing& listing, const CsvRow& header, const Columns& columns, bool labeled,
                        const std::string& source) {
  std::vector<std::string> others = {io::other_columns(header, path_names, columns.path)};
  if (labeled) {
    others.push_back(io::other_columns(header, label_names, columns.label));
  }
  for (const std::string& other : others) {
    if (!other.empty()) {
      listing.notes.push_back(fmt::format("{}: {}", source, other));
    }
  }
}

// Notes the images that are there under several classes, or several times.
void note_contradictions(Listing& listing, const std::vector<std::string>& classes, const std::string& source) {
  std::map<std::string, std::pair<std::string, std::int64_t>> lines;  // the first class of each image, and how many
  std::set<std::string> several;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    auto& [label, count] = lines.try_emplace(listing.names[i], classes[i], 0).first->second;
    ++count;
    if (label != classes[i]) {
      several.insert(listing.names[i]);
    }
  }
  std::int64_t again = 0;
  for (const auto& [name, seen] : lines) {
    again += several.contains(name) ? 0 : seen.second - 1;
  }
  if (again > 0) {
    listing.notes.push_back(fmt::format("{}: {} an image again, which counts as often", source,
                                        again == 1 ? "a line names" : fmt::format("{} lines name", again)));
  }
  if (!several.empty()) {
    listing.notes.push_back(fmt::format("{}: {} under several classes, such as {}", source,
                                        io::counted(std::ssize(several), "images"), *several.begin()));
  }
}

}  // namespace

bool is_table_header(const CsvRow& row) {
  return std::ranges::none_of(row.fields, [](const std::string& field) { return io::is_image_name(field); });
}

std::optional<std::size_t> path_column(const CsvRow& header, const std::string& source) {
  return io::column_named(header, path_names, source);
}

std::optional<std::size_t> label_column(const CsvRow& header, const std::string& source) {
  return io::column_named(header, label_names, source);
}

bool is_table_of_images(const fs::path& file) {
  std::error_code error;
  if (!io::is_table_name(file) || !fs::is_regular_file(file, error)) {
    return false;
  }
  // Texts have no quotes around what has quotes in it, so that the line may be none of a table.
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  try {
    const std::vector<CsvRow> rows = io::parse_table(line, file);
    const std::string source = file.string();
    const auto is_there = [&](const std::string& field) {
      return io::is_image_name(field) && fs::exists(file.parent_path() / field, error);
    };
    if (rows.empty()) {
      return false;
    }
    if (std::ranges::any_of(rows[0].fields, is_there)) {
      return true;
    }
    if (!path_column(rows[0], source)) {
      return false;
    }
    if (label_column(rows[0], source) || io::part_column(rows, source) ||
        io::column_named(rows[0], {"sequence", "question", "caption"}, source)) {
      return true;
    }
    constexpr int most_lines = 50;  // of the row below the header, of which a field may have several
    std::string text = line;
    for (int i = 0; i < most_lines && std::getline(stream, line); ++i) {
      text += "\n" + line;
      if (std::ranges::count(text, '"') % 2 == 0) {
        const std::vector<CsvRow> two = io::parse_table(text, file);
        return two.size() > 1 && std::ranges::any_of(two[1].fields, is_there);
      }
    }
    return false;
  } catch (const Error&) {
    return false;
  }
}

Parts parts_in(const std::vector<CsvRow>& rows, const TablePart& part, const std::string& source) {
  std::set<std::string> names;
  for (std::size_t i = part.first; part.split && i < rows.size(); ++i) {
    if (rows[i].fields.size() > part.split->last()) {
      names.insert(part.split->part_of(rows[i], rows[0], source));
    }
  }
  if (names == std::set<std::string>{""}) {  // no row says its part
    return {};
  }
  return parts_named({names.begin(), names.end()});
}

Parts parts_of_table(const fs::path& file) {
  if (!io::is_table_file(file)) {
    return {};
  }
  const std::vector<CsvRow> rows = io::read_table(file);
  return rows.empty() || !is_table_header(rows[0])
             ? Parts()
             : parts_in(rows, {.first = 1, .split = io::part_column(rows, file.string())}, file.string());
}

std::vector<const CsvRow*> rows_of(const std::vector<CsvRow>& rows, const TablePart& part, const std::string& source,
                                   std::vector<std::string>& notes) {
  const std::size_t needed = std::max(part.columns, part.split ? part.split->last() + 1 : 0);
  check(part.first > 0 || rows[0].fields.size() <= needed,
        "{}: line {} has {} fields, but {} were expected: put what has separators in quotes, or name the columns in a "
        "first line",
        source, rows[0].line, rows[0].fields.size(), needed);
  for (std::size_t i = part.first; i < rows.size(); ++i) {
    check(rows[i].fields.size() >= needed, "{}: line {} has {} of the {} columns", source, rows[i].line,
          rows[i].fields.size(), needed);
  }
  const Parts parts = parts_in(rows, part, source);
  const Part* wanted = nullptr;
  if (!part.part.empty()) {
    wanted = choose_part(parts, part.part, source, notes, {.looked_for = ": no column 'split' says which rows it has"});
  } else if (!part.mixed) {
    check_whole(parts, source);
  }
  std::vector<const CsvRow*> chosen;
  for (std::size_t i = part.first; i < rows.size(); ++i) {
    if (wanted == nullptr || part.split->part_of(rows[i], rows[0], source) == wanted->name) {
      chosen.push_back(&rows[i]);
    }
  }
  return chosen;
}

// What an error adds to a name that is that of an image but for its ending, as in tables of ids.
static std::string ending_of_image(const fs::path& named) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(named.parent_path(), error)) {
    if (entry.path().stem() == named.filename() && io::is_image_name(entry.path())) {
      return fmt::format(" (there is a {}: names need their endings)", entry.path().filename().string());
    }
  }
  return fmt::format(" {}", missing_image_remedy);
}

fs::path image_of_row(const fs::path& path, const CsvRow& row, std::size_t column, bool skip_broken) {
  check(!io::trimmed(row.fields[column]).empty(), "{}: line {} names no image", path.string(), row.line);
  fs::path image = path.parent_path() / row.fields[column];
  std::error_code error;  // a name may be too long for the system
  if (!skip_broken && !fs::exists(image, error)) {
    fail("{}: line {} names the image {}, which does not exist{}", path.string(), row.line, image.string(),
         ending_of_image(image));
  }
  return image;
}

Listing list_csv(const fs::path& path, const std::string& split, const ListOptions& how) {
  const bool labeled = how.labeled;
  const std::string source = path.string();
  const std::vector<CsvRow> rows = io::read_table(path);
  check(!rows.empty(), "{}: the file is empty; lines of path,label were expected", source);
  const Columns columns = find_columns(rows, source, labeled);
  check(!columns.header || rows.size() > 1, "{}: there are no lines below the header", source);
  Listing listing;
  if (columns.header) {
    note_other_columns(listing, rows[0], columns, labeled, source);
  }
  std::vector<std::string> classes;
  std::set<std::string> seen;
  for (const CsvRow* row : rows_of(rows,
                                   {.first = columns.header ? 1U : 0U,
                                   .columns = std::max(columns.path, columns.label) + 1,
                                   .split = columns.split,
                                   .part = split,
                                   .mixed = !labeled},
                                   source, listing.notes)) {
    const std::string_view label = io::trimmed(row->fields[columns.label]);
    check(!labeled || !label.empty(), "{}: line {} has no label", source, row->line);
    if (!labeled && !seen.insert(row->fields[columns.path]).second) {
      continue;  // such as an image with several captions
    }
    image_of_row(path, *row, columns.path, how.skip_broken);
    listing.names.push_back(row->fields[columns.path]);
    classes.emplace_back(label);
  }
  note_contradictions(listing, classes, source);
  label_by_name(listing, classes);
  listing.file = [folder = path.parent_path(), names = listing.names](std::int64_t i) {
    return folder / names[static_cast<std::size_t>(i)];
  };
  listing.image = [file = listing.file](std::int64_t i) { return io::read_image(file(i)); };
  listing.encoded = [file = listing.file](std::int64_t i) { return io::read_bytes(file(i)); };
  return listing;
}

}  // namespace vitrail::data
