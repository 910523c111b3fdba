// Any bytes as a tokenizer.json: an Error, or a tokenizer that encodes and decodes texts, and is read again from what
// it saves with the same ids. Bytes that begin as a protocol buffer are read as a model of sentencepiece, Llama's.
#include "vitrail/text/tokenizer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/older_layouts.h"
#include "vitrail/text/sentencepiece_file.h"
#include "vitrail/text/tokenizer_json.h"

namespace {

using namespace vitrail;

const std::vector<std::string> texts = {"", "a b", "  Hello, WORLD! it's 1234\n\n\tx",
                                        "é\u0301\u0323 가\u11a8 日本 <unk><s>",
                                        std::string("\0\x7f\u200d\U0001F468\u200d\U0001F469", 14)};

void use(const text::Tokenizer& tokenizer) {
  for (const std::string& text : texts) {
    try {
      const text::Encoding encoding = tokenizer.encode_pair(text, texts[2]);
      const std::size_t size = encoding.size();
      require(encoding.type_ids.size() == size && encoding.tokens.size() == size && encoding.offsets.size() == size &&
              encoding.special.size() == size && encoding.attention_mask.size() == size);
      if (std::ranges::all_of(encoding.ids, [&](std::int64_t id) { return tokenizer.has(id); })) {
        tokenizer.decode(encoding.ids);
      }
    } catch (const Error&) {
    }
  }
}

}  // namespace

FUZZ_TARGET(tokenizer)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  const std::string_view input = text_of(data, size);
  try {
    if (!input.starts_with('{')) {
      text::check_sentencepiece(input, "input");
      use(text::Tokenizer(
          text::make_engine(text::make_pipeline(text::llama_document(input, "nowhere/input"), "input"))));
      return 0;
    }
    const text::Tokenizer tokenizer(text::make_engine(text::read_pipeline(std::string(input), "input")));
    use(tokenizer);
  } catch (const Error&) {
  }
  return 0;
}
