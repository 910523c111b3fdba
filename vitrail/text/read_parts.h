/// \file
/// The parts of a `tokenizer.json`. All functions throw Error, naming the place, for what is not known or does not fit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/io/json.h"
#include "vitrail/text/pipeline.h"

namespace vitrail::text {

/// A part as the file has it, and its place there for messages: "tokenizer.json: normalizer".
struct Part {
  const nlohmann::json& json;
  std::string place;
};

/// The members of a part: those of its list `members` if it is a Sequence, and these of theirs, none if it is null,
/// else itself.
std::vector<Part> members_of(const Part& part, const std::string& members);

std::vector<Normalizer> read_normalizers(const Part& part);
std::vector<PreTokenizer> read_pre_tokenizers(const Part& part);
std::vector<PostProcessor> read_post_processors(const Part& part);
std::vector<Decoder> read_decoders(const Part& part);
/// The kind of a model and the model.
std::pair<std::string, std::unique_ptr<const Model>> read_model(const Part& part);

// What several parts have.

/// The value of `type`. Throws Error unless it is a string.
std::string type_of(const Part& part);
/// Throws Error: the part has a type that is not one of `known`.
[[noreturn]] void fail_unknown(const Part& part, const std::string& type, const std::vector<std::string>& known);
/// The one code point at `key`.
char32_t read_character(io::Fields& fields, const std::string& key);
SplitBehavior read_behavior(io::Fields& fields, const std::string& fallback);
/// The expression at `pattern`, which is {"String": …} or {"Regex": …}.
Regex read_pattern(io::Fields& fields);
Metaspace read_metaspace(io::Fields& fields);

}  // namespace vitrail::text
