/// \file
/// Texts named on the command line, and what commands that take images do with models of texts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::cli {

/// Whether the model that flags choose is one of texts: a name, or a folder of transformers or sentence-transformers.
/// Throws Error if it is a name of nothing.
bool is_text_model(const ModelFlags& flags);
/// Throws Error unless `folder`, which was `given`, is one: a name has random weights, if it is that of a model.
void check_trained(const std::filesystem::path& folder, const std::string& given);
/// The same, and throws Error if it is a model of something else than texts.
void check_trained_on_texts(const std::filesystem::path& folder, const std::string& given);
/// Throws Error if flags change what models of images have: the number of classes, size and preparation of images.
void refuse_image_flags(const ModelFlags& flags);
/// The folder of a model of texts. Throws Error if flags name a model whose weights are random, or change what models
/// of images have.
std::string text_model_folder(const ModelFlags& flags);

/// The tokenizer of a folder. Throws Error if it has more tokens than the model, which knows `vocab_size`.
text::Tokenizer open_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size);

/// Writes a model of texts as the folder `output`, with all else that the folder `source` has: the tokenizer, how texts
/// are generated …
void save_beside_files_of(const std::filesystem::path& source, const models::TextModel& model,
                          const std::filesystem::path& output);

/// The texts that `arguments` name: the lines of a file, those of the standard input for "-", or else the argument
/// itself. Lines without letters are none. Throws Error if there are no texts, or if one is not UTF-8; with
/// `skip_broken`, lines of files that are not are left out, with a word.
std::vector<std::string> list_texts(const std::vector<std::string>& arguments, bool skip_broken = false);
/// The texts to be classified: list_texts(), but of a table (text::names_table()) its texts, with second ones.
std::vector<text::LabelledText> list_texts_to_classify(const std::vector<std::string>& arguments,
                                                       bool skip_broken = false);
/// The sentences whose words are to be labelled: list_texts(), but of a file of words with their labels
/// (text::read_tagged_sentences()) the words. It is one if it is called `.conll`, or if half of its labels are among
/// `labels`. Throws Error if it is CoNLL-U.
std::vector<std::string> list_texts_to_tag(const std::vector<std::string>& arguments,
                                           std::span<const std::string> labels, bool skip_broken = false);

/// Adds --batch-tokens.
CLI::Option* add_batch_tokens_flag(CLI::App& command, std::optional<std::int64_t>& batch_tokens);

/// What `vitrail embed` is asked for about texts.
struct EmbedTextsFlags {
  std::vector<std::string> similarity;
  std::string search;
  std::int64_t topk = 5;
  std::optional<std::int64_t> batch_tokens;
  bool json = false;
};
void embed_texts(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                 const EmbedTextsFlags& flags, const std::string& output);

/// What `vitrail predict` is asked for about texts.
struct PredictTextsFlags {
  std::vector<std::string> texts;
  std::int64_t topk = 5;
  bool topk_given = false;
  std::int64_t batch_size = 64;
  std::optional<std::int64_t> batch_tokens;
  bool truncate = false;
  bool skip_broken = false;
  std::string format = "text";
  std::string output;  // an SVG of labels of words; "" for none
};
void predict_texts(const ModelFlags& model, const ComputeFlags& compute, const PredictTextsFlags& flags);

/// Calls `read`, which checks a GenerationConfig: an Error that it throws is wrong usage, whose words name the flags
/// and not the fields; `fields` are those whose flags have other names.
void as_generation_usage(const std::function<void()>& read, const std::map<std::string, std::string>& fields = {});
/// Says on stderr what the config of a folder changes ("num_beams 5"), but for the fields that flags have replaced.
void say_generation_config(const std::string& source, std::vector<std::string> said,
                           const std::vector<std::pair<std::string, bool>>& replaced);
/// Adds --seed, for a command that draws only if the model's generation_config.json says so.
void add_seed_flag(CLI::App& command, std::optional<std::uint64_t>& seed);
/// Says on stderr how many lines that are not UTF-8 have been left out, if any have.
void note_skipped_lines(std::int64_t skipped);
/// Says on stderr which of these flags were given, as without `partner` they change nothing.
void note_idle(const std::vector<std::pair<const char*, bool>>& given, const char* partner);
/// Says on stderr how many of these ids of a text stand for what the tokenizer has no token for, if any do.
void note_unknown(const text::Tokenizer& tokenizer, std::span<const std::int64_t> ids, const std::string& source);
/// The same of several texts together.
void note_unknown(const text::Tokenizer& tokenizer, std::span<const std::string> texts);
/// Says on stderr which words of short texts, such as labels, the tokenizer does not know, or has but spelt out.
void note_unread_words(const text::Tokenizer& tokenizer, std::span<const std::string> texts);

/// A value as a field of a CSV file (RFC 4180): in quotes if it needs them.
std::string csv_field(const std::string& value);

}  // namespace vitrail::cli
