#include "vitrail/train/tasks/language_documents.h"

#include <utility>

#include <fmt/ranges.h>

#include "vitrail/kernels/cpu.h"
#include "vitrail/text/corpus.h"

namespace vitrail::train {

std::vector<std::string> documents_in(const std::string& corpus, const std::optional<std::int64_t>& end) {
  std::vector<std::string> documents;
  for (const std::vector<std::string>& lines : text::documents_of(corpus)) {
    documents.push_back(fmt::format("{}{}", fmt::join(lines, "\n"), end ? "" : "\n\n"));
  }
  return documents;
}

std::vector<std::vector<std::int64_t>> encode_documents(const text::Tokenizer& tokenizer,
                                                        const std::vector<std::string>& texts,
                                                        const std::optional<std::int64_t>& end) {
  std::vector<std::vector<std::int64_t>> documents;
  for (text::Encoding& encoding : tokenizer.encode_batch(texts, false, kernels::threads())) {
    std::vector<std::int64_t>& ids = documents.emplace_back(std::move(encoding.ids));
    if (end) {
      ids.insert(ids.begin(), *end);
      ids.push_back(*end);
    }
  }
  return documents;
}

std::vector<std::int64_t> joined_documents(const std::vector<std::vector<std::int64_t>>& documents) {
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& ids : documents) {
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

}  // namespace vitrail::train
