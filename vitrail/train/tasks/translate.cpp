#include "vitrail/train/tasks/translate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/prefetch.h"
#include "vitrail/generate/translate.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/train.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sources/pair_parts.h"
#include "vitrail/train/study/evaluate_translation.h"
#include "vitrail/train/study/sentence_pairs.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t usual_beams = 5;  // of a model that is saved

// The tokenizers of both languages.
struct Pieces {
  text::Tokenizer source;
  text::Tokenizer target;
};

Pieces open_pieces(const TranslationOptions& options, const fs::path& checkpoint, const text::ParallelText& training) {
  const auto of_folder = [](const fs::path& folder) {
    return Pieces{text::load_tokenizer(folder), text::load_target_tokenizer(folder)};
  };
  const auto of_both = [](const text::Tokenizer& both) { return Pieces{both, both}; };
  if (!checkpoint.empty()) {
    return of_folder(checkpoint);
  }
  const fs::path model = model_of(options.model);
  if (!options.tokenizer.empty() || fs::is_directory(model)) {
    const fs::path given = options.tokenizer.empty() ? model : model_of(options.tokenizer);
    const bool of_sentencepiece = given.extension() == ".model" || given.extension() == ".spm";
    Pieces pieces = of_sentencepiece ? of_both(text::marian_tokenizer(given)) : of_folder(given);
    if (!options.tokenizer.empty()) {
      pieces.source = in_place_of_none(std::move(pieces.source), options.model);
    }
    return pieces;
  }
  std::vector<std::string> texts = training.source;
  texts.insert(texts.end(), training.target.begin(), training.target.end());
  text::TokenizerTraining learning;
  learning.vocab_size = options.vocab_size;
  return of_both(text::train_marian(texts, options.pieces, learning));
}

// How a model that is saved generates, in transformers' words.
nlohmann::ordered_json to_json(const generate::GenerationConfig& config) {
  nlohmann::ordered_json json = {{"decoder_start_token_id", *config.decoder_start_token_id},
                                 {"eos_token_id", config.eos_token_id.front()},
                                 {"forced_eos_token_id", config.forced_eos_token_id.front()},
                                 {"max_length", config.max_length},
                                 {"num_beams", usual_beams}};
  if (config.pad_token_id) {
    json["pad_token_id"] = *config.pad_token_id;
    json["bad_words_ids"] = config.bad_words_ids;
  }
  return json;
}

models::TextModel make_translator(const TranslationOptions& options, const fs::path& checkpoint,
                                  const text::Tokenizer& tokenizer) {
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  if (options.drop) {
    kwargs["dropout"] = *options.drop;
  }
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const fs::path folder = checkpoint.empty() ? model_of(options.model) : checkpoint;
  if (fs::is_directory(folder)) {
    return models::load_text_model(folder, {.model_kwargs = kwargs.dump(), .seed = seed});
  }
  // A new model has the tokenizer's vocabulary and special tokens.
  const std::optional<std::int64_t> end = tokenizer.id_of("</s>");
  const std::optional<std::int64_t> padding = tokenizer.id_of("<pad>");
  check(end && padding,
        "a translator's tokenizer needs the tokens </s> and <pad>: give a folder of Marian's, or a file of "
        "sentencepiece");
  const std::vector<std::pair<const char*, std::int64_t>> fields = {{"vocab_size", tokenizer.vocab_size()},
                                                                    {"decoder_vocab_size", tokenizer.vocab_size()},
                                                                    {"eos_token_id", *end},
                                                                    {"forced_eos_token_id", *end},
                                                                    {"pad_token_id", *padding},
                                                                    {"decoder_start_token_id", *padding}};
  for (const auto& [key, value] : fields) {
    kwargs.emplace(key, value);
  }
  return models::create_text_model(options.model, {.model_kwargs = kwargs.dump(), .seed = seed});
}

// How a model translates, by the fields of its config.
generate::GenerationConfig generation_of(const models::TextModel& model, std::int64_t max_length) {
  const nlohmann::json json = nlohmann::json::parse(model.config);
  io::Fields f(json, model.name);
  const auto id = [&](const char* key) { return f.optional<std::int64_t>(key, {0, 1 << 28}); };
  generate::GenerationConfig config;
  config.eos_token_id = {id("eos_token_id").value_or(0)};
  config.forced_eos_token_id = config.eos_token_id;
  config.pad_token_id = id("pad_token_id");
  config.bos_token_id = id("bos_token_id");
  const std::optional<std::int64_t> start = id("decoder_start_token_id");
  config.decoder_start_token_id = start ? start : config.pad_token_id;
  if (config.pad_token_id) {
    config.bad_words_ids = {{*config.pad_token_id}};
  }
  config.max_length = max_length;
  return config;
}

bool is_zero(const Tensor& row) {
  return std::ranges::all_of(row.span<float>(), [](float value) { return value == 0; });
}

// The rows of padding in the embeddings with which a translation begins, if it begins with padding.
std::vector<Tensor> rows_of_padding(const models::TextModel& model, const generate::GenerationConfig& config) {
  std::vector<Tensor> rows;
  const auto* const network = dynamic_cast<const models::EncoderDecoderNetwork*>(model.net.get());
  if (network == nullptr || !config.pad_token_id || config.decoder_start_token_id != config.pad_token_id) {
    return rows;
  }
  const std::vector<std::string> names = network->vocabulary_weights();
  for (const nn::Parameter& parameter : network->parameters.all()) {
    if (std::ranges::find(names, parameter.name) != names.end() && parameter.value.rank() == 2) {
      rows.push_back(parameter.value.select(0, *config.pad_token_id));
    }
  }
  return rows;
}

class TranslationTask final : public Task {
 public:
  TranslationTask(const TranslationOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *batches_; }
  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "tokens"; }
  std::int64_t items_of_batch(std::int64_t batch_size) override {
    return std::min(batch_size, training_->target_tokens());
  }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of the next token"; }
  void updated(std::int64_t /*step*/) override { keep_padding_zero(); }
  void save(const fs::path& folder) const override;
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override { return model_.name; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void read_validation(std::int64_t* skipped, std::int64_t longest);
  // Marian's translations begin with an embedding of zeros, which CTranslate2 takes for granted; transformers has it as
  // that of padding. A head that is tied to the embedding would have it learn.
  void keep_padding_zero() const {
    if (begins_with_zeros_) {
      for (const Tensor& row : rows_of_padding(model_, generation_)) {
        row.fill(0);
        row.touch();
      }
    }
  }

  const TranslationOptions options_;
  text::ParallelText validation_;  // empty: none
  std::int64_t training_lines_ = 0;
  std::int64_t left_out_ = 0;
  std::int64_t judged_left_out_ = 0;  // of those to evaluate on, that are too long for the model
  std::int64_t skipped_ = 0;          // pairs with a line that is not UTF-8
  std::string unknown_;               // a note
  std::optional<Pieces> pieces_;
  models::TextModel model_;
  generate::GenerationConfig generation_;  // greedy
  std::string own_generation_;             // of the model's folder, if it is not a new one
  bool begins_with_zeros_ = false;
  std::shared_ptr<const SentencePairs> training_;
  std::shared_ptr<const SentencePairs> evaluated_;  // null: none
  std::vector<std::string> part_notes_;             // which parts of tables are left
  std::unique_ptr<data::Prefetch<PairBatch>> batches_;
  PairBatch batch_;
};

TranslationTask::TranslationTask(const TranslationOptions& options, const fs::path& checkpoint) : options_(options) {
  check_texts(options_.src, options_.model);
  std::int64_t* const skipped = options_.skip_broken ? &skipped_ : nullptr;
  const text::ParallelText training =
      read_pairs_of({.name = "train", .learns = true}, options_.src, options_.tgt, part_notes_, skipped);
  pieces_ = open_pieces(options_, checkpoint, training);
  const text::Tokenizer& tokenizer = pieces_->source;
  model_ = make_translator(options_, checkpoint, tokenizer);
  const models::Translator& body = models::translator_of(model_);
  models::check_vocabulary(text::ordinary_tokens(tokenizer),
                           std::min(body.source_vocab_size(), body.target_vocab_size()));
  const std::int64_t longest = std::min(options_.max_length, body.max_positions());
  generation_ = generation_of(model_, longest);
  own_generation_ = generation_config_of(checkpoint.empty() ? model_of(options_.model) : checkpoint);
  const SpecialTokens special = special_tokens(generation_);
  begins_with_zeros_ = (checkpoint.empty() && !fs::is_directory(model_of(options_.model))) ||
                       std::ranges::all_of(rows_of_padding(model_, generation_), is_zero);
  keep_padding_zero();
  const auto threads = kernels::threads();
  training_ = std::make_shared<SentencePairs>(training, tokenizer, pieces_->target, special, longest, threads);
  check(training_->count() > 0, "{}: no pair of lines has at most {} tokens: see --max-length",
        text::shown_pairs(options_.src, options_.tgt), longest);
  training_lines_ = std::ssize(training.source);
  left_out_ = training.left_out + training_lines_ - training_->count();
  text::UnknownTokens unknown(tokenizer);
  for (const TokenPair& pair : training_->pairs()) {
    unknown.add(pair.source);
    unknown.add(pair.target);
  }
  unknown_ = unknown.note("the pairs");
  if (!options_.val_src.empty()) {
    read_validation(skipped, longest);
  }
  const auto seed = mix(static_cast<std::uint64_t>(options_.seed), hash("pairs"));
  batches_ = std::make_unique<data::Prefetch<PairBatch>>(
      training_, training_->plan(options_.batch_size, !options_.no_shuffle, seed),
      data::PrefetchOptions{.workers = static_cast<int>(std::min<std::int64_t>(options_.workers, 1)),
                            .items = "pairs"});
}

// Texts that the model has no positions for cannot be translated, and are left out.
void TranslationTask::read_validation(std::int64_t* skipped, std::int64_t longest) {
  const text::Tokenizer& tokenizer = pieces_->source;
  const auto threads = kernels::threads();
  const std::int64_t positions = models::translator_of(model_).max_positions();
  text::ParallelText all =
      read_pairs_of({.name = "validation"}, options_.val_src, options_.val_tgt, part_notes_, skipped);
  const std::vector<text::Encoding> sources = tokenizer.encode_batch(all.source, true, threads);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (std::ssize(sources[i].ids) <= positions) {
      validation_.source.push_back(std::move(all.source[i]));
      validation_.target.push_back(std::move(all.target[i]));
    }
  }
  judged_left_out_ = std::ssize(sources) - std::ssize(validation_.source);
  evaluated_ = std::make_shared<SentencePairs>(validation_, tokenizer, pieces_->target, special_tokens(generation_),
                                               longest, threads);
  check(evaluated_->count() > 0, "{}: no pair of lines to evaluate on has at most {} tokens",
        text::shown_pairs(options_.val_src, options_.val_tgt), longest);
}

std::optional<Drawn> TranslationTask::next() {
  if (!batches_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, batch_.tokens};
}

Tensor TranslationTask::loss(nn::Pass& pass) {
  return translation_loss(models::translator_of(model_), batch_, pass, static_cast<float>(options_.smoothing));
}

std::vector<FigureKind> TranslationTask::figures() const {
  if (evaluated_ == nullptr) {
    return {};
  }
  return {{.name = "bleu", .label = "BLEU", .decimals = 2, .higher_is_better = true, .chart = "BLEU", .axis = "BLEU"},
          loss_figure(loss_axis())};
}

// BLEU of greedy translations, and the loss a token without smoothing.
Figures TranslationTask::evaluate(const Work& work) {
  keep_padding_zero();  // of the average too: save() sees to it on the first rank alone
  const std::int64_t batch_tokens = options_.validation_batch_size.value_or(options_.batch_size);
  work.begin("evaluating", evaluated_->count() + std::ssize(validation_.source));
  const models::Translator& body = models::translator_of(model_);
  const double loss = mean_translation_loss(body, *evaluated_, batch_tokens, work.dtype, work.advance, work.ranks);
  generate::TranslateOptions how;
  how.most_growth = 2;  // a model that has learned little does not know where to end
  how.batch_tokens = batch_tokens;
  how.generate.dtype = work.dtype;
  const std::int64_t ranks = work.ranks == nullptr ? 1 : work.ranks->size();
  how.advance = [&](std::int64_t lines) {
    work.advance(evaluated_->count() + std::min(lines * ranks, std::ssize(validation_.source)));
  };
  const auto translate = [&](const std::vector<std::string>& lines) {
    return generate::translate(body, pieces_->source, generation_, lines, how);
  };
  const std::vector<std::string> translations = translate_together(validation_.source, translate, work.ranks);
  return {{"bleu", translation_bleu(translations, validation_).score}, {"loss", loss}};
}

void TranslationTask::save(const fs::path& folder) const {
  keep_padding_zero();
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::write_text_model(model_, temporary);
    pieces_->source.save(temporary);
    write_generation_config(temporary, own_generation_.empty() ? to_json(generation_).dump(2) + "\n" : own_generation_);
  });
}

// Writes what the best network makes of the text to evaluate on, by a beam search.
std::vector<std::string> TranslationTask::draw(const fs::path& run) const {
  if (evaluated_ == nullptr) {
    return {};
  }
  generate::GenerationConfig config = generation_;
  config.num_beams = usual_beams;
  generate::TranslateOptions how;
  how.generate.dtype = compute_dtype(options_);
  const models::TextModel best = models::load_text_model(run / "best");
  const auto translations =
      generate::translate(models::translator_of(best), pieces_->source, config, validation_.source, how);
  std::string lines;
  for (const generate::LineTranslations& line : translations) {
    lines += line.best.front().text + "\n";
  }
  const fs::path file = run / "translations.txt";
  io::write_atomically(file, lines);
  return {fmt::format("translations of '{}' by {} beams, BLEU {:.2f}: {}", options_.val_src, usual_beams,
                      translation_bleu(translations, validation_).score, file.string())};
}

std::vector<std::string> TranslationTask::summary() const {
  const auto count = static_cast<double>(model_.net->parameters.count());
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {} tokens of {}", model_.name, count / 1e6, pieces_->source.vocab_size(),
                  pieces_->source.kind()),
      fmt::format("{} of lines with {} source and {} target tokens{}",
                  io::counted(training_->count(), "training pairs"), training_->source_tokens(),
                  training_->target_tokens(),
                  evaluated_ != nullptr ? fmt::format(", {} to evaluate on", validation_.source.size()) : "")};
  if (left_out_ > 0) {
    lines.push_back(fmt::format("{} with an empty line or more than {} tokens are left out",
                                io::counted(left_out_, "pairs"),
                                std::min(options_.max_length, models::translator_of(model_).max_positions())));
  }
  if (judged_left_out_ > 0) {
    lines.push_back(fmt::format("{} to evaluate on left out: the model reads at most {} tokens",
                                io::counted(judged_left_out_, "pairs"), models::translator_of(model_).max_positions()));
  }
  add_note(lines, unknown_);
  if (skipped_ > 0) {
    lines.push_back(skipped_pairs_summary(skipped_));
  }
  lines.insert(lines.end(), part_notes_.begin(), part_notes_.end());
  if (part_notes_.empty()) {  // else the two are different parts of it
    note_same_data(lines, "pairs", {options_.src, options_.tgt}, {options_.val_src, options_.val_tgt});
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> TranslationTask::facts() const {
  return {{"model", model_.name},
          {"vocabulary", std::to_string(pieces_->source.vocab_size())},
          {"training_pairs", std::to_string(training_->count())},
          {"source_tokens", std::to_string(training_->source_tokens())},
          {"target_tokens", std::to_string(training_->target_tokens())},
          {"validation_pairs", std::to_string(validation_.source.size())}};
}

}  // namespace

TranslationOptions::TranslationOptions() {
  eval_metric = "bleu";
  batch_size = 4096;
  epochs = 30;
  optimizer.opt = "adam";
  optimizer.betas = std::array{0.9, 0.98};
  optimizer.eps = 1e-9;
  weight_decay = 0;
  lr = 2e-3;
  schedule.sched = "noam";
  schedule.warmup_lr = 0;
  warmup_steps = 800;
  model_ema = true;
  ema.decay = 0.999;
  ema.warmup = true;
}

void TranslationOptions::describe(OptionList& list) {
  const auto has_pieces = [this]() -> std::string {
    return !tokenizer.empty()                  ? "beside --tokenizer"
           : fs::is_directory(model_of(model)) ? "with --model " + model + ", whose folder has a tokenizer"
                                               : "";
  };
  list.group("data");
  list.add("src", src, "FILE",
           "Texts to translate: a UTF-8 file, a sentence a line; or a table of pairs, a .tsv, .csv or .jsonl, without "
           "--tgt")
      .argument("DATA")
      .path();
  list.add("tgt", tgt, "FILE", "Their translations, line by line").path();
  list.add("val_src", val_src, "FILE", "Texts, or a table of pairs, to evaluate on").path();
  list.add("val_tgt", val_tgt, "FILE", "Their translations").path();
  list.add("tokenizer", tokenizer, "PATH",
           "A sentencepiece .model or .spm file, or a folder of Marian's (default: that of the model's folder, or a "
           "new one)")
      .path()
      .settled();
  list.add("vocab_size", vocab_size, "N", "Tokens of a new tokenizer, which both languages share")
      .at_least(8)
      .settled()
      .idle_if(has_pieces);
  list.add("pieces", pieces, "KIND", "How sentencepiece makes a new tokenizer: unigram or bpe")
      .one_of({"unigram", "bpe"})
      .settled()
      .idle_if(has_pieces);
  list.add("max_length", max_length, "N", "Longer texts are left out; the longest translation").at_least(2).settled();
  list.add("no_shuffle", no_shuffle, "", "Take the pairs in order");
  list.add("skip_broken", skip_broken, "", "Leave out pairs with a line that is not UTF-8, and count them").settled();
  list.group("model");
  list.add("model", model, "MODEL",
           "Model: transformer-small, transformer-base, transformer-big, lstm_bahdanau, lstm_seq2seq (or gru_…), or a "
           "model "
           "folder")
      .path()
      .settled();
  list.add_arguments("model_kwargs", model_kwargs, "KEY=VALUE",
                     "Fields of the model's config.json: encoder_layers=4 d_model=384 …")
      .settled();
  list.add("drop", drop, "RATE", "Dropout of embedded tokens and branches (default: the model's)").below_one();
  list.add("smoothing", smoothing, "S", "Label smoothing").below_one();
  add_parameter_options(list, *this);
  add_batch_options(list, *this, "target tokens");
  list.find("batch_size")->also("--batch-tokens");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "target tokens");
  add_average_options(list, *this);
  add_run_options(list, *this, {"bleu", "loss"});
  idle_without_evaluation(list, "texts to evaluate on (--val-src, --val-tgt)", [this] { return !val_src.empty(); });
}

void TranslationOptions::validate() const {
  TaskOptions::validate();
  check(text::are_pairs_named(src, tgt), "translate wants --src and --tgt, a text and its translation {}",
        text::pairs_or_table);
  check_validation_pairs(val_src, val_tgt);
}

std::unique_ptr<Task> TranslationOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<TranslationTask>(*this, checkpoint);
}

}  // namespace vitrail::train
