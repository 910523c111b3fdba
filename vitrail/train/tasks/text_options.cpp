#include "vitrail/train/tasks/text_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/tensor/random.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/texts.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

class IndexSamples final : public data::Samples<IndexBatch> {
 public:
  explicit IndexSamples(std::string items) : items_(std::move(items)) {}
  std::string name(std::int64_t index) const override { return fmt::format("{} {}", items_, index); }
  IndexBatch begin(const data::BatchPlan& plan) const override {
    IndexBatch batch{plan.epoch, plan.number, {}};
    for (const data::Pick& pick : plan.picks) {
      batch.indices.push_back(pick.index);
    }
    return batch;
  }
  void fill(IndexBatch&, const data::BatchPlan&, std::int64_t) const override {}
  void finish(IndexBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  std::string items_;
};

}  // namespace

TextTaskOptions::TextTaskOptions() {
  batch_size = 32;
  epochs = 3;
  lr = 5e-5;
  weight_decay = 0.01;
  clip_grad = 1;
  schedule.warmup_lr = 0;
}

void add_text_data_options(OptionList& list, TextTaskOptions& options, const std::string& items) {
  list.add("val_data", options.val_data, "FILE", fmt::format("{} to evaluate on", io::capitalized(items))).path();
  list.add("val_share", options.val_share, "SHARE",
           fmt::format("Without --val-data, share of the {} to evaluate on, which are drawn; 0: none", items))
      .below_one()
      .settled()
      .idle_if("beside --val-data", [&options] { return !options.val_data.empty(); });
  list.add("tokenizer", options.tokenizer, "NAME",
           "A tokenizer.json or a folder with one (default: that of the model's folder)")
      .path()
      .settled();
  list.add("max_length", options.max_length, "N", "Cut texts to N tokens (default: the model's positions)")
      .at_least(4)
      .settled();
  list.add("no_shuffle", options.no_shuffle, "", fmt::format("Take the {} in order", items));
  add_skip_broken_option(list, options.skip_broken);
}

void add_skip_broken_option(OptionList& list, bool& skip_broken) {
  list.add("skip_broken", skip_broken, "", "Leave out lines that are not UTF-8, and count them").settled();
}

void idle_without_texts(OptionList& list, const TextTaskOptions& options) {
  idle_without_evaluation(list, "texts to evaluate on (--val-share, --val-data)",
                          [&options] { return options.val_share > 0 || !options.val_data.empty(); });
}

std::string skipped_summary(std::int64_t lines) {
  return fmt::format("{} that {} not UTF-8 {} left out", io::counted(lines, "lines"), lines == 1 ? "is" : "are",
                     lines == 1 ? "is" : "are");
}

void add_text_model_options(OptionList& list, TextTaskOptions& options) {
  list.group("model");
  list.add("model", options.model, "MODEL",
           "Name of a model of text (bert-mini, distilbert-base-uncased …), or a model folder")
      .path()
      .settled();
  list.add_arguments("model_kwargs", options.model_kwargs, "KEY=VALUE",
                     "Fields of the model's config.json: hidden_size=256 num_hidden_layers=4 …")
      .settled();
  list.add("drop", options.drop, "RATE", "Dropout, also of attention (default: the model's)").below_one();
}

void add_text_batch_options(OptionList& list, TextTaskOptions& options, const std::string& items) {
  add_batch_options(list, options, items);
  list.add("batch_tokens", options.batch_tokens, "N",
           fmt::format("In place of --batch-size, about N tokens a batch, of as many {} as have them", items))
      .at_least(1)
      .at_most(1e6);
  list.find("batch_size")->idle_if("beside --batch-tokens", [&options] { return options.batch_tokens.has_value(); });
}

void check_validation_pairs(const std::string& src, const std::string& tgt) {
  check(src.empty() ? tgt.empty() : text::are_pairs_named(src, tgt),
        "--val-src and --val-tgt belong together, unless --val-src is a table of pairs: .tsv, .csv or .jsonl");
}

void check_texts(const std::string& data, const std::string& model) {
  const std::string source = model_of(model).string();
  const auto is_of_images = [&] {
    return fs::exists(models::shipped_or(source) / models::config_file) ||
           std::ranges::any_of(models::architectures(), [&](const auto& known) { return known.name == source; });
  };
  check(models::names_text_model(source) || !is_of_images(),
        "'{}' is no model of texts, which this task wants: see `vitrail models` for names, or give a folder of "
        "transformers",
        model);
  check(!fs::is_directory(data),
        "'{}' is a folder, but a model of texts such as '{}' learns from a file: images want a model of images", data,
        model);
}

void check_no_translator(const std::string& model) {
  const std::string source = model_of(model).string();
  check(!models::names_text_model(source) ||
            models::open_text_model(source, {.fill = nn::Fill::meta}).net->translator() == nullptr,
        "'{}' is a translator, which --task translate teaches, from --src and --tgt: this task wants an encoder or a "
        "language model",
        model);
}

text::Tokenizer in_place_of_none(text::Tokenizer given, const std::string& model) {
  const fs::path folder = model_of(model);
  if (!fs::is_directory(folder)) {
    return given;
  }
  const std::optional<text::Tokenizer> own = text::tokenizer_in(folder);
  check(!own || text::have_the_same_tokens(*own, given),
        "'{}' has a tokenizer of its own, whose tokens its network has learned: leave out --tokenizer", model);
  return given;
}

text::Tokenizer open_task_tokenizer(const TextTaskOptions& options, const fs::path& checkpoint) {
  check_texts(options.data, options.model);
  if (checkpoint.empty()) {
    check_no_translator(options.model);
  }
  const bool folder = fs::is_directory(options.model);
  const fs::path source = !checkpoint.empty()          ? checkpoint
                          : !options.tokenizer.empty() ? model_of(options.tokenizer)
                          : folder                     ? model_of(options.model)
                                                       : fs::path();
  check(!source.empty() || models::names_text_model(model_of(options.model).string()),
        "there is no model folder '{}', nor a model of texts of this name", options.model);
  check(!source.empty(),
        "--tokenizer is missing: a new model has none (`vitrail tokenizer train FILE --model wordpiece --vocab-size "
        "4000 --output DIR` makes one)");
  text::Tokenizer tokenizer = text::load_tokenizer(source);
  return checkpoint.empty() && !options.tokenizer.empty() ? in_place_of_none(std::move(tokenizer), options.model)
                                                          : tokenizer;
}

models::TextModelOptions text_model_options(const TextTaskOptions& options, const fs::path& checkpoint,
                                            const text::Tokenizer& tokenizer) {
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  const std::string source = checkpoint.empty() ? model_of(options.model).string() : checkpoint.string();
  if (!fs::is_directory(source)) {  // a new model has the tokenizer's vocabulary
    kwargs.emplace("vocab_size", tokenizer.vocab_size());
    for (const char* name : {"[PAD]", "<pad>"}) {
      if (const auto id = tokenizer.id_of(name)) {
        kwargs.emplace("pad_token_id", *id);
      }
    }
    if (source.starts_with("gpt2")) {  // its own belong to another vocabulary
      const std::optional<std::int64_t> end = tokenizer.id_of("<|endoftext|>");
      for (const char* key : {"bos_token_id", "eos_token_id"}) {
        kwargs.emplace(key, end ? nlohmann::json(*end) : nlohmann::json());
      }
    }
  }
  return {.model_kwargs = kwargs.dump(), .drop = options.drop, .seed = static_cast<std::uint64_t>(options.seed)};
}

models::TextModel open_task_model(const TextTaskOptions& options, const fs::path& checkpoint,
                                  const text::Tokenizer& tokenizer, const std::vector<std::string>& endings,
                                  const std::vector<std::string>& labels, bool renew_classifier) {
  models::TextModelOptions own = text_model_options(options, checkpoint, tokenizer);
  if (!checkpoint.empty()) {
    models::TextModel model = models::load_text_model(checkpoint, own);
    models::check_vocabulary(text::ordinary_tokens(tokenizer), model.net->shape().vocab_size, checkpoint.string());
    return model;
  }
  const std::string source = model_of(options.model).string();
  for (const std::string& ending : endings) {
    try {
      own.architecture = models::architecture_for(source, ending);
      break;
    } catch (const Error&) {
      if (ending == endings.back()) {
        throw;
      }
    }
  }
  own.labels = labels;
  own.renew_classifier = renew_classifier;
  models::TextModel model = models::open_text_model(source, own);
  models::check_vocabulary(text::ordinary_tokens(tokenizer), model.net->shape().vocab_size);
  return model;
}

// Whether a folder calls its classes LABEL_0, LABEL_1 … for want of names, and these labels are their numbers.
static bool are_numbers_of(const std::vector<std::string>& labels, const std::vector<std::string>& known) {
  bool all = labels.size() == known.size();
  for (std::size_t i = 0; all && i < known.size(); ++i) {
    all = known[i] == fmt::format("LABEL_{}", i) && labels[i] == std::to_string(i);
  }
  return all;
}

TaskClassifier open_task_classifier(const TextTaskOptions& options, const fs::path& checkpoint,
                                    const text::Tokenizer& tokenizer, const std::string& ending,
                                    std::vector<std::string> labels) {
  if (!checkpoint.empty()) {  // data that it is evaluated on need not have all of its classes
    models::TextModel model = open_task_model(options, checkpoint, tokenizer, {ending});
    labels = models::labels_of(model);
    return {std::move(model), std::move(labels), ""};
  }
  std::string note;
  const std::string source = model_of(options.model).string();
  const bool is_folder = models::is_shipped_name(source) || fs::is_directory(source);
  const models::TextModel own = models::open_text_model(source, {.fill = nn::Fill::meta});
  if (is_folder && own.net->classifier() != nullptr) {
    const std::vector<std::string> known = models::labels_of(own);
    if (!own.architecture.ends_with(ending)) {
      note = fmt::format("'{}' is a {}: the classifier begins anew", options.model, own.architecture);
    } else if (own.problem_type == models::ProblemType::regression) {
      note = fmt::format("'{}' predicts numbers, and no classes: the classifier begins anew", options.model);
    } else if (own.problem_type != models::ProblemType::single_label_classification) {
      note = fmt::format("the labels of '{}' do not exclude each other: the classifier begins anew", options.model);
    } else if (std::ranges::is_permutation(known, labels)) {
      labels = known;
    } else if (!are_numbers_of(labels, known)) {
      note = fmt::format("the classes of '{}' are others: the classifier begins anew", options.model);
    }
  }
  models::TextModel model = open_task_model(options, checkpoint, tokenizer, {ending}, labels, !note.empty());
  return {std::move(model), std::move(labels), std::move(note)};
}

std::int64_t task_length(const TextTaskOptions& options, const models::TextModel& model) {
  const std::int64_t positions = model.net->shape().max_positions;
  const std::int64_t length = options.max_length.value_or(std::min<std::int64_t>(positions, 512));
  check(length <= positions, "--max-length {} is more than the {} positions of the model", length, positions);
  return length;
}

std::vector<bool> validation_share(const TextTaskOptions& options, std::int64_t count) {
  const Philox draws(mix(static_cast<std::uint64_t>(options.seed), hash("validation")), 0);
  std::vector<bool> chosen(static_cast<std::size_t>(count));
  if (options.val_data.empty()) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = static_cast<double>(draws.uniform(i)) < options.val_share;
    }
  }
  return chosen;
}

TextRunOptions evaluation_run(const TextTaskOptions& options, const Work& work) {
  return {.dtype = work.dtype,
          .batch_size = options.validation_batch_size.value_or(options.batch_size),
          .batch_tokens = options.validation_batch_size ? std::nullopt : options.batch_tokens,
          .progress = [&work](std::int64_t done, std::int64_t) { work.advance(done); },
          .ranks = work.ranks};
}

std::unique_ptr<data::Prefetch<IndexBatch>> index_batches(const TextTaskOptions& options,
                                                          const std::vector<std::int64_t>& lengths,
                                                          const std::string& items, bool shuffle) {
  const auto seed = mix(static_cast<std::uint64_t>(options.seed), hash("texts"));
  data::EpochPlan plan =
      options.batch_tokens
          ? data::plan_by_units(lengths, *options.batch_tokens, shuffle, seed)
          : data::plan_batches(
                {.size = std::ssize(lengths), .batch_size = options.batch_size, .shuffle = shuffle, .seed = seed});
  return std::make_unique<data::Prefetch<IndexBatch>>(std::make_shared<IndexSamples>(items), std::move(plan),
                                                      data::PrefetchOptions{.workers = 0, .items = items});
}

std::string generation_config_of(const fs::path& folder) {
  const fs::path file = folder / models::generation_file;
  return fs::exists(file) ? io::read_text(file) : "";
}

void write_generation_config(const fs::path& folder, const std::string& text) {
  if (!text.empty()) {
    io::write_atomically(folder / models::generation_file, text);
  }
}

std::optional<Drawn> TextTask::next() {
  if (!batches_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, std::ssize(batch_.indices)};
}

void TextTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    write_model(temporary);
    tokenizer_.save(temporary, takes_types(model()));
  });
}

std::string TextTask::model_summary() const {
  return fmt::format("{} ({}), {:.2f} M parameters, {} tokens of {}{}", model().name, model().architecture,
                     static_cast<double>(model().net->parameters.count()) / 1e6, tokenizer_.vocab_size(),
                     tokenizer_.kind(), skipped_ > 0 ? "; " + skipped_summary(skipped_) : "");
}

}  // namespace vitrail::train
