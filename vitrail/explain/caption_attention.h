/// \file
/// Where a captioner looked for each word that it wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::explain {

/// The tokens `first` … `last` - 1 of a caption, which are one word.
struct CaptionWord {
  std::string word;
  std::size_t first = 0;
  std::size_t last = 0;
};
/// The words of a caption's tokens, by white space; a token that is no text is a word of its own, as it is written.
std::vector<CaptionWord> words_of_caption(const text::Tokenizer& tokenizer, const std::vector<std::int64_t>& ids);

/// For each layer of the decoder the cross-attention [H, N, rows, columns] of the step that *produced* each of the N
/// tokens of a caption about x [1, C, H, W]: what a token's place looked at before the token was known. What goes to
/// class and register tokens is left out. Throws Error if the model looks at no places, or its image model has no grid.
std::vector<Tensor> caption_attention(const models::Captioner& model, const Tensor& x,
                                      const std::vector<std::int64_t>& ids, DType dtype = DType::f32);

/// The image, and beside it for each word where the caption's tokens of it looked, by `map` [N, rows, columns], the
/// mean over these tokens: a strip in rows, with the words above.
io::Image caption_strip(const io::Image& image, const std::vector<CaptionWord>& words, const Tensor& map);

}  // namespace vitrail::explain
