/// \file
/// The parts of a data set, to train, validate and test on, under the names that people give them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

/// A part that a source was found to have.
struct Part {
  std::string name;                 ///< as the source calls it: "train", "Val", "train2017"; "": what is of no part
  std::string shown;                ///< what has it: "'val.csv'", "'val'", "what is of no part"
  std::filesystem::path path = {};  ///< where it lies, if it has a place of its own
};
using Parts = std::vector<Part>;

/// Whether a name is one that people give to the part for training. Capital letters change nothing, here and below.
bool is_training_split(std::string_view split);
/// The names under which people keep a part, the requested one first.
std::vector<std::string> names_of_split(const std::string& split);
/// Whether a name is one that people give to a part: "train", "Val", "test" …, also with a year behind it, as COCO's
/// parts have ("train2017").
bool is_part_name(std::string_view name);
/// Whether a name is one of a part, or one of the part `split`.
bool is_part_name(std::string_view name, const std::string& split);
/// Whether a name is one of the part `split`, also with a year behind it.
bool is_of_part(std::string_view name, const std::string& split);
/// The first of the words of a file's name that is_part_name(): "train2014" of "v2_mscoco_train2014_questions.json",
/// "test-dev2015" of such a one, "train" of "train-000000.tar" and "train-00000-of-00064.tar"; "" if there is none.
std::string part_in_name(std::string_view file);
/// Whether two words name the same part: "Val" and "val".
bool is_same_part(std::string_view a, std::string_view b);

/// Sorts parts into the order that people name them in: training before validation before testing, whatever is of
/// several years the latest first, and else as they were found.
void sort_parts(Parts& parts);
/// Parts of these names, which are no files or folders of their own; sorted.
Parts parts_named(const std::vector<std::string>& names);
/// The folders below `folder` whose names are those of parts, or of the part `split`, and that are `wanted`; sorted.
Parts part_folders(const std::filesystem::path& folder, const std::string& split = "",
                   const std::function<bool(const std::filesystem::path&)>& wanted = {});
/// The names of parts, each once, but for that of none: "train, val".
std::string names_in(const Parts& parts);

/// Where choose_part() looks.
struct PartSearch {
  bool whole = false;           ///< the source itself, beside its parts, is all for training if none of them is
  std::string looked_for = "";  ///< what an error adds about a source without parts: ": no column 'split' says …"
};
/// The part of `source` that is called `split`, or has another name of it, or one of these with a year behind it: the
/// first of them that is there, or else one whose name has such a word ("train_small"); if there is none, "test" in
/// place of a part for validation, and "trainval" in place of one for training unless there is one for validation. Null
/// if the source has no parts and so is all for training. Notes say which others are left, and what is taken in place.
/// Throws Error if there is no such part.
const Part* choose_part(const Parts& parts, const std::string& split, const std::string& source,
                        std::vector<std::string>& notes, const PartSearch& search = {});
/// Whether choose_part() finds a part called `split`, or one in its place.
bool has_part(const Parts& parts, const std::string& split);
/// Whether a source has no part for anything but training ("trainval" too); what is of no part counts for nothing.
bool is_all_for_training(const Parts& parts);
/// Throws Error, which names the parts, if a source has more than one, or, unless `one_is_whole`, any.
void check_whole(const Parts& parts, const std::string& source, bool one_is_whole = true);
/// A sentence for a source that is taken with all of its parts; "" if it has fewer than two.
std::string note_of_all(const Parts& parts, const std::string& source);

/// Whether a part of data that is drawn when it is asked for (`what`: "scenes") is the one to evaluate on, and not that
/// for training, which "" is too. Throws Error for another part.
bool is_drawn_for_validation(const std::string& split, std::string_view what);

}  // namespace vitrail::data
