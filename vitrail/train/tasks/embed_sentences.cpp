#include "vitrail/train/tasks/embed_sentences.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sources/pair_parts.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Sentences that belong together by their places.
struct Pairs {
  std::vector<std::string> src;
  std::vector<std::string> tgt;
  std::int64_t left_out = 0;  // of which one is empty
};

Pairs of_text(text::ParallelText text) { return {std::move(text.source), std::move(text.target), text.left_out}; }

models::SentenceModel open_sentences(const EmbedSentencesOptions& options, const fs::path& checkpoint,
                                     const text::Tokenizer& tokenizer) {
  const std::string source = checkpoint.empty() ? model_of(options.model).string() : checkpoint.string();
  models::SentenceModel model = models::open_sentence_model(source, text_model_options(options, checkpoint, tokenizer));
  models::check_vocabulary(text::ordinary_tokens(tokenizer), model.model.net->shape().vocab_size);
  if (!options.pool.empty()) {
    model.pooling = models::sentence_pooling_named(options.pool);
  }
  if (!models::is_sentence_folder(source)) {
    model.normalized = options.normalize;
  }
  if (options.max_length) {
    model.max_seq_length = task_length(options, model.model);
  }
  return model;
}

// cos(a_i, b_j) of the rows of both.
Tensor cosines(const Tensor& a, const Tensor& b) {
  return ops::matmul(ops::normalize(a), ops::transpose(ops::normalize(b), 0, 1));
}

class EmbedSentences final : public TextTask {
 public:
  EmbedSentences(const EmbedSentencesOptions& options, const fs::path& checkpoint);

  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "pairs"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of the right pair in a batch"; }
  std::vector<std::string> part_notes() const override { return part_notes_; }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  // `vitrail eval` reads the same pairs twice, and learns none.
  PairPart part_to_learn() const {
    return options_.split_is_asked ? part_to_judge() : PairPart{.name = "train", .learns = true};
  }
  PairPart part_to_judge() const { return {.name = options_.split, .asked = options_.split_is_asked}; }
  const models::TextModel& model() const override { return model_.model; }
  void write_model(const fs::path& folder) const override { models::write_sentence_model(model_, folder); }
  Tensor embedded(const std::vector<TextIds>& texts, nn::Pass& pass) const;

  const EmbedSentencesOptions options_;
  models::SentenceModel model_;
  std::vector<TextIds> src_;
  std::vector<TextIds> tgt_;
  Pairs validation_;
  std::vector<std::string> part_notes_;  // which parts of tables are left
  TextCutter cutter_;
  std::int64_t cut_ = 0;
  std::int64_t left_out_ = 0;
};

EmbedSentences::EmbedSentences(const EmbedSentencesOptions& options, const fs::path& checkpoint)
    : TextTask(options, checkpoint),
      options_(options),
      model_(open_sentences(options_, checkpoint, tokenizer_)),
      cutter_(tokenizer_, model_.max_seq_length) {
  const Pairs all = of_text(read_pairs_of(part_to_learn(), options_.src, options_.tgt, part_notes_, skipped()));
  left_out_ = all.left_out;
  Pairs training;
  const bool split = options_.val_src.empty();
  const std::vector<bool> evaluated = validation_share(options_, std::ssize(all.src));
  for (std::size_t i = 0; i < all.src.size(); ++i) {
    Pairs& part = split && evaluated[i] ? validation_ : training;
    // What is evaluated on gets the prompt when it is embedded.
    const std::string prompt = &part == &training ? model_.prompt : "";
    part.src.push_back(prompt + all.src[i]);
    part.tgt.push_back(prompt + all.tgt[i]);
  }
  if (!split) {
    validation_ = of_text(read_pairs_of(part_to_judge(), options_.val_src, options_.val_tgt, part_notes_, skipped()));
  }
  check(training.src.size() >= 2, "{}: in-batch negatives need at least two pairs, not {}", options_.src,
        training.src.size());
  check(options_.batch_size >= 2, "--batch-size {}: in-batch negatives need at least two pairs", options_.batch_size);
  const auto encoded = [this](const std::vector<std::string>& texts) {
    std::vector<TextIds> ids = encode_texts(cutter_, texts, cut_);
    std::ranges::for_each(ids, [this](const TextIds& text) { unknown_.add(text.ids); });
    return ids;
  };
  src_ = encoded(training.src);
  tgt_ = encoded(training.tgt);
  encoded(validation_.src);
  encoded(validation_.tgt);
  std::vector<std::int64_t> lengths;
  std::ranges::transform(src_, tgt_, std::back_inserter(lengths),
                         [](const TextIds& a, const TextIds& b) { return a.size() + b.size(); });
  batches_ = index_batches(options_, lengths, "pairs", !options_.no_shuffle);
}

Tensor EmbedSentences::embedded(const std::vector<TextIds>& texts, nn::Pass& pass) const {
  std::vector<const TextIds*> chosen;
  for (const std::int64_t index : batch_.indices) {
    chosen.push_back(&texts[static_cast<std::size_t>(index)]);
  }
  return model_.embed(packed_batch(chosen, takes_types(model_.model)), pass);
}

Tensor EmbedSentences::loss(nn::Pass& pass) {
  const Tensor a = embedded(src_, pass);
  return ranking_loss(a, embedded(tgt_, pass), static_cast<float>(options_.scale));
}

std::vector<FigureKind> EmbedSentences::figures() const {
  if (validation_.src.empty()) {
    return {};
  }
  return {FigureKind{.name = "recall_at_1",
                     .label = "recall@1",
                     .unit = "%",
                     .decimals = 2,
                     .higher_is_better = true,
                     .chart = "Recall@1",
                     .axis = "% of the sentences",
                     .axis_max = 100}};
}

Figures EmbedSentences::evaluate(const Work& work) {
  const auto count = std::ssize(validation_.src);
  work.begin("evaluating", 2 * count);
  TextRunOptions run = evaluation_run(options_, work);
  std::int64_t before = 0;
  run.progress = [&](std::int64_t done, std::int64_t) { work.advance(before + done); };
  const Tensor a = embed_texts(model_, tokenizer_, validation_.src, run);
  before = count;
  return {{"recall_at_1", 100 * recall_at_1(a, embed_texts(model_, tokenizer_, validation_.tgt, run))}};
}

std::vector<std::string> EmbedSentences::summary() const {
  std::vector<std::string> lines = {
      model_summary(), fmt::format("{} training and {} validation pairs{}", src_.size(), validation_.src.size(),
                                   left_out_ > 0 ? fmt::format("; {} with an empty line left out", left_out_) : "")};
  if (const std::string cut = cutter_.note(cut_, 2 * (std::ssize(src_) + std::ssize(validation_.src)), "texts");
      !cut.empty()) {
    lines.push_back(cut);
  }
  add_note(lines, unknown_.note("the texts"));
  lines.insert(lines.end(), part_notes_.begin(), part_notes_.end());
  if (part_notes_.empty()) {  // else the two are different parts of it
    note_same_data(lines, "pairs", {options_.src, options_.tgt}, {options_.val_src, options_.val_tgt});
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> EmbedSentences::facts() const {
  return {{"model", model_.model.name},
          {"training_pairs", std::to_string(src_.size())},
          {"validation_pairs", std::to_string(validation_.src.size())}};
}

}  // namespace

Tensor ranking_loss(const Tensor& a, const Tensor& b, float scale) {
  const std::int64_t count = a.size(0);
  const Tensor right = Tensor::empty({count}, DType::i64);
  std::iota(right.data<std::int64_t>(), right.data<std::int64_t>() + count, 0);
  return ops::cross_entropy(cosines(a, b) * scale, right);
}

double recall_at_1(const Tensor& a, const Tensor& b) {
  const autograd::NoGrad no_grad;
  std::vector<std::int64_t> own(static_cast<std::size_t>(a.size(0)));
  std::iota(own.begin(), own.end(), 0);
  return static_cast<double>(count_right(ops::argmax(cosines(a, b), 1), own)) / static_cast<double>(own.size());
}

EmbedSentencesOptions::EmbedSentencesOptions() {
  eval_metric = "recall_at_1";
  model = "all-MiniLM-L6-v2";
  batch_size = 64;
  epochs = 10;
}

void EmbedSentencesOptions::describe(OptionList& list) {
  list.group("data");
  list.add("src", src, "FILE", "Sentences, one a line; or a table of pairs, a .tsv, .csv or .jsonl, without --tgt")
      .argument("DATA")
      .path()
      .check_that([this](const Option&) {
        check(text::are_pairs_named(src, tgt), "embed wants --src and --tgt, sentences that belong together {}",
              text::pairs_or_table);
      });
  list.add("tgt", tgt, "FILE", "The sentences that belong to them, line by line: of another language, answers …")
      .path();
  list.add("val_src", val_src, "FILE", "Sentences, or a table of pairs, to evaluate on")
      .path()
      .check_that([this](const Option&) { check_validation_pairs(val_src, val_tgt); });
  list.add("val_tgt", val_tgt, "FILE", "The sentences that belong to them").path();
  list.add("val_share", val_share, "SHARE", "Without --val-src, share of the pairs to evaluate on; 0: none")
      .below_one()
      .settled()
      .idle_if("beside --val-src", [this] { return !val_src.empty(); });
  list.add("tokenizer", tokenizer, "NAME",
           "A tokenizer.json or a folder with one (default: that of the model's folder)")
      .path()
      .settled();
  list.add("max_length", max_length, "N", "Cut sentences to N tokens (default: the model's max_seq_length)")
      .at_least(4)
      .settled();
  list.add("no_shuffle", no_shuffle, "", "Take the pairs in order");
  add_skip_broken_option(list, skip_broken);
  add_text_model_options(list, *this);
  list.add("pool", pool, "POOL", "Pooling: mean, cls or max (default: the folder's, or mean)")
      .one_of({"mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"}, true)
      .settled();
  list.add("normalize", normalize, "", "Vectors of length 1, unless the folder says").settled();
  list.add("scale", scale, "X", "Factor of cosines before their softmax").positive();
  add_parameter_options(list, *this);
  add_text_batch_options(list, *this, "pairs");
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "pairs");
  add_average_options(list, *this);
  add_run_options(list, *this, {"recall_at_1"});
  idle_without_evaluation(list, "pairs to evaluate on (--val-share, --val-src)",
                          [this] { return val_share > 0 || !val_src.empty(); });
}

std::unique_ptr<Task> EmbedSentencesOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<EmbedSentences>(*this, checkpoint);
}

}  // namespace vitrail::train
