/// \file
/// Small networks that answer questions about pictures by one of the answers that they know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/joint/blip_text.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/absolute_position.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// The sizes and parts of a Vqa.
struct VqaConfig {
  enum class Kind {
    cross,     ///< every layer of the question's encoder looks at the picture's tokens, BLIP's blocks
    joint,     ///< one transformer over the tokens of both
    one,       ///< one attention: the question, as one token, looks at the picture's
    question,  ///< joint without a picture
    picture,   ///< joint without a question
    cnn_lstm   ///< VQA's first network (Agrawal et al. 2015): the product of a picture's and a question's vector
  };
  Kind kind = Kind::cross;
  std::int64_t img_size = 64;
  std::vector<std::int64_t> channels = {32, 64, 128};  ///< of the convolutions, each of which halves the sides
  std::int64_t dim = 128;
  std::int64_t num_heads = 4;
  std::int64_t hidden = 512;      ///< of the Mlps
  std::int64_t vision_depth = 3;  ///< blocks of the picture, of Kind::cross
  std::int64_t depth = 3;         ///< blocks of the question, or of both
  bool sigmoid = false;           ///< of Kind::one: weights σ(s + b) in place of softmax(s) (Ramapuram et al. 2024)
  float drop = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 64;  ///< the longest question
  std::int64_t num_answers = 0;

  std::int64_t side() const;  ///< tokens along each side of a picture
  std::int64_t patches() const { return side() * side(); }
};

/// What a Vqa reads: images x [S, C, H, W], normalized, and questions side by side [B, N], of which question b is about
/// image rows[b]; without rows there is one question for each image.
struct VqaInput {
  Tensor x;
  Texts questions;
  Tensor rows = {};
  /// f32, broadcastable to [B, H, N, M]: added to the scores of the last layer that looks at the picture, of
  /// Kind::cross (nn::DecoderBlock::Source::bias).
  Tensor score_bias = {};
};

/// Networks from questions about pictures to answers. A picture becomes tokens by a few convolutions of stride 2
/// (Xiao et al. 2021), to which sines and cosines of row and column are added; what follows is the kind's:
///
/// ```text
/// cross:     p = vision blocks(p),  y = BlipText(question, p),  logits = answer(y_[CLS])
/// joint:     t = [p + type_0; words + type_1],  t = blocks(t),  logits = answer(norm(t_[CLS]))
/// one:       t_q = mlp(mean of words),  q = W_q t_q,  s_i = qᵀ W_k p_i,  t_out = Σ softmax(s)_i W_v p_i,
///            logits = answer([t_out; t_q])
/// cnn_lstm:  logits = answer(tanh(fc(tanh(W p) ⊙ tanh(V lstm(words)))))
/// ```
///
/// Blocks of `cross` have their norms behind in the question, as BERT, and in front in the picture.
class Vqa final : public nn::Network {
 public:
  explicit Vqa(const VqaConfig& config, const nn::StoreOptions& store = {});

  /// The logits [B, num_answers] f32. A recorder gets the attention maps, those to pictures by picture_attention().
  Tensor forward(const VqaInput& input, nn::Pass& pass) const;

  const VqaConfig& config() const { return config_; }
  bool sees_picture() const { return config_.kind != VqaConfig::Kind::question; }
  bool reads_question() const { return config_.kind != VqaConfig::Kind::picture; }
  /// How the words look at the picture in each layer that does: [B, H, words, patches] of a recorder. For Kind::one
  /// there is a single "word", the question. Empty for kinds without attention to a picture.
  std::vector<Tensor> picture_attention(const nn::Recorder& recorder) const;

  /// The name of the last layer that looks at the picture, of Kind::cross.
  std::string last_picture_attention() const { return text_->cross_attention_name(config_.depth - 1); }

  std::int64_t depth() const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("answer."); }

 private:
  Tensor features(const Tensor& x, nn::Pass& pass) const;
  Tensor picture_tokens(const Tensor& x, nn::Pass& pass) const;
  Tensor words(const Texts& questions, nn::Pass& pass) const;
  Tensor cross(const VqaInput& input, nn::Pass& pass) const;
  Tensor joint(const VqaInput& input, nn::Pass& pass) const;
  Tensor one(const VqaInput& input, nn::Pass& pass) const;
  Tensor product(const VqaInput& input, nn::Pass& pass) const;

  VqaConfig config_;
  std::vector<nn::ConvNorm> convolutions_;
  std::optional<nn::Linear> projection_;  // of a picture's features
  std::optional<nn::AbsolutePositions> places_;
  std::vector<nn::Block> vision_blocks_;
  std::optional<nn::Norm> vision_norm_;
  std::optional<BlipText> text_;
  std::optional<nn::Embedding> embedding_;
  std::optional<nn::TokenPositions> positions_;
  std::optional<nn::Embedding> types_;
  std::vector<nn::Block> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> fc1_;
  std::optional<nn::Linear> fc2_;
  std::optional<nn::Linear> q_;
  std::optional<nn::Linear> k_;
  std::optional<nn::Linear> v_;
  Tensor bias_;  // of the sigmoid
  std::optional<nn::ConvNorm> last_convolution_;
  std::optional<nn::Recurrent> lstm_;
  std::optional<nn::Linear> answer_;
};

}  // namespace vitrail::models
