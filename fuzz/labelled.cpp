// Any bytes as texts with labels in each of the formats, and as sentences whose words have labels: an Error, or texts,
// words and labels that are not empty.
#include "vitrail/text/labelled.h"

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(labelled)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  const MemoryLimit limit;
  const std::string_view input = text_of(data, size);
  for (const char* ending : {".csv", ".jsonl", ".tsv"}) {
    try {
      for (const text::LabelledText& text : text::parse_labelled_texts(input, ending, "input")) {
        require(!text.text.empty() && !text.label.empty());
      }
    } catch (const Error&) {
    }
  }
  try {
    for (const text::TaggedSentence& sentence : text::parse_tagged_sentences(input, "input")) {
      require(!sentence.words.empty() && sentence.words.size() == sentence.labels.size());
      for (std::size_t i = 0; i < sentence.words.size(); ++i) {
        require(!sentence.words[i].empty() && !sentence.labels[i].empty());
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
