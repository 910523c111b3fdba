/// \file
/// Questions about images, with their answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/sources/parts.h"

namespace vitrail::data {

/// A question about an image.
struct Question {
  std::int64_t id = 0;
  std::string text;
  std::vector<std::string> answers;    ///< what people answered, in lower case; one at least
  std::string answer;                  ///< the one that counts as right where there must be one: the most frequent
  std::string type;                    ///< "count", "what colour" …; "" if the source does not say it
  std::vector<Box> about;              ///< what it is about, in pixels, where the source says that
  std::vector<std::string> said = {};  ///< the answers as they stand in the source, if that is another way
};

/// Images with one or more questions each.
struct ImageQuestions {
  std::shared_ptr<const Dataset> images;         ///< without labels
  std::vector<std::vector<Question>> questions;  ///< of each image, one at least

  std::int64_t count() const;  ///< of all questions
};

/// How right an answer is: min(n / 3, 1) where n of ten people have given it (VQA: Agrawal et al. 2015, without the
/// mean over subsets of nine), and of fewer than three answers, the share that is equal.
double vqa_accuracy(const std::vector<std::string>& answers, const std::string& given);
/// An answer as answers are compared: in lower case, without spaces at its ends and a full stop.
std::string plain_answer(std::string_view answer);

/// Opens questions about images. `source` is one of
/// - a file of questions in the layout of VQA v2, NAMEquestions.json ("questions": image_id, question, question_id), or
/// a
///   folder with one. Beside it lies NAMEannotations.json ("annotations": question_id, image_id, answers,
///   multiple_choice_answer, question_type), without the "OpenEnded_" that VQA v2 has in the first; `boxes` of
///   [left, top, width, height], which `vitrail scenes` writes, may say what a question is about. The images are those
///   of a folder beside the files, `images` or one whose name is a word of theirs ("train2014"), whose names end with
///   the image's id: COCO_train2014_000000000009.jpg, 000009.png;
/// - a `.csv` of path,question,answer, with paths relative to the CSV, or a folder with a questions.csv. A header line
/// is
///   understood, and further columns `type` and `split` with it; a path may come in several lines.
///
/// - `scenes:count=8000`: the questions about scenes that are drawn when they are asked for, see read_scene_source().
///
/// Images without a question are counted as passed over. Throws Error, naming the place, if a file does not fit its
/// layout, an id is there twice, a question has no image or no answers, answers have no question, or there are none.
ImageQuestions open_questions(const std::filesystem::path& source);
/// The same of a part (choose_part()): a subfolder train/, validation/ …, a file whose name says it
/// (v2_OpenEnded_mscoco_train2014_questions.json), or the rows of a table by its column "split"; "" is the whole.
/// Throws Error if there is no such part, or for "" if there are several. Question::about of drawn scenes is filled in
/// if `drawn_boxes` says so, for which each is drawn once. With `skip_broken`, questions about images that are not
/// there are left out.
ImageQuestions open_questions_of(const std::filesystem::path& source, const std::string& split,
                                 bool drawn_boxes = false, bool skip_broken = false);
/// The images at `indices`, with their questions.
ImageQuestions part_of(const ImageQuestions& whole, std::vector<std::int64_t> indices);
/// The parts of such a source; none if it is whole.
Parts parts_of_questions(const std::filesystem::path& source);
/// Whether a file or a folder looks like questions about images.
bool has_questions(const std::filesystem::path& source);

}  // namespace vitrail::data
