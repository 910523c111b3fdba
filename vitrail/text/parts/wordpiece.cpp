#include "vitrail/text/parts/wordpiece.h"

#include <algorithm>
#include <utility>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

class WordPiece : public Model {
 public:
  explicit WordPiece(WordPieceConfig config) : config_(std::move(config)) {}

  void tokenize(std::string_view piece, std::vector<Token>& tokens) const override {
    const std::size_t before = tokens.size();
    if (count_code_points(piece) <= config_.max_input_chars_per_word && split(piece, tokens)) {
      return;
    }
    tokens.resize(before);
    const auto unknown = config_.vocab.find(config_.unk_token);
    check(unknown.has_value(),
          "the text has '{}', and the vocabulary has neither that nor the token '{}' for unknown ones", piece,
          config_.unk_token);
    tokens.push_back({*unknown, 0, static_cast<std::uint32_t>(piece.size())});
  }
  std::optional<std::uint32_t> find(std::string_view token) const override { return config_.vocab.find(token); }
  const std::string* token(std::int64_t id) const override { return config_.vocab.token(id); }
  std::size_t vocab_size() const override { return config_.vocab.size(); }
  std::int64_t id_end() const override { return config_.vocab.end(); }

 private:
  bool split(std::string_view piece, std::vector<Token>& tokens) const {
    std::string candidate;
    for (std::size_t begin = 0; begin < piece.size();) {
      candidate = begin > 0 ? config_.continuing_subword_prefix : "";
      const std::size_t prefix = candidate.size();
      candidate += piece.substr(begin, config_.vocab.longest());
      std::optional<std::uint32_t> id;
      while (candidate.size() > prefix) {
        const std::size_t end = begin + candidate.size() - prefix;
        const bool whole = end == piece.size() || (static_cast<unsigned char>(piece[end]) & 0xC0) != 0x80;
        if (whole && (id = config_.vocab.find(candidate))) {
          break;
        }
        candidate.pop_back();
      }
      if (!id) {
        return false;
      }
      const std::size_t end = begin + candidate.size() - prefix;
      tokens.push_back({*id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
      begin = end;
    }
    return true;
  }

  WordPieceConfig config_;
};

}  // namespace

std::unique_ptr<const Model> make_wordpiece(WordPieceConfig config) {
  return std::make_unique<WordPiece>(std::move(config));
}

}  // namespace vitrail::text
