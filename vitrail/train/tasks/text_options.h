/// \file
/// What the tasks on texts have in common: options, tokenizer, model, and batches of texts of similar lengths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/prefetch.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/study/texts.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// The options of tasks that make an encoder of texts learn.
struct TextTaskOptions : TaskOptions {
  TextTaskOptions();

  // Data
  std::string data;
  std::string val_data;
  double val_share = 0.1;
  std::string tokenizer;
  std::optional<std::int64_t> max_length;
  bool no_shuffle = false;
  bool skip_broken = false;
  std::optional<std::int64_t> batch_tokens;

  // Model
  std::string model = "bert-mini";
  std::string model_kwargs = "{}";  ///< fields of config.json as a JSON object
  std::optional<double> drop;
};

/// Add the options of data (but for DATA itself, which each task describes) and of the model to a list.
void add_text_data_options(OptionList& list, TextTaskOptions& options, const std::string& items);
void add_text_model_options(OptionList& list, TextTaskOptions& options);
/// Adds those of batches of `items`, which are packed: texts follow each other without padding.
void add_text_batch_options(OptionList& list, TextTaskOptions& options, const std::string& items);

/// idle_without_evaluation() (run_options.h) where the texts to evaluate on are named by add_text_data_options().
void idle_without_texts(OptionList& list, const TextTaskOptions& options);

/// Adds --skip-broken, of lines that are not UTF-8.
void add_skip_broken_option(OptionList& list, bool& skip_broken);
/// "2 lines that are not UTF-8 are left out".
std::string skipped_summary(std::int64_t lines);

/// Throws Error unless the pairs to evaluate on are named by none or both of their files, or by a table that holds
/// both.
void check_validation_pairs(const std::string& src, const std::string& tgt);

/// Throws Error if what a task on texts was given is for a task on images: `data`, a folder, or `model`, which is
/// another kind of model.
void check_texts(const std::string& data, const std::string& model);
/// Throws Error if `model` is a translator.
void check_no_translator(const std::string& model);

/// `given`, the tokenizer of --tokenizer. Throws Error if the folder `model` has another one, by which its network has
/// learned.
text::Tokenizer in_place_of_none(text::Tokenizer given, const std::string& model);
/// The tokenizer of the checkpoint, of --tokenizer, or of the model's folder. Throws Error if there is none.
text::Tokenizer open_task_tokenizer(const TextTaskOptions& options, const std::filesystem::path& checkpoint);

/// What open_text_model() is asked for: the model's fields, dropout, and for a new one the tokenizer's vocabulary.
models::TextModelOptions text_model_options(const TextTaskOptions& options, const std::filesystem::path& checkpoint,
                                            const text::Tokenizer& tokenizer);

/// The model of the checkpoint, or --model as the class of its family that ends with one of `endings`, the first that
/// there is. Throws Error if it has fewer tokens than the tokenizer.
models::TextModel open_task_model(const TextTaskOptions& options, const std::filesystem::path& checkpoint,
                                  const text::Tokenizer& tokenizer, const std::vector<std::string>& endings,
                                  const std::vector<std::string>& labels = {}, bool renew_classifier = false);

/// A model that tells classes apart.
struct TaskClassifier {
  models::TextModel model;
  std::vector<std::string> labels;  ///< in the order of its outputs
  std::string note;                 ///< of a classifier that begins anew, why it does; else empty
};
/// The model of the checkpoint, or --model as the class of its family that ends with `ending`, for texts or words with
/// these labels. A folder that tells the same ones apart keeps its classifier, and their order; one of others, or for
/// something else than classes that exclude each other, gets a new one. Throws Error as open_task_model() does.
TaskClassifier open_task_classifier(const TextTaskOptions& options, const std::filesystem::path& checkpoint,
                                    const text::Tokenizer& tokenizer, const std::string& ending,
                                    std::vector<std::string> labels);

/// The tokens of a text that the model takes at most: --max-length, or its positions (512 if it has no limit).
std::int64_t task_length(const TextTaskOptions& options, const models::TextModel& model);

/// Which of `count` items are to evaluate on, by --val-share: each by itself, as (seed, its number) says.
std::vector<bool> validation_share(const TextTaskOptions& options, std::int64_t count);

/// How texts to evaluate on are gone through: in batches as those of training, unless --validation-batch-size says.
TextRunOptions evaluation_run(const TextTaskOptions& options, const Work& work);

/// A batch as the indices of its items.
struct IndexBatch {
  std::int64_t epoch = 0;
  std::int64_t number = 0;
  std::vector<std::int64_t> indices;
};

/// Batches of --batch-size items, or of --batch-tokens tokens, of items of these lengths: in order or, with `shuffle`,
/// in one that depends on (seed, epoch).
std::unique_ptr<data::Prefetch<IndexBatch>> index_batches(const TextTaskOptions& options,
                                                          const std::vector<std::int64_t>& lengths,
                                                          const std::string& items, bool shuffle);

/// The generation_config.json of the folder that a model comes from, which a model trained from it keeps; "" if it has
/// none.
std::string generation_config_of(const std::filesystem::path& folder);
/// Writes such a text into the folder of the trained model, unless it is "".
void write_generation_config(const std::filesystem::path& folder, const std::string& text);

/// A task whose model takes a batch of texts, which its batches name by index.
class TextTask : public Task {
 public:
  nn::Network& network() override { return *model().net; }
  data::Batches& batches() override { return *batches_; }
  /// Takes the next batch, whose units are its items.
  std::optional<Drawn> next() override;
  std::string units() const override { return "texts"; }
  std::string batch_items() const override { return batch_tokens_ ? "tokens" : units(); }
  std::int64_t items_of_batch(std::int64_t batch_size) override {
    return batch_tokens_ ? *batch_tokens_ : Task::items_of_batch(batch_size);
  }
  std::string name() const override { return model().name; }
  /// Writes model and tokenizer into a folder, which replaces another.
  void save(const std::filesystem::path& folder) const override;
  std::int64_t skipped_lines() const { return skipped_; }  ///< of --skip-broken, in all texts that were read
  /// That texts to evaluate on are cut, as TextCutter says it; "" if none is.
  virtual std::string cut_note() const { return ""; }
  /// What of the parts of the data is not taken.
  virtual std::vector<std::string> part_notes() const { return {}; }

 protected:
  /// Opens the tokenizer.
  TextTask(const TextTaskOptions& options, const std::filesystem::path& checkpoint)
      : tokenizer_(open_task_tokenizer(options, checkpoint)),
        unknown_(tokenizer_),
        batch_tokens_(options.batch_tokens),
        skips_(options.skip_broken) {}

  /// Where a reader of texts counts the lines that it leaves out; null unless it is to leave any out.
  std::int64_t* skipped() { return skips_ ? &skipped_ : nullptr; }

  /// The model that learns.
  virtual const models::TextModel& model() const = 0;
  /// Writes the model into a folder that exists.
  virtual void write_model(const std::filesystem::path& folder) const { models::write_text_model(model(), folder); }
  /// "bert-mini (BertForMaskedLM), 11.17 M parameters, 8000 tokens of WordPiece", and how many lines were left out.
  std::string model_summary() const;

  text::Tokenizer tokenizer_;
  text::UnknownTokens unknown_;  ///< of all texts, to learn from and to evaluate on
  std::unique_ptr<data::Prefetch<IndexBatch>> batches_;
  IndexBatch batch_;

 private:
  std::optional<std::int64_t> batch_tokens_;
  bool skips_;
  std::int64_t skipped_ = 0;
};

}  // namespace vitrail::train
