#include "vitrail/models/joint/vqa.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/base/adapt.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using VqaKind = VqaConfig::Kind;

constexpr const char* one_attention = "attn";

// Matrices start from Glorot's uniform distribution.
nn::Scope vqa_root(nn::ParameterStore& parameters) {
  return nn::Scope(parameters).with_init([](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() == 2 && name.find("embed") == std::string_view::npos && !name.starts_with("lstm.")) {
      return nn::Init::xavier_uniform(shape);
    }
    return shape.rank() == 1 && name.ends_with(".bias") ? nn::Init::zeros() : own;
  });
}

nn::BlockConfig block_of_vqa(const VqaConfig& c) {
  nn::BlockConfig block;
  block.attention = {.dim = c.dim, .num_heads = c.num_heads, .qkv_bias = true, .proj_drop = c.drop};
  block.mlp = {.dim = c.dim, .hidden = c.hidden, .drop2 = c.drop};
  return block;
}

// Whether each of `pictures` has equally many questions, side by side.
bool evenly_asked(const Tensor& rows, std::int64_t pictures) {
  const std::int64_t each = rows.numel() / pictures;
  const std::int64_t* row = rows.data<std::int64_t>();
  for (std::int64_t b = 0; b < rows.numel(); ++b) {
    if (each * pictures != rows.numel() || row[b] != b / each) {
      return false;
    }
  }
  return true;
}

Tensor at_rows(const Tensor& x, const Tensor& rows) { return rows.defined() ? ops::index_select(x, 0, rows) : x; }

}  // namespace

std::int64_t VqaConfig::side() const {
  std::int64_t side = img_size;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    side = (side + 1) / 2;
  }
  return side;
}

Vqa::Vqa(const VqaConfig& config, const nn::StoreOptions& store) : nn::Network(store), config_(config) {
  const VqaConfig& c = config_;
  check(c.dim % c.num_heads == 0, "the width {} cannot be divided among {} heads", c.dim, c.num_heads);
  check(!c.channels.empty(), "a picture needs convolutions that make tokens of it: 'channels' is empty");
  check(!c.sigmoid || c.kind == VqaKind::one, "only vqa_one has its attention by sigmoid");
  const nn::Scope root = vqa_root(parameters);
  if (sees_picture()) {
    std::int64_t in = 3;
    for (std::size_t i = 0; i < c.channels.size(); ++i) {
      const nn::Scope stem = root / "stem" / static_cast<std::int64_t>(i);
      convolutions_.emplace_back(stem / "conv", stem / "bn", in, c.channels[i], nn::Size2{3, 3},
                                 ops::ConvOptions{.stride = {2, 2}, .padding = {1, 1}});
      in = c.channels[i];
    }
    if (c.kind == VqaKind::cnn_lstm) {
      last_convolution_.emplace(root / "last" / "conv", root / "last" / "bn", in, c.dim, nn::Size2{3, 3},
                                ops::ConvOptions{.stride = {2, 2}, .padding = {1, 1}});
    } else {
      projection_.emplace(root / "projection", in, c.dim);
      places_.emplace(root,
                      nn::AbsoluteConfig{.kind = nn::AbsoluteKind::sincos, .grid = {c.side(), c.side()}, .dim = c.dim});
    }
  }
  if (c.kind == VqaKind::cross) {
    for (std::int64_t i = 0; i < c.vision_depth; ++i) {
      vision_blocks_.emplace_back(root / "vision" / i, block_of_vqa(c));
    }
    vision_norm_.emplace(root / "vision" / "norm", c.dim, nn::NormConfig{});
    text_.emplace(root / "text_encoder", BlipTextConfig{.vocab_size = c.vocab_size,
                                                        .max_positions = c.max_positions,
                                                        .dim = c.dim,
                                                        .context_dim = c.dim,
                                                        .depth = c.depth,
                                                        .num_heads = c.num_heads,
                                                        .hidden = c.hidden,
                                                        .drop = c.drop,
                                                        .init_std = 1 / std::sqrt(static_cast<float>(c.dim))});
  } else {
    embedding_.emplace(root / "word_embeddings", c.vocab_size, c.dim, nn::Init::normal(0.5F));
    if (c.kind != VqaKind::cnn_lstm) {
      positions_.emplace(
          root / "position_embeddings",
          nn::TokenPositionsConfig{.kind = nn::TokenPositionKind::learned, .count = c.max_positions, .dim = c.dim});
    }
  }
  if (c.kind == VqaKind::joint || c.kind == VqaKind::question || c.kind == VqaKind::picture) {
    types_.emplace(root / "type_embeddings", 2, c.dim, nn::Init::normal(0.5F));
    for (std::int64_t i = 0; i < c.depth; ++i) {
      blocks_.emplace_back(root / "blocks" / i, block_of_vqa(c));
    }
    norm_.emplace(root / "norm", c.dim, nn::NormConfig{});
  }
  if (c.kind == VqaKind::one) {
    fc1_.emplace(root / "question" / "fc1", c.dim, c.hidden);
    fc2_.emplace(root / "question" / "fc2", c.hidden, c.dim);
    q_.emplace(root / one_attention / "q", c.dim, c.dim, false);
    k_.emplace(root / one_attention / "k", c.dim, c.dim, false);
    v_.emplace(root / one_attention / "v", c.dim, c.dim, false);
    if (c.sigmoid) {
      bias_ = root.parameter("attn.bias", {1}, nn::Init::constant(-std::log(static_cast<float>(c.patches()))));
    }
  }
  if (c.kind == VqaKind::cnn_lstm) {
    nn::RecurrentConfig lstm;
    lstm.input_size = c.dim;
    lstm.hidden_size = c.hidden;
    lstm_.emplace(root / "lstm", lstm);
    const std::int64_t half = (c.side() + 1) / 2;
    fc1_.emplace(root / "picture" / "fc", half * half * c.dim, c.hidden);
    fc2_.emplace(root / "question" / "fc", c.hidden, c.hidden);
    q_.emplace(root / "fc", c.hidden, c.hidden);
  }
  const std::int64_t features = c.kind == VqaKind::one ? 2 * c.dim : c.kind == VqaKind::cnn_lstm ? c.hidden : c.dim;
  answer_.emplace(root / "answer", features, c.num_answers);
}

// What the convolutions give of pictures, always in f32: those of stride 2 are slow in bf16.
Tensor Vqa::features(const Tensor& x, nn::Pass& pass) const {
  Tensor y = x;
  for (const nn::ConvNorm& convolution : convolutions_) {
    y = convolution(y, pass, ops::Activation::relu);
  }
  return y;
}

// The tokens [S, patches, D] of pictures.
Tensor Vqa::picture_tokens(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == 3 && x.size(2) == config_.img_size && x.size(3) == config_.img_size,
        "the model takes images [B, 3, {0}, {0}], not {1}", config_.img_size, x.shape());
  const Tensor y = features(x, pass);
  const Tensor tokens = ops::cast(ops::transpose(ops::reshape(y, {y.size(0), y.size(1), -1}), 1, 2), pass.dtype);
  const Tensor places = (*places_)({config_.side(), config_.side()}, pass);
  return ops::cast((*projection_)(tokens), DType::f32) + places;
}

// The words [B, N, D] of questions, with their places.
Tensor Vqa::words(const Texts& questions, nn::Pass& pass) const {
  check_token_ids(questions.ids, config_.vocab_size);
  check(questions.ids.size(1) <= config_.max_positions,
        "the question has {} tokens, but the model is made for at most {}", questions.ids.size(1),
        config_.max_positions);
  const Tensor x = (*embedding_)(questions.ids);
  return nn::Dropout{config_.drop}(positions_ ? x + (*positions_)(0, questions.ids.size(1)) : x, pass);
}

Tensor Vqa::cross(const VqaInput& input, nn::Pass& pass) const {
  Tensor picture = ops::cast(picture_tokens(input.x, pass), pass.dtype);
  for (const nn::Block& block : vision_blocks_) {
    picture =
        nn::run_block([&block](Tensor x, nn::Pass& own) { return block(std::move(x), own); }, std::move(picture), pass);
  }
  // Questions that lie side by side share the keys of their picture, and a map of all of them then.
  const bool shared = input.rows.defined() && !pass.wants_attention() && !input.score_bias.defined() &&
                      evenly_asked(input.rows, input.x.size(0));
  BlipText::Sources sources = text_->remember((*vision_norm_)(picture), {}, shared ? Tensor() : input.rows);
  sources.back().bias = input.score_bias;
  return ops::select((*text_)(input.questions, sources, false, pass), 1, 0);
}

Tensor Vqa::joint(const VqaInput& input, nn::Pass& pass) const {
  std::vector<Tensor> parts;
  nn::AttentionExtras extras;
  std::int64_t first = 0;  // the place of the token that is read at the end
  if (sees_picture()) {
    const Tensor type = ops::narrow(types_->weight, 0, 0, 1);
    const Tensor picture = picture_tokens(input.x, pass) + type;
    parts.push_back(reads_question() ? at_rows(picture, input.rows) : picture);
    first = config_.patches();
  }
  // Without a question, a token that stands for none looks at the picture.
  const Texts questions = reads_question() ? input.questions : Texts{Tensor::zeros({input.x.size(0), 1}, DType::i64)};
  parts.push_back(words(questions, pass) + ops::narrow(types_->weight, 0, 1, 1));
  if (questions.lengths.defined()) {
    extras.lengths = Tensor::empty(questions.lengths.shape(), DType::i64);
    std::ranges::transform(questions.lengths.span<std::int64_t>(), extras.lengths.data<std::int64_t>(),
                           [&](std::int64_t length) { return length + first; });
  }
  Tensor x = ops::cast(parts.size() == 1 ? parts[0] : ops::concat(parts, 1), pass.dtype);
  for (const nn::Block& block : blocks_) {
    x = nn::run_block([&block, extras](Tensor y, nn::Pass& own) { return block(std::move(y), own, extras); },
                      std::move(x), pass);
  }
  const Tensor read = (*norm_)(ops::select(x, 1, first));
  return reads_question() ? read : at_rows(read, input.rows);
}

Tensor Vqa::one(const VqaInput& input, nn::Pass& pass) const {
  const Tensor all = words(input.questions, pass);
  const std::int64_t batch = all.size(0);
  // The mean over the words of each question, as a product with 1 / length.
  const Tensor share = Tensor::zeros({batch, 1, all.size(1)});
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length =
        input.questions.lengths.defined() ? input.questions.lengths.data<std::int64_t>()[b] : all.size(1);
    std::fill_n(share.data<float>() + b * all.size(1), length, 1 / static_cast<float>(length));
  }
  const Tensor mean = ops::reshape(ops::matmul(share, all), {batch, config_.dim});
  const Tensor question = (*fc2_)((*fc1_)(mean, ops::Activation::gelu));
  const Tensor picture = picture_tokens(input.x, pass);
  const Tensor keys = at_rows((*k_)(picture), input.rows);
  const Tensor values = at_rows((*v_)(picture), input.rows);
  const Tensor query = ops::unsqueeze((*q_)(question), 1);
  const Tensor scores = ops::matmul(query, ops::transpose(keys, 1, 2));  // [B, 1, patches]
  const Tensor weights = config_.sigmoid ? ops::sigmoid(scores + bias_) : ops::softmax(scores, 2);
  if (pass.wants_attention()) {
    pass.recorder->attention(one_attention, ops::unsqueeze(weights, 1));
  }
  const Tensor out = ops::reshape(ops::matmul(weights, values), {batch, config_.dim});
  return ops::concat({out, question}, 1);
}

Tensor Vqa::product(const VqaInput& input, nn::Pass& pass) const {
  const Tensor y = (*last_convolution_)(features(input.x, pass), pass, ops::Activation::relu);
  const Tensor flat = ops::cast(ops::reshape(ops::contiguous(y), {y.size(0), -1}), pass.dtype);
  const Tensor picture = (*fc1_)(flat, ops::Activation::tanh);
  const Tensor read = ops::cast(words(input.questions, pass), pass.dtype);
  const nn::RecurrentOutput output = (*lstm_)(read, {}, input.questions.lengths, pass);
  const Tensor question = (*fc2_)(ops::cast(ops::select(output.state.h, 0, 0), pass.dtype), ops::Activation::tanh);
  return (*q_)(at_rows(picture, input.rows) * question, ops::Activation::tanh);
}

Tensor Vqa::forward(const VqaInput& input, nn::Pass& pass) const {
  check(!input.score_bias.defined() || config_.kind == VqaKind::cross,
        "scores can be added to only where the question looks at the picture in layers of their own");
  const Tensor state = config_.kind == VqaKind::cross      ? cross(input, pass)
                       : config_.kind == VqaKind::one      ? one(input, pass)
                       : config_.kind == VqaKind::cnn_lstm ? product(input, pass)
                                                           : joint(input, pass);
  return ops::cast((*answer_)(nn::Dropout{config_.drop}(state, pass)), DType::f32);
}

std::vector<Tensor> Vqa::picture_attention(const nn::Recorder& recorder) const {
  std::vector<Tensor> maps;
  if (config_.kind == VqaKind::one) {
    maps.push_back(recorder.attention().at(one_attention).value);
  }
  for (std::int64_t i = 0; i < config_.depth && config_.kind == VqaKind::cross; ++i) {
    maps.push_back(recorder.attention().at(text_->cross_attention_name(i)).value);
  }
  for (std::int64_t i = 0; i < config_.depth && config_.kind == VqaKind::joint; ++i) {
    const Tensor all = recorder.attention().at(fmt::format("blocks.{}.attn", i)).value;
    const std::int64_t patches = config_.patches();
    maps.push_back(all.narrow(2, patches, all.size(2) - patches).narrow(3, 0, patches).contiguous());
  }
  return maps;
}

std::int64_t Vqa::depth() const { return (config_.kind == VqaKind::cross ? config_.vision_depth : 0) + config_.depth; }

std::int64_t Vqa::layer_of(const std::string& parameter) const {
  if (const auto block = index_after(parameter, "vision.")) {
    return *block + 1;
  }
  if (const auto block = index_after(parameter, "text_encoder.encoder.layer.")) {
    return config_.vision_depth + *block + 1;
  }
  if (const auto block = index_after(parameter, "blocks.")) {
    return *block + 1;
  }
  return is_head(parameter) ? depth() + 1 : 0;
}

}  // namespace vitrail::models
