#include "vitrail/train/vqa/vqa.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/train/run/held_out.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/vqa/answerer.h"
#include "vitrail/train/vqa/answers.h"
#include "vitrail/train/vqa/blip_answerer.h"
#include "vitrail/train/vqa/vqa_answerer.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_of(const data::ImageQuestions& questions) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(questions.count()));
  for (const auto& own : questions.questions) {
    for (const data::Question& question : own) {
      texts.push_back(question.text);
    }
  }
  return texts;
}

// Leaves out images without a question, of which a batch could have no other.
void keep_asked_about(data::ImageQuestions& questions) {
  std::vector<std::int64_t> asked;
  for (std::size_t i = 0; i < questions.questions.size(); ++i) {
    if (!questions.questions[i].empty()) {
      asked.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (asked.size() < questions.questions.size()) {
    questions = data::part_of(questions, std::move(asked));
  }
}

std::string kwargs_of_vqa(const VqaOptions& options) {
  nlohmann::json kwargs = nlohmann::json::parse(create_options(options).model_kwargs);
  if (options.attn_norm != "softmax") {
    kwargs["attn_norm"] = options.attn_norm;
  }
  return kwargs.dump();
}

class VqaTask final : public Task {
 public:
  VqaTask(const VqaOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return answerer_->network(); }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override {
    return loader_->next(batch_) ? std::optional(Drawn{batch_.number, std::ssize(batch_.indices)}) : std::nullopt;
  }
  Tensor loss(nn::Pass& pass) override { return answerer_->loss(batch_, questions_of(batch_, training_), pass); }
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override {
    return options_.attn_loss_coef > 0 ? "cross-entropy of the answer, and of the attention"
                                       : "cross-entropy of the answer";
  }
  void save(const fs::path& folder) const override;
  std::string name() const override { return answerer_->name(); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  std::unique_ptr<Answerer> make_answerer(const fs::path& checkpoint);
  std::unique_ptr<VqaAnswerer> grown(const fs::path& folder);
  void guide(VqaAnswerer& answerer) const;

  const VqaOptions options_;
  data::ImageQuestions training_;
  std::optional<data::ImageQuestions> validation_;
  double held_out_ = 0;  // the share of the training images that validation_ is of
  std::unique_ptr<Answerer> answerer_;
  std::int64_t further_words_ = 0;    // that a trained network was given
  std::int64_t further_answers_ = 0;  // the same
  std::int64_t left_out_ = 0;
  std::int64_t unanswerable_ = 0;  // questions to evaluate on
  std::int64_t images_ = 0;        // to learn from, with those of which no question is left, and their digest
  std::string digest_;
  data::QuestionTokens tokens_;
  std::unique_ptr<data::QuestionLoader> loader_;
  data::QuestionBatch batch_;
};

VqaTask::VqaTask(const VqaOptions& options, const fs::path& checkpoint)
    : options_(options),
      training_(data::open_questions_of(options.data_dir, options.train_split, options.attn_loss_coef > 0,
                                        options.skip_broken)) {
  const auto open_questions = [&](const std::string& source, const std::string& split) {
    validation_ = data::open_questions_of(source, split, false, options_.skip_broken);
  };
  held_out_ = open_evaluation(
      options_,
      {.open_dir =
           [&] {
             open_questions(options_.val_dir, part_of_val_dir(options_, data::parts_of_questions(options_.val_dir)));
           },
       .open_part = [&] { open_questions(options_.data_dir, options_.val_split); },
       .is_all_for_training = [&] { return data::is_all_for_training(data::parts_of_questions(options_.data_dir)); }});
  if (held_out_ > 0) {
    data::HeldOut drawn = draw_held_out(options_, held_out_, *training_.images);
    if (!drawn.held.empty()) {
      validation_ = data::part_of(training_, std::move(drawn.held));
    }
    training_ = data::part_of(training_, std::move(drawn.learned));
  }
  answerer_ = make_answerer(checkpoint);
  left_out_ =
      keep_answerable(training_, [this](const data::Question& question) { return answerer_->can_answer(question); });
  if (validation_) {
    for (const std::vector<data::Question>& questions : validation_->questions) {
      unanswerable_ += std::ranges::count_if(
          questions, [this](const data::Question& question) { return !answerer_->can_answer(question); });
    }
  }
  check(training_.count() > 0, "'{}': none of the questions has an answer that '{}' knows", options_.data_dir,
        options_.model);
  images_ = training_.images->size();
  digest_ = data::digest_of_names(*training_.images);
  keep_asked_about(training_);
  answerer_->prepare_images(options_.images);
  tokens_ = tokens_of(training_, answerer_->tokenizer(), answerer_->longest_question());
  loader_ = data::question_loader(*training_.images, tokens_, data::eval_transform(answerer_->images()),
                                  {.images = training_loading(options_), .per_image = options_.questions_per_image});
}

std::unique_ptr<Answerer> VqaTask::make_answerer(const fs::path& checkpoint) {
  const fs::path folder = checkpoint.empty() ? model_of(options_.model) : checkpoint;
  const auto drop = static_cast<float>(options_.drop);
  if (models::is_blip_folder(folder)) {
    check(options_.attn_loss_coef == 0, "--attn-loss-coef is for networks such as vqa_small, not for '{}'",
          options_.model);
    return std::make_unique<BlipAnswerer>(models::load_blip(folder, nn::Fill::leave, drop),
                                          text::load_tokenizer(folder));
  }
  std::unique_ptr<VqaAnswerer> answerer;
  if (!checkpoint.empty()) {
    answerer =
        std::make_unique<VqaAnswerer>(models::load_vqa(folder, nn::Fill::leave, drop), text::load_tokenizer(folder));
  } else if (models::is_vqa_folder(folder)) {
    answerer = grown(folder);
  } else {
    text::Tokenizer tokenizer = text::word_tokenizer(texts_of(training_));
    models::VqaModel model = models::create_vqa(options_.model, kwargs_of_vqa(options_), tokenizer.vocab_size(),
                                                frequent_answers(training_, options_.most_answers), drop,
                                                {.seed = static_cast<std::uint64_t>(options_.seed)});
    answerer = std::make_unique<VqaAnswerer>(std::move(model), std::move(tokenizer));
  }
  guide(*answerer);
  return answerer;
}

// A trained network with the words and answers of the training questions that it does not know.
std::unique_ptr<VqaAnswerer> VqaTask::grown(const fs::path& folder) {
  const text::Tokenizer own = text::load_tokenizer(folder);
  text::Tokenizer tokenizer = own;
  try {
    tokenizer = text::word_tokenizer(texts_of(training_), 0, &own);
  } catch (const Error&) {
    // of another kind, whose tokens are all that there are
  }
  std::vector<std::string> further = frequent_answers(training_, options_.most_answers);
  const models::VqaModel trained = models::load_vqa(folder, nn::Fill::meta);
  const std::int64_t vocab_size = trained.net->config().vocab_size;
  models::check_vocabulary(text::ordinary_tokens(own), vocab_size);
  const KnownAnswers known(trained.answers);
  std::erase_if(further, [&](const std::string& answer) { return known.knows(answer); });
  further_words_ = tokenizer.vocab_size() - own.vocab_size();
  further_answers_ = std::ssize(further);
  models::VqaModel model =
      models::load_grown_vqa(folder, std::max(vocab_size, tokenizer.vocab_size()), further,
                             static_cast<float>(options_.drop), {.seed = static_cast<std::uint64_t>(options_.seed)});
  return std::make_unique<VqaAnswerer>(std::move(model), std::move(tokenizer));
}

// Throws Error if there is nothing that --attn-loss-coef could guide.
void VqaTask::guide(VqaAnswerer& answerer) const {
  if (options_.attn_loss_coef == 0) {
    return;
  }
  answerer.guide_attention(options_.attn_loss_coef);
  check(std::ranges::any_of(training_.questions,
                            [](const auto& own) {
                              return std::ranges::any_of(
                                  own, [](const data::Question& question) { return !question.about.empty(); });
                            }),
        "{}: no question says what it is about ('boxes' in its annotation, as `vitrail scenes` writes them), which "
        "--attn-loss-coef takes",
        options_.data_dir);
}

std::vector<FigureKind> VqaTask::figures() const {
  if (!validation_) {
    return {};
  }
  return {accuracy_figure("accuracy", "accuracy", "% of the questions"), loss_figure("cross-entropy of the answer")};
}

Figures VqaTask::evaluate(const Work& work) {
  work.begin("evaluating", validation_->images->size());
  const AnswerEvaluation result = answerer_->evaluate(*validation_, evaluation_options(options_, work));
  work.say_left_out(result.broken);
  return {{"accuracy", result.accuracy}, {"loss", result.loss}};
}

void VqaTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) { answerer_->write(temporary); });
}

std::vector<std::string> VqaTask::summary() const {
  const models::VqaModel* const vqa = answerer_->vqa();
  const std::int64_t tokens = answerer_->tokenizer().vocab_size();
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {}x{} pixels, {}", answerer_->name(),
                  static_cast<double>(answerer_->network().parameters.count()) * 1e-6, answerer_->images().width,
                  answerer_->images().height,
                  vqa != nullptr
                      ? fmt::format("{} words, {}", tokens - 4, io::counted(std::ssize(vqa->answers), "answers"))
                      : fmt::format("{} tokens, of which it writes its answers", tokens)),
      fmt::format("{} to learn from{}", io::counted(training_.count(), "questions"),
                  validation_ ? fmt::format(", {} to evaluate on", validation_->count()) : "")};
  if (further_words_ + further_answers_ > 0) {
    lines.push_back(fmt::format("{} and {} are new to '{}', which learns them from nothing",
                                io::counted(further_words_, "words"), io::counted(further_answers_, "answers"),
                                options_.model));
  }
  if (left_out_ > 0) {
    lines.push_back(fmt::format("{} left out, {}", io::counted(left_out_, "questions"),
                                vqa != nullptr ? "of whose answers the model knows none (see --most-answers)"
                                               : "whose answers are too long for the model, or have unknown words"));
  }
  if (unanswerable_ > 0) {
    lines.push_back(fmt::format("{} to evaluate on {} as wrong: the model learns no answer to {}",
                                io::counted(unanswerable_, "questions"), unanswerable_ == 1 ? "counts" : "count",
                                unanswerable_ == 1 ? "it" : "them"));
  }
  if (const std::int64_t unknown = with_unknown_words(tokens_, answerer_->tokenizer()); unknown > 0) {
    lines.push_back(fmt::format("{} with a word that the model has never read", io::counted(unknown, "questions")));
  }
  std::ranges::copy(
      data_summary(options_, *training_.images, validation_ ? validation_->images.get() : nullptr, held_out_),
      std::back_inserter(lines));
  return lines;
}

std::vector<std::pair<std::string, std::string>> VqaTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"architecture", answerer_->name()},
      {"training_images", std::to_string(images_)},
      {training_digest, digest_},
      {"training_questions", std::to_string(training_.count())},
      {"validation_questions", std::to_string(validation_ ? validation_->count() : 0)},
      {"words", std::to_string(answerer_->tokenizer().vocab_size())}};
  if (const models::VqaModel* const vqa = answerer_->vqa()) {
    facts.emplace_back("answers", std::to_string(vqa->answers.size()));
  }
  std::ranges::move(held_out_facts(options_, held_out_, validation_.has_value()), std::back_inserter(facts));
  return facts;
}

}  // namespace

VqaOptions::VqaOptions() {
  model = "vqa_small";
  batch_size = 16;
  epochs = 30;
  lr = 5e-4;
  weight_decay = 0.05;
  clip_grad = 1;
  eval_metric = "accuracy";
}

void VqaOptions::describe(OptionList& list) {
  const char* const with_folder = "with a folder as --model, whose network has its sizes";
  const auto continues = [this] { return answers_questions(model_of(model)); };
  const auto writes = [this] { return models::is_blip_folder(model_of(model)); };
  add_data_options(list, *this);
  add_val_share_option(list, *this);
  list.find("data_dir")->help =
      "Questions about images: a folder or a NAMEquestions.json in VQA's layout, or a .csv of path,question,answer "
      "(see "
      "docs/questions.md)";
  list.add("questions_per_image", questions_per_image, "N",
           "Questions of an image in one batch, drawn anew in each epoch; 0: all")
      .at_least(0);
  list.add("most_answers", most_answers, "N",
           "Answers that a new network can give, the most frequent ones; 0: all. Of a trained one as --model, those of "
           "them that it does not know are added")
      .at_least(0)
      .settled()
      .idle_if("with a BLIP as --model, which writes its answers", writes);
  list.group("model");
  list.add("model", model, "MODEL",
           fmt::format("Network: {}, or a folder of one, or of transformers' BlipForQuestionAnswering",
                       fmt::join(models::vqa_names(), ", ")))
      .path()
      .settled();
  add_model_options(list, *this);
  for (const char* name : {"model_kwargs", "img_size", "input_size", "in_chans"}) {
    list.find(name)->idle_if(with_folder, continues);
  }
  list.add(
          "attn_loss_coef", attn_loss_coef, "W",
          "Weight of a loss by which the last layer of vqa_small looks at what questions are about, where the data say "
          "it; 0: none")
      .at_least(0);
  list.add("attn_norm", attn_norm, "NORM",
           "Of vqa_one: softmax, whose weights sum to 1, or sigmoid, whose sum can count")
      .one_of({"softmax", "sigmoid"})
      .settled()
      .idle_if(with_folder, continues);
  list.add("drop", drop, "P", "Dropout; 0: none, or of a BLIP what its config.json says").below_one().settled();
  add_parameter_options(list, *this);
  add_batch_options(list, *this, "images");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "images");
  add_average_options(list, *this);
  add_run_options(list, *this, {"accuracy", "loss"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> VqaOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<VqaTask>(*this, checkpoint);
}

}  // namespace vitrail::train
