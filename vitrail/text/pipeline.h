/// \file
/// A tokenizer made of parts, as Hugging Face's tokenizers are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/text/engine.h"
#include "vitrail/text/parts/added_tokens.h"
#include "vitrail/text/parts/decoders.h"
#include "vitrail/text/parts/model.h"
#include "vitrail/text/parts/normalizers.h"
#include "vitrail/text/parts/post_processors.h"
#include "vitrail/text/parts/pre_tokenizers.h"

namespace vitrail::text {

/// The parts of a tokenizer, in the order in which a text passes them. Where a `tokenizer.json` has a Sequence, its
/// members stand here.
struct Pipeline {
  std::vector<AddedToken> added_tokens;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::string kind;
  std::unique_ptr<const Model> model;
  std::vector<PostProcessor> post_processors;
  std::vector<Decoder> decoders;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  /// Whether special tokens that stand in a text are split as its words are ("split_special_tokens").
  bool splits_special_tokens = false;
  std::string document;  ///< the tokenizer.json that says all this
  std::string config;    ///< the tokenizer_config.json beside it, which transformers reads first; empty: there is none
};

std::shared_ptr<const Engine> make_engine(Pipeline pipeline);

/// The pieces of `text` that the model of a tokenizer sees when it is trained: normalized and split.
std::vector<std::string> pieces_of(const Pipeline& pipeline, std::string_view text);

}  // namespace vitrail::text
