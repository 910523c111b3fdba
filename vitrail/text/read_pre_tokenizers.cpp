#include <nlohmann/json.hpp>

#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

PreTokenizer read_pre_tokenizer(const Part& part) {
  io::Fields fields(part.json, part.place);
  const std::string type = type_of(part);
  fields.ignore("type");
  const auto finished = [&](PreTokenizer pre_tokenizer) {
    fields.finish();
    return pre_tokenizer;
  };
  if (type == "BertPreTokenizer") {
    return finished(BertPreTokenizer{});
  }
  if (type == "ByteLevel") {
    fields.ignore("trim_offsets");  // means something where it stands among the post-processors
    return finished(ByteLevel{fields.get<bool>("add_prefix_space"), fields.get<bool>("use_regex", true)});
  }
  if (type == "CharDelimiterSplit") {
    return finished(CharDelimiterSplit{read_character(fields, "delimiter")});
  }
  if (type == "Digits") {
    return finished(Digits{fields.get<bool>("individual_digits")});
  }
  if (type == "FixedLength") {
    return finished(FixedLength{static_cast<std::size_t>(fields.get<std::int64_t>("length", 5, {1, 1e9}))});
  }
  if (type == "Metaspace") {
    return finished(read_metaspace(fields));
  }
  if (type == "Punctuation") {
    return finished(Punctuation{read_behavior(fields, "Isolated")});
  }
  if (type == "Split") {
    fields.raw("behavior");
    const SplitBehavior behavior = read_behavior(fields, "");
    return finished(Split{read_pattern(fields), behavior, fields.get<bool>("invert")});
  }
  if (type == "UnicodeScripts") {
    return finished(UnicodeScripts{});
  }
  if (type == "Whitespace") {
    return finished(Whitespace{});
  }
  if (type == "WhitespaceSplit") {
    return finished(WhitespaceSplit{});
  }
  fail_unknown(part, type,
               {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace",
                "Punctuation", "Sequence", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit"});
}

}  // namespace

std::vector<PreTokenizer> read_pre_tokenizers(const Part& part) {
  std::vector<PreTokenizer> pre_tokenizers;
  for (const Part& member : members_of(part, "pretokenizers")) {
    pre_tokenizers.push_back(read_pre_tokenizer(member));
  }
  return pre_tokenizers;
}

}  // namespace vitrail::text
