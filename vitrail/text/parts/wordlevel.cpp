#include "vitrail/text/parts/wordlevel.h"

#include <utility>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

class WordLevel : public Model {
 public:
  WordLevel(Vocabulary vocab, std::string unk_token) : vocab_(std::move(vocab)), unk_token_(std::move(unk_token)) {}

  void tokenize(std::string_view piece, std::vector<Token>& tokens) const override {
    auto id = vocab_.find(piece);
    if (!id) {
      id = vocab_.find(unk_token_);
      check(id.has_value(),
            "the text has '{}', and the vocabulary has neither that nor the token '{}' for unknown ones", piece,
            unk_token_);
    }
    tokens.push_back({*id, 0, static_cast<std::uint32_t>(piece.size())});
  }
  std::optional<std::uint32_t> find(std::string_view token) const override { return vocab_.find(token); }
  const std::string* token(std::int64_t id) const override { return vocab_.token(id); }
  std::size_t vocab_size() const override { return vocab_.size(); }
  std::int64_t id_end() const override { return vocab_.end(); }

 private:
  Vocabulary vocab_;
  std::string unk_token_;
};

}  // namespace

std::unique_ptr<const Model> make_wordlevel(Vocabulary vocab, std::string unk_token) {
  return std::make_unique<WordLevel>(std::move(vocab), std::move(unk_token));
}

}  // namespace vitrail::text
