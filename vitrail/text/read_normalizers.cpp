#include <nlohmann/json.hpp>

#include "vitrail/io/base64.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

Normalizer read_normalizer(const Part& part) {
  io::Fields fields(part.json, part.place);
  const std::string type = type_of(part);
  fields.ignore("type");
  const auto finished = [&](Normalizer normalizer) {
    fields.finish();
    return normalizer;
  };
  if (type == "BertNormalizer") {
    BertNormalizer bert;
    bert.clean_text = fields.get<bool>("clean_text");
    bert.handle_chinese_chars = fields.get<bool>("handle_chinese_chars");
    bert.lowercase = fields.get<bool>("lowercase");
    bert.strip_accents = fields.optional<bool>("strip_accents").value_or(bert.lowercase);
    return finished(bert);
  }
  if (type == "Strip") {
    return finished(Strip{fields.get<bool>("strip_left"), fields.get<bool>("strip_right")});
  }
  if (type == "StripAccents") {
    return finished(StripAccents{});
  }
  if (type == "Lowercase") {
    return finished(Lowercase{});
  }
  if (type == "Nmt") {
    return finished(Nmt{});
  }
  if (type == "Prepend") {
    return finished(Prepend{fields.get<std::string>("prepend")});
  }
  if (type == "Replace") {
    return finished(Replace{read_pattern(fields), fields.get<std::string>("content")});
  }
  if (type == "ByteLevel") {
    return finished(BytesAsCharacters{});
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    using enum NormalForm;
    return finished(type == "NFC" ? nfc : type == "NFD" ? nfd : type == "NFKC" ? nfkc : nfkd);
  }
  if (type == "Precompiled") {
    return finished(
        std::make_shared<const Charsmap>(io::decode_base64(fields.get<std::string>("precompiled_charsmap"))));
  }
  fail_unknown(part, type,
               {"BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled",
                "Prepend", "Replace", "Sequence", "Strip", "StripAccents"});
}

}  // namespace

std::vector<Normalizer> read_normalizers(const Part& part) {
  std::vector<Normalizer> normalizers;
  for (const Part& member : members_of(part, "normalizers")) {
    normalizers.push_back(read_normalizer(member));
  }
  return normalizers;
}

}  // namespace vitrail::text
