#include "vitrail/text/pipeline.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

// What transformers' tokenizers give of a text, where their config does not say it by the class.
constexpr const char* input_names = "model_input_names";
constexpr std::array names_with_types = {"input_ids", "token_type_ids", "attention_mask"};

// Turns ranges of bytes of a text into ranges of code points.
class CodePointOffsets {
 public:
  explicit CodePointOffsets(std::string_view text) : size_(text.size()) {
    if (std::ranges::all_of(text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; })) {
      return;
    }
    indices_.reserve(size_);
    std::uint32_t index = 0;
    for_each_code_point(text,
                        [&](char32_t c, std::size_t) { indices_.insert(indices_.end(), utf8_length(c), index++); });
  }
  // A range that begins at the end of the text, where no code point is, stays as it is, as in the reference.
  std::pair<std::int64_t, std::int64_t> convert(Span range) const {
    if (range.begin >= size_) {
      return {range.begin, range.end};
    }
    const std::int64_t begin = index(range.begin);
    if (range.end < size_) {
      return {begin, index(range.end)};
    }
    return {begin, (range.end - 1 < size_ ? index(range.end - 1) : begin + 1) + 1};
  }

 private:
  std::int64_t index(std::uint32_t byte) const { return indices_.empty() ? byte : indices_[byte]; }
  std::size_t size_;
  std::vector<std::uint32_t> indices_;  // of each byte's code point; empty for ASCII
};

using Piece = AddedTokens::Part;

std::vector<Piece> split_further(std::span<const PreTokenizer> pre_tokenizers, std::vector<Piece> pieces) {
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers) {
    std::vector<Piece> parts;
    for (Piece& piece : pieces) {
      if (piece.id) {
        parts.push_back(std::move(piece));
        continue;
      }
      for (NormalizedString& part : pre_tokenize(pre_tokenizer, std::move(piece.text))) {
        if (!part.empty()) {
          parts.push_back({std::move(part), std::nullopt});
        }
      }
    }
    pieces = std::move(parts);
  }
  return pieces;
}

class PipelineEngine : public Engine {
 public:
  explicit PipelineEngine(Pipeline pipeline)
      : pipeline_(std::move(pipeline)),
        added_(pipeline_.added_tokens, *pipeline_.model, pipeline_.normalizers, pipeline_.splits_special_tokens) {}

  Encoding encode(std::span<const std::string_view> texts, bool add_special_tokens,
                  const std::optional<Truncation>& truncation) const override {
    std::vector<Encoding> encodings;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      // The reference stops early where the rest is cut off anyway. What it then cuts of a pair depends on it.
      const bool limited = truncation && (truncation->strategy != Truncation::Strategy::only_second || i > 0);
      encodings.push_back(encode_one(texts[i], static_cast<std::int64_t>(i), limited ? truncation : std::nullopt));
    }
    if (truncation) {
      const bool pair = texts.size() > 1;
      truncate(encodings, *truncation, add_special_tokens ? count_added(pipeline_.post_processors, pair) : 0);
    }
    return post_process(pipeline_.post_processors, std::move(encodings), add_special_tokens);
  }

  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const override {
    std::vector<std::string> tokens;
    for (const std::int64_t id : ids) {
      const std::string& each = *token(id);
      if (!skip_special_tokens || !added_.is_special(each)) {
        tokens.push_back(each);
      }
    }
    if (!pipeline_.decoders.empty()) {
      return text::decode(pipeline_.decoders, std::move(tokens));
    }
    std::string joined;
    for (const std::string& each : tokens) {
      joined += joined.empty() && &each == tokens.data() ? "" : " ";
      joined += each;
    }
    return joined;
  }

  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(pipeline_.model->vocab_size() + added_.beyond(*pipeline_.model));
  }
  std::optional<std::int64_t> id_of(std::string_view token) const override {
    const auto id = added_.find(token);
    return id ? id : pipeline_.model->find(token);
  }
  const std::string* token(std::int64_t id) const override {
    const std::string* added = added_.token(id);
    return added != nullptr ? added : pipeline_.model->token(id);
  }
  bool is_special(std::int64_t id) const override {
    const std::string* name = token(id);
    return name != nullptr && added_.is_special(*name);
  }
  const std::string& kind() const override { return pipeline_.kind; }
  void save(const std::filesystem::path& folder, bool type_ids) const override {
    io::write_atomically(folder / "tokenizer.json", pipeline_.document);
    io::write_atomically(folder / "tokenizer_config.json",
                         pipeline_.config.empty() ? own_config(type_ids) : given_config(type_ids));
  }
  std::optional<Truncation> truncation() const override { return pipeline_.truncation; }
  std::optional<Padding> padding() const override { return pipeline_.padding; }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  // The tokenizer_config.json that there was. A class of no model gives type ids only where it says so.
  std::string given_config(bool type_ids) const {
    auto config = nlohmann::ordered_json::parse(pipeline_.config);
    const auto kind = config.value("tokenizer_class", nlohmann::ordered_json());
    const bool of_no_model = kind.is_null() || kind == "PreTrainedTokenizerFast" || kind == "TokenizersBackend";
    if (!type_ids || !of_no_model || config.contains(input_names)) {
      return pipeline_.config;
    }
    config[input_names] = names_with_types;
    return config.dump(2) + "\n";
  }

  // A tokenizer_config.json for transformers' AutoTokenizer, which without one guesses by the model, and makes of a
  // BERT's tokenizer one that lower-cases.
  std::string own_config(bool type_ids) const {
    nlohmann::ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
    const auto name = [&](const char* role, std::initializer_list<std::string_view> tokens) {
      for (const std::string_view token : tokens) {
        if (!config.contains(role) && added_.is_special(token)) {  // what is named is special to who reads it
          config[role] = token;
        }
      }
    };
    name("unk_token", {"[UNK]", "<unk>"});
    name("pad_token", {"[PAD]", "<pad>"});
    name("mask_token", {"[MASK]", "<mask>"});
    name("bos_token", {"<s>", "<|endoftext|>"});
    name("eos_token", {"</s>", "<|endoftext|>"});
    const bool as_roberta = id_of("<mask>").has_value();
    name("cls_token", {"[CLS]", as_roberta ? "<s>" : "[CLS]"});
    name("sep_token", {"[SEP]", as_roberta ? "</s>" : "[SEP]"});
    if (type_ids) {
      config[input_names] = names_with_types;
    }
    return config.dump(2) + "\n";
  }

  Encoding encode_one(std::string_view text, std::int64_t type_id, const std::optional<Truncation>& limit) const {
    const std::vector<Piece> pieces =
        split_further(pipeline_.pre_tokenizers, added_.split(text, pipeline_.normalizers));
    const bool backwards = limit && limit->side == Side::left;
    std::vector<Token> tokens;
    std::vector<Range> ranges(pieces.size(), Range{0, 0});
    std::size_t first = 0;
    std::size_t last = pieces.size();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t at = backwards ? pieces.size() - 1 - i : i;
      const Piece& piece = pieces[at];
      const std::size_t before = tokens.size();
      if (piece.id) {
        tokens.push_back({*piece.id, 0, static_cast<std::uint32_t>(piece.text.text().size()), true});
      } else {
        pipeline_.model->tokenize(piece.text.text(), tokens);
      }
      ranges[at] = {before, tokens.size()};
      if (limit && !piece.id && static_cast<std::int64_t>(tokens.size()) >= limit->max_length) {
        (backwards ? first : last) = backwards ? at : at + 1;
        break;
      }
    }
    Encoding encoding;
    reserve(encoding, tokens.size());
    const CodePointOffsets offsets(text);
    for (std::size_t at = first; at < last; ++at) {
      for (std::size_t i = ranges[at].begin; i < ranges[at].end; ++i) {
        put(pieces[at].text, tokens[i], offsets, encoding);
      }
    }
    encoding.type_ids.assign(encoding.size(), type_id);
    encoding.special.assign(encoding.size(), false);
    encoding.attention_mask.assign(encoding.size(), true);
    return encoding;
  }

  static void reserve(Encoding& encoding, std::size_t count) {
    encoding.ids.reserve(count);
    encoding.tokens.reserve(count);
    encoding.offsets.reserve(count);
  }

  void put(const NormalizedString& piece, const Token& token, const CodePointOffsets& offsets,
           Encoding& encoding) const {
    encoding.ids.push_back(token.id);
    encoding.tokens.emplace_back(token.as_text ? piece.text().substr(token.begin, token.end - token.begin)
                                               : *pipeline_.model->token(token.id));
    const Span range{token.begin, token.end};
    encoding.offsets.push_back(offsets.convert(piece.original_range(range).value_or(range)));
  }

  Pipeline pipeline_;
  AddedTokens added_;
};

}  // namespace

std::shared_ptr<const Engine> make_engine(Pipeline pipeline) {
  return std::make_shared<PipelineEngine>(std::move(pipeline));
}

std::vector<std::string> pieces_of(const Pipeline& pipeline, std::string_view text) {
  NormalizedString normalized(text);
  normalize(pipeline.normalizers, normalized);
  std::vector<Piece> whole;
  if (!normalized.empty()) {
    whole.push_back({std::move(normalized), std::nullopt});
  }
  std::vector<std::string> pieces;
  for (const Piece& piece : split_further(pipeline.pre_tokenizers, std::move(whole))) {
    pieces.emplace_back(piece.text.text());
  }
  return pieces;
}

}  // namespace vitrail::text
