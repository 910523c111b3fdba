/// \file
/// Attention between the tokens of texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/io/charts/chart.h"
#include "vitrail/io/image.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// One attention of a model that read a text.
struct TextAttention {
  models::TextAttentionKind kind = models::TextAttentionKind::self;
  std::int64_t layer = 0;               ///< among those of its kind
  std::vector<std::string> queries;     ///< the N tokens that look, as they are to be written
  std::vector<std::string> keys;        ///< the M tokens that they look at
  Tensor probabilities;                 ///< [H, N, M] f32: each row sums to 1
  std::string title() const;            ///< "layer 3", "cross-attention 3"
  Tensor map(std::int64_t head) const;  ///< [N, M] of a head, or, with all_heads, the mean of all
};

/// What is written for the tokens of a text.
struct TextWords {
  std::vector<std::string> input;               ///< a word for each of input_ids
  std::vector<std::string> decoder_input = {};  ///< and for each of decoder_input_ids
  /// For each of decoder_input_ids the token behind it, which its row is about to predict: a row of decoder and
  /// cross-attention goes by this name.
  std::vector<std::string> predicted = {};
};

/// Runs a model on one text, and returns all its attentions.
std::vector<TextAttention> record_text_attention(const models::TextNetwork& net, const models::TextInputs& inputs,
                                                 const TextWords& words, DType dtype = DType::f32);

/// Attention rollout (Abnar & Zuidema 2020, section 3) over all layers of a kind that is not cross-attention: the
/// product of (A + I) / 2, where A is the mean over heads, [N, N]. Undefined if there is no layer of this kind.
Tensor rollout(const std::vector<TextAttention>& layers, models::TextAttentionKind kind);

/// Words on the left joined to those on the right that they look at, by lines as thick as the attention `map` [N, M],
/// as an SVG. Where a viewer can, it shows the lines of one word alone while the pointer is on that word.
std::string attention_lines_svg(const std::string& title, const std::vector<std::string>& queries,
                                const std::vector<std::string>& keys, const Tensor& map);
/// The same as a heat map: a row a word that looks, a column a word that it looks at.
io::HeatMap attention_heat_map(const std::string& title, const std::vector<std::string>& queries,
                               const std::vector<std::string>& keys, const Tensor& map);
/// The map [N, M] as an image without words, each value a square of `cell` pixels, for a sheet of many.
io::Image attention_tile(const Tensor& map, std::int64_t cell);

}  // namespace vitrail::explain
