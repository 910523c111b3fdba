#include "vitrail/train/tasks/classify_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/sources/parts.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/text/labelled.h"
#include "vitrail/train/finite.h"
#include "vitrail/train/study/confusion.h"
#include "vitrail/train/study/text_predictions.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Texts as the model takes them, with the numbers of their classes.
struct ClassTexts {
  std::vector<TextIds> texts;
  std::vector<std::int64_t> classes;
  std::int64_t cut = 0;
  std::string part = {};  // of a table, as it is called there

  std::vector<std::int64_t> lengths() const {
    std::vector<std::int64_t> result;
    std::ranges::transform(texts, std::back_inserter(result), &TextIds::size);
    return result;
  }
};

std::vector<std::string> labels_in(const std::vector<text::LabelledText>& texts) {
  std::vector<std::string> labels;
  std::ranges::transform(texts, std::back_inserter(labels), &text::LabelledText::label);
  return text::sorted_labels(std::move(labels));
}

class ClassifyText final : public TextTask {
 public:
  ClassifyText(const ClassifyTextOptions& options, const fs::path& checkpoint);

  Tensor loss(nn::Pass& pass) override;
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::vector<std::pair<std::string, std::string>> pictures() const override {
    return confusion_picture(confusion_, "texts");
  }
  std::string loss_axis() const override { return "cross-entropy"; }
  std::vector<std::string> summary() const override;
  std::string cut_note() const override {
    return cutter_->note(validation_.cut, std::ssize(validation_.texts), "texts");
  }
  std::vector<std::string> part_notes() const override { return {notes_.begin(), notes_.end()}; }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void check_no_part_is_named() const;
  const models::TextModel& model() const override { return classifier_.model; }
  void add(ClassTexts& part, const text::LabelledText& text, const std::string& source);
  Tensor logits_of(const ClassTexts& part, std::span<const std::int64_t> indices, nn::Pass& pass) const;

  const ClassifyTextOptions options_;
  TaskClassifier classifier_;
  bool parted_ = false;          // whether the texts are a table with parts
  std::set<std::string> notes_;  // about these
  std::int64_t different_ = 0;   // texts of the data
  std::optional<TextCutter> cutter_;
  ClassTexts training_;
  ClassTexts validation_;
  Confusion confusion_;  // of the latest evaluation
};

constexpr std::size_t most_grades = 20;  // of a scale with fractions that may well be classes

// Throws Error if the labels are numbers on a scale and no classes.
void check_are_classes(const std::vector<std::string>& labels, const std::string& source) {
  const auto is_number = [](const std::string& label) {
    double number = 0;
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    return error == std::errc() && end == label.data() + label.size();
  };
  const bool fractions =
      std::ranges::any_of(labels, [](const std::string& label) { return label.find('.') != std::string::npos; });
  check(labels.size() <= most_grades || !fractions || !std::ranges::all_of(labels, is_number),
        "{}: the labels are {} different numbers, such as '{}', where classes were expected: numbers are not learnt",
        source, labels.size(), labels[labels.size() / 2]);
}

// The parts that a table of texts names.
data::Parts parts_in(const std::vector<text::LabelledText>& texts) {
  std::set<std::string> names;
  std::ranges::transform(texts, std::inserter(names, names.end()), &text::LabelledText::split);
  return names == std::set<std::string>{""} ? data::Parts() : data::parts_named({names.begin(), names.end()});
}

// The texts of a part of a table, by any of its names, and the one that it has there. A table without parts has no
// other than those for training.
std::vector<text::LabelledText> part_of(const std::vector<text::LabelledText>& texts, const std::string& part,
                                        const std::string& source, std::set<std::string>& notes, std::string& name) {
  data::Parts parts = parts_in(texts);
  if (part.empty()) {
    std::erase_if(parts, [](const data::Part& one) { return one.name.empty(); });
    data::check_whole(parts, source);
    return texts;
  }
  std::vector<std::string> own;
  const data::Part* wanted =
      data::choose_part(parts, part, source, own, {.looked_for = ": no column 'split' says which texts it has"});
  notes.insert(own.begin(), own.end());
  name = wanted == nullptr ? "" : wanted->name;
  std::vector<text::LabelledText> found;
  std::ranges::copy_if(texts, std::back_inserter(found),
                       [&](const text::LabelledText& text) { return wanted == nullptr || text.split == wanted->name; });
  return found;
}

// Throws Error if --train-split or --val-split names a part, of which a table without a column 'split' has none.
void ClassifyText::check_no_part_is_named() const {
  const ClassifyTextOptions usual;
  check(!options_.val_split.empty() || !options_.val_data.empty() || options_.val_share == 0,
        "{}: --val-split '' is for tables with a column 'split': here --val-share 0 holds no text out", options_.data);
  for (const auto& [split, own] : {std::pair(options_.train_split, usual.train_split),
                                   std::pair(options_.val_data.empty() ? options_.val_split : "", usual.val_split)}) {
    check(split.empty() || split == own, "{}: there is no part '{}': no column 'split' says which texts it has",
          options_.data, split);
  }
}

ClassifyText::ClassifyText(const ClassifyTextOptions& options, const fs::path& checkpoint)
    : TextTask(options, checkpoint), options_(options) {
  const std::vector<text::LabelledText> texts = text::read_labelled_texts(options_.data, skipped());
  std::vector<std::string> labels = labels_in(texts);
  std::set<std::pair<std::string_view, std::string_view>> different;
  for (const text::LabelledText& text : texts) {
    different.emplace(text.text, text.second);
  }
  different_ = std::ssize(different);
  check_are_classes(labels, options_.data);
  check(labels.size() >= 2 || !checkpoint.empty(), "{}: all texts have the label '{}': there is nothing to tell apart",
        options_.data, labels[0]);
  classifier_ = open_task_classifier(options_, checkpoint, tokenizer_, "ForSequenceClassification", std::move(labels));
  const std::string opened = checkpoint.empty() ? options_.model : checkpoint.string();
  check(classifier_.model.problem_type != models::ProblemType::regression,
        "'{}' predicts numbers ('problem_type' is 'regression'), not the classes of '{}'", opened, options_.data);
  check(classifier_.model.problem_type == models::ProblemType::single_label_classification,
        "the labels of '{}' do not exclude each other ('problem_type' is '{}'), but each text of '{}' has one", opened,
        models::name_of(classifier_.model.problem_type), options_.data);
  cutter_.emplace(tokenizer_, task_length(options_, classifier_.model));
  const auto add_all = [this](ClassTexts& part, const std::vector<text::LabelledText>& all, const std::string& source) {
    for (const text::LabelledText& text : all) {
      add(part, text, source);
    }
  };
  parted_ = !parts_in(texts).empty();
  if (!parted_) {
    if (checkpoint.empty()) {
      check_no_part_is_named();
    }
    const std::vector<bool> evaluated = validation_share(options_, std::ssize(texts));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      add(evaluated[i] ? validation_ : training_, texts[i], options_.data);
    }
  } else {
    check(!checkpoint.empty() || options_.val_share == ClassifyTextOptions().val_share,
          "--val-share has no effect: {} is split into parts, of which --val-split says the one to evaluate on (empty: "
          "none)",
          options_.data);
    add_all(training_,
            options_.train_split.empty() ? texts
                                         : part_of(texts, options_.train_split, options_.data, notes_, training_.part),
            options_.data);
    if (options_.val_data.empty() && !options_.val_split.empty()) {
      add_all(validation_, part_of(texts, options_.val_split, options_.data, notes_, validation_.part), options_.data);
    }
  }
  if (!options_.val_data.empty()) {
    const std::vector<text::LabelledText> all = text::read_labelled_texts(options_.val_data, skipped());
    const bool whole =
        parts_in(all).empty() && options_.val_split == ClassifyTextOptions().val_split && !options_.val_split_is_asked;
    add_all(validation_, whole ? all : part_of(all, options_.val_split, options_.val_data, notes_, validation_.part),
            options_.val_data);
  }
  check(!training_.texts.empty(), "{}: no text is left to learn", options_.data);
  batches_ = index_batches(options_, training_.lengths(), "texts", !options_.no_shuffle);
}

void ClassifyText::add(ClassTexts& part, const text::LabelledText& text, const std::string& source) {
  part.classes.push_back(text::index_of_label(classifier_.labels, text.label, source));
  text::Encoding encoding = (*cutter_)(text, part.cut);
  unknown_.add(encoding.ids);
  check(encoding.size() > 0, "{}: the text '{}' has no tokens", source, io::shown(text.text));
  part.texts.push_back({std::move(encoding.ids), std::move(encoding.type_ids)});
}

Tensor ClassifyText::logits_of(const ClassTexts& part, std::span<const std::int64_t> indices, nn::Pass& pass) const {
  std::vector<const TextIds*> texts;
  for (const std::int64_t index : indices) {
    texts.push_back(&part.texts[static_cast<std::size_t>(index)]);
  }
  return models::classifier_of(classifier_.model).classify(packed_batch(texts, takes_types(classifier_.model)), pass);
}

Tensor ClassifyText::loss(nn::Pass& pass) {
  std::vector<std::int64_t> classes;
  for (const std::int64_t index : batch_.indices) {
    classes.push_back(training_.classes[static_cast<std::size_t>(index)]);
  }
  return ops::cross_entropy(logits_of(training_, batch_.indices, pass), Tensor::from(classes, {std::ssize(classes)}),
                            static_cast<float>(options_.smoothing));
}

std::vector<FigureKind> ClassifyText::figures() const {
  if (validation_.texts.empty()) {
    return {};
  }
  return {accuracy_figure("accuracy", "accuracy", "% of the texts"), loss_figure(loss_axis())};
}

Figures ClassifyText::evaluate(const Work& work) {
  work.begin("evaluating", std::ssize(validation_.texts));
  double loss = 0;
  confusion_ = Confusion(classifier_.labels);
  classify_in_batches(classifier_.model, validation_.texts, evaluation_run(options_, work),
                      [&](const Tensor& logits, std::int64_t first, std::int64_t count) {
                        check_finite(logits);
                        const auto begin = validation_.classes.begin() + first;
                        const std::vector<std::int64_t> classes(begin, begin + count);
                        confusion_.add(ops::argmax(logits, 1), classes);
                        loss += static_cast<double>(count) *
                                static_cast<double>(ops::cross_entropy(logits, Tensor::from(classes, {count})).item());
                      });
  const auto count = static_cast<double>(validation_.texts.size());
  return {{"accuracy", 100 * static_cast<double>(confusion_.right()) / count}, {"loss", loss / count}};
}

std::vector<std::string> ClassifyText::summary() const {
  std::vector<std::string> lines = {
      model_summary(), fmt::format("{} training and {} validation texts of {}", training_.texts.size(),
                                   validation_.texts.size(), io::counted(std::ssize(classifier_.labels), "classes"))};
  if (different_ < std::ssize(classifier_.labels)) {
    lines.push_back(fmt::format("these are only {}: are the columns of '{}' swapped? label<TAB>text was expected",
                                io::counted(different_, "different texts"), options_.data));
  }
  const std::string cut = cutter_->note(training_.cut + validation_.cut,
                                        std::ssize(training_.texts) + std::ssize(validation_.texts), "texts");
  if (!cut.empty()) {
    lines.push_back(cut);
  }
  std::ranges::copy(notes_, std::back_inserter(lines));
  add_note(lines, classifier_.note);
  add_note(lines, unknown_.note("the texts"));
  if (options_.train_split.empty() || !parted_) {  // else the two are different parts of it
    note_same_data(lines, "texts", {options_.data}, {options_.val_data});
  } else if (training_.part == validation_.part) {
    note_same_data(lines, "texts", {options_.data}, {options_.val_data.empty() ? options_.data : options_.val_data});
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> ClassifyText::facts() const {
  return {{"model", classifier_.model.name},
          {"classes", std::to_string(classifier_.labels.size())},
          {"training_texts", std::to_string(training_.texts.size())},
          {"validation_texts", std::to_string(validation_.texts.size())}};
}

}  // namespace

ClassifyTextOptions::ClassifyTextOptions() { eval_metric = "accuracy"; }

void ClassifyTextOptions::describe(OptionList& list) {
  list.group("data");
  list.add("data", data, "FILE",
           "Texts with labels: label<TAB>text a line; a .csv or .tsv with columns text and label; a .jsonl with these "
           "fields")
      .argument("DATA")
      .path()
      .check_that(
          [this](const Option& self) { check(!data.empty(), "{} is missing: texts with labels", self.flag()); });
  list.add("train_split", train_split, "NAME", "Part of a table with a column 'split' to train on").settled();
  list.add("val_split", val_split, "NAME", "Part of it to evaluate on; empty: none").settled();
  add_text_data_options(list, *this, "texts");
  add_text_model_options(list, *this);
  list.add("smoothing", smoothing, "SHARE", "Label smoothing").below_one();
  add_parameter_options(list, *this);
  add_text_batch_options(list, *this, "texts");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "texts");
  add_average_options(list, *this);
  add_run_options(list, *this, {"accuracy", "loss"});
  idle_without_texts(list, *this);
}

std::unique_ptr<Task> ClassifyTextOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<ClassifyText>(*this, checkpoint);
}

}  // namespace vitrail::train
