/// \file
/// What `vitrail quantize` does with a model of texts.
#pragma once

#include <filesystem>
#include <string>

#include "vitrail/cli/flags.h"

namespace vitrail::cli {

/// What a model of texts is quantized to, and what it is compared on before and after.
struct QuantizeTextsFlags {
  std::string output;
  std::string eval;   ///< a text: the perplexity of a language model, how well texts with their labels are told, or how
                      ///< far an encoder's vectors turn
  std::string split;  ///< the part of a table of texts with their labels
  std::string src;    ///< texts to translate: BLEU of a translator
  std::string tgt;
  bool skip_broken = false;  ///< lines that are not UTF-8
  bool json = false;

  bool compares() const { return !eval.empty() || !src.empty() || !tgt.empty(); }
};

/// Writes the model of texts in `folder` in int8, with all else that the folder has: the tokenizer, how texts are
/// generated …
void quantize_texts(const std::filesystem::path& folder, const QuantizeTextsFlags& flags, const ComputeFlags& compute);

}  // namespace vitrail::cli
