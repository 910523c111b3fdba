/// \file
/// Vectors of sentences (Sentence-BERT: Reimers & Gurevych 2019), and the folders of sentence-transformers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// What is made of the states of a sentence's tokens y₀ … y_{n-1}, by the names of sentence-transformers: the first,
/// the largest of each element, the mean, Σ y_i / √n, Σ (i + 1) y_i / Σ (i + 1), or the last.
enum class SentencePooling { cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken };

/// The kind of this name. Throws Error if there is none.
SentencePooling sentence_pooling_named(std::string_view name);

/// The pooled states [S, D] f32 of the states [B, N, D] of texts in either form.
Tensor pool_tokens(const Tensor& states, const Texts& texts, SentencePooling pooling);

/// An encoder that gives sentences vectors.
struct SentenceModel {
  TextModel model;
  SentencePooling pooling = SentencePooling::mean;
  bool normalized = false;          ///< whether vectors have the length 1
  std::int64_t max_seq_length = 0;  ///< to which texts are cut, special tokens included
  std::string prompt = "";          ///< put in front of each text

  /// The vectors [S, D] f32 of sentences.
  Tensor embed(const EncoderInput& input, nn::Pass& pass) const;
};

/// Whether a folder is one of sentence-transformers: it has a modules.json.
bool is_sentence_folder(const std::filesystem::path& folder);
/// Opens a folder of sentence-transformers (`modules.json`, which names those of the encoder, of Pooling and Normalize;
/// `sentence_bert_config.json`), or, with the mean of all tokens, an encoder by name or folder. Texts are cut to the
/// folder's max_seq_length, or else to its tokenizer's model_max_length, and at most to the model's positions. Throws
/// Error, naming the file, if a module is not known or does not fit.
SentenceModel open_sentence_model(const std::string& name_or_folder, const TextModelOptions& options = {});
/// Writes the folder that open_sentence_model() and sentence-transformers read, without the tokenizer. `folder` exists.
void write_sentence_model(const SentenceModel& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
