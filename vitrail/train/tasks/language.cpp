#include "vitrail/train/tasks/language.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/generate/generate.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/recurrent/recurrent_language.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/random.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unknown.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/share_batches.h"
#include "vitrail/train/tasks/language_documents.h"
#include "vitrail/train/tasks/text_blocks.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t sample_tokens = 500;  // of each text in samples.txt
constexpr std::int64_t samples = 3;

text::Tokenizer open_tokenizer(const LanguageOptions& options, const fs::path& checkpoint, const std::string& corpus) {
  if (!checkpoint.empty()) {
    return text::load_tokenizer(checkpoint);
  }
  const bool folder = fs::is_directory(options.model);
  const std::string name = !options.tokenizer.empty() ? options.tokenizer
                           : folder                   ? model_of(options.model).string()
                                                      : "char";
  text::Tokenizer tokenizer = name == "char"   ? text::char_tokenizer(corpus)
                              : name == "byte" ? text::byte_tokenizer()
                                               : text::load_tokenizer(model_of(name));
  return options.tokenizer.empty() ? tokenizer : in_place_of_none(std::move(tokenizer), options.model);
}

models::TextModel make_language_model(const LanguageOptions& options, const fs::path& checkpoint,
                                      const text::Tokenizer& tokenizer) {
  models::TextModelOptions create{
      .model_kwargs = options.model_kwargs, .drop = options.drop, .seed = static_cast<std::uint64_t>(options.seed)};
  if (!checkpoint.empty()) {
    return models::load_text_model(checkpoint, create);
  }
  const std::string name = model_of(options.model).string();
  if (fs::is_directory(name)) {
    return models::load_text_model(name, create);
  }
  // A new model has the tokenizer's vocabulary, and positions for a block.
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  kwargs.emplace("vocab_size", tokenizer.vocab_size());
  if (options.block_size && name.starts_with("gpt2")) {
    kwargs.emplace("n_positions", *options.block_size);
  }
  for (const char* key : {"bos_token_id", "eos_token_id"}) {  // those of the name belong to another vocabulary
    const std::optional<std::int64_t> id = tokenizer.id_of("<|endoftext|>");
    kwargs.emplace(key, id ? nlohmann::json(*id) : nlohmann::json());
  }
  create.model_kwargs = kwargs.dump();
  return models::create_text_model(name, create);
}

FigureKind perplexity_figure() {
  return {.name = "perplexity", .label = "perplexity", .decimals = 3, .chart = "Perplexity", .axis = "perplexity"};
}

FigureKind bits_figure() {
  return {.name = "bits_per_character",
          .label = "bits per character",
          .decimals = 4,
          .chart = "Bits per character",
          .axis = "bits"};
}

// The state of a network that has read nothing of `batch` texts, as numbers.
nn::RecurrentState zero_state(const nn::RecurrentConfig& network, std::int64_t batch) {
  return {Tensor::zeros({network.num_layers, batch, network.output_size()}),
          network.has_memory() ? Tensor::zeros({network.num_layers, batch, network.hidden_size}) : Tensor()};
}

// The model's token for the end of a text, if it has one.
std::optional<std::int64_t> end_of_text(const models::TextModel& model) {
  const nlohmann::json config = nlohmann::json::parse(model.config);
  nlohmann::json end = config.value("eos_token_id", nlohmann::json());
  end = end.is_array() && !end.empty() ? nlohmann::json(end.front()) : end;
  return end.is_number_integer() ? std::optional(end.get<std::int64_t>()) : std::nullopt;
}

// How a text is read.
struct Reading {
  std::shared_ptr<const data::Samples<TextBatch>> parts;
  data::EpochPlan plan;
  std::int64_t tokens = 0;  // of an epoch
  TextBatch rest = {};      // what fills no block, and is read last; without `ids`: nothing
};

class Language final : public Task {
 public:
  Language(const LanguageOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *batches_; }
  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override { return loss_of(batch_, pass, state_.get()); }
  std::string units() const override { return "tokens"; }
  std::string batch_items() const override { return options_.documents ? "tokens" : "blocks"; }
  std::int64_t items_of_batch(std::int64_t batch_size) override {
    return options_.documents ? options_.batch_tokens.value_or(batch_size * block_) : Task::items_of_batch(batch_size);
  }
  std::vector<FigureKind> figures() const override {
    return validation_ == nullptr ? std::vector<FigureKind>()
                                  : std::vector{loss_figure(loss_axis()), perplexity_figure(), bits_figure()};
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of the next token"; }
  std::string alone_because() const override {
    return state_ == nullptr ? "" : "with --bptt a batch goes on where the last one has ended";
  }
  io::NamedTensors state() const override;
  void load_state(const io::NamedTensors& state) override;
  void save(const fs::path& folder) const override;
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override { return model_.name; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  Tensor loss_of(const TextBatch& batch, nn::Pass& pass, models::TextState* state) const;
  // Tokens of the longest part that is read at once.
  std::int64_t block_size() const;
  // The text to evaluate on, in pieces as they stand in its file, and how many tokens are predicted in it.
  void measure_text(std::span<const std::string> texts, std::int64_t tokens);
  void read_streams(std::int64_t steps);
  void read_blocks();
  // The last of `corpus` are to evaluate on unless `evaluated` has some.
  void read_documents(const std::string& corpus, const std::string& evaluated);
  const models::LanguageBody& body() const { return models::language_of(model_); }

  const LanguageOptions options_;
  std::shared_ptr<const Ids> training_;
  std::shared_ptr<const Ids> validation_;  // null: none
  std::optional<text::Tokenizer> tokenizer_;
  models::TextModel model_;
  std::int64_t block_ = 0;  // tokens of a batch's rows
  Reading evaluation_;
  std::int64_t skipped_ = 0;  // lines that are not UTF-8
  double characters_ = 0;     // of a token to evaluate on
  double bytes_ = 0;          // of such a character
  std::unique_ptr<data::Prefetch<TextBatch>> batches_;
  TextBatch batch_;
  std::string own_generation_;                         // generation_config.json of the model's folder
  std::unique_ptr<models::RecurrentTextState> state_;  // with --bptt: of the streams, behind the last batch
};

Language::Language(const LanguageOptions& options, const fs::path& checkpoint) : options_(options) {
  check_texts(options_.data, options_.model);
  if (checkpoint.empty()) {
    check_no_translator(options_.model);
  }
  std::int64_t* const skipped = options_.skip_broken ? &skipped_ : nullptr;
  const std::string corpus = text::read_running_text(options_.data, skipped);
  tokenizer_ = open_tokenizer(options_, checkpoint, corpus);
  model_ = make_language_model(options_, checkpoint, *tokenizer_);
  own_generation_ = generation_config_of(checkpoint.empty() ? model_of(options_.model) : checkpoint);
  models::check_vocabulary(text::ordinary_tokens(*tokenizer_), body().vocab_size());
  check(
      !checkpoint.empty() || !options_.grad_checkpointing || models::as_recurrent(body()) == nullptr,
      "--grad-checkpointing has no effect on '{}', a recurrent network, which has no blocks: --bptt reads fewer tokens "
      "at once",
      model_.name);
  const std::string evaluated = options_.val_data.empty() ? "" : text::read_running_text(options_.val_data, skipped);
  if (options_.documents) {
    read_documents(corpus, evaluated);
    return;
  }
  const auto encoded = [&](const std::string& file, const std::string& words) {
    try {
      return tokenizer_->encode(words, false);
    } catch (const Error& error) {
      fail("{}: {}", file, error.what());
    }
  };
  text::Encoding all = encoded(options_.data, corpus);
  if (!options_.val_data.empty()) {
    validation_ = std::make_shared<Ids>(encoded(options_.val_data, evaluated).ids);
    measure_text(std::span(&evaluated, 1), std::ssize(*validation_));
  } else if (options_.val_share > 0) {
    const auto first = static_cast<std::ptrdiff_t>(static_cast<double>(all.size()) * (1 - options_.val_share));
    validation_ = std::make_shared<Ids>(all.ids.begin() + first, all.ids.end());
    const std::string rest =
        validation_->empty()
            ? ""
            : text::code_points(corpus, all.offsets[static_cast<std::size_t>(first)].first, std::ssize(corpus));
    measure_text(std::span(&rest, 1), std::ssize(*validation_));
    all.ids.resize(static_cast<std::size_t>(first));
  }
  training_ = std::make_shared<Ids>(std::move(all.ids));
  if (options_.bptt) {
    read_streams(*options_.bptt);
  } else {
    read_blocks();
  }
}

// The text is read from its beginning to its end, by a network that keeps its state.
void Language::read_streams(std::int64_t steps) {
  const models::RecurrentLanguage* recurrent = models::as_recurrent(body());
  check(recurrent != nullptr, "--bptt is for recurrent networks, whose state is carried on, and not for {}",
        model_.name);
  const auto streams =
      std::make_shared<TextStreams>(training_, options_.batch_size, steps, options_.epoch_steps.value_or(0));
  block_ = streams->chunk();
  batches_ = std::make_unique<data::Prefetch<TextBatch>>(streams, streams->plan(),
                                                         data::PrefetchOptions{.workers = 0, .items = "chunks"});
  state_ = std::make_unique<models::RecurrentTextState>();
  state_->state = zero_state(recurrent->config().network, options_.batch_size);
  if (validation_ != nullptr) {
    const std::int64_t rows = options_.validation_batch_size.value_or(options_.batch_size);
    const auto read = std::make_shared<TextStreams>(validation_, rows, steps);
    evaluation_ = {read, read->plan(), read->tokens()};
  }
}

void Language::measure_text(std::span<const std::string> texts, std::int64_t tokens) {
  std::size_t characters = 0;
  std::size_t bytes = 0;
  for (const std::string& text : texts) {
    characters += text::count_code_points(text);
    bytes += text.size();
  }
  characters_ = static_cast<double>(characters) / static_cast<double>(tokens);
  bytes_ = static_cast<double>(bytes) / static_cast<double>(characters);
}

std::int64_t Language::block_size() const {
  const std::int64_t positions = body().max_positions();
  const std::int64_t block = options_.block_size.value_or(std::min<std::int64_t>(positions, 1024));
  check(block <= positions, "--block-size {} is more than the {} positions of the model", block, positions);
  return block;
}

// Documents are read each by itself, and packed.
void Language::read_documents(const std::string& corpus, const std::string& evaluated) {
  block_ = block_size();
  const std::optional<std::int64_t> end = end_of_text(model_);
  std::vector<std::string> learned = documents_in(corpus, end);
  std::vector<std::string> judged = documents_in(evaluated, end);
  if (options_.val_data.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(static_cast<double>(learned.size()) * (1 - options_.val_share));
    judged.assign(learned.begin() + first, learned.end());
    learned.resize(static_cast<std::size_t>(first));
  }
  std::vector<Ids> training = encode_documents(*tokenizer_, learned, end);
  std::vector<Ids> validation = encode_documents(*tokenizer_, judged, end);
  training_ = std::make_shared<Ids>(joined_documents(training));
  const auto seed = mix(static_cast<std::uint64_t>(options_.seed), hash("documents"));
  const std::int64_t tokens = options_.batch_tokens.value_or(options_.batch_size * block_);
  const auto parts = std::make_shared<TextDocuments>(std::move(training), block_);
  check(parts->count() > 0, "{}: no document is left to learn: blank lines part them; --val-share 0 holds none out",
        options_.data);
  batches_ = std::make_unique<data::Prefetch<TextBatch>>(parts, parts->plan(tokens, !options_.no_shuffle, seed),
                                                         data::PrefetchOptions{.workers = 0, .items = "documents"});
  if (validation.empty()) {
    return;
  }
  validation_ = std::make_shared<Ids>(joined_documents(validation));
  const auto read = std::make_shared<TextDocuments>(std::move(validation), block_);
  check(read->count() > 0, "the documents to evaluate on have nothing to predict");
  const std::int64_t rows = options_.validation_batch_size.value_or(options_.batch_size);
  const std::int64_t most = options_.validation_batch_size ? rows * block_ : tokens;
  evaluation_ = {read, read->plan(most, false, 0), read->tokens()};
  // Without an `end`, nothing predicts the first token of a document: it counts as the mean of the others, as in
  // blocks.
  measure_text(judged, end ? read->tokens() : std::ssize(*validation_));
}

void Language::read_blocks() {
  block_ = block_size();
  check(std::ssize(*training_) > block_, "{}: {} tokens for training are too few for a block of {} and one more",
        options_.data, training_->size(), block_);
  check(validation_ == nullptr || std::ssize(*validation_) > block_,
        "{}: {} tokens to evaluate on are too few for a block of {} and one more (--block-size; --val-share 0 takes "
        "none)",
        options_.val_data.empty() ? options_.data : options_.val_data, validation_ ? validation_->size() : 0, block_);
  const auto seed = mix(static_cast<std::uint64_t>(options_.seed), hash("blocks"));
  const bool drawn = options_.epoch_steps.has_value();
  const auto blocks = std::make_shared<TextBlocks>(training_, block_, drawn, seed);
  const data::PlanOptions plan{.size = drawn ? *options_.epoch_steps * options_.batch_size : blocks->count(),
                               .batch_size = options_.batch_size,
                               .shuffle = !options_.no_shuffle && !drawn,
                               .drop_last = true,
                               .seed = seed};
  batches_ = std::make_unique<data::Prefetch<TextBatch>>(blocks, data::plan_batches(plan),
                                                         data::PrefetchOptions{.workers = 0, .items = "blocks"});
  if (validation_ != nullptr) {
    const auto read = std::make_shared<TextBlocks>(validation_, block_, false, 0);
    const std::int64_t rows = options_.validation_batch_size.value_or(options_.batch_size);
    evaluation_ = {read, data::plan_batches({.size = read->count(), .batch_size = rows}), std::ssize(*validation_) - 1,
                   read->rest()};
  }
}

std::optional<Drawn> Language::next() {
  if (!batches_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, batch_.ids.numel()};
}

Tensor Language::loss_of(const TextBatch& batch, nn::Pass& pass, models::TextState* state) const {
  const Tensor logits = batch.offsets.defined() ? body().forward_texts({batch.ids, {}, batch.offsets}, pass)
                                                : body().forward(batch.ids, pass, state);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), batch.targets.reshape({-1}));
}

// The mean loss of all tokens of the text but the first, each seen with what its block, or its stream, has before it.
Figures Language::evaluate(const Work& work) {
  work.begin("evaluating", evaluation_.tokens);
  data::Prefetch<TextBatch> batches(evaluation_.parts, evaluation_.plan, {.workers = 0});
  const autograd::NoGrad no_grad;
  const std::unique_ptr<models::TextState> state = state_ != nullptr ? body().begin() : nullptr;
  const auto loss_of_tokens = [&](const TextBatch& batch) {
    nn::Pass pass{.dtype = work.dtype};
    return std::pair(static_cast<double>(loss_of(batch, pass, state.get()).item()), batch.ids.numel());
  };
  // A stream goes on where the batch before it has ended, and so is read by each rank.
  LossMean found = share_losses<TextBatch>(batches,
                                           {.ranks = state == nullptr ? work.ranks : nullptr,
                                            .progress = [&](std::int64_t done, std::int64_t) { work.advance(done); },
                                            .total = evaluation_.tokens},
                                           loss_of_tokens);
  if (evaluation_.rest.ids.defined()) {
    found.add(loss_of_tokens(evaluation_.rest));
  }
  const double loss = found.mean();
  return {
      {"loss", loss}, {"perplexity", std::exp(loss)}, {"bits_per_character", loss / std::numbers::ln2 / characters_}};
}

io::NamedTensors Language::state() const {
  io::NamedTensors result;
  if (state_ != nullptr) {
    result.emplace_back("h", state_->state.h);
    if (state_->state.c.defined()) {
      result.emplace_back("c", state_->state.c);
    }
  }
  return result;
}

void Language::load_state(const io::NamedTensors& state) {
  if (state_ == nullptr) {
    return;
  }
  for (const auto& [name, own] : {std::pair{"h", &state_->state.h}, std::pair{"c", &state_->state.c}}) {
    if (!own->defined()) {
      continue;
    }
    const auto found = std::ranges::find(state, name, &io::NamedTensors::value_type::first);
    check(found != state.end(), "the checkpoint has no state '{}' of a network that --bptt carries on", name);
    check(found->second.shape() == own->shape(), "the checkpoint's state '{}' is {}, but --batch-size {} asks for {}",
          name, found->second.shape(), options_.batch_size, own->shape());
    *own = found->second.clone();
  }
}

void Language::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::write_text_model(model_, temporary);
    tokenizer_->save(temporary);
    write_generation_config(temporary, own_generation_);
  });
}

// Writes texts that the best network continues from the beginning of the text to evaluate on.
std::vector<std::string> Language::draw(const fs::path& run) const {
  const models::TextModel best = models::load_text_model(run / "best");
  const Ids& source = validation_ != nullptr ? *validation_ : *training_;
  const std::int64_t prompt = std::clamp<std::int64_t>(block_ / 2, 1, 16);
  generate::GenerationConfig config;
  config.do_sample = true;
  config.top_k = 0;
  config.max_new_tokens = sample_tokens;
  if (const auto unknown = text::unknown_token(*tokenizer_)) {
    config.suppress_tokens = {*unknown};
  }
  std::string all;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto begin = source.begin() + i * (std::ssize(source) - prompt) / samples;
    Ids ids(begin, begin + prompt);
    const std::uint64_t seed = mix(static_cast<std::uint64_t>(options_.seed), hash(fmt::format("sample {}", i + 1)));
    const generate::GenerateOptions how{.seed = seed, .slides = true};
    const Ids added = generate::generate(models::language_of(best), ids, config, how).front().ids;
    // The model may know more tokens than the tokenizer: they stand for no text.
    std::ranges::copy_if(added, std::back_inserter(ids), [&](std::int64_t id) { return tokenizer_->has(id); });
    all += fmt::format("--- sample {}, of which the first {} tokens are given\n{}\n", i + 1, prompt,
                       tokenizer_->decode(ids));
  }
  const fs::path file = run / "samples.txt";
  io::write_atomically(file, all);
  return {fmt::format("what it writes by itself: {}", file.string())};
}

std::vector<std::string> Language::summary() const {
  const auto count = static_cast<double>(model_.net->parameters.count());
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {} tokens of {}, {} {}", model_.name, count / 1e6, tokenizer_->vocab_size(),
                  tokenizer_->kind(),
                  state_ != nullptr    ? "in streams with chunks of"
                  : options_.documents ? "documents of at most"
                                       : "blocks of",
                  block_),
      fmt::format("{} training{}", io::counted(std::ssize(*training_), "tokens"),
                  validation_ != nullptr ? fmt::format(" and {} validation tokens", validation_->size()) : "")};
  if (!options_.documents && state_ == nullptr && !options_.epoch_steps) {
    note_unfilled(lines, "blocks", (std::ssize(*training_) - 1) / block_, options_.batch_size);
  }
  if (skipped_ > 0) {
    lines.push_back(skipped_summary(skipped_));
  }
  const auto note_unknown_in = [&](const Ids& ids, const std::string& source) {
    text::UnknownTokens unknown(*tokenizer_);
    unknown.add(ids);
    add_note(lines, unknown.note(source));
  };
  note_unknown_in(*training_, options_.data);
  if (validation_ != nullptr) {
    note_unknown_in(*validation_, options_.val_data.empty() ? "the share to evaluate on" : options_.val_data);
  }
  note_same_data(lines, "texts", {options_.data}, {options_.val_data});
  return lines;
}

std::vector<std::pair<std::string, std::string>> Language::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {{"model", model_.name},
                                                            {"architecture", model_.architecture},
                                                            {"flops", std::to_string(model_.net->flops(block_))},
                                                            {"vocabulary", std::to_string(tokenizer_->vocab_size())},
                                                            {"training_tokens", std::to_string(training_->size())}};
  if (validation_ != nullptr) {
    facts.emplace_back(bytes_per_character, fmt::format("{}", bytes_));
  }
  facts.emplace_back("validation_tokens", std::to_string(options_.documents       ? evaluation_.tokens
                                                         : validation_ != nullptr ? std::ssize(*validation_)
                                                                                  : 0));
  facts.emplace_back("block", std::to_string(block_));
  return facts;
}

}  // namespace

std::unique_ptr<Task> LanguageOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<Language>(*this, checkpoint);
}

}  // namespace vitrail::train
