#include "vitrail/text/sentencepiece_file.h"

#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/charsmap.h"

namespace vitrail::text {
namespace {

// The fields of a message of protocol buffers, one after the other.
class Message {
 public:
  Message(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  bool next() {
    if (at_ == bytes_.size()) {
      return false;
    }
    const std::uint64_t key = number();
    field_ = key >> 3;
    content_ = {};
    value_ = 0;
    switch (key & 7) {
      case 0:
        value_ = number();
        break;
      case 1:
        take(8);
        break;
      case 2:
        content_ = take(number());
        break;
      case 5:
        take(4);
        break;
      default:
        broken();
    }
    return true;
  }
  std::uint64_t field() const { return field_; }
  std::string_view content() const { return content_; }  // of a field that is a string or a message
  std::uint64_t value() const { return value_; }         // of a field that is a number

 private:
  [[noreturn]] void broken() const {
    fail("{}: not a model of sentencepiece: cut off or broken at byte {} of {}", source_, at_, bytes_.size());
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) {
        broken();
      }
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    broken();
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      broken();
    }
    const std::string_view result = bytes_.substr(at_, count);
    at_ += count;
    return result;
  }

  std::string_view bytes_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::uint64_t field_ = 0;
  std::string_view content_;
  std::uint64_t value_ = 0;
};

// The numbers of fields in sentencepiece_model.proto.
constexpr std::uint64_t pieces = 1;
constexpr std::uint64_t piece_text = 1;  // of a piece
constexpr std::uint64_t piece_kind = 3;  // of a piece
constexpr std::uint64_t trainer = 2;
constexpr std::uint64_t model_type = 3;  // of the trainer
constexpr std::uint64_t bpe = 2;         // as a value of model_type
constexpr std::uint64_t normalizer = 3;
constexpr std::uint64_t denormalizer = 5;
constexpr std::uint64_t charsmap = 2;  // of a normalizer

}  // namespace

void check_sentencepiece(std::string_view bytes, const std::string& source) {
  std::size_t count = 0;
  for (Message model(bytes, source); model.next();) {
    count += model.field() == pieces ? 1 : 0;
    if (model.field() != normalizer && model.field() != denormalizer) {
      continue;
    }
    for (Message spec(model.content(), source); spec.next();) {
      if (spec.field() == charsmap && !spec.content().empty()) {
        try {
          const Charsmap checked(spec.content());
        } catch (const Error& error) {
          fail("{}: {}", source, error.what());
        }
      }
    }
  }
  check(count > 0, "{}: not a model of sentencepiece: it has no pieces", source);
}

std::vector<std::pair<std::string, PieceKind>> sentencepieces_in(std::string_view bytes, const std::string& source) {
  std::vector<std::pair<std::string, PieceKind>> result;
  for (Message model(bytes, source); model.next();) {
    if (model.field() != pieces) {
      continue;
    }
    auto& [text, kind] = result.emplace_back("", PieceKind::normal);
    for (Message piece(model.content(), source); piece.next();) {
      if (piece.field() == piece_text) {
        text = piece.content();
      } else if (piece.field() == piece_kind) {
        kind = PieceKind{piece.value()};
      }
    }
  }
  return result;
}

bool is_sentencepiece_bpe(std::string_view bytes, const std::string& source) {
  bool found = false;
  for (Message model(bytes, source); model.next();) {
    if (model.field() == trainer) {
      for (Message spec(model.content(), source); spec.next();) {
        found = spec.field() == model_type ? spec.value() == bpe : found;
      }
    }
  }
  return found;
}

}  // namespace vitrail::text
