/// \file
/// New tokenizers, learned from texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

struct TokenizerTraining {
  std::int64_t vocab_size = 30'000;
  std::int64_t min_frequency = 0;           ///< BPE and WordPiece: a pair that is rarer is not joined
  std::vector<std::string> special_tokens;  ///< the first ids; WordPiece has [PAD], [UNK], [CLS], [SEP], [MASK] before
  bool lowercase = false;                   ///< WordPiece: without capitals and accents
};

// Each throws Error if the texts are empty, are not UTF-8 (naming the text), or have not enough for `vocab_size`
// tokens. Texts are lines or whole documents: no token goes across the end of one.

/// GPT-2's kind: bytes joined to pieces of words. The merges are those of `BpeTrainer` of Hugging Face's tokenizers
/// with ByteLevel(add_prefix_space=False) and its alphabet.
Tokenizer train_byte_level_bpe(std::span<const std::string> texts, const TokenizerTraining& training);

/// CLIP's kind (Radford et al. 2021): lower case, pieces that end with `</w>` at the end of a word. As in OpenAI's, the
/// ids are 256 bytes, the same at the end of a word, then the merges, which end where the texts have no more, and at
/// last
/// `<|startoftext|>` and `<|endoftext|>`. It has at most `vocab_size` tokens; `model_max_length` is what its
/// tokenizer_config.json says.
Tokenizer train_clip_bpe(std::span<const std::string> texts, std::int64_t vocab_size,
                         std::int64_t model_max_length = 77);

/// BERT's kind. `WordPieceTrainer` of Hugging Face's tokenizers differs from run to run in the order of equal counts;
/// this does not.
Tokenizer train_wordpiece(std::span<const std::string> texts, const TokenizerTraining& training);

/// "unigram" or "bpe" by the sentencepiece library, with its defaults. `special_tokens` are its control symbols,
/// which are found in no text.
Tokenizer train_sentencepiece(std::span<const std::string> texts, const std::string& kind,
                              const TokenizerTraining& training);

/// The same for the texts of two languages together, as marian_tokenizer() makes it of the file, with `vocab_size` ids
/// in all.
Tokenizer train_marian(std::span<const std::string> texts, const std::string& kind, const TokenizerTraining& training);

}  // namespace vitrail::text
