/// \file
/// Hugging Face's `tokenizer.json`.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/text/pipeline.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

/// Reads the parts that the text of a `tokenizer.json` describes. Throws Error naming `source` and the place.
Pipeline read_pipeline(std::string document, const std::string& source);

/// The same for a document that is made here, or whose `text` has been parsed.
Pipeline make_pipeline(const nlohmann::json& document, const std::string& source, std::string text = {});

}  // namespace vitrail::text
