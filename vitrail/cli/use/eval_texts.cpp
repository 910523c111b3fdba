#include "vitrail/cli/use/eval_texts.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/tasks/classify_text.h"
#include "vitrail/train/tasks/embed_sentences.h"
#include "vitrail/train/tasks/language.h"
#include "vitrail/train/tasks/pixels.h"
#include "vitrail/train/tasks/pretrain_bert.h"
#include "vitrail/train/tasks/tag.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

// How the run trained whose folder, or the folder of one of whose checkpoints, this is; of another folder, as is usual.
template <class Options>
Options training_of(const std::string& folder) {
  Options options;
  for (const fs::path& run : {fs::path(folder), fs::path(folder).parent_path()}) {
    const fs::path config = run / "config.toml";
    if (fs::exists(config) && train::task_in_config(config) == options.kind()) {
      train::read_config(config, options);
      break;
    }
  }
  return options;
}

// Says so if the texts are those that the run has learnt.
template <class Options>
void note_learned_texts(const std::string& folder, const std::string& data) {
  const Options training = training_of<Options>(folder);
  std::error_code none;
  if (training.data.empty() || data.empty() || !fs::equivalent(training.data, data, none)) {
    return;
  }
  const bool drawn = training.val_data.empty() && training.val_share > 0;
  say_note(fmt::format("the model has learnt these{}",
                       drawn ? fmt::format(", all but a share of {} that its run held out", training.val_share) : ""));
}

// Whether a table of texts says of which part each is.
bool names_parts(const std::string& table, bool skips) {
  std::int64_t skipped = 0;
  return std::ranges::any_of(text::read_labelled_texts(table, skips ? &skipped : nullptr),
                             [](const text::LabelledText& text) { return !text.split.empty(); });
}

// The options of a task on texts whose data are all to evaluate on. A task learns from something, too: from the same.
template <class Options>
std::unique_ptr<train::TaskOptions> options_on(const std::string& folder, const TextEvalFlags& flags,
                                               const TranslationFlags& pairs) {
  auto options = std::make_unique<Options>();
  options->skip_broken = flags.skip_broken;
  if constexpr (std::is_base_of_v<train::TextTaskOptions, Options>) {
    options->max_length = training_of<Options>(folder).max_length;
    if (options->max_length) {
      say_note(fmt::format("texts have at most {} tokens, as in its training", *options->max_length));
    }
  }
  if constexpr (std::is_same_v<Options, train::PixelOptions>) {
    options->data_dir = flags.data;
    options->train_split = options->val_split = flags.split;
    options->val_dir = flags.split.empty() ? flags.data : "";
  } else if constexpr (std::is_same_v<Options, train::EmbedSentencesOptions>) {
    options->src = options->val_src = pairs.src;
    options->tgt = options->val_tgt = pairs.tgt;
    options->split = flags.split;
    options->split_is_asked = true;
  } else {
    options->data = options->val_data = flags.data;
    if constexpr (std::is_same_v<Options, train::ClassifyTextOptions>) {
      options->train_split.clear();
      options->val_split = flags.split;
      options->val_split_is_asked = !flags.split.empty();
    }
  }
  return options;
}

std::unique_ptr<train::TaskOptions> task_options(const std::string& kind, const std::string& folder,
                                                 const TextEvalFlags& flags, const TranslationFlags& pairs) {
  if (kind == "classify-text") {
    return options_on<train::ClassifyTextOptions>(folder, flags, pairs);
  }
  if (kind == "tag") {
    return options_on<train::TagOptions>(folder, flags, pairs);
  }
  if (kind == "embed") {
    return options_on<train::EmbedSentencesOptions>(folder, flags, pairs);
  }
  return kind == "bert" ? options_on<train::PretrainBertOptions>(folder, flags, pairs)
                        : options_on<train::PixelOptions>(folder, flags, pairs);
}

// The kind of task that judges a model of texts; "lm" and "translate" are evaluated in ways of their own.
std::string evaluation_task_of(const ModelFlags& flags, bool of_pairs) {
  check_trained_on_texts(flags.name_or_folder(), flags.model);
  const std::string folder = flags.name_or_folder();
  if (models::is_sentence_folder(folder)) {
    return "embed";
  }
  const models::TextModel model = models::load_text_model(folder, {.fill = nn::Fill::meta});
  if (model.net->translator() != nullptr) {
    return "translate";
  }
  if (model.net->language() != nullptr) {
    return fs::exists(fs::path(folder) / "preprocessor_config.json") ? "pixels" : "lm";
  }
  if (model.net->classifier() != nullptr) {
    return model.net->classifier()->each_token() ? "tag" : "classify-text";
  }
  return of_pairs || !models::encoder_of(model).heads.masked ? "embed" : "bert";
}

// The options of a language model that is evaluated document by document.
std::unique_ptr<train::TaskOptions> options_on_documents(const TextEvalFlags& flags, const LanguageFlags& language,
                                                         const train::LanguageOptions& training) {
  check_usage(!language.stride && !language.by_position && language.beside.empty(),
              "documents are read each by itself: --stride, --by-position and --beside are for texts in blocks");
  auto options = std::make_unique<train::LanguageOptions>();
  options->data = options->val_data = flags.data;
  options->documents = true;
  options->skip_broken = flags.skip_broken;
  options->block_size = language.block_size ? language.block_size : training.block_size;
  return options;
}

void evaluate_by_task(const std::string& kind, const std::unique_ptr<train::TaskOptions>& options,
                      const ModelFlags& model, const ComputeFlags& compute, const TextEvalFlags& flags,
                      const TranslationFlags& pairs) {
  check_usage(kind != "embed" || text::are_pairs_named(pairs.src, pairs.tgt),
              "vectors of sentences are evaluated on --src and --tgt, pairs of sentences {}", text::pairs_or_table);
  check_usage(kind == "embed" || !flags.data.empty(), "DATA is required: {}",
              kind == "pixels" ? "images"
              : kind == "bert" ? "sentences, with blank lines between documents"
              : kind == "tag"  ? "sentences, a word and its label a line"
                               : "texts with their labels");
  const train::Interrupt interrupt;
  options->validation_batch_size = flags.batch_size;
  train::Progress progress(stderr);
  train::Work work;
  work.dtype = compute.apply();
  work.begin = [&](std::string_view title, std::int64_t total) { progress.begin(title, total); };
  work.advance = [&](std::int64_t done) {
    if (progress.terminal()) {
      progress.update(done, "");
    }
    end_if_interrupted(&progress);
  };
  work.say = [&](const std::string& line) { progress.line(line); };
  const std::unique_ptr<train::Task> task = options->make(model.name_or_folder());
  const train::Figures figures = task->evaluate(work);
  progress.end();
  if (const auto* reader = dynamic_cast<const train::TextTask*>(task.get()); reader != nullptr) {
    if (const std::int64_t skipped = reader->skipped_lines() / 2; skipped > 0) {  // it read them to learn from, too
      say("note: {}\n", train::skipped_summary(skipped));
    }
    say_note(reader->cut_note());
    for (const std::string& note : reader->part_notes()) {
      say_note(note);
    }
  }
  nlohmann::ordered_json json = {{"model", model.model}};
  if (kind == "embed") {
    json["src"] = pairs.src;
    json["tgt"] = pairs.tgt;
  } else {
    json["data"] = flags.data;
  }
  std::string text;
  for (const train::FigureKind& figure : task->figures()) {
    const double value = train::figure(figures, figure.name);
    json[figure.name] = value;
    text += fmt::format("{}{} {}", text.empty() ? "" : "   ", figure.label, train::figure_text(figure, value));
  }
  for (const auto& [name, value] : task->facts()) {
    if (const std::string of_evaluation = "validation_"; name.starts_with(of_evaluation)) {
      const std::string items = name.substr(of_evaluation.size());
      const std::int64_t count = std::stoll(value);
      json[items] = count;
      text += fmt::format("   {}", io::counted(count, items));
    } else if (name == train::bytes_per_character) {
      json["bits_per_byte"] = train::figure(figures, "bits_per_character") / std::stod(value);
      text += fmt::format("   per byte {:.4f}", json["bits_per_byte"].get<double>());
    }
  }
  std::string written;
  if (!flags.output.empty()) {
    io::make_folder(flags.output);
    for (const auto& [file, svg] : task->pictures()) {
      io::write_atomically(fs::path(flags.output) / file, svg);
      written += fmt::format("{}/{}, ", flags.output, file);
    }
    io::write_atomically(fs::path(flags.output) / "eval.json", json.dump(2) + "\n");
  }
  if (flags.json) {
    print_json(json);
  } else {
    fmt::print("{}\n", text);
  }
  if (!flags.output.empty() && !flags.json) {
    fmt::print("\n{}{}/eval.json\n", written, flags.output);
  }
}

}  // namespace

void evaluate_text_model(const ModelFlags& model, const ComputeFlags& compute, const TextEvalFlags& asked,
                         const LanguageFlags& language, const TranslationFlags& given) {
  const std::string& name = model.model;
  refuse_image_flags(model);
  const std::string kind = evaluation_task_of(model, given.given());
  TranslationFlags pairs = given;
  TextEvalFlags flags = asked;
  if ((kind == "translate" || kind == "embed") && pairs.src.empty() && text::is_table_of_pairs(flags.data)) {
    pairs.src = std::exchange(flags.data, {});
  }
  check_usage(kind == "lm" || model.kwargs.empty(), "'{}' {}: it takes no --model-kwargs", name,
              kind == "translate" ? "is a translator"
              : kind == "embed"   ? "makes vectors of texts"
                                  : "is no language model");
  check_usage(kind == "lm" || !language.given(), "'{}' is no language model: it takes no flags of those", name);
  check_usage(kind == "translate" || (!pairs.num_beams && !pairs.batch_tokens),
              "'{}' does not translate: it takes neither --num-beams nor --batch-tokens", name);
  check_usage(
      kind == "pixels" || kind == "classify-text" || kind == "translate" || kind == "embed" || flags.split.empty(),
      "'{}' {}: its data have no parts, and it takes no --split", name,
      kind == "tag" ? "labels words" : "is a model of texts");
  const std::string folder = model.name_or_folder();
  if (kind == "lm") {
    note_learned_texts<train::LanguageOptions>(folder, flags.data);
  } else if (kind == "tag") {
    note_learned_texts<train::TagOptions>(folder, flags.data);
  } else if (kind == "bert") {
    note_learned_texts<train::PretrainBertOptions>(folder, flags.data);
  } else if (kind == "classify-text" && flags.split.empty() && !names_parts(flags.data, flags.skip_broken)) {
    note_learned_texts<train::ClassifyTextOptions>(folder, flags.data);
  }
  if (kind == "translate") {
    check_usage(flags.data.empty() && text::are_pairs_named(pairs.src, pairs.tgt),
                "a translator is evaluated on --src and --tgt, a text and its translation {}", text::pairs_or_table);
    check_usage(flags.output.empty(), "'{}' is a translator: it takes no --output", name);
    evaluate_translator(name, pairs, flags.split, flags.skip_broken, compute, flags.json);
  } else if (kind == "lm") {
    check_usage(!flags.data.empty(), "DATA is required: a text that '{}' is to predict", name);
    const train::LanguageOptions training = training_of<train::LanguageOptions>(model.name_or_folder());
    const bool in_blocks = language.stride || language.by_position || !language.beside.empty();
    if (!language.documents.value_or(training.documents && !in_blocks)) {
      if (training.documents && !language.documents) {
        say_note("the text is read in blocks, not document by document as in its training");
      }
      evaluate_language_model(model, flags.data, flags.skip_broken, flags.batch_size, language, compute, flags.output,
                              flags.json);
      return;
    }
    if (!language.documents) {
      say_note("blank lines part documents, as in its training (--no-documents: in blocks)");
    }
    const text::Tokenizer tokenizer = text::load_tokenizer(model.name_or_folder());
    std::int64_t skipped = 0;
    const std::string words = text::read_running_text(flags.data, flags.skip_broken ? &skipped : nullptr);
    note_skipped_lines(skipped);
    note_unknown(tokenizer, tokenizer.encode(words, false).ids, flags.data);
    evaluate_by_task(kind, options_on_documents(flags, language, training), model, compute, flags, pairs);
  } else {
    evaluate_by_task(kind, task_options(kind, model.name_or_folder(), flags, pairs), model, compute, flags, pairs);
  }
}

}  // namespace vitrail::cli
