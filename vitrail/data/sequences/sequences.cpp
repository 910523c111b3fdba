#include "vitrail/data/sequences/sequences.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fnmatch.h>

#include "vitrail/data/sources/folder_parts.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

using Labels = SequenceOptions::Labels;

// The frames of a table.
class TableImages final : public Dataset {
 public:
  TableImages(fs::path folder, std::vector<std::string> names) : folder_(std::move(folder)), names_(std::move(names)) {}
  std::int64_t size() const override { return std::ssize(names_); }
  io::Image image(std::int64_t index) const override { return io::read_image(folder_ / name(index)); }
  std::int64_t label(std::int64_t /*index*/) const override { return unlabeled; }
  std::string name(std::int64_t index) const override { return names_[static_cast<std::size_t>(index)]; }
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  fs::path folder_;
  std::vector<std::string> names_;
  std::vector<std::string> classes_;  // none
};

// What a source tells, with the names of classes in place of their numbers: an empty name is none.
struct Told {
  Sequences found;
  std::vector<std::string> sequence_class;
  std::vector<std::string> frame_class;
};

// Whether an image is a frame by its file name.
bool is_frame(const fs::path& image, const SequenceOptions& options) {
  return options.frames.empty() || fnmatch(options.frames.c_str(), image.filename().c_str(), 0) == 0;
}

void check_any_frame(const Told& told, const fs::path& source, const SequenceOptions& options) {
  check(!told.found.sequences.empty(), "{}: no image has a name that matches '{}'", source.string(), options.frames);
}

// Adds frame number `frame` to the sequence of this name.
void add_frame(Sequences& found, std::map<std::string, std::size_t>& numbers, const std::string& name,
               std::int64_t frame) {
  const auto [at, fresh] = numbers.emplace(name, found.sequences.size());
  if (fresh) {
    found.sequences.push_back({name, unlabeled, {}});
  }
  found.sequences[at->second].frames.push_back(frame);
}

// The folders below `source` in which nothing lies; none of an archive.
std::set<std::string> empty_folders(const fs::path& source) {
  std::set<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(source, error), end; !error && at != end; at.increment(error)) {
    if (is_hidden(at->path().filename())) {
      at.disable_recursion_pending();
    } else if (std::error_code own; at->is_directory(own) && fs::is_empty(at->path(), error)) {
      found.insert(fs::relative(at->path(), source, error).string());
    }
  }
  return found;
}

Told sequences_of_folders(const fs::path& source, const SequenceOptions& options) {
  DatasetOptions all;
  all.split = options.split;
  all.labeled = false;
  all.skip_broken = options.skip_broken;
  Told told;
  told.found.images = options.labels == SequenceOptions::Labels::none && options.split.empty()
                          ? open_unlabeled(source, options.skip_broken)
                          : open_dataset(source, all);
  std::map<std::string, std::size_t> numbers;
  const bool whole = options.split.empty() || !has_parts(source);
  std::set<std::string> without = whole ? empty_folders(source) : std::set<std::string>();
  for (std::int64_t i = 0; i < told.found.images->size(); ++i) {
    const fs::path path = told.found.images->name(i);
    if (is_frame(path, options)) {
      add_frame(told.found, numbers, path.parent_path().string(), i);
    } else {
      without.insert(path.parent_path().string());
    }
  }
  std::erase_if(without, [&](const std::string& name) { return numbers.contains(name); });
  told.found.notes = notes_of({told.found.images.get()});
  for (const Part& part : fs::is_directory(source) ? parts_in(source, options.split) : Parts()) {
    told.found.parts.insert(part.name);
  }
  if (!without.empty()) {
    told.found.notes.push_back(fmt::format(
        "{}: {} without a frame{}, such as '{}'", source.string(), io::counted(std::ssize(without), "folders"),
        options.frames.empty() ? "" : " that matches '" + options.frames + "'", *without.begin()));
  }
  check_any_frame(told, source, options);
  for (Sequence& sequence : told.found.sequences) {
    told.sequence_class.push_back(fs::path(sequence.name).parent_path().filename().string());
    if (sequence.name.empty()) {
      sequence.name = source.string();
    }
  }
  return told;
}

double angle_in(const std::string& field, const std::string& source, std::size_t line) {
  double angle = 0;
  const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), angle);
  check(status == std::errc() && end == field.data() + field.size() && std::isfinite(angle),
        "{}: line {} has the angle '{}', which is not a number of degrees", source, line, field);
  return angle;
}

struct FrameColumns {
  std::size_t path = 0;
  std::size_t sequence = 0;
  std::optional<std::size_t> label, angle;
  std::optional<io::PartColumn> split;

  FrameColumns(const std::vector<io::CsvRow>& rows, const std::string& source) {
    const io::CsvRow& header = rows[0];
    const auto paths =
        io::column_named(header, {"path", "file", "filename", "file_name", "filepath", "image", "frame"}, source);
    const auto sequences = io::column_named(header, {"sequence", "clip", "video"}, source);
    check(paths && sequences,
          "{}: line {} must name the columns: 'path' of a frame, 'sequence', and perhaps 'label', 'angle' and 'split'",
          source, header.line);
    path = *paths;
    sequence = *sequences;
    label = label_column(header, source);
    angle = io::column_named(header, {"angle", "degrees"}, source);
    split = io::part_column(rows, source);
  }
};

// The parts that a table is split into, whole sequences each.
std::set<std::string> parts_of_sequences(const std::vector<io::CsvRow>& rows, const FrameColumns& columns,
                                         const std::string& source) {
  std::set<std::string> parts;
  std::map<std::string, std::string> part_of;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& [line, fields] = rows[i];
    const std::string part = columns.split->part_of(rows[i], rows[0], source);
    const auto [before, fresh] = part_of.emplace(fields[columns.sequence], part);
    check(before->second == part,
          "{}: line {} puts the sequence '{}' into the part '{}', but an earlier line into '{}': a sequence is of one "
          "part",
          source, line, fields[columns.sequence], part, before->second);
    parts.insert(before->second);
  }
  return parts;
}

Told sequences_of_table(const fs::path& path, const SequenceOptions& options) {
  const std::string source = path.string();
  const std::vector<io::CsvRow> rows = io::read_table(path);
  check(rows.size() > 1, "{}: a header with the columns 'path' and 'sequence' and a line for each frame were expected",
        source);
  const FrameColumns columns(rows, source);
  Told told;
  const std::vector<const io::CsvRow*> chosen = rows_of(rows,
                                                        {.first = 1,
                                                         .columns = rows[0].fields.size(),
                                                         .split = columns.split,
                                                         .part = options.split,
                                                         .mixed = options.labels == Labels::none},
                                                        source, told.found.notes);
  if (columns.split && options.labels != Labels::none) {
    told.found.parts = parts_of_sequences(rows, columns, source);
  }
  std::vector<std::string> names;
  std::map<std::string, std::size_t> numbers;
  for (const io::CsvRow* row : chosen) {
    const auto& [line, fields] = *row;
    if (!is_frame(fields[columns.path], options)) {
      continue;
    }
    check(!io::trimmed(fields[columns.sequence]).empty(), "{}: line {} names no sequence", source, line);
    image_of_row(path, *row, columns.path, options.skip_broken);
    const bool fresh = !numbers.contains(fields[columns.sequence]);
    add_frame(told.found, numbers, fields[columns.sequence], std::ssize(names));
    names.push_back(fields[columns.path]);
    if (columns.angle) {
      told.found.angles.push_back(angle_in(fields[*columns.angle], source, line));
    }
    const std::string label = columns.label ? fields[*columns.label] : "";
    told.frame_class.push_back(label);
    if (fresh) {
      told.sequence_class.push_back(label);
    }
    const std::string& before = told.sequence_class[numbers.at(fields[columns.sequence])];
    check(options.labels != Labels::sequences || before == label,
          "{}: line {} gives the sequence '{}' the class '{}', but an earlier line the class '{}'", source, line,
          fields[columns.sequence], label, before);
  }
  check_any_frame(told, source, options);
  told.found.images = std::make_shared<TableImages>(path.parent_path(), std::move(names));
  return told;
}

// The numbers of the classes of these names.
std::vector<std::int64_t> numbered(Sequences& found, const std::vector<std::string>& names,
                                   const SequenceOptions& options, const std::string& source) {
  Listing listing;
  label_by_name(listing, names);
  if (!options.classes.empty()) {
    use_classes(listing, options.classes, source);
  }
  found.classes = std::move(listing.classes);
  return std::move(listing.labels);
}

}  // namespace

Sequences open_sequences(const fs::path& source, const SequenceOptions& options) {
  std::error_code error;
  const bool table = io::is_table_name(source) && !fs::is_directory(source, error);
  check(!table || fs::exists(source, error), "{}: no such file or folder", source.string());
  Told told = table ? sequences_of_table(source, options) : sequences_of_folders(source, options);
  Sequences& found = told.found;
  check(!found.sequences.empty(), "{}: there are no sequences of images", source.string());

  const auto without = std::ranges::find(told.sequence_class, std::string());
  const bool all = without == told.sequence_class.end();
  if (options.labels == Labels::frames) {
    check(!told.frame_class.empty() && std::ranges::find(told.frame_class, "") == told.frame_class.end(),
          "{}: labels of frames are read from the column 'label' of a .csv, in which every frame must have one",
          source.string());
    found.frame_labels = numbered(found, told.frame_class, options, source.string());
  } else if (options.labels == Labels::sequences || (options.labels == Labels::if_any && all)) {
    check(all, "{}: the sequence '{}' has no class: {}", source.string(),
          all ? "" : found.sequences[static_cast<std::size_t>(without - told.sequence_class.begin())].name,
          table ? "a column 'label' says it" : "its folder lies outside of any class folder");
    const std::vector<std::int64_t> labels = numbered(found, told.sequence_class, options, source.string());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      found.sequences[i].label = labels[i];
    }
  }
  return std::move(told.found);
}

}  // namespace vitrail::data
