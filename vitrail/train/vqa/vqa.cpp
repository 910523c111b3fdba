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
#include "vitrail/train/vqa/answers.h"
#include "vitrail/train/vqa/on_target.h"

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

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override {
    return loader_->next(batch_) ? std::optional(Drawn{batch_.number, std::ssize(batch_.indices)}) : std::nullopt;
  }
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override {
    return options_.attn_loss_coef > 0 ? "cross-entropy of the answer, and of the attention"
                                       : "cross-entropy of the answer";
  }
  void save(const fs::path& folder) const override;
  std::string name() const override { return model_.name; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void grow(const fs::path& folder);
  void check_guided() const;

  const VqaOptions options_;
  data::ImageQuestions training_;
  std::optional<data::ImageQuestions> validation_;
  double held_out_ = 0;  // the share of the training images that validation_ is of
  std::optional<text::Tokenizer> tokenizer_;
  models::VqaModel model_;
  std::optional<KnownAnswers> answers_;
  std::int64_t further_words_ = 0;    // that a trained network was given
  std::int64_t further_answers_ = 0;  // the same
  std::int64_t left_out_ = 0;
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
  const fs::path folder = checkpoint.empty() ? model_of(options_.model) : checkpoint;
  check(!models::is_blip_folder(folder),
        "'{}' is a Blip, which is not trained here: `vitrail ask` answers questions with it", options_.model);
  if (!checkpoint.empty()) {
    model_ = models::load_vqa(folder, nn::Fill::leave, static_cast<float>(options_.drop));
    tokenizer_ = text::load_tokenizer(folder);
  } else if (models::is_vqa_folder(folder)) {
    grow(folder);
  } else {
    tokenizer_ = text::word_tokenizer(texts_of(training_));
    model_ = models::create_vqa(options_.model, kwargs_of_vqa(options_), tokenizer_->vocab_size(),
                                frequent_answers(training_, options_.most_answers), static_cast<float>(options_.drop),
                                {.seed = static_cast<std::uint64_t>(options_.seed)});
  }
  check_guided();
  answers_.emplace(model_.answers);
  left_out_ = keep_answerable(training_, *answers_);
  check(training_.count() > 0, "'{}': none of the questions has an answer that '{}' knows", options_.data_dir,
        options_.model);
  data::apply(options_.images, model_.pretrained);
  tokens_ = tokens_of(training_, *tokenizer_, model_.net->config().max_positions);
  loader_ = data::question_loader(*training_.images, tokens_, data::eval_transform(model_.pretrained),
                                  {.images = training_loading(options_), .per_image = options_.questions_per_image});
}

// Takes a trained network, and adds the words and answers of the training questions that it does not know.
void VqaTask::grow(const fs::path& folder) {
  const text::Tokenizer own = text::load_tokenizer(folder);
  try {
    tokenizer_ = text::word_tokenizer(texts_of(training_), 0, &own);
  } catch (const Error&) {
    tokenizer_ = own;  // of another kind, whose tokens are all that there are
  }
  std::vector<std::string> further = frequent_answers(training_, options_.most_answers);
  const models::VqaModel trained = models::load_vqa(folder, nn::Fill::meta);
  const std::int64_t vocab_size = trained.net->config().vocab_size;
  models::check_vocabulary(own.vocab_size(), vocab_size);
  const KnownAnswers known(trained.answers);
  std::erase_if(further, [&](const std::string& answer) { return known.knows(answer); });
  further_words_ = tokenizer_->vocab_size() - own.vocab_size();
  further_answers_ = std::ssize(further);
  model_ =
      models::load_grown_vqa(folder, std::max(vocab_size, tokenizer_->vocab_size()), further,
                             static_cast<float>(options_.drop), {.seed = static_cast<std::uint64_t>(options_.seed)});
}

Tensor VqaTask::loss(nn::Pass& pass) {
  const std::vector<const data::Question*> questions = questions_of(batch_, training_);
  if (options_.attn_loss_coef == 0) {
    return answer_loss(model_.net->forward(input_of(batch_), pass), questions, *answers_);
  }
  const std::string layer = model_.net->last_picture_attention();
  nn::Recorder recorder(std::vector{layer});
  pass.recorder = &recorder;
  const Tensor logits = model_.net->forward(input_of(batch_), pass);
  pass.recorder = nullptr;
  const Tensor guided =
      question_attention_loss(recorder.attention().at(layer).value, batch_, questions, model_.net->config().side());
  return answer_loss(logits, questions, *answers_) + guided * static_cast<float>(options_.attn_loss_coef);
}

// Throws Error if there is nothing that --attn-loss-coef could guide.
void VqaTask::check_guided() const {
  if (options_.attn_loss_coef == 0) {
    return;
  }
  check(model_.net->config().kind == models::VqaConfig::Kind::cross,
        "--attn-loss-coef is for networks whose question looks at the picture in layers of its own, such as vqa_small, "
        "not for '{}'",
        model_.name);
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
  const AnswerEvaluation result =
      evaluate_answers(model_, *tokenizer_, *validation_, evaluation_options(options_, work));
  work.say_left_out(result.broken);
  return {{"accuracy", result.accuracy}, {"loss", result.loss}};
}

void VqaTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::write_vqa(model_, temporary);
    tokenizer_->save(temporary);
  });
}

std::vector<std::string> VqaTask::summary() const {
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {}x{} pixels, {} words, {}", model_.name,
                  static_cast<double>(model_.net->parameters.count()) * 1e-6, model_.pretrained.width,
                  model_.pretrained.height, tokenizer_->vocab_size() - 4,
                  io::counted(std::ssize(model_.answers), "answers")),
      fmt::format("{} to learn from{}", io::counted(training_.count(), "questions"),
                  validation_ ? fmt::format(", {} to evaluate on", validation_->count()) : "")};
  if (further_words_ + further_answers_ > 0) {
    lines.push_back(fmt::format("{} and {} are new to '{}', which learns them from nothing",
                                io::counted(further_words_, "words"), io::counted(further_answers_, "answers"),
                                options_.model));
  }
  if (left_out_ > 0) {
    lines.push_back(fmt::format("{} left out, of whose answers the model knows none (see --most-answers)",
                                io::counted(left_out_, "questions")));
  }
  if (const std::int64_t unknown = with_unknown_words(tokens_, *tokenizer_); unknown > 0) {
    lines.push_back(fmt::format("{} with a word that the model has never read", io::counted(unknown, "questions")));
  }
  std::ranges::copy(
      data_summary(options_, *training_.images, validation_ ? validation_->images.get() : nullptr, held_out_),
      std::back_inserter(lines));
  return lines;
}

std::vector<std::pair<std::string, std::string>> VqaTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"architecture", model_.name},
      {"training_images", std::to_string(training_.images->size())},
      {training_digest, data::digest_of_names(*training_.images)},
      {"training_questions", std::to_string(training_.count())},
      {"validation_questions", std::to_string(validation_ ? validation_->count() : 0)},
      {"words", std::to_string(tokenizer_->vocab_size())},
      {"answers", std::to_string(model_.answers.size())}};
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
  const auto continues = [this] { return models::is_vqa_folder(model_of(model)); };
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
      .settled();
  list.group("model");
  list.add("model", model, "MODEL",
           fmt::format("Network: {}, or a folder of one", fmt::join(models::vqa_names(), ", ")))
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
  list.add("drop", drop, "P", "Dropout").below_one().settled();
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
