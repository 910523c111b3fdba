#include "vitrail/train/tasks/tag.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/train/study/confusion.h"
#include "vitrail/train/study/text_predictions.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t no_label = -100;  // of cross_entropy: it does not count

// A sentence as the model takes it, with the class of each token, or no_label.
struct TaggedIds {
  TextIds text;
  std::vector<std::int64_t> classes;
  std::int64_t words = 0;  // that have a token, and so a class

  std::int64_t size() const { return text.size(); }
};

class Tag final : public TextTask {
 public:
  Tag(const TagOptions& options, const fs::path& checkpoint);

  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "words"; }
  std::string batch_items() const override { return options_.batch_tokens ? "tokens" : "sentences"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::vector<std::pair<std::string, std::string>> pictures() const override {
    return confusion_picture(confusion_, "words");
  }
  std::string loss_axis() const override { return "cross-entropy of a word's label"; }
  std::vector<std::string> summary() const override;
  std::string cut_note() const override { return cutter_->note(judged_cut_, std::ssize(validation_), "sentences"); }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  const models::TextModel& model() const override { return classifier_.model; }
  TaggedIds encoded(const text::TaggedSentence& sentence, const std::string& source, std::int64_t& cut);

  const TagOptions options_;
  TaskClassifier classifier_;
  std::optional<TextCutter> cutter_;
  std::int64_t cut_ = 0;         // sentences to learn from
  std::int64_t judged_cut_ = 0;  // sentences to evaluate on
  std::int64_t cut_words_ = 0;   // for which the positions did not suffice
  std::vector<TaggedIds> training_;
  std::vector<TaggedIds> validation_;
  Confusion confusion_;  // of the latest evaluation
};

std::vector<std::string> labels_of_words(const std::vector<text::TaggedSentence>& sentences) {
  std::vector<std::string> all;
  for (const text::TaggedSentence& sentence : sentences) {
    all.insert(all.end(), sentence.labels.begin(), sentence.labels.end());
  }
  return text::sorted_labels(std::move(all));
}

Tag::Tag(const TagOptions& options, const fs::path& checkpoint) : TextTask(options, checkpoint), options_(options) {
  const std::vector<text::TaggedSentence> sentences = text::read_tagged_sentences(options_.data, skipped());
  std::vector<std::string> labels = labels_of_words(sentences);
  check(labels.size() >= 2 || !checkpoint.empty(), "{}: all words have the label '{}': there is nothing to tell apart",
        options_.data, labels[0]);
  classifier_ = open_task_classifier(options_, checkpoint, tokenizer_, "ForTokenClassification", std::move(labels));
  cutter_.emplace(tokenizer_, task_length(options_, classifier_.model));
  const std::vector<bool> evaluated = validation_share(options_, std::ssize(sentences));
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    (evaluated[i] ? validation_ : training_)
        .push_back(encoded(sentences[i], options_.data, evaluated[i] ? judged_cut_ : cut_));
  }
  if (!options_.val_data.empty()) {
    for (const text::TaggedSentence& sentence : text::read_tagged_sentences(options_.val_data, skipped())) {
      validation_.push_back(encoded(sentence, options_.val_data, judged_cut_));
    }
  }
  std::erase_if(training_, [](const TaggedIds& sentence) { return sentence.words == 0; });
  std::erase_if(validation_, [](const TaggedIds& sentence) { return sentence.words == 0; });
  check(!training_.empty(), "{}: no sentence is left to learn", options_.data);
  std::vector<std::int64_t> lengths;
  std::ranges::transform(training_, std::back_inserter(lengths), &TaggedIds::size);
  batches_ = index_batches(options_, lengths, "sentences", !options_.no_shuffle);
}

// The words are joined by spaces, and tokens found again by where they begin.
TaggedIds Tag::encoded(const text::TaggedSentence& sentence, const std::string& source, std::int64_t& cut) {
  std::string joined;
  std::vector<std::int64_t> word_at;  // of each code point; -1: a space
  for (std::size_t w = 0; w < sentence.words.size(); ++w) {
    if (w > 0) {
      joined += ' ';
      word_at.push_back(-1);
    }
    joined += sentence.words[w];
    text::for_each_code_point(sentence.words[w],
                              [&](char32_t, std::size_t) { word_at.push_back(static_cast<std::int64_t>(w)); });
  }
  text::Encoding encoding = (*cutter_)({joined, "", ""}, cut);
  unknown_.add(encoding.ids);
  TaggedIds result{{std::move(encoding.ids), std::move(encoding.type_ids)}, {}, 0};
  result.classes.assign(result.text.ids.size(), no_label);
  std::int64_t last = -1;
  for (std::size_t i = 0; i < result.classes.size(); ++i) {
    auto at = static_cast<std::size_t>(encoding.offsets[i].first);
    const auto end = static_cast<std::size_t>(encoding.offsets[i].second);
    while (at < end && word_at[at] < 0) {  // the token has the space before its word
      ++at;
    }
    if (encoding.special[i] || at >= end || word_at[at] <= last) {
      continue;
    }
    last = word_at[at];
    result.classes[i] =
        text::index_of_label(classifier_.labels, sentence.labels[static_cast<std::size_t>(last)], source);
    ++result.words;
  }
  cut_words_ += std::ssize(sentence.words) - result.words;
  return result;
}

std::optional<Drawn> Tag::next() {
  std::optional<Drawn> drawn = TextTask::next();
  if (drawn) {
    drawn->units = 0;
    for (const std::int64_t index : batch_.indices) {
      drawn->units += training_[static_cast<std::size_t>(index)].words;
    }
  }
  return drawn;
}

Tensor Tag::loss(nn::Pass& pass) {
  std::vector<const TextIds*> texts;
  std::vector<std::int64_t> classes;
  for (const std::int64_t index : batch_.indices) {
    const TaggedIds& sentence = training_[static_cast<std::size_t>(index)];
    texts.push_back(&sentence.text);
    classes.insert(classes.end(), sentence.classes.begin(), sentence.classes.end());
  }
  const Tensor logits =
      models::classifier_of(classifier_.model).classify(packed_batch(texts, takes_types(classifier_.model)), pass);
  return ops::cross_entropy(ops::select(logits, 0, 0), Tensor::from(classes, {std::ssize(classes)}), 0, no_label);
}

std::vector<FigureKind> Tag::figures() const {
  if (validation_.empty()) {
    return {};
  }
  return {accuracy_figure("accuracy", "accuracy", "% of the words"), loss_figure(loss_axis())};
}

Figures Tag::evaluate(const Work& work) {
  std::vector<TextIds> texts;
  std::ranges::transform(validation_, std::back_inserter(texts), &TaggedIds::text);
  work.begin("evaluating", std::ssize(texts));
  double loss = 0;
  confusion_ = Confusion(classifier_.labels);
  classify_in_batches(classifier_.model, texts, evaluation_run(options_, work),
                      [&](const Tensor& outputs, std::int64_t first, std::int64_t sentences) {
                        const Tensor logits = ops::select(outputs, 0, 0);
                        std::vector<std::int64_t> classes;
                        std::int64_t counted = 0;
                        for (std::int64_t i = first; i < first + sentences; ++i) {
                          const TaggedIds& sentence = validation_[static_cast<std::size_t>(i)];
                          classes.insert(classes.end(), sentence.classes.begin(), sentence.classes.end());
                          counted += sentence.words;
                        }
                        confusion_.add(ops::argmax(logits, 1), classes);
                        const Tensor targets = Tensor::from(classes, {std::ssize(classes)});
                        loss += static_cast<double>(counted) *
                                static_cast<double>(ops::cross_entropy(logits, targets, 0, no_label).item());
                      });
  const auto count = static_cast<double>(confusion_.total());
  return {{"accuracy", 100 * static_cast<double>(confusion_.right()) / count}, {"loss", loss / count}};
}

std::vector<std::string> Tag::summary() const {
  std::vector<std::string> lines = {
      model_summary(), fmt::format("{} training and {} validation sentences, {}", training_.size(), validation_.size(),
                                   io::counted(std::ssize(classifier_.labels), "labels"))};
  const std::string cut =
      cutter_->note(cut_ + judged_cut_, std::ssize(training_) + std::ssize(validation_), "sentences");
  if (!cut.empty()) {
    lines.push_back(cut);
  }
  if (cut_words_ > 0) {
    lines.push_back(fmt::format("{} {} behind the longest text that the model takes, or {} no token",
                                io::counted(cut_words_, "words"), cut_words_ == 1 ? "lies" : "lie",
                                cut_words_ == 1 ? "has" : "have"));
  }
  add_note(lines, classifier_.note);
  add_note(lines, unknown_.note("the texts"));
  note_same_data(lines, "sentences", {options_.data}, {options_.val_data});
  return lines;
}

std::vector<std::pair<std::string, std::string>> Tag::facts() const {
  return {{"model", classifier_.model.name},
          {"classes", std::to_string(classifier_.labels.size())},
          {"training_sentences", std::to_string(training_.size())},
          {"validation_sentences", std::to_string(validation_.size())}};
}

}  // namespace

TagOptions::TagOptions() { eval_metric = "accuracy"; }

void TagOptions::describe(OptionList& list) {
  list.group("data");
  list.add("data", data, "FILE", "Sentences whose words have labels: a word and its label a line, blank lines between")
      .argument("DATA")
      .path()
      .check_that(
          [this](const Option& self) { check(!data.empty(), "{} is missing: words with labels", self.flag()); });
  add_text_data_options(list, *this, "sentences");
  add_text_model_options(list, *this);
  add_parameter_options(list, *this);
  add_text_batch_options(list, *this, "sentences");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "sentences");
  add_average_options(list, *this);
  add_run_options(list, *this, {"accuracy", "loss"});
  idle_without_texts(list, *this);
}

std::unique_ptr<Task> TagOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<Tag>(*this, checkpoint);
}

}  // namespace vitrail::train
