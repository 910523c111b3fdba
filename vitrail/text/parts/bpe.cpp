#include "vitrail/text/parts/bpe.h"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include <fmt/core.h>

#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/pair_table.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

constexpr std::int32_t no_symbol = -1;

struct Symbol {
  std::uint32_t id;
  std::uint32_t bytes;  // 0 once it is joined to the one before
  std::int32_t previous;
  std::int32_t next;
};

// Two neighbours that can be joined; stale ones are found out when their turn comes.
struct Candidate {
  std::uint32_t rank;
  std::int32_t at;
  std::uint32_t joined;
  bool operator>(const Candidate& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
};

// The symbols of a piece, and the queue of their pairs. One for each thread, so that memory is taken once.
class Word {
 public:
  void clear() { symbols_.clear(); }
  void add(std::uint32_t id, std::uint32_t bytes) {
    const auto at = static_cast<std::int32_t>(symbols_.size());
    if (at > 0) {
      symbols_.back().next = at;
    }
    symbols_.push_back({id, bytes, at - 1, no_symbol});
  }
  void merge(const PairTable& merges) {
    queue_.clear();
    for (std::int32_t at = 0; at + 1 < static_cast<std::int32_t>(symbols_.size()); ++at) {
      push(merges, at, at + 1);
    }
    std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
    heap_ = true;
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      const Candidate top = queue_.back();
      queue_.pop_back();
      join(merges, top);
    }
    heap_ = false;
  }
  void append_to(std::vector<Token>& tokens) const {
    std::uint32_t begin = 0;
    for (const Symbol& symbol : symbols_) {
      if (symbol.bytes > 0) {
        tokens.push_back({symbol.id, begin, begin + symbol.bytes});
        begin += symbol.bytes;
      }
    }
  }

 private:
  Symbol& symbol(std::int32_t at) { return symbols_[static_cast<std::size_t>(at)]; }
  void push(const PairTable& merges, std::int32_t left, std::int32_t right) {
    if (const PairTable::Merge* merge = merges.find(symbol(left).id, symbol(right).id)) {
      queue_.push_back({merge->rank, left, merge->joined});
      if (heap_) {
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
      }
    }
  }
  void join(const PairTable& merges, const Candidate& top) {
    Symbol& left = symbol(top.at);
    if (left.bytes == 0 || left.next == no_symbol) {
      return;
    }
    const Symbol right = symbol(left.next);
    const PairTable::Merge* merge = merges.find(left.id, right.id);
    if (merge == nullptr || merge->joined != top.joined) {
      return;
    }
    symbol(left.next).bytes = 0;
    left.id = top.joined;
    left.bytes += right.bytes;
    left.next = right.next;
    if (left.next != no_symbol) {
      symbol(left.next).previous = top.at;
    }
    if (left.previous != no_symbol) {
      push(merges, left.previous, top.at);
    }
    if (left.next != no_symbol) {
      push(merges, top.at, left.next);
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
  bool heap_ = false;
};

class Bpe : public Model {
 public:
  explicit Bpe(BpeConfig config) : config_(std::move(config)) {
    for (std::size_t rank = 0; rank < config_.merges.size(); ++rank) {
      const auto& [left, right] = config_.merges[rank];
      const std::size_t prefix = config_.continuing_subword_prefix.size();
      check(right.size() >= prefix, "the merge {} joins '{}', which is shorter than the prefix '{}'", rank, right,
            config_.continuing_subword_prefix);
      const std::uint32_t left_id = id_of(left, rank);
      const std::uint32_t right_id = id_of(right, rank);
      merges_.put(left_id, right_id, {static_cast<std::uint32_t>(rank), id_of(left + right.substr(prefix), rank)});
    }
    config_.merges.clear();
    config_.merges.shrink_to_fit();
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes_[byte] = config_.vocab.find(fmt::format("<0x{:02X}>", byte));
    }
    plain_ = config_.continuing_subword_prefix.empty() && config_.end_of_word_suffix.empty();
    for (char32_t c = 0; c < characters_.size(); ++c) {
      characters_[c] = config_.vocab.find(to_utf8(c));
    }
  }

  void tokenize(std::string_view piece, std::vector<Token>& tokens) const override {
    if (config_.ignore_merges) {
      if (const auto id = config_.vocab.find(piece)) {
        tokens.push_back({*id, 0, static_cast<std::uint32_t>(piece.size())});
        return;
      }
    }
    thread_local Word word;
    word.clear();
    split(piece, word);
    word.merge(merges_);
    word.append_to(tokens);
  }
  std::optional<std::uint32_t> find(std::string_view token) const override { return config_.vocab.find(token); }
  const std::string* token(std::int64_t id) const override { return config_.vocab.token(id); }
  std::size_t vocab_size() const override { return config_.vocab.size(); }
  std::int64_t id_end() const override { return config_.vocab.end(); }

 private:
  std::uint32_t id_of(std::string_view token, std::size_t rank) const {
    const auto id = config_.vocab.find(token);
    check(id.has_value(), "the merge {} has the token '{}', which the vocabulary has not", rank, token);
    return *id;
  }

  // The characters of a piece as symbols, those that are not known as their bytes or as the unknown token.
  void split(std::string_view piece, Word& word) const {
    Token unknown{0, 0, 0};  // characters that wait for others to be one token with; none while it has no bytes
    const auto flush = [&] {
      if (unknown.end > 0) {
        word.add(unknown.id, unknown.end);
        unknown.end = 0;
      }
    };
    std::string affixed;
    for (std::size_t at = 0; at < piece.size();) {
      const CodePoint point = code_point_at(piece, at);
      std::string_view character = piece.substr(at, point.bytes);
      std::optional<std::uint32_t> id;
      if (plain_ && point.value < characters_.size()) {
        id = characters_[point.value];
      } else {
        if (!plain_) {
          affixed = at > 0 ? config_.continuing_subword_prefix : "";
          affixed += character;
          affixed += at + point.bytes == piece.size() ? config_.end_of_word_suffix : "";
          character = affixed;
        }
        id = config_.vocab.find(character);
      }
      at += point.bytes;
      if (id) {
        flush();
        word.add(*id, point.bytes);
        continue;
      }
      // As in the reference, bytes come before an unknown character that is still waiting for others.
      if (config_.byte_fallback && add_bytes(character, word)) {
        continue;
      }
      if (!config_.unk_token) {
        continue;
      }
      if (unknown.end > 0 && config_.fuse_unk) {
        unknown.end += point.bytes;
        continue;
      }
      flush();
      const auto unk = config_.vocab.find(*config_.unk_token);
      check(unk.has_value(),
            "the text has '{}', and the vocabulary has neither that nor the token '{}' for unknown ones", character,
            *config_.unk_token);
      unknown = {*unk, 0, point.bytes};
    }
    flush();
  }

  bool add_bytes(std::string_view character, Word& word) const {
    const auto token_of_byte = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (!std::ranges::all_of(character, [&](char byte) { return token_of_byte(byte).has_value(); })) {
      return false;
    }
    for (const char byte : character) {
      word.add(*token_of_byte(byte), 1);
    }
    return true;
  }

  BpeConfig config_;
  PairTable merges_;
  bool plain_ = true;                                           // neither prefix nor suffix
  std::array<std::optional<std::uint32_t>, 0x250> characters_;  // the tokens of one character, as far as Latin reaches
  std::array<std::optional<std::uint32_t>, 256> bytes_;         // <0x00> to <0xFF>
};

}  // namespace

std::unique_ptr<const Model> make_bpe(BpeConfig config) { return std::make_unique<Bpe>(std::move(config)); }

}  // namespace vitrail::text
