#include <nlohmann/json.hpp>

#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

Decoder read_decoder(const Part& part) {
  io::Fields fields(part.json, part.place);
  const std::string type = type_of(part);
  fields.ignore("type");
  const auto finished = [&](Decoder decoder) {
    fields.finish();
    return decoder;
  };
  if (type == "BPEDecoder") {
    return finished(BpeDecoder{fields.get<std::string>("suffix")});
  }
  if (type == "ByteFallback") {
    return finished(ByteFallback{});
  }
  if (type == "ByteLevel") {
    for (const char* elsewhere : {"add_prefix_space", "trim_offsets", "use_regex"}) {
      fields.ignore(elsewhere);
    }
    return finished(ByteLevelDecoder{});
  }
  if (type == "CTC") {
    return finished(CtcDecoder{fields.get<std::string>("pad_token"), fields.get<std::string>("word_delimiter_token"),
                               fields.get<bool>("cleanup")});
  }
  if (type == "Fuse") {
    return finished(Fuse{});
  }
  if (type == "Metaspace") {
    return finished(read_metaspace(fields));
  }
  if (type == "Replace") {
    return finished(Replace{read_pattern(fields), fields.get<std::string>("content")});
  }
  if (type == "Strip") {
    return finished(StripDecoder{read_character(fields, "content"),
                                 static_cast<std::size_t>(fields.get<std::int64_t>("start", io::at_least(0))),
                                 static_cast<std::size_t>(fields.get<std::int64_t>("stop", io::at_least(0)))});
  }
  if (type == "WordPiece") {
    return finished(WordPieceDecoder{fields.get<std::string>("prefix"), fields.get<bool>("cleanup")});
  }
  fail_unknown(part, type,
               {"BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Sequence", "Strip",
                "WordPiece"});
}

}  // namespace

std::vector<Decoder> read_decoders(const Part& part) {
  std::vector<Decoder> decoders;
  for (const Part& member : members_of(part, "decoders")) {
    decoders.push_back(read_decoder(member));
  }
  return decoders;
}

}  // namespace vitrail::text
