#include "vitrail/train/tasks/bert_examples.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "vitrail/io/safetensors.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/labelled.h"
#include "vitrail/train/study/text_predictions.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t not_masked = -100;

// Whether a token goes on with the word of the token before it. Tokens of WordPiece say so; those of BPE and Unigram
// say which begin a word.
std::vector<bool> tokens_that_continue(const text::Tokenizer& tokenizer) {
  const auto size = static_cast<std::size_t>(tokenizer.vocab_size());
  std::vector<bool> begins(size);
  std::vector<bool> goes_on(size);
  bool marks_beginnings = false;
  for (std::size_t i = 0; i < size; ++i) {
    const auto id = static_cast<std::int64_t>(i);
    if (tokenizer.has(id)) {
      const std::string& token = tokenizer.token_of(id);
      goes_on[i] = token.starts_with("##");
      begins[i] = token.starts_with("Ġ") || token.starts_with("▁") || tokenizer.is_special(id);
      marks_beginnings = marks_beginnings || token.starts_with("Ġ") || token.starts_with("▁");
    }
  }
  if (marks_beginnings) {
    begins.flip();
    return begins;
  }
  return goes_on;
}

// Takes tokens off the longer of two texts, at a random end, until both have at most `most`.
void cut_pair(std::vector<std::int64_t>& a, std::vector<std::int64_t>& b, std::int64_t most, Draws& draws) {
  std::array<std::size_t, 2> front = {0, 0};
  std::array<std::size_t, 2> size = {a.size(), b.size()};
  while (static_cast<std::int64_t>(size[0] + size[1]) > most) {
    const std::size_t longer = size[0] > size[1] ? 0 : 1;
    --size[longer];
    front[longer] += draws.uniform() < 0.5 ? 1 : 0;
  }
  const auto cut = [](std::vector<std::int64_t>& of, std::size_t begin, std::size_t count) {
    of = {of.begin() + static_cast<std::ptrdiff_t>(begin), of.begin() + static_cast<std::ptrdiff_t>(begin + count)};
  };
  cut(a, front[0], size[0]);
  cut(b, front[1], size[1]);
}

}  // namespace

std::vector<std::int64_t> mask_tokens(std::vector<std::int64_t>& ids, const MaskingOptions& options, Draws& draws) {
  std::vector<std::vector<std::size_t>> words;
  bool open = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    if (options.special[id]) {
      open = false;
      continue;
    }
    if (!open || options.continues.empty() || !options.continues[id]) {
      words.emplace_back();
    }
    words.back().push_back(i);
    open = true;
  }
  std::vector<std::int64_t> labels(ids.size(), not_masked);
  std::vector<std::size_t> chosen;
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (draws.uniform() < options.mask_prob) {
      chosen.push_back(w);
    }
  }
  if (chosen.empty() && !words.empty()) {
    chosen.push_back(static_cast<std::size_t>(draws.integer(0, std::ssize(words))));
  }
  for (const std::size_t w : chosen) {
    for (const std::size_t i : words[w]) {
      labels[i] = ids[i];
      const double kind = draws.uniform();
      if (kind < 0.8) {
        ids[i] = options.mask;
      } else if (kind < 0.9) {
        ids[i] = draws.integer(0, options.vocab_size);
      }
    }
  }
  return labels;
}

MaskingOptions masking_of(const text::Tokenizer& tokenizer, double mask_prob, bool whole_words) {
  MaskingOptions options{.mask_prob = mask_prob,
                         .mask = mask_token(tokenizer),
                         .vocab_size = tokenizer.vocab_size(),
                         .special = std::vector<bool>(static_cast<std::size_t>(tokenizer.vocab_size())),
                         .continues = {}};
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    options.special[static_cast<std::size_t>(id)] = tokenizer.has(id) && tokenizer.is_special(id);
  }
  if (whole_words) {
    options.continues = tokens_that_continue(tokenizer);
  }
  return options;
}

TokenDocuments read_token_documents(const std::string& path, const text::Tokenizer& tokenizer, std::int64_t* skipped) {
  TokenDocuments documents;
  for (const std::vector<std::string>& lines : text::documents_of(text::read_running_text(path, skipped))) {
    std::vector<std::vector<std::int64_t>> sentences;
    for (const std::string& line : lines) {
      text::Encoding encoding = tokenizer.encode(line, false);
      if (encoding.size() > 0) {
        sentences.push_back(std::move(encoding.ids));
      }
    }
    if (!sentences.empty()) {
      documents.push_back(std::move(sentences));
    }
  }
  check(!documents.empty(), "{}: there are no tokens", path);
  return documents;
}

BertExamples::BertExamples(TokenDocuments documents, BertExampleOptions options)
    : documents_(std::move(documents)), options_(std::move(options)) {
  check(!documents_.empty(), "there are no documents to learn");
  check(!options_.next_sentence || documents_.size() >= 2,
        "there is one document alone, so that no other text can be drawn: blank lines part documents, and "
        "--no-next-sentence does without");
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    std::int64_t tokens = 0;
    std::size_t first = 0;
    for (std::size_t s = 0; s < documents_[d].size(); ++s) {
      tokens += std::ssize(documents_[d][s]);
      if (tokens >= room() || s + 1 == documents_[d].size()) {
        pieces_.push_back({d, first, s + 1, tokens});
        first = s + 1;
        tokens = 0;
      }
    }
  }
}

std::vector<std::int64_t> BertExamples::lengths() const {
  std::vector<std::int64_t> result;
  for (const Piece& piece : pieces_) {
    result.push_back(std::min(piece.tokens, room()) + options_.max_length - room());
  }
  return result;
}

// Sentences in a row of another document, from a random one on, until they have `length` tokens.
std::vector<std::int64_t> BertExamples::random_text(std::size_t other_than, std::int64_t length, Draws& draws) const {
  auto other = static_cast<std::size_t>(draws.integer(0, documents() - 1));
  other += other >= other_than ? 1 : 0;
  const auto& sentences = documents_[other];
  std::vector<std::int64_t> result;
  for (auto s = static_cast<std::size_t>(draws.integer(0, std::ssize(sentences)));
       s < sentences.size() && std::ssize(result) < length; ++s) {
    result.insert(result.end(), sentences[s].begin(), sentences[s].end());
  }
  return result;
}

BertExample BertExamples::draw(std::int64_t index, Draws draws) const {
  const Piece& piece = pieces_[static_cast<std::size_t>(index)];
  const auto& sentences = documents_[piece.document];
  const auto joined = [&](std::size_t first, std::size_t last) {
    std::vector<std::int64_t> result;
    for (std::size_t s = first; s < last; ++s) {
      result.insert(result.end(), sentences[s].begin(), sentences[s].end());
    }
    return result;
  };
  const auto count = static_cast<std::int64_t>(piece.last - piece.first);
  const std::size_t cut = !options_.next_sentence ? piece.last
                          : count >= 2            ? piece.first + static_cast<std::size_t>(draws.integer(1, count))
                                                  : piece.last;
  BertExample example;
  std::vector<std::int64_t> a = joined(piece.first, cut);
  std::vector<std::int64_t> b;
  if (options_.next_sentence) {
    example.not_next = count < 2 || draws.uniform() < 0.5 ? 1 : 0;
    b = example.not_next == 1 ? random_text(piece.document, room() - std::ssize(a), draws) : joined(cut, piece.last);
    b = b.empty() ? random_text(piece.document, 1, draws) : b;
  }
  cut_pair(a, b, room(), draws);
  std::vector<std::int64_t>& ids = example.text.ids;
  ids.push_back(options_.cls);
  ids.insert(ids.end(), a.begin(), a.end());
  ids.push_back(options_.sep);
  example.text.types.assign(ids.size(), 0);
  if (options_.next_sentence) {
    ids.insert(ids.end(), b.begin(), b.end());
    ids.push_back(options_.sep);
    example.text.types.resize(ids.size(), 1);
  }
  example.labels = mask_tokens(ids, options_.masking, draws);
  return example;
}

std::vector<BertExample> stored_bert_examples(const std::filesystem::path& path, bool next_sentence) {
  const io::Safetensors file = io::Safetensors::open(path);
  const auto get = [&](const char* name, bool needed) {
    check(!needed || file.contains(name), "{}: there is no tensor '{}'", file.source(), name);
    return file.contains(name) ? file.get(name).contiguous() : Tensor();
  };
  const Tensor ids = get("input_ids", true);
  const Tensor labels = get("labels", true);
  const Tensor types = get("token_type_ids", false);
  const Tensor lengths = get("lengths", false);
  const Tensor next = get("next_sentence_label", next_sentence);
  check(ids.rank() == 2 && ids.numel() > 0, "{}: input_ids must be [K, N], not {}", file.source(), ids.shape());
  const std::int64_t width = ids.size(1);
  for (const auto& [name, tensor, shape] : {std::tuple("input_ids", ids, ids.shape()),
                                            {"labels", labels, ids.shape()},
                                            {"token_type_ids", types, ids.shape()},
                                            {"lengths", lengths, Shape{ids.size(0)}},
                                            {"next_sentence_label", next, Shape{ids.size(0)}}}) {
    check(!tensor.defined() || (tensor.dtype() == DType::i64 && tensor.shape() == shape),
          "{}: {} must be {} i64, not {} {}", file.source(), name, shape, tensor.shape(), name_of(tensor.dtype()));
  }
  std::vector<BertExample> examples;
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    const std::int64_t length = lengths.defined() ? lengths.data<std::int64_t>()[row] : width;
    check(length >= 1 && length <= width, "{}: text {} has {} of {} tokens", file.source(), row, length, width);
    const auto part = [&](const Tensor& of) {
      const std::int64_t* begin = of.data<std::int64_t>() + row * width;
      return std::vector<std::int64_t>(begin, begin + length);
    };
    BertExample& example = examples.emplace_back();
    example.text = {part(ids), types.defined() ? part(types) : std::vector<std::int64_t>(part(ids).size())};
    example.labels = part(labels);
    example.not_next = next.defined() ? next.data<std::int64_t>()[row] : -1;
  }
  return examples;
}

}  // namespace vitrail::train
