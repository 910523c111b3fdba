/// \file
/// Texts in batches, as models of text take them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/models/text/encoder.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::train {

/// The ids of a text, and the types of its tokens.
struct TextIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> types;

  std::int64_t size() const { return std::ssize(ids); }
};

/// A tokenizer that cuts texts to `max_length` tokens, special ones included (0: not at all), and never pads, whatever
/// its file says.
text::Tokenizer cutting_tokenizer(const text::Tokenizer& tokenizer, std::int64_t max_length);

/// The tokens of a text, with those of its second one if it has one; its label is passed over.
text::Encoding encode_text(const text::Tokenizer& tokenizer, const text::LabelledText& text);
/// Encodes texts, of which it cuts those that are too long, and counts them.
class TextCutter {
 public:
  TextCutter(const text::Tokenizer& tokenizer, std::int64_t most);  ///< as cutting_tokenizer()
  /// encode_text(); adds 1 to `cut` if the text has more tokens than it is cut to.
  text::Encoding operator()(const text::LabelledText& text, std::int64_t& cut) const;
  /// "1 of 2 texts has more than 512 tokens and is cut", of `items` such as "texts"; "" if none is.
  std::string note(std::int64_t cut, std::int64_t all, std::string_view items) const;

 private:
  text::Tokenizer whole_;
  text::Tokenizer cutting_;
  std::int64_t most_;
};
/// The ids of encode_text() of each, by several threads. Throws Error, counting texts from 1, if one has no tokens.
std::vector<TextIds> encode_texts(const text::Tokenizer& tokenizer, std::span<const text::LabelledText> texts);
/// The same of texts that stand alone.
std::vector<TextIds> encode_texts(const text::Tokenizer& tokenizer, std::span<const std::string> texts);
/// The same of texts that a cutter cuts: `cut` is the number of those that were cut.
std::vector<TextIds> encode_texts(const TextCutter& cutter, std::span<const std::string> texts, std::int64_t& cut);

/// The texts in one row, without padding; `with_types`: for a model whose tokens have types.
models::EncoderInput packed_batch(std::span<const TextIds* const> texts, bool with_types);

/// Whether the model's tokens have types.
bool takes_types(const models::TextModel& model);

/// How texts are gone through.
struct TextRunOptions {
  DType dtype = DType::f32;
  std::int64_t batch_size = 64;
  /// In place of batch_size: the tokens of a batch, at most so many but for a single longer text.
  std::optional<std::int64_t> batch_tokens = std::nullopt;
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  dist::Communicator* ranks = nullptr;  ///< that share the batches; null: this process has all
};

/// Called with the outputs of the texts first … first + count - 1.
using TakeOutputs = std::function<void(const Tensor& outputs, std::int64_t first, std::int64_t count)>;

/// Goes through texts in batches: `run` gives the model's output for one, without records for gradients, and may be
/// called on several threads at once; `take` gets the outputs of the texts first … first + count - 1 in their order,
/// one at a time, on each of the ranks that share the batches.
void run_in_batches(std::span<const TextIds> texts, bool with_types, const TextRunOptions& options,
                    const std::function<Tensor(const models::EncoderInput& batch)>& run, const TakeOutputs& take);

/// How many of the predicted ids [N] i64 are right.
std::int64_t count_right(const Tensor& predicted, std::span<const std::int64_t> truth);

/// The vectors [N, D] f32 of texts, cut to the model's length and with its prompt in front. With `note`, it becomes
/// TextCutter::note() of them.
Tensor embed_texts(const models::SentenceModel& model, const text::Tokenizer& tokenizer,
                   std::span<const std::string> texts, const TextRunOptions& options = {}, std::string* note = nullptr);

}  // namespace vitrail::train
