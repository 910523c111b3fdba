/// \file
/// What BERT learns from: two pieces of text, with masked tokens (Devlin et al. 2019, section 3.1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/tensor/random.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/texts.h"

namespace vitrail::train {

/// A text, or two, of which tokens are masked.
struct BertExample {
  TextIds text;
  std::vector<std::int64_t> labels;  ///< what stood there for masked tokens, -100 for all others
  std::int64_t not_next = -1;        ///< 0: the second text follows the first; 1: it is a random one; -1: there is none
};

/// How tokens are masked.
struct MaskingOptions {
  double mask_prob = 0.15;      ///< the share of tokens, or words, that are chosen
  std::int64_t mask = 0;        ///< the token that stands for a masked one
  std::int64_t vocab_size = 0;  ///< the ids of which one may stand in for a chosen token
  std::vector<bool> special;    ///< [vocab_size] tokens that are never chosen
  std::vector<bool> continues;  ///< [vocab_size] tokens that go on with a word; empty: tokens are chosen one by one
};

/// Chooses tokens of a text, or whole words, and masks them: of those that are chosen, 80 % become the mask, 10 % a
/// random token, and 10 % stay (as transformers' DataCollatorForLanguageModeling draws them). Returns what stood there
/// for the chosen ones, and -100 for all others. At least one is chosen if any may be.
std::vector<std::int64_t> mask_tokens(std::vector<std::int64_t>& ids, const MaskingOptions& options, Draws& draws);

/// The options of a tokenizer. Throws Error if it has no token for what is masked.
MaskingOptions masking_of(const text::Tokenizer& tokenizer, double mask_prob, bool whole_words);

/// Documents of sentences of tokens.
using TokenDocuments = std::vector<std::vector<std::vector<std::int64_t>>>;

/// The documents of a text, which blank lines part, with a sentence a line. With `skipped`, lines that are not UTF-8
/// are left out and counted there.
TokenDocuments read_token_documents(const std::string& path, const text::Tokenizer& tokenizer,
                                    std::int64_t* skipped = nullptr);

/// How examples are made.
struct BertExampleOptions {
  std::int64_t max_length = 128;  ///< tokens, special ones included
  bool next_sentence = true;
  std::int64_t cls = 0;  ///< the token in front
  std::int64_t sep = 0;  ///< the token behind each text
  MaskingOptions masking;
};

/// The examples of documents, as create_pretraining_data.py of the reference makes them: the sentences of a document
/// are cut into pieces of max_length tokens; a piece is cut in two behind a random sentence, and half of the time the
/// second part gives way to sentences of another document. Texts that are too long lose tokens at either end.
class BertExamples {
 public:
  /// Throws Error if there are no tokens, or if there is no other document to draw from.
  BertExamples(TokenDocuments documents, BertExampleOptions options);

  std::int64_t count() const { return std::ssize(pieces_); }
  /// How many tokens each example has, but for the random texts of some.
  std::vector<std::int64_t> lengths() const;
  /// Example `index`, whose cuts and masks are drawn.
  BertExample draw(std::int64_t index, Draws draws) const;
  std::int64_t documents() const { return std::ssize(documents_); }

 private:
  struct Piece {
    std::size_t document, first, last;  // sentences [first, last)
    std::int64_t tokens;
  };
  // The tokens of an example that are not special.
  std::int64_t room() const { return options_.max_length - (options_.next_sentence ? 3 : 2); }
  std::vector<std::int64_t> random_text(std::size_t other_than, std::int64_t length, Draws& draws) const;

  TokenDocuments documents_;
  BertExampleOptions options_;
  std::vector<Piece> pieces_;
};

/// Examples that are masked already: the tensors `input_ids` and `labels` [K, N] of a safetensors file, and
/// `token_type_ids` [K, N], `lengths` [K] and `next_sentence_label` [K], all i64. Throws Error, naming the tensor, if
/// one is missing or of another shape.
std::vector<BertExample> stored_bert_examples(const std::filesystem::path& path, bool next_sentence);

}  // namespace vitrail::train
