#include "vitrail/text/parts/unigram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include <fmt/core.h>

#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/strings/byte_trie.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

constexpr double unknown_penalty = 10.0;

// The best way to a place in the text: its last token begins at `begin`.
struct Best {
  double score = 0;
  std::uint32_t begin = unreached;
  std::uint32_t id = 0;
  static constexpr std::uint32_t unreached = ~std::uint32_t{0};
};

class Unigram : public Model {
 public:
  explicit Unigram(UnigramConfig config) : config_(std::move(config)) {
    const auto& vocab = config_.vocab;
    check(static_cast<std::int64_t>(vocab.size()) <= largest_id, "the vocabulary has {} tokens; {} are allowed",
          vocab.size(), largest_id);
    check(!config_.unk_id || *config_.unk_id < vocab.size(), "'unk_id' is {}, but the vocabulary has {} tokens",
          config_.unk_id.value_or(0), vocab.size());
    double lowest = std::numeric_limits<double>::infinity();
    for (std::uint32_t id = 0; id < vocab.size(); ++id) {
      const auto& [token, score] = vocab[id];
      check(std::isfinite(score), "the score of the token '{}' is not finite", token);
      lowest = std::min(lowest, score);
      ids_[token] = id;  // of equal tokens, the last one counts
      if (!token.empty()) {
        trie_.insert(token, id);
      }
    }
    unknown_score_ = lowest - unknown_penalty;
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes_[byte] = find(fmt::format("<0x{:02X}>", byte));
    }
  }

  void tokenize(std::string_view piece, std::vector<Token>& tokens) const override {
    thread_local std::vector<Best> best;
    find_best(piece, best);
    // Backwards from the end; neighbouring unknown characters become one token.
    const std::size_t first = tokens.size();
    for (auto end = static_cast<std::uint32_t>(piece.size()); end > 0;) {
      Token token{best[end].id, best[end].begin, end, false};
      if (config_.unk_id == token.id) {
        while (token.begin > 0 && best[token.begin].id == token.id) {
          token.begin = best[token.begin].begin;
        }
      }
      end = token.begin;
      put_backwards(piece, token, tokens);
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }
  std::optional<std::uint32_t> find(std::string_view token) const override {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string* token(std::int64_t id) const override {
    return id < 0 || id >= id_end() ? nullptr : &config_.vocab[static_cast<std::size_t>(id)].first;
  }
  std::size_t vocab_size() const override { return config_.vocab.size(); }
  std::int64_t id_end() const override { return static_cast<std::int64_t>(config_.vocab.size()); }

 private:
  void find_best(std::string_view piece, std::vector<Best>& best) const {
    best.assign(piece.size() + 1, Best{});
    for (std::uint32_t begin = 0; begin < piece.size();) {
      const double score = best[begin].score;
      const std::uint32_t bytes = utf8_length(piece[begin]);
      const auto reach = [&](std::size_t end, double reached, std::uint32_t id) {
        if (best[end].begin == Best::unreached || reached > best[end].score) {
          best[end] = {reached, begin, id};
        }
      };
      bool known = false;
      trie_.for_each_prefix(piece.substr(begin), [&](std::size_t length, std::uint32_t id) {
        reach(begin + length, config_.vocab[id].second + score, id);
        known = known || length == bytes;
      });
      if (!known) {
        const double reached = unknown_score_ + score;
        if (best[begin + bytes].begin == Best::unreached || reached > best[begin + bytes].score) {
          check(config_.unk_id.has_value(), "the text has '{}', for which the vocabulary has no token, and no 'unk_id'",
                piece.substr(begin, bytes));
          reach(begin + bytes, reached, static_cast<std::uint32_t>(*config_.unk_id));
        }
      }
      begin += bytes;
    }
  }

  void put_backwards(std::string_view piece, Token token, std::vector<Token>& tokens) const {
    const std::string_view text = piece.substr(token.begin, token.end - token.begin);
    token.as_text = true;
    if (const auto id = find(text)) {
      token.id = *id;
      tokens.push_back(token);
      return;
    }
    const auto token_of_byte = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (config_.byte_fallback &&
        std::ranges::all_of(text, [&](char byte) { return token_of_byte(byte).has_value(); })) {
      for (std::size_t i = text.size(); i-- > 0;) {
        tokens.push_back({*token_of_byte(text[i]), token.begin, token.end, false});
      }
      return;
    }
    tokens.push_back(token);
  }

  UnigramConfig config_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  std::array<std::optional<std::uint32_t>, 256> bytes_;  // <0x00> to <0xFF>
};

}  // namespace

std::unique_ptr<const Model> make_unigram(UnigramConfig config) { return std::make_unique<Unigram>(std::move(config)); }

}  // namespace vitrail::text
