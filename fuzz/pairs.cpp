// Any bytes as a table of texts and their translations in each of the formats: an Error, or pairs that are not empty.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/parallel_text.h"

FUZZ_TARGET(pairs)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  const MemoryLimit limit;
  const std::string_view input = text_of(data, size);
  for (const char* ending : {".csv", ".jsonl", ".tsv"}) {
    try {
      const text::ParallelText pairs = text::parse_pairs(input, ending, "input");
      require(!pairs.source.empty() && pairs.source.size() == pairs.target.size() && pairs.left_out >= 0);
      for (std::size_t i = 0; i < pairs.source.size(); ++i) {
        require(!pairs.source[i].empty() && !pairs.target[i].empty());
      }
    } catch (const Error&) {
    }
  }
  return 0;
}
