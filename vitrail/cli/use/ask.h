/// \file
/// What commands do with a model that answers questions about images.
#pragma once

#include <memory>
#include <string>

#include "vitrail/cli/flags.h"
#include "vitrail/train/vqa/answerer.h"

namespace vitrail::cli {

/// Loads it. Throws UsageError for flags that it does not take, and Error, which names the right command, if the model
/// answers no questions.
std::unique_ptr<train::Answerer> open_answerer(const ModelFlags& flags);

/// Prints how well such a model answers questions, by type, and where it looks; `output` is a folder for eval.json and
/// answers.json, in the layout of VQA's results, or empty.
void evaluate_questions(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                        const std::string& output, bool json);

}  // namespace vitrail::cli
