/// \file
/// How the next tokens of one text are chosen, step by step: greedy search, sampling and beam search.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vitrail/generate/generate.h"
#include "vitrail/generate/generation_config.h"

namespace vitrail::generate {

/// What a search is about. What it refers to must outlive the search.
struct SearchTask {
  std::span<const std::int64_t> prompt;
  const GenerationConfig& config;
  const GenerateOptions& options;
  std::int64_t number = 0;    ///< of the prompt among all, on which draws depend
  std::int64_t most_new = 0;  ///< tokens to add at most
};

/// A search for the continuations of one prompt. Its texts, rows() of them, have one length; the model reads on with
/// what next() names.
class Search {
 public:
  virtual ~Search() = default;
  Search() = default;
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// One text and the token to be read next.
  struct Next {
    std::int64_t origin = 0;  ///< the text of the last step that it continues
    std::int64_t token = 0;
  };

  /// Chooses the next token of each text by the logits [rows, V] of those that could follow it, which are overwritten.
  /// In the first step there is one row, of the prompt.
  virtual void advance(std::span<float> logits, std::int64_t vocabulary) = 0;
  virtual bool done() const = 0;
  virtual const std::vector<Next>& next() const = 0;
  /// What there is, the best first in a beam search.
  virtual std::vector<Sequence> sequences() const = 0;
};

/// A beam search if the config has more than one beam, else a greedy search or draws.
std::unique_ptr<Search> begin_search(const SearchTask& task);

}  // namespace vitrail::generate
