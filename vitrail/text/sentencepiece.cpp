#include "vitrail/text/sentencepiece.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/post_processors.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/sentencepiece_file.h"
#include "vitrail/text/strings/normalized_string.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

const std::string sentencepiece_kind = "SentencePiece";

// A file and the library's reading of it.
struct SpmFile {
  std::string bytes;
  Processor processor;
};

std::unique_ptr<const SpmFile> open_spm(std::string bytes, const std::string& source) {
  auto file = std::make_unique<SpmFile>();
  file->bytes = std::move(bytes);
  check_sentencepiece(file->bytes, source);
  const auto status = file->processor.LoadFromSerializedProto(file->bytes);
  check(status.ok(), "{}: not a model of sentencepiece: {}", source, status.ToString());
  return file;
}

std::unique_ptr<const SpmFile> open_spm(const std::filesystem::path& path) {
  return open_spm(io::read_text(path), path.string());
}

// The number of code points, in which offsets count.
std::int64_t places(std::string_view text) { return static_cast<std::int64_t>(count_code_points(text)); }

// The pieces of a text: their names, and their places in code points. The ids are left to the caller.
template <class IdOf>
Encoding pieces_of_text(const Processor& processor, std::string_view text, std::int64_t type_id, const IdOf& id_of) {
  sentencepiece::ImmutableSentencePieceText result;
  const auto status = processor.Encode(text, result.mutable_proto());
  check(status.ok(), "sentencepiece cannot encode the text: {}", status.ToString());
  result.ConvertToUnicodeSpans();
  Encoding encoding;
  for (const auto& piece : result.pieces()) {
    encoding.ids.push_back(id_of(piece));
    encoding.tokens.push_back(piece.piece());
    encoding.offsets.emplace_back(piece.begin(), piece.end());
  }
  encoding.type_ids.assign(encoding.size(), type_id);
  encoding.special.assign(encoding.size(), false);
  encoding.attention_mask.assign(encoding.size(), true);
  return encoding;
}

class SentencePiece : public Engine {
 public:
  SentencePiece(std::unique_ptr<const SpmFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

  Encoding encode(std::span<const std::string_view> texts, bool /*add_special_tokens*/,
                  const std::optional<Truncation>& truncation) const override {
    std::vector<Encoding> encodings;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      encodings.push_back(pieces_of_text(processor(), texts[i], static_cast<std::int64_t>(i),
                                         [](const auto& piece) { return static_cast<std::int64_t>(piece.id()); }));
    }
    if (truncation) {
      truncate(encodings, *truncation, 0);
    }
    return post_process({}, std::move(encodings), false);
  }
  std::string decode(std::span<const std::int64_t> ids, bool /*skip_special_tokens*/) const override {
    std::string text;
    const auto status = processor().Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    check(status.ok(), "sentencepiece cannot decode: {}", status.ToString());
    return text;
  }
  std::int64_t vocab_size() const override { return processor().GetPieceSize(); }
  std::optional<std::int64_t> id_of(std::string_view token) const override {
    const int id = processor().PieceToId(token);  // that of the unknown piece for what is not there
    return processor().IdToPiece(id) == token ? std::optional<std::int64_t>(id) : std::nullopt;
  }
  const std::string* token(std::int64_t id) const override {
    return id < 0 || id >= vocab_size() ? nullptr : &processor().IdToPiece(static_cast<int>(id));
  }
  bool is_special(std::int64_t id) const override {
    return id >= 0 && id < vocab_size() && processor().IsControl(static_cast<int>(id));
  }
  const std::string& kind() const override { return sentencepiece_kind; }
  void save(const std::filesystem::path& folder, bool /*type_ids*/) const override {
    io::write_atomically(folder / name_, file_->bytes);
  }

 protected:
  const Processor& processor() const { return file_->processor; }

 private:
  std::unique_ptr<const SpmFile> file_;
  std::string name_;
};

// The first byte of each code point, and the size.
std::vector<std::uint32_t> bytes_of_code_points(std::string_view text) {
  std::vector<std::uint32_t> bytes;
  for_each_code_point(text, [&](char32_t, std::size_t at) { bytes.push_back(static_cast<std::uint32_t>(at)); });
  bytes.push_back(static_cast<std::uint32_t>(text.size()));
  return bytes;
}

class Siglip final : public SentencePiece {
 public:
  Siglip(std::unique_ptr<const SpmFile> file, std::string name, std::string config, const std::string& source)
      : SentencePiece(std::move(file), std::move(name)), config_(std::move(config)) {
    const nlohmann::json json = io::parse_json(config_, source);
    io::Fields fields(json, source);
    lowercase_ = fields.optional<bool>("do_lower_case").value_or(true);
    end_ = fields.kind("eos_token") == io::Kind::string ? fields.get<std::string>("eos_token") : "</s>";
    const auto id = id_of(end_);
    check(id.has_value(), "{}: the 'eos_token' {} is not in the file of sentencepiece", source, end_);
    end_id_ = *id;
  }

  Encoding encode(std::span<const std::string_view> texts, bool add_special_tokens,
                  const std::optional<Truncation>& truncation) const override {
    std::vector<Encoding> encodings;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      encodings.push_back(encode_one(texts[i], static_cast<std::int64_t>(i)));
    }
    if (truncation) {
      truncate(encodings, *truncation, add_special_tokens ? std::ssize(texts) : 0);
    }
    const std::vector<SpecialToken> end = {{end_, end_id_}};
    TemplateProcessing ends;
    ends.single = {{0, {}, 0}, {0, end, 0}};
    ends.pair = {{0, {}, 0}, {0, end, 0}, {1, {}, 0}, {0, end, 0}};
    return post_process(std::array{PostProcessor(ends)}, std::move(encodings), add_special_tokens);
  }
  bool is_special(std::int64_t id) const override { return id == end_id_ || SentencePiece::is_special(id); }
  void save(const std::filesystem::path& folder, bool type_ids) const override {
    SentencePiece::save(folder, type_ids);
    io::write_atomically(folder / "tokenizer_config.json", config_);
  }

 private:
  // canonicalize_text(), behind the ▁ that tokenize() puts in front.
  NormalizedString canonical(std::string_view text) const {
    NormalizedString result(text);
    result.map([](char32_t c) { return c == U'▁' ? U' ' : c; });
    result.prepend("▁");
    if (lowercase_) {
      result.lowercase();
    }
    result.filter([](char32_t c) { return c >= 0x80 || !is_bert_punctuation(c); });
    char32_t last = 0;
    result.map([](char32_t c) { return is_whitespace(c) ? U' ' : c; });
    result.filter([&](char32_t c) { return std::exchange(last, c) != U' ' || c != U' '; });
    result.strip(true, true);
    return result;
  }

  // As the reference, behind an unknown token, whose pieces are then left out: what stands in front of the text is not
  // lost so.
  Encoding encode_one(std::string_view text, std::int64_t type_id) const {
    const auto id_of_piece = [](const auto& piece) { return static_cast<std::int64_t>(piece.id()); };
    const std::string front = "<unk>";
    const std::size_t skipped = pieces_of_text(processor(), front, type_id, id_of_piece).size();
    const NormalizedString cleaned = canonical(text);
    const Encoding all = pieces_of_text(processor(), front + std::string(cleaned.text()), type_id, id_of_piece);
    const std::vector<std::uint32_t> bytes = bytes_of_code_points(cleaned.text());
    const auto byte_at = [&](std::int64_t code_point) {
      const auto shifted = std::max<std::int64_t>(0, code_point - std::ssize(front));
      return bytes[std::min(static_cast<std::size_t>(shifted), bytes.size() - 1)];
    };
    const auto place = [&](std::uint32_t byte) { return places(text.substr(0, byte)); };
    Encoding result;
    for (std::size_t i = skipped; i < all.size(); ++i) {
      const auto [begin, end] = all.offsets[i];
      const Span origin = cleaned.original_range({byte_at(begin), byte_at(end)}).value_or(Span{});
      result.ids.push_back(all.ids[i]);
      result.tokens.push_back(all.tokens[i]);
      result.offsets.emplace_back(place(origin.begin), place(origin.end));
    }
    result.type_ids.assign(result.size(), type_id);
    result.special.assign(result.size(), false);
    result.attention_mask.assign(result.size(), true);
    return result;
  }

  std::string config_;
  bool lowercase_ = true;
  std::string end_;
  std::int64_t end_id_ = 0;
};

class Marian : public Engine {
 public:
  // `place` names the vocabulary in messages.
  Marian(std::unique_ptr<const SpmFile> source, std::unique_ptr<const SpmFile> target, std::string vocab,
         const std::string& place)
      : source_(std::move(source)), target_(std::move(target)), vocab_text_(std::move(vocab)) {
    const nlohmann::json json = io::parse_json(vocab_text_, place);
    check(json.is_object(), "{}: it must be an object of tokens and ids", place);
    vocab_ = Vocabulary(json.size());
    for (const auto& [token, id] : json.items()) {
      check(id.is_number_integer(), "{}: the id of the token '{}' must be a whole number", place, token);
      try {
        vocab_.add(token, id.get<std::int64_t>());
      } catch (const Error& error) {
        fail("{}: {}", place, error.what());
      }
    }
    for (const std::string_view needed : special_tokens) {
      const auto id = vocab_.find(needed);
      check(id.has_value(), "{}: the token '{}' is missing", place, needed);
      special_.push_back(*id);
    }
  }

  Encoding encode(std::span<const std::string_view> texts, bool add_special_tokens,
                  const std::optional<Truncation>& truncation) const override {
    std::vector<Encoding> encodings;
    for (const std::string_view text : texts) {
      encodings.push_back(encode_one(text));
    }
    if (truncation) {
      truncate(encodings, *truncation, add_special_tokens ? 1 : 0);
    }
    TemplateProcessing ends;
    ends.single = {{0, {}, 0}, {0, {{"</s>", end_id()}}, 0}};
    ends.pair = {{0, {}, 0}, {1, {}, 0}, {0, {{"</s>", end_id()}}, 0}};
    return post_process(std::array{PostProcessor(ends)}, std::move(encodings), add_special_tokens);
  }
  // Special tokens that are kept part the pieces, and stand for themselves with a space after them.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const override {
    std::string result;
    std::vector<std::string> pieces;
    const auto flush = [&] {
      std::string text;
      const auto status = target_->processor.Decode(pieces, &text);
      check(status.ok(), "sentencepiece cannot decode: {}", status.ToString());
      result += text;
      pieces.clear();
    };
    for (const std::int64_t id : ids) {
      if (!is_special(id)) {
        pieces.push_back(*token(id));
      } else if (!skip_special_tokens) {
        flush();
        result += *token(id) + " ";
      }
    }
    flush();
    NormalizedString text(result);
    text.replace(find_code_points(result, [](char32_t c) { return c == U'▁'; }), " ");
    text.strip(true, true);
    return std::string(text.text());
  }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(vocab_.size()); }
  std::optional<std::int64_t> id_of(std::string_view token) const override { return vocab_.find(token); }
  const std::string* token(std::int64_t id) const override { return vocab_.token(id); }
  bool is_special(std::int64_t id) const override { return std::ranges::find(special_, id) != special_.end(); }
  const std::string& kind() const override { return sentencepiece_kind; }
  void save(const std::filesystem::path& folder, bool /*type_ids*/) const override {
    io::write_atomically(folder / "source.spm", source_->bytes);
    io::write_atomically(folder / "target.spm", target_->bytes);
    io::write_atomically(folder / "vocab.json", vocab_text_);
  }

 private:
  std::int64_t unknown_id() const { return special_[0]; }
  std::int64_t end_id() const { return special_[1]; }

  // Special tokens stand for themselves wherever they are; a code of the language to translate to, >>de<<, where a text
  // or what follows a special token begins.
  Encoding encode_one(std::string_view text) const {
    Encoding result;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      const std::string_view mark = mark_of(rest);
      if (!mark.empty()) {
        append(result, of_mark(mark), places(text.substr(0, at)));
      }
      if (std::ranges::find(special_tokens, mark) != special_tokens.end()) {
        at += mark.size();
        continue;  // another mark may follow
      }
      const std::string_view plain = rest.substr(mark.size(), next_special(rest.substr(mark.size())));
      append(
          result,
          pieces_of_text(source_->processor, plain, 0, [&](const auto& piece) { return id_of_piece(piece.piece()); }),
          places(text.substr(0, at + mark.size())));
      at += mark.size() + plain.size();
    }
    return result;
  }
  std::int64_t id_of_piece(std::string_view piece) const { return vocab_.find(piece).value_or(unknown_id()); }
  // The special token or the code of a language that a text begins with; "" if there is none.
  static std::string_view mark_of(std::string_view text) {
    for (const std::string_view token : special_tokens) {
      if (text.starts_with(token)) {
        return text.substr(0, token.size());
      }
    }
    const std::size_t end =
        text.starts_with(">>") ? text.substr(0, next_special(text)).find("<<") : std::string_view::npos;
    return end == std::string_view::npos ? "" : text.substr(0, end + 2);
  }
  // Where the next special token begins; npos if there is none.
  static std::size_t next_special(std::string_view text) {
    std::size_t next = std::string_view::npos;
    for (const std::string_view token : special_tokens) {
      next = std::min(next, text.find(token));
    }
    return next;
  }
  Encoding of_mark(std::string_view mark) const {
    Encoding one;
    one.ids.push_back(id_of_piece(mark));
    one.type_ids.push_back(0);
    one.tokens.emplace_back(mark);
    one.offsets.emplace_back(0, places(mark));
    one.special.push_back(false);
    one.attention_mask.push_back(true);
    return one;
  }

  static constexpr std::array<std::string_view, 3> special_tokens = {"<unk>", "</s>", "<pad>"};
  std::unique_ptr<const SpmFile> source_;
  std::unique_ptr<const SpmFile> target_;
  std::string vocab_text_;
  Vocabulary vocab_;
  std::vector<std::int64_t> special_;  // <unk>, </s>, <pad>
};

}  // namespace

std::shared_ptr<const Engine> read_sentencepiece(const std::filesystem::path& file) {
  return std::make_shared<SentencePiece>(open_spm(file), file.filename().string());
}

std::shared_ptr<const Engine> make_sentencepiece(std::string bytes, const std::string& name) {
  return std::make_shared<SentencePiece>(open_spm(std::move(bytes), name), name);
}

std::shared_ptr<const Engine> read_siglip(const std::filesystem::path& file, std::string config) {
  const std::string source = (file.parent_path() / "tokenizer_config.json").string();
  return std::make_shared<Siglip>(open_spm(file), file.filename().string(), std::move(config), source);
}

std::shared_ptr<const Engine> read_marian(const std::filesystem::path& folder) {
  const std::filesystem::path vocab = folder / "vocab.json";
  return std::make_shared<Marian>(open_spm(folder / "source.spm"), open_spm(folder / "target.spm"),
                                  io::read_text(vocab), vocab.string());
}

std::shared_ptr<const Engine> read_marian_target(const std::filesystem::path& folder) {
  const std::filesystem::path vocab = folder / "vocab.json";
  return std::make_shared<Marian>(open_spm(folder / "target.spm"), open_spm(folder / "target.spm"),
                                  io::read_text(vocab), vocab.string());
}

std::shared_ptr<const Engine> make_marian(const std::string& bytes, const std::string& name) {
  std::unique_ptr<const SpmFile> source = open_spm(bytes, name);
  const Processor& pieces = source->processor;
  nlohmann::ordered_json vocab = {{"</s>", 0}, {"<unk>", 1}};
  for (int i = 0; i < pieces.GetPieceSize(); ++i) {
    if (!pieces.IsControl(i) && !pieces.IsUnknown(i)) {
      vocab.emplace(pieces.IdToPiece(i), vocab.size());
    }
  }
  vocab.emplace("<pad>", vocab.size());
  return std::make_shared<Marian>(std::move(source), open_spm(bytes, name), vocab.dump(2) + "\n", name);
}

}  // namespace vitrail::text
