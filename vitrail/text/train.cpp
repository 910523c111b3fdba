#include "vitrail/text/train.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sentencepiece_trainer.h>

#include "vitrail/tensor/error.h"
#include "vitrail/text/documents.h"
#include "vitrail/text/parts/learn_bpe.h"
#include "vitrail/text/sentencepiece.h"
#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer_json.h"

namespace vitrail::text {
namespace {

using nlohmann::json;

void check_texts(std::span<const std::string> texts) {
  bool any = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_utf8(texts[i], fmt::format("text {}", i));
    any = any || !texts[i].empty();
  }
  check(any, "there is no text to learn a tokenizer from");
}

// How often the pieces that a document makes of the texts come in these.
std::map<std::string, std::int64_t> counted_pieces(const json& document, std::span<const std::string> texts) {
  const Pipeline pipeline = make_pipeline(document, "the new tokenizer");
  std::map<std::string, std::int64_t> words;
  for (const std::string& text : texts) {
    for (std::string& piece : pieces_of(pipeline, text)) {
      ++words[std::move(piece)];
    }
  }
  return words;
}

json merges_of(const LearnedBpe& learned) {
  json merges = json::array();
  for (const auto& [left, right] : learned.merges) {
    merges.push_back({left, right});
  }
  return merges;
}

// Learns the model of a document that has all other parts, from the pieces that these make of the texts.
json learn_model(json document, std::span<const std::string> texts, const BpeLearning& learning) {
  const LearnedBpe learned = learn_bpe(counted_pieces(document, texts), learning);
  check(static_cast<std::int64_t>(learned.tokens.size()) == learning.vocab_size,
        "the texts have enough for {} tokens, but the vocabulary is to have {} (--vocab-size)", learned.tokens.size(),
        learning.vocab_size);
  document["model"]["vocab"] = json::object();
  for (std::size_t id = 0; id < learned.tokens.size(); ++id) {
    document["model"]["vocab"][learned.tokens[id]] = id;
  }
  if (document["model"]["type"] == "BPE") {
    document["model"]["merges"] = merges_of(learned);
  }
  for (const std::string& token : learning.special_tokens) {
    document["added_tokens"].push_back(added_token(token, document["model"]["vocab"][token]));
  }
  return document;
}

Tokenizer finished(const json& document) {
  return Tokenizer(make_engine(make_pipeline(document, "the new tokenizer")));
}

// The texts one by one, as the library wants them. A line feed would end a sentence.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string> texts) : texts_(texts) {}
  bool done() const override { return at_ == texts_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return texts_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::span<const std::string> texts_;
  std::size_t at_ = 0;
};

}  // namespace

Tokenizer train_byte_level_bpe(std::span<const std::string> texts, const TokenizerTraining& training) {
  check_texts(texts);
  BpeLearning learning{training.vocab_size, training.min_frequency, training.special_tokens, {}, "", ""};
  for (unsigned byte = 0; byte < 256; ++byte) {
    learning.alphabet.insert(character_of_byte(static_cast<unsigned char>(byte)));
  }
  json document = empty_document({{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}});
  document["pre_tokenizer"] = byte_level(false, true);
  document["post_processor"] = byte_level(true, false);
  document["decoder"] = byte_level(true, true);
  return finished(learn_model(std::move(document), texts, learning));
}

Tokenizer train_clip_bpe(std::span<const std::string> texts, std::int64_t vocab_size, std::int64_t model_max_length) {
  check_texts(texts);
  BpeLearning learning;
  learning.vocab_size = vocab_size - 2;  // without the special tokens
  learning.end_of_word_suffix = "</w>";
  std::set<std::string> bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes.insert(to_utf8(character_of_byte(static_cast<unsigned char>(byte))));
  }
  learning.special_tokens.assign(bytes.begin(), bytes.end());
  for (const std::string& byte : bytes) {
    learning.special_tokens.push_back(byte + learning.end_of_word_suffix);
  }
  const json cutting = clip_document({{"<|startoftext|>", 0}, {"<|endoftext|>", 1}}, json::array());
  const LearnedBpe learned = learn_bpe(counted_pieces(cutting, texts), learning);
  json vocab = json::object();
  for (const std::string& token : learned.tokens) {
    vocab[token] = vocab.size();
  }
  vocab["<|startoftext|>"] = vocab.size();
  vocab["<|endoftext|>"] = vocab.size();
  Pipeline pipeline = make_pipeline(clip_document(std::move(vocab), merges_of(learned)), "the new tokenizer");
  pipeline.config = clip_tokenizer_config(model_max_length);
  return Tokenizer(make_engine(std::move(pipeline)));
}

Tokenizer train_wordpiece(std::span<const std::string> texts, const TokenizerTraining& training) {
  check_texts(texts);
  std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  special.insert(special.end(), training.special_tokens.begin(), training.special_tokens.end());
  const BpeLearning learning{training.vocab_size, training.min_frequency, special, {}, "##", ""};
  json document = bert_document(json::object(), training.lowercase, true, std::nullopt);
  document["added_tokens"] = json::array();
  document = learn_model(std::move(document), texts, learning);
  document["post_processor"] = bert_template(document["model"]["vocab"]);
  return finished(document);
}

namespace {

// What the library says of a vocabulary that is too large or too small for the texts, without the place in its sources
// and its advice on flags of its own.
std::string plain_words(const std::string& status) {
  const auto number_behind = [&](std::string_view words) {
    const std::size_t at = status.find(words);
    const std::size_t begin = at == std::string::npos ? status.size() : at + words.size();
    return status.substr(begin, status.find_first_not_of("0123456789", begin) - begin);
  };
  if (const std::string most = number_behind("Please set it to a value <= "); !most.empty()) {
    return fmt::format("the texts have enough for at most {}", most);
  }
  if (const std::string needed = number_behind(" vs ");
      !needed.empty() && status.find("required_chars") != std::string::npos) {
    return fmt::format("the characters of the texts and the special tokens need {}", needed);
  }
  return status;
}

// The special tokens, each once and without those that all vocabularies of sentencepiece have.
std::vector<std::string> control_symbols(const std::vector<std::string>& special_tokens) {
  const std::set<std::string> own = {"<unk>", "<s>", "</s>"};
  std::vector<std::string> symbols;
  for (const std::string& token : special_tokens) {
    if (!own.contains(token) && std::ranges::find(symbols, token) == symbols.end()) {
      symbols.push_back(token);
    }
  }
  return symbols;
}

// A line of comma-separated values, as the library reads lists.
std::string comma_separated(const std::vector<std::string>& values) {
  std::string line;
  for (const std::string& value : values) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : value) {
      line += c == '"' ? "\"\"" : std::string(1, c);
    }
    line += '"';
  }
  return line;
}

// The file that the sentencepiece library learns.
std::string learn_sentencepiece(std::span<const std::string> texts, const std::string& kind,
                                const TokenizerTraining& training) {
  check_texts(texts);
  check(kind == "unigram" || kind == "bpe", "sentencepiece is to learn 'unigram' or 'bpe', not '{}'", kind);
  const std::vector<std::string> symbols = control_symbols(training.special_tokens);
  check(training.vocab_size >= 3 + std::ssize(symbols),
        "a vocabulary of {} tokens has no room for the {} special tokens, of which sentencepiece adds <unk>, <s> and "
        "</s>",
        training.vocab_size, 3 + symbols.size());
  Sentences sentences(texts);
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", kind},
       {"vocab_size", std::to_string(training.vocab_size)},
       {"control_symbols", comma_separated(symbols)},
       {"num_threads", "1"},  // the sums of several would depend on their order
       {"minloglevel", "3"}},
      &sentences, &bytes);
  check(status.ok(), "sentencepiece cannot learn {} tokens (--vocab-size): {}", training.vocab_size,
        plain_words(status.ToString()));
  return bytes;
}

}  // namespace

Tokenizer train_sentencepiece(std::span<const std::string> texts, const std::string& kind,
                              const TokenizerTraining& training) {
  return Tokenizer(make_sentencepiece(learn_sentencepiece(texts, kind, training), "tokenizer.model"));
}

Tokenizer train_marian(std::span<const std::string> texts, const std::string& kind, const TokenizerTraining& training) {
  return Tokenizer(make_marian(learn_sentencepiece(texts, kind, training), "the new tokenizer"));
}

}  // namespace vitrail::text
