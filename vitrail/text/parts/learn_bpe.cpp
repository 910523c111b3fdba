#include "vitrail/text/parts/learn_bpe.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return static_cast<std::size_t>((std::uint64_t{pair.first} << 32 | pair.second) * 0x9E3779B97F4A7C15ULL >> 16);
  }
};

// A pair, how often it was there when it was put into the queue, and the words that it was then found in.
struct Frequent {
  std::int64_t count;
  Pair pair;
  std::vector<std::uint32_t> words;
  bool operator<(const Frequent& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

class Learner {
 public:
  explicit Learner(const BpeLearning& options) : options_(options) {}

  LearnedBpe learn(const std::map<std::string, std::int64_t>& words) {
    for (const std::string& token : options_.special_tokens) {
      id_of(token);
    }
    add_alphabet(words);
    for (const auto& [word, count] : words) {
      add_word(word, count);
    }
    check(static_cast<std::int64_t>(result_.tokens.size()) <= options_.vocab_size,
          "a vocabulary of {} tokens has no room for the {} special tokens and characters", options_.vocab_size,
          result_.tokens.size());
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      for (std::size_t i = 0; i + 1 < words_[word].size(); ++i) {
        change({words_[word][i], words_[word][i + 1]}, 1, word);
      }
    }
    queue_changed();
    while (static_cast<std::int64_t>(result_.tokens.size()) < options_.vocab_size && !queue_.empty()) {
      if (!join_most_frequent()) {
        break;
      }
    }
    keep_last_merges();
    return std::move(result_);
  }

 private:
  std::uint32_t id_of(const std::string& token) {
    const auto [place, is_new] = ids_.emplace(token, static_cast<std::uint32_t>(result_.tokens.size()));
    if (is_new) {
      result_.tokens.push_back(token);
    }
    return place->second;
  }

  void add_alphabet(const std::map<std::string, std::int64_t>& words) {
    std::set<char32_t> alphabet = options_.alphabet;
    for (const auto& [word, count] : words) {
      for_each_code_point(word, [&](char32_t c, std::size_t) { alphabet.insert(c); });
    }
    for (const char32_t c : alphabet) {
      id_of(to_utf8(c));
    }
  }

  void add_word(const std::string& word, std::int64_t count) {
    std::vector<std::uint32_t> symbols;
    for_each_code_point(word, [&](char32_t c, std::size_t at) {
      std::string symbol = to_utf8(c);
      const bool last = at + symbol.size() == word.size();
      symbol.insert(0, at > 0 ? options_.continuing_subword_prefix : "");
      symbols.push_back(id_of(symbol + (last ? options_.end_of_word_suffix : "")));
    });
    words_.push_back(std::move(symbols));
    word_counts_.push_back(count);
  }

  // Counts a pair in a word once more or less often. Where it is new, the pair will be queued again with the word.
  void change(const Pair& pair, std::int64_t times, std::uint32_t word) {
    counts_[pair] += times * word_counts_[word];
    if (times > 0) {
      std::vector<std::uint32_t>& found = changed_[pair];
      if (found.empty() || found.back() != word) {
        found.push_back(word);
      }
    }
  }

  void queue_changed() {
    for (auto& [pair, words] : changed_) {
      if (const std::int64_t count = counts_[pair]; count > 0) {
        queue_.push({count, pair, std::move(words)});
      }
    }
    changed_.clear();
  }

  // Returns whether there was a pair that is frequent enough.
  bool join_most_frequent() {
    Frequent top = queue_.top();
    queue_.pop();
    if (const std::int64_t now = counts_[top.pair]; now != top.count) {
      top.count = now;
      queue_.push(std::move(top));
      return true;
    }
    if (top.count < 1 || top.count < options_.min_frequency) {
      return false;
    }
    const std::string left = result_.tokens[top.pair.first];
    const std::string right = result_.tokens[top.pair.second];
    const std::size_t prefix =
        right.starts_with(options_.continuing_subword_prefix) ? options_.continuing_subword_prefix.size() : 0;
    const std::uint32_t joined = id_of(left + right.substr(prefix));
    result_.merges.emplace_back(left, right);
    for (const std::uint32_t word : top.words) {
      join(word, top.pair, joined);
    }
    queue_changed();
    return true;
  }

  void join(std::uint32_t word, const Pair& pair, std::uint32_t joined) {
    const std::vector<std::uint32_t> old = std::move(words_[word]);
    std::vector<std::uint32_t> symbols;
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (i + 1 == old.size() || Pair(old[i], old[i + 1]) != pair) {
        symbols.push_back(old[i]);
        continue;
      }
      if (!symbols.empty()) {
        change({symbols.back(), pair.first}, -1, word);
        change({symbols.back(), joined}, 1, word);
      }
      if (i + 2 < old.size()) {
        change({pair.second, old[i + 2]}, -1, word);
        change({joined, old[i + 2]}, 1, word);
      }
      symbols.push_back(joined);
      ++i;
    }
    words_[word] = std::move(symbols);
  }

  // Two ways to the same token can have the pair queued twice. The later merge is the one that counts.
  void keep_last_merges() {
    std::set<std::pair<std::string, std::string>> seen;
    std::vector<std::pair<std::string, std::string>> kept;
    for (std::size_t i = result_.merges.size(); i-- > 0;) {
      if (seen.insert(result_.merges[i]).second) {
        kept.push_back(std::move(result_.merges[i]));
      }
    }
    std::ranges::reverse(kept);
    result_.merges = std::move(kept);
  }

  const BpeLearning& options_;
  LearnedBpe result_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<std::vector<std::uint32_t>> words_;
  std::vector<std::int64_t> word_counts_;
  std::unordered_map<Pair, std::int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>, PairHash> changed_;
  std::priority_queue<Frequent> queue_;
};

}  // namespace

LearnedBpe learn_bpe(const std::map<std::string, std::int64_t>& words, const BpeLearning& options) {
  return Learner(options).learn(words);
}

}  // namespace vitrail::text
