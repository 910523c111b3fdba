/// \file
/// What `vitrail eval` does with models of texts, each in the way of its kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/cli/flags.h"
#include "vitrail/cli/use/eval_language.h"
#include "vitrail/cli/use/eval_translation.h"

namespace vitrail::cli {

/// What a model of texts is judged by, besides pairs.
struct TextEvalFlags {
  std::string data = {};                                  ///< a text, labelled texts or words, sentences, or images
  std::string split = {};                                 ///< of images, or of a table of texts with labels
  std::optional<std::int64_t> batch_size = std::nullopt;  ///< unset: as many as is usual
  bool skip_broken = false;
  std::string output = {};  ///< folder for eval.json; empty: none
  bool json = false;
};

/// Prints how well a model of texts does: the perplexity of language models, BLEU of translators, and of any other the
/// figures by which `vitrail train`, or `vitrail pretrain bert`, judges it while it learns. Throws Error if the data do
/// not fit, and calls what is missing wrong usage.
void evaluate_text_model(const ModelFlags& model, const ComputeFlags& compute, const TextEvalFlags& flags,
                         const LanguageFlags& language, const TranslationFlags& pairs);

}  // namespace vitrail::cli
