#include "vitrail/explain/caption_attention.h"

#include <algorithm>

#include "vitrail/autograd/tape.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

// Images below each other, on white.
io::Image stacked(const std::vector<io::Image>& images) {
  std::int64_t width = 0;
  std::int64_t height = 0;
  for (const io::Image& image : images) {
    width = std::max(width, image.width);
    height += image.height;
  }
  io::Image result = white_image(width, height);
  std::int64_t top = 0;
  for (const io::Image& image : images) {
    paste(result, image, 0, top);
    top += image.height;
  }
  return result;
}

}  // namespace

std::vector<CaptionWord> words_of_caption(const text::Tokenizer& tokenizer, const std::vector<std::int64_t>& ids) {
  std::vector<CaptionWord> words;
  std::vector<std::int64_t> so_far;
  std::string text;
  bool in_word = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    so_far.push_back(ids[i]);
    const std::string longer = tokenizer.has(ids[i]) ? tokenizer.decode(so_far) : text;
    if (longer.size() <= text.size()) {  // no text
      so_far.pop_back();
      words.push_back({tokenizer.has(ids[i]) ? tokenizer.token_of(ids[i]) : "(end)", i, i + 1});
      in_word = false;
      continue;
    }
    std::string piece = longer.substr(text.size());
    const std::size_t letter = piece.find_first_not_of(' ');
    if (!in_word || letter > 0) {
      words.push_back({piece.substr(std::min(letter, piece.size())), i, i + 1});
    } else {
      words.back().word += piece;
      words.back().last = i + 1;
    }
    in_word = letter != std::string::npos;
    text = longer;
  }
  return words;
}

std::vector<Tensor> caption_attention(const models::Captioner& model, const Tensor& x,
                                      const std::vector<std::int64_t>& ids, DType dtype) {
  const std::vector<std::string> names = model.cross_attention();
  check(!names.empty(), "the decoder, a {}, attends to no places of the image", model.decoder_kind());
  check(!ids.empty(), "the caption has no token");
  const autograd::NoGrad no_grad;
  std::vector<std::int64_t> read = {model.start};
  read.insert(read.end(), ids.begin(), ids.end() - 1);
  nn::Recorder recorder(false, true);
  nn::Pass pass{.dtype = dtype, .recorder = &recorder};
  model.logits(x, {Tensor::from(read, {1, std::ssize(read)})}, pass);
  const models::TokenLayout layout = models::layout_of_tokens(*model.image_model.net, x.size(2), x.size(3),
                                                              recorder.attention().at(names.front()).value.size(3));
  std::vector<Tensor> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    const Tensor map = recorder.attention().at(name).value.select(0, 0);  // [H, N, M]
    result.push_back(map.narrow(2, layout.prefix, layout.rows * layout.columns)
                         .contiguous()
                         .reshape({map.size(0), map.size(1), layout.rows, layout.columns}));
  }
  return result;
}

io::Image caption_strip(const io::Image& image, const std::vector<CaptionWord>& words, const Tensor& map) {
  constexpr std::size_t columns = 6;
  std::vector<io::Image> tiles = {image};
  std::vector<std::string> names = {""};
  for (const CaptionWord& word : words) {
    const auto first = static_cast<std::int64_t>(word.first);
    const auto count = static_cast<std::int64_t>(word.last - word.first);
    tiles.push_back(overlay(image, ops::mean(map.narrow(0, first, count).contiguous(), {0})));
    names.push_back(word.word);
  }
  std::vector<io::Image> rows;
  for (std::size_t i = 0; i < tiles.size(); i += columns) {
    const std::size_t end = std::min(tiles.size(), i + columns);
    std::vector<io::Image> row(tiles.begin() + static_cast<std::ptrdiff_t>(i),
                               tiles.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::string> labels(names.begin() + static_cast<std::ptrdiff_t>(i),
                                    names.begin() + static_cast<std::ptrdiff_t>(end));
    row.resize(std::min(columns, tiles.size()), white_image(image.width, image.height));
    labels.resize(row.size());
    rows.push_back(sheet({row}, {.rows = {}, .columns = labels}));
  }
  return stacked(rows);
}

}  // namespace vitrail::explain
