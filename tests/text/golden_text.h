// The texts and values of tests/golden/text.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/io/gzip.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/tokenizer_json.h"

namespace vitrail::test {

inline nlohmann::json golden_json(const std::string& name) {
  const auto file = io::unpack_gzip(golden_path("text/" + name + ".json.gz"));
  return nlohmann::json::parse(file->bytes().begin(), file->bytes().end());
}

inline text::Tokenizer tokenizer_of(const nlohmann::json& document) {
  return text::Tokenizer(text::make_engine(text::make_pipeline(document, "tokenizer.json")));
}

}  // namespace vitrail::test
