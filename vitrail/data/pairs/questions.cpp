#include "vitrail/data/pairs/questions.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/data/pairs/drawn_questions.h"
#include "vitrail/data/pairs/places.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view questions_ending = "questions.json";
constexpr const char* question_column = "question";
constexpr const char* questions_csv = "questions.csv";

// The questions files of a folder: one, or those of its parts.
std::vector<fs::path> question_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().filename().string().ends_with(questions_ending) && !is_hidden(entry.path().filename())) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// The file of answers to questions, as it should lie beside them.
fs::path annotations_of(const fs::path& questions) {
  std::string name = questions.filename().string();
  const std::size_t ending = name.size() - questions_ending.size();
  name.replace(ending, std::string_view("questions").size(), "annotations");
  const fs::path same = questions.parent_path() / name;
  const std::string open_ended = "OpenEnded_";
  if (const std::size_t at = name.find(open_ended); at != std::string::npos) {
    const fs::path own = questions.parent_path() / name.erase(at, open_ended.size());
    if (fs::exists(own)) {
      return own;
    }
  }
  return same;
}

bool has_answers(const fs::path& questions) { return fs::exists(annotations_of(questions)); }

// Whether a name has this word, which no letter or digit touches: "train2014" is one of "mscoco_train2014_questions".
bool has_word(std::string_view name, std::string_view word) {
  const auto ends = [&](std::size_t at) {
    return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0;
  };
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) {
      return true;
    }
  }
  return false;
}

// The folder with the images: images/ beside the file, or a folder, beside it or one level up, that is called as the
// part in the file's name, or else as another word of it.
fs::path images_of(const fs::path& questions) {
  const fs::path folder = fs::absolute(questions).lexically_normal().parent_path();
  if (fs::is_directory(folder / "images")) {
    return folder / "images";
  }
  const std::string name = questions.filename().string();
  const std::string part = part_in_name(name);
  fs::path found;
  for (const fs::path& place : {folder, folder.parent_path(), folder.parent_path() / "images"}) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, error)) {
      const std::string own = entry.path().filename().string();
      if (!entry.is_directory(error) || entry.path() == folder || !has_word(name, own)) {
        continue;
      }
      if (own == part) {
        return entry.path();
      }
      if (found.empty() || own.size() > found.filename().string().size()) {
        found = entry.path();
      }
    }
  }
  check(!found.empty(), "{}: its images are not there: a folder 'images'{} was expected beside it", questions.string(),
        part.empty() ? "" : fmt::format(" or '{}'", part));
  return found;
}

// The words of a question, none of spaces alone.
std::string_view asked_in(std::string_view question) {
  const std::size_t first = question.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : question.substr(first);
}

// What answers a question, as it stands in the annotations.
struct Answered {
  std::vector<std::string> answers;
  std::string answer;
  std::string type;
  std::vector<Box> about;
  std::vector<std::string> said;  // Question::said
  std::int64_t image = 0;
  bool used = false;
};

Answered read_answered(io::Fields& f) {
  Answered result;
  result.image = f.get<std::int64_t>("image_id");
  result.type = f.optional<std::string>("question_type").value_or("");
  if (f.kind("answers") == io::Kind::list) {
    std::size_t number = 0;
    for (const nlohmann::json& item : f.raw("answers")) {
      io::Fields answer(item, fmt::format("{}: 'answers' {}", f.source(), number++));
      result.said.push_back(answer.get<std::string>("answer"));
      result.answers.push_back(plain_answer(result.said.back()));
    }
  }
  if (result.said == result.answers) {
    result.said.clear();
  }
  result.answer = plain_answer(f.optional<std::string>("multiple_choice_answer").value_or(""));
  if (result.answers.empty() && !result.answer.empty()) {
    result.answers.push_back(result.answer);
  }
  check(!result.answers.empty(), "{}: the question has no answer", f.source());
  if (result.answer.empty()) {
    std::map<std::string, std::int64_t> counts;
    for (const std::string& answer : result.answers) {
      ++counts[answer];
    }
    result.answer = std::ranges::max_element(counts, {}, &std::pair<const std::string, std::int64_t>::second)->first;
  }
  result.about = read_boxes(f);
  return result;
}

// Images and questions as a layout lists them, also images that have none.
struct QuestionListing {
  Listing images;
  std::vector<fs::path> paths;
  std::vector<std::vector<Question>> questions;
};

// With `skip_broken`, questions about images that are not there are left out.
QuestionListing list_vqa(const fs::path& file, bool skip_broken) {
  const fs::path answers_file = annotations_of(file);
  check(fs::exists(answers_file), "{}: the answers are not there: '{}' was expected beside it", file.string(),
        answers_file.filename().string());
  const nlohmann::json answers_json = io::read_json(answers_file);
  io::Fields answer_fields(answers_json, answers_file.string());
  check(answer_fields.kind("annotations") == io::Kind::list,
        "{}: there is no list 'annotations', as answers in VQA's layout have it", answers_file.string());
  std::unordered_map<std::int64_t, Answered> answered;
  std::size_t number = 0;
  for (const nlohmann::json& item : answers_json["annotations"]) {
    io::Fields f(item, fmt::format("{}: 'annotations' {}", answers_file.string(), number++));
    const auto id = f.get<std::int64_t>("question_id");
    check(answered.emplace(id, read_answered(f)).second, "{}: the question {} is answered twice", f.source(), id);
  }

  QuestionListing result;
  std::unordered_map<std::int64_t, std::size_t> place_of;
  const fs::path folder = images_of(file);
  std::vector<fs::path> images;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (io::is_image_name(entry.path().filename().string()) && !is_hidden(entry.path().filename())) {
      images.push_back(entry.path());
    }
  }
  std::ranges::sort(images, [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
  for (const fs::path& image : images) {
    if (const auto id = id_in_name(image)) {
      const auto [place, is_new] = place_of.emplace(*id, result.paths.size());
      if (!is_new) {
        fail("{}: '{}' and '{}' both end with the id {}", folder.string(), image.filename().string(),
             result.images.names[place->second], *id);
      }
      result.paths.push_back(image);
      result.images.names.push_back(image.filename().string());
    }
  }
  result.questions.resize(result.paths.size());

  const nlohmann::json json = io::read_json(file);
  io::Fields fields(json, file.string());
  check(fields.kind("questions") == io::Kind::list,
        "{}: there is no list 'questions', as questions in VQA's layout have it", file.string());
  number = 0;
  std::int64_t without_image = 0;
  for (const nlohmann::json& item : json["questions"]) {
    io::Fields f(item, fmt::format("{}: 'questions' {}", file.string(), number++));
    const auto id = f.get<std::int64_t>("question_id");
    const auto image = f.get<std::int64_t>("image_id");
    const auto place = place_of.find(image);
    const auto own = answered.find(id);
    if (skip_broken && place == place_of.end()) {
      ++without_image;
      if (own != answered.end()) {
        own->second.used = true;
      }
      continue;
    }
    check(place != place_of.end(),
          "{}: the question {} is about the image {}, but no image in '{}' ends with that (--skip-broken, "
          "where a command has it, leaves such questions out)",
          f.source(), id, image, folder.string());
    check(own != answered.end(), "{}: the question {} has no answer in '{}'", f.source(), id,
          answers_file.filename().string());
    check(!own->second.used, "{}: the question {} is there twice", f.source(), id);
    check(own->second.image == image, "{}: the question {} is about the image {}, but its answer about {}", f.source(),
          id, image, own->second.image);
    check(!asked_in(f.get<std::string>("question")).empty(), "{}: the question {} has no words", f.source(), id);
    own->second.used = true;
    Answered& a = own->second;
    result.questions[place->second].push_back({id, f.get<std::string>("question"), std::move(a.answers),
                                               std::move(a.answer), std::move(a.type), std::move(a.about),
                                               std::move(a.said)});
  }
  for (const auto& [id, a] : answered) {
    check(a.used, "{}: there are answers to the question {}, which is not in '{}'", answers_file.string(), id,
          file.filename().string());
  }
  if (without_image > 0) {
    result.images.notes.push_back(fmt::format("{}: left out {} about images that are not there", file.string(),
                                              io::counted(without_image, "questions")));
  }
  return result;
}

// `part` says which rows are taken, but for what the header says of them.
QuestionListing list_questions_csv(const fs::path& file, TablePart part) {
  const std::string source = file.string();
  const std::vector<io::CsvRow> rows = io::read_table(file);
  check(!rows.empty(), "{}: the file is empty; lines of path,question,answer were expected", source);
  std::size_t path = 0;
  std::size_t question = 1;
  std::size_t answer = 2;
  std::optional<std::size_t> type;
  if (is_table_header(rows[0])) {
    const auto paths = path_column(rows[0], source);
    const auto questions = io::column_named(rows[0], {question_column, "text"}, source);
    const auto answers = io::column_named(rows[0], {"answer", "label"}, source);
    check(paths && questions && answers,
          "{}: line 1 names neither an image nor the columns 'path', 'question' and 'answer'", source);
    path = *paths;
    question = *questions;
    answer = *answers;
    type = io::column_named(rows[0], {"type", "question_type"}, source);
    part.first = 1;
    part.split = io::part_column(rows, source);
  }
  part.columns = std::max({path, question, answer}) + 1;
  QuestionListing result;
  std::map<std::string, std::size_t> place_of;
  for (const io::CsvRow* row : rows_of(rows, part, source, result.images.notes)) {
    const auto& [line, fields] = *row;
    const auto [place, is_new] = place_of.emplace(fields[path], result.paths.size());
    if (is_new) {
      result.paths.push_back(image_of_row(file, *row, path, part.skip_broken));
      result.images.names.push_back(fields[path]);
      result.questions.emplace_back();
    }
    check(!asked_in(fields[question]).empty(), "{}: line {} has no question", source, line);
    const std::string own = plain_answer(fields[answer]);
    check(!own.empty(), "{}: line {} has no answer", source, line);
    result.questions[place->second].push_back({static_cast<std::int64_t>(line),
                                               fields[question],
                                               {own},
                                               own,
                                               type && *type < fields.size() ? fields[*type] : "",
                                               {}});
  }
  return result;
}

// The tables of questions of a folder that are those of one part: train.csv.
std::vector<fs::path> tables_of_parts(const fs::path& folder) {
  std::vector<fs::path> tables;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
    if (io::is_table_name(entry.path()) && is_part_name(entry.path().stem().string()) && has_questions(entry.path())) {
      tables.push_back(entry.path());
    }
  }
  std::ranges::sort(tables);
  return tables;
}

// Whether questions lie in a folder itself, and not in folders of its parts.
bool has_own_questions(const fs::path& folder) {
  return !question_files(folder).empty() || io::is_file(folder / questions_csv) || !tables_of_parts(folder).empty();
}

// The parts of a folder, each of which is a folder or a file of questions; those first that have answers,
// and of the others only those of the part `split`.
Parts parts_with_questions(const fs::path& folder, const std::string& split = "") {
  Parts parts = part_folders(folder, split, has_own_questions);
  std::vector<fs::path> files = question_files(folder);
  std::stable_partition(files.begin(), files.end(), has_answers);  // whose result of ranges Clang 14 cannot have
  std::ranges::move(tables_of_parts(folder), std::back_inserter(files));
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const std::string part = part_in_name(name);
    const bool usable = io::is_table_name(file) || has_answers(file) || is_of_part(part, split);
    if (!part.empty() && usable) {
      parts.push_back({part, fmt::format("'{}'", name), file});
    }
  }
  sort_parts(parts);
  return parts;
}

// The questions of a part; all of the source with `mixed`, for which `split` is "".
QuestionListing list_questions(const fs::path& source, const std::string& split, bool mixed, bool skip_broken) {
  std::error_code error;
  check(fs::exists(source, error), "{}: {}", source.string(), error ? error.message() : "no such file or folder");
  const TablePart rows{.part = split, .mixed = mixed, .skip_broken = skip_broken};
  if (!fs::is_directory(source)) {
    const std::string name = source.filename().string();
    const bool table = io::is_table_name(source);
    check(
        name.ends_with(questions_ending) || table,
        "{}: questions about images are a file NAMEquestions.json in VQA's layout, a .csv of path,question,answer, or "
        "a folder with one of them",
        source.string());
    check(table || split.empty() || is_training_split(split), "{}: there is no part '{}' of it", source.string(),
          split);
    return table ? list_questions_csv(source, rows) : list_vqa(source, skip_broken);
  }
  std::vector<fs::path> whole = question_files(source);  // what is of no part
  std::erase_if(whole, [](const fs::path& file) { return !part_in_name(file.filename().string()).empty(); });
  if (whole.empty() && io::is_file(source / questions_csv)) {
    whole.push_back(source / questions_csv);
  }
  const auto list_whole = [&] {
    return io::is_table_name(whole.front()) ? list_questions_csv(whole.front(), rows)
                                            : list_vqa(whole.front(), skip_broken);
  };
  const Parts parts = parts_with_questions(source, split);
  check(whole.size() < 2, "{}: there are several files of questions, '{}' and '{}': name one of them", source.string(),
        whole.empty() ? "" : whole.front().filename().string(), whole.empty() ? "" : whole.back().filename().string());
  check(!parts.empty() || !whole.empty(),
        "{}: there are no questions: neither a file NAMEquestions.json in VQA's layout, nor {}", source.string(),
        questions_csv);
  if (parts.empty() && io::is_table_name(whole.front())) {
    return list_whole();  // whose column 'split' may say parts
  }
  std::vector<std::string> notes;
  const Part* part = nullptr;
  if (!split.empty()) {
    part = choose_part(parts, split, source.string(), notes, {.whole = !whole.empty()});
  } else if (whole.empty()) {
    check_whole(parts, source.string());
    part = &parts.front();
  }
  QuestionListing result = part == nullptr ? list_whole() : list_questions(part->path, "", mixed, skip_broken);
  std::ranges::move(notes, std::back_inserter(result.images.notes));
  return result;
}

ImageQuestions questions_of(QuestionListing listing, const fs::path& source) {
  Listing kept;
  ImageQuestions result;
  std::vector<fs::path> paths;
  for (std::size_t i = 0; i < listing.paths.size(); ++i) {
    if (listing.questions[i].empty()) {
      ++kept.passed_over;
      continue;
    }
    kept.names.push_back(std::move(listing.images.names[i]));
    paths.push_back(std::move(listing.paths[i]));
    result.questions.push_back(std::move(listing.questions[i]));
  }
  check(!paths.empty(), "{}: there are no questions", source.string());
  kept.notes = std::move(listing.images.notes);
  kept.labels.assign(paths.size(), unlabeled);
  if (kept.passed_over > 0) {
    kept.notes.push_back(fmt::format("{} without a question", io::counted(kept.passed_over, "images")));
  }
  kept.passed_over = 0;
  kept.file = [paths = std::move(paths)](std::int64_t i) { return paths[static_cast<std::size_t>(i)]; };
  kept.image = [file = kept.file](std::int64_t i) { return io::read_image(file(i)); };
  result.images = dataset_of(std::move(kept));
  return result;
}

}  // namespace

std::int64_t ImageQuestions::count() const {
  return std::accumulate(questions.begin(), questions.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& own) { return total + std::ssize(own); });
}

double vqa_accuracy(const std::vector<std::string>& answers, const std::string& given) {
  const auto equal = static_cast<double>(std::ranges::count(answers, given));
  return std::min(1.0, equal / static_cast<double>(std::clamp<std::ptrdiff_t>(std::ssize(answers), 1, 3)));
}

std::string plain_answer(std::string_view answer) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!answer.empty() && is_space(answer.front())) {
    answer.remove_prefix(1);
  }
  while (!answer.empty() && (is_space(answer.back()) || answer.back() == '.')) {
    answer.remove_suffix(1);
  }
  return io::lower_case(answer);
}

ImageQuestions open_questions(const fs::path& source) {
  return is_scene_source(source) ? drawn_questions(source, "", false)
                                 : questions_of(list_questions(source, "", true, false), source);
}

ImageQuestions open_questions_of(const fs::path& source, const std::string& split, bool drawn_boxes, bool skip_broken) {
  return is_scene_source(source) ? drawn_questions(source, split, drawn_boxes)
                                 : questions_of(list_questions(source, split, false, skip_broken), source);
}

ImageQuestions part_of(const ImageQuestions& whole, std::vector<std::int64_t> indices) {
  ImageQuestions result;
  for (const std::int64_t index : indices) {
    result.questions.push_back(whole.questions.at(static_cast<std::size_t>(index)));
  }
  result.images = std::make_shared<DatasetPart>(whole.images, std::move(indices));
  return result;
}

Parts parts_of_questions(const fs::path& source) {
  if (is_scene_source(source) || !fs::exists(source)) {
    return {};
  }
  if (!fs::is_directory(source)) {
    return parts_of_table(source);
  }
  const Parts parts = parts_with_questions(source);
  return parts.empty() && fs::exists(source / questions_csv) ? parts_of_table(source / questions_csv) : parts;
}

bool has_questions(const fs::path& source) {
  std::error_code error;
  if (fs::is_directory(source, error)) {
    return has_own_questions(source) || !part_folders(source, "", has_own_questions).empty();
  }
  if (io::is_table_file(source)) {
    const std::vector<io::CsvRow> rows = io::read_table(source);
    return !rows.empty() && is_table_header(rows[0]) && io::column_named(rows[0], {question_column}, source.string());
  }
  return source.filename().string().ends_with(questions_ending);
}

}  // namespace vitrail::data
