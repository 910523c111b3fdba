#include "vitrail/train/tasks/pretrain_bert.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/train/study/share_batches.h"
#include "vitrail/train/tasks/bert_examples.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// What a batch of examples costs, and what the network had right.
struct BertLosses {
  Tensor masked = {};  // the mean of the masked tokens
  Tensor next = {};    // the mean of the texts; undefined if it is not predicted
  std::int64_t masked_tokens = 0;
  std::int64_t right_tokens = 0;
  std::int64_t right_next = 0;
};

// The sums of a batch of so many texts.
std::string packed(const BertLosses& losses, std::int64_t texts) {
  dist::Packer packer;
  packer.put(static_cast<double>(losses.masked.item()) * static_cast<double>(losses.masked_tokens));
  packer.put(losses.next.defined() ? static_cast<double>(losses.next.item()) * static_cast<double>(texts) : 0.0);
  packer.put(losses.masked_tokens);
  packer.put(losses.right_tokens);
  packer.put(losses.right_next);
  return packer.bytes();
}

std::int64_t token_named(const text::Tokenizer& tokenizer, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto id = tokenizer.id_of(name)) {
      return *id;
    }
  }
  fail("the tokenizer has no token {}, which examples of BERT have", *names.begin());
}

class PretrainBert final : public TextTask {
 public:
  PretrainBert(const PretrainBertOptions& options, const fs::path& checkpoint);

  Tensor loss(nn::Pass& pass) override;
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of masked tokens and the next sentence"; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  const models::TextModel& model() const override { return model_; }
  void read_documents();
  BertLosses losses_of(const std::vector<BertExample>& examples, nn::Pass& pass) const;
  // The random numbers of an example, which follow from (seed, epoch, index).
  Draws draws_of(std::int64_t epoch, std::int64_t index) const;
  const models::EncoderNetwork& net() const { return models::encoder_of(model_); }
  bool predicts_next() const { return !net().heads.next_sentence.empty(); }

  const PretrainBertOptions options_;
  models::TextModel model_;
  std::optional<BertExamples> training_;
  std::optional<BertExamples> validation_;
  std::vector<BertExample> stored_;  // of --examples, in place of training_
};

PretrainBert::PretrainBert(const PretrainBertOptions& options, const fs::path& checkpoint)
    : TextTask(options, checkpoint), options_(options) {
  const std::vector<std::string> endings = options_.no_next_sentence
                                               ? std::vector<std::string>{"ForMaskedLM"}
                                               : std::vector<std::string>{"ForPreTraining", "ForMaskedLM"};
  model_ = open_task_model(options_, checkpoint, tokenizer_, endings);
  const bool given = !options_.examples.empty();
  if (given) {
    stored_ = stored_bert_examples(options_.examples, predicts_next());
  } else {
    read_documents();
  }
  std::vector<std::int64_t> lengths = given ? std::vector<std::int64_t>() : training_->lengths();
  std::ranges::transform(stored_, std::back_inserter(lengths),
                         [](const BertExample& example) { return example.text.size(); });
  batches_ = index_batches(options_, lengths, "texts", !given && !options_.no_shuffle);
}

void PretrainBert::read_documents() {
  const BertExampleOptions how{.max_length = task_length(options_, model_),
                               .next_sentence = predicts_next(),
                               .cls = token_named(tokenizer_, {"[CLS]", "<s>"}),
                               .sep = token_named(tokenizer_, {"[SEP]", "</s>"}),
                               .masking = masking_of(tokenizer_, options_.mask_prob, options_.whole_words)};
  TokenDocuments all = read_token_documents(options_.data, tokenizer_, skipped());
  const std::vector<bool> evaluated = validation_share(options_, std::ssize(all));
  TokenDocuments training;
  TokenDocuments validation;
  for (std::size_t i = 0; i < all.size(); ++i) {
    (evaluated[i] ? validation : training).push_back(std::move(all[i]));
  }
  if (!options_.val_data.empty()) {
    validation = read_token_documents(options_.val_data, tokenizer_, skipped());
  }
  for (const TokenDocuments* part : {&training, &validation}) {
    for (const std::vector<std::vector<std::int64_t>>& document : *part) {
      std::ranges::for_each(document, [this](const std::vector<std::int64_t>& sentence) { unknown_.add(sentence); });
    }
  }
  training_.emplace(std::move(training), how);
  if (!validation.empty()) {
    validation_.emplace(std::move(validation), how);
  }
}

Draws PretrainBert::draws_of(std::int64_t epoch, std::int64_t index) const {
  const auto seed = mix(static_cast<std::uint64_t>(options_.seed), hash("masks"));
  return Draws(Philox(mix(seed, static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index)));
}

BertLosses PretrainBert::losses_of(const std::vector<BertExample>& examples, nn::Pass& pass) const {
  std::vector<const TextIds*> texts;
  std::vector<std::int64_t> places;  // of masked tokens, in the row of all
  std::vector<std::int64_t> tokens;  // what stood there
  std::vector<std::int64_t> not_next;
  std::int64_t begin = 0;
  for (const BertExample& example : examples) {
    texts.push_back(&example.text);
    not_next.push_back(example.not_next);
    for (std::size_t i = 0; i < example.labels.size(); ++i) {
      if (example.labels[i] >= 0) {
        places.push_back(begin + static_cast<std::int64_t>(i));
        tokens.push_back(example.labels[i]);
      }
    }
    begin += example.text.size();
  }
  check(!places.empty(), "no token of a batch is masked: all its labels are -100");
  const models::EncoderInput batch = packed_batch(texts, takes_types(model_));
  const Tensor states = net().body(batch, pass);
  const std::int64_t count = std::ssize(places);
  const Tensor rows = ops::index_select(ops::select(states, 0, 0), 0, Tensor::from(places, {count}));
  const Tensor logits = net().masked_logits(rows);
  BertLosses losses{.masked = ops::cross_entropy(logits, Tensor::from(tokens, {count})), .masked_tokens = count};
  const bool counts = !pass.training;
  losses.right_tokens = counts ? count_right(ops::argmax(logits, 1), tokens) : 0;
  if (predicts_next()) {
    const Tensor next = net().next_sentence_logits(states, batch.texts(), pass);
    losses.next = ops::cross_entropy(next, Tensor::from(not_next, {std::ssize(not_next)}));
    losses.right_next = counts ? count_right(ops::argmax(next, 1), not_next) : 0;
  }
  return losses;
}

Tensor PretrainBert::loss(nn::Pass& pass) {
  std::vector<BertExample> examples;
  for (const std::int64_t index : batch_.indices) {
    examples.push_back(training_ ? training_->draw(index, draws_of(batch_.epoch, index))
                                 : stored_[static_cast<std::size_t>(index)]);
  }
  const BertLosses losses = losses_of(examples, pass);
  return losses.next.defined() ? losses.masked + losses.next : losses.masked;
}

std::vector<FigureKind> PretrainBert::figures() const {
  if (!validation_) {
    return {};
  }
  const auto accuracy = [](const char* name, const char* label) {
    return accuracy_figure(name, label, "% of what is predicted");
  };
  std::vector<FigureKind> kinds = {loss_figure(loss_axis()), accuracy("masked_accuracy", "masked tokens")};
  if (predicts_next()) {
    kinds.push_back(accuracy("next_sentence_accuracy", "next sentence"));
  }
  return kinds;
}

// The examples to evaluate on are drawn the same way each time.
Figures PretrainBert::evaluate(const Work& work) {
  const std::int64_t count = validation_->count();
  work.begin("evaluating", count);
  const autograd::NoGrad no_grad;
  const TextRunOptions run = evaluation_run(options_, work);
  JudgedBatches judged;
  std::vector<BertExample> examples;
  std::int64_t batch_tokens = 0;
  std::int64_t number = 0;  // of the batch
  for (std::int64_t i = 0; i < count; ++i) {
    examples.push_back(validation_->draw(i, draws_of(-1, i)));
    batch_tokens += examples.back().text.size();
    const auto texts = std::ssize(examples);
    if (i + 1 < count && (run.batch_tokens ? batch_tokens < *run.batch_tokens : texts < run.batch_size)) {
      continue;
    }
    if (is_own_batch(work.ranks, number)) {
      nn::Pass pass{.dtype = work.dtype};
      judged[number] = packed(losses_of(examples, pass), texts);
    }
    ++number;
    examples.clear();
    batch_tokens = 0;
    work.advance(i + 1);
  }
  BertLosses total;
  double masked = 0;
  double next = 0;
  for (const auto& [batch, bytes] : gather_judged(work.ranks, std::move(judged))) {
    dist::Unpacker unpacker(bytes);
    masked += unpacker.get<double>();
    next += unpacker.get<double>();
    total.masked_tokens += unpacker.get<std::int64_t>();
    total.right_tokens += unpacker.get<std::int64_t>();
    total.right_next += unpacker.get<std::int64_t>();
  }
  const auto tokens = static_cast<double>(total.masked_tokens);
  const auto texts = static_cast<double>(count);
  Figures figures = {{"loss", masked / tokens + next / texts},
                     {"masked_accuracy", 100 * static_cast<double>(total.right_tokens) / tokens}};
  if (predicts_next()) {
    figures.push_back({"next_sentence_accuracy", 100 * static_cast<double>(total.right_next) / texts});
  }
  return figures;
}

std::vector<std::string> PretrainBert::summary() const {
  if (!training_) {
    return {model_summary(), fmt::format("{} examples, masked already", stored_.size())};
  }
  std::vector<std::string> lines = {
      model_summary(),
      fmt::format("{} training texts of {}, and {} validation texts", training_->count(),
                  io::counted(training_->documents(), "documents"), validation_ ? validation_->count() : 0)};
  add_note(lines, unknown_.note("the texts"));
  note_same_data(lines, "texts", {options_.data}, {options_.val_data});
  return lines;
}

std::vector<std::pair<std::string, std::string>> PretrainBert::facts() const {
  return {{"model", model_.name},
          {"vocabulary", std::to_string(tokenizer_.vocab_size())},
          {"training_texts", std::to_string(training_ ? training_->count() : std::ssize(stored_))},
          {"validation_texts", std::to_string(validation_ ? validation_->count() : 0)}};
}

}  // namespace

PretrainBertOptions::PretrainBertOptions() {
  eval_metric = "loss";
  epochs = 40;
  lr = 1e-4;
}

void PretrainBertOptions::describe(OptionList& list) {
  list.group("data");
  list.add("data", data, "FILE", "Texts: a sentence a line, blank lines between documents")
      .argument("DATA")
      .path()
      .check_that([this](const Option& self) {
        check(data.empty() != examples.empty(), "{} is missing: a text file, or --examples in its place", self.flag());
      });
  list.add("examples", examples, "FILE",
           "In place of DATA, examples that are masked already, in order: a safetensors file with input_ids, labels, "
           "token_type_ids [K, N], lengths, next_sentence_label [K], i64")
      .path();
  add_text_data_options(list, *this, "documents");
  list.group("masking");
  list.add("mask_prob", mask_prob, "SHARE", "Share of tokens that are predicted").share().positive().settled();
  list.add("whole_words", whole_words, "", "Mask all tokens of a word").settled();
  list.add("no_next_sentence", no_next_sentence, "", "Do not predict whether a text follows another").settled();
  add_text_model_options(list, *this);
  add_parameter_options(list, *this);
  add_text_batch_options(list, *this, "texts");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "texts");
  add_average_options(list, *this);
  add_run_options(list, *this, {"loss", "masked_accuracy", "next_sentence_accuracy"});
  idle_without_texts(list, *this);
}

std::unique_ptr<Task> PretrainBertOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainBert>(*this, checkpoint);
}

}  // namespace vitrail::train
