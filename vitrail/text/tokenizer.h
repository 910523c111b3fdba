/// \file
/// Texts to the ids that a model knows, and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/parts/encoding.h"
#include "vitrail/text/parts/limits.h"

namespace vitrail::text {

class Engine;

/// A tokenizer as a folder of Hugging Face's or of sentencepiece describes it, with the ids, decodings and offsets of
/// those libraries. It is a handle on what was read: cheap to copy, and its methods may be called by several threads.
class Tokenizer {
 public:
  explicit Tokenizer(std::shared_ptr<const Engine> engine);

  /// The tokens of `text`, with those that the tokenizer puts around it (`[CLS]`, `</s>` …) unless told not to. Throws
  /// Error if `text` is not UTF-8 (naming the byte), or has a character for which the vocabulary has nothing.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  /// Two texts that the model is to see together, such as a question and its context.
  Encoding encode_pair(std::string_view first, std::string_view second, bool add_special_tokens = true) const;
  /// Each of `texts`, by `threads` threads. Where the tokenizer pads to the longest of a batch, all get that length.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, bool add_special_tokens = true,
                                     int threads = 1) const;
  /// The text of `ids`, without the tokens that are marked as special unless told to keep them. Bytes that are not
  /// UTF-8 become U+FFFD. Throws Error if an id is not in the vocabulary, naming it and its position.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

  /// The number of tokens, those that were added to the model's own included. Ids need not be without gaps.
  std::int64_t vocab_size() const;
  /// Whether the vocabulary has the id.
  bool has(std::int64_t id) const;
  /// The id of a token as it is written in the vocabulary.
  std::optional<std::int64_t> id_of(std::string_view token) const;
  /// The token of an id. Throws Error if the vocabulary has no such id.
  const std::string& token_of(std::int64_t id) const;
  /// Whether `id` is a token that decode() leaves out, such as `[SEP]` or `<|endoftext|>`.
  bool is_special(std::int64_t id) const;

  /// Cuts and pads, as the tokenizer's file says. Models with a length of their own replace them.
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;
  Tokenizer with_truncation(std::optional<Truncation> truncation) const;
  Tokenizer with_padding(std::optional<Padding> padding) const;

  /// The kind of its model: "BPE", "WordPiece", "Unigram", "WordLevel" or "SentencePiece".
  const std::string& kind() const;

  /// Writes the files from which load_tokenizer() makes the same tokenizer into the folder, which must exist:
  /// `tokenizer.json`, which Hugging Face's tokenizers read too, or the `.model` or `.spm` files of sentencepiece.
  /// Beside a `tokenizer.json` comes the `tokenizer_config.json` that it was loaded with; if it had none, one that says
  /// what its special tokens are, and with `type_ids` that its model takes `token_type_ids`.
  void save(const std::filesystem::path& folder, bool type_ids = false) const;

 private:
  std::shared_ptr<const Engine> engine_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
};

/// Reads a tokenizer: a `tokenizer.json`, a sentencepiece `.model` or `.spm`, a BERT `vocab.txt`, or a folder with one
/// of these, with `vocab.json` + `merges.txt` (GPT-2, RoBERTa), or with `source.spm` + `target.spm` + `vocab.json`
/// (Marian). In a folder the first of them counts that is there, in the order `tokenizer.json`, Marian's files,
/// `vocab.json`, `vocab.txt`, `tokenizer.model`, `spiece.model`, `sentencepiece.bpe.model`. Throws Error naming the
/// file, and the part of it that is not known or does not fit.
Tokenizer load_tokenizer(const std::filesystem::path& folder_or_file);
/// The tokenizer that lies in a folder; nothing if there is none that can be read.
std::optional<Tokenizer> tokenizer_in(const std::filesystem::path& folder);
/// The number of tokens that a model has to know: all but special ones behind the others that stand in no text by
/// themselves, as the `<pad>` that some folders of Llama add.
std::int64_t ordinary_tokens(const Tokenizer& tokenizer);
/// Whether two tokenizers are of one kind and have the same tokens by the same ids.
bool have_the_same_tokens(const Tokenizer& a, const Tokenizer& b);

/// The tokenizer of the translations that a translator's folder makes: in Marian's folders `target.spm` cuts them, in
/// all others it is load_tokenizer().
Tokenizer load_target_tokenizer(const std::filesystem::path& folder_or_file);

/// A token for each character that `corpus` has, in the order of their code points, from id 0, and `[UNK]` after them.
Tokenizer char_tokenizer(std::string_view corpus);

/// A token for each word of `texts` in lower case, and for each sign of punctuation, the most frequent first, behind
/// `[PAD]` (0), `[UNK]`, `[CLS]` and `[SEP]`, which stand around a text as BERT has them. `most` is the greatest number
/// of words; 0: all. With `grown`, a tokenizer that this function made, its words keep their ids, and those that it
/// does not know come behind them. Throws Error if `grown` is of another kind.
Tokenizer word_tokenizer(std::span<const std::string> texts, std::int64_t most = 0, const Tokenizer* grown = nullptr);

/// A translator's tokenizer of Marian's kind, of one sentencepiece `.model` or `.spm` file for both languages: `</s>`
/// has the id 0 and ends a text, `<unk>` is 1, the file's pieces follow in order, and `<pad>` is the last. It is saved
/// as `source.spm`, `target.spm` and `vocab.json`. Throws Error if the file cannot be read.
Tokenizer marian_tokenizer(const std::filesystem::path& sentencepiece_file);

/// A token for each byte; its id is the byte.
Tokenizer byte_tokenizer();

}  // namespace vitrail::text
