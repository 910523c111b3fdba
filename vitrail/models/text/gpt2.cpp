// GPT-2 (Radford et al. 2019), as transformers' GPT2LMHeadModel and GPT2ForSequenceClassification, and Image GPT (Chen
// et al. 2020), whose words are colours, as its ImageGPTForCausalImageModeling.
#include "vitrail/models/text/gpt2.h"

#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/decoder_classifier.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"
#include "vitrail/nn/attention/decoder_block.h"

namespace vitrail::models {
namespace {

constexpr io::Range share{0, 1};  // of elements that are dropped

float read_float(io::Fields& f, std::string_view key, double fallback, io::Range range) {
  return static_cast<float>(f.get<double>(key, fallback, range));
}

// What the two differ in.
struct Gpt2Defaults {
  std::int64_t vocab_size = 50257;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  const char* activation = "gelu_new";
  bool tied = true;
  nn::NormKind norm = nn::NormKind::layer;
};

DecoderConfig read_gpt2(io::Fields& f, const Gpt2Defaults& defaults) {
  DecoderConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", defaults.vocab_size, positive);
  c.max_positions = f.get<std::int64_t>("n_positions", 1024, positive);
  c.dim = f.get<std::int64_t>("n_embd", defaults.n_embd, positive);
  c.depth = f.get<std::int64_t>("n_layer", defaults.n_layer, most_layers);
  c.tied_head = f.get<bool>("tie_word_embeddings", defaults.tied);
  c.embd_drop = read_float(f, "embd_pdrop", 0.1, share);
  c.init_std = read_float(f, "initializer_range", 0.02, {0, 10});
  c.norm = {.kind = defaults.norm, .eps = read_float(f, "layer_norm_epsilon", 1e-5, {0, 1})};
  c.scale_by_inverse_layer = f.get<bool>("scale_attn_by_inverse_layer_idx", false);
  // In f32 it changes the order of the same products alone: scores are in f32 here in any case.
  f.get<bool>("reorder_and_upcast_attn", false);
  const auto resid_drop = read_float(f, "resid_pdrop", 0.1, share);
  nn::BlockConfig block;
  block.attention.dim = c.dim;
  block.attention.num_heads = f.get<std::int64_t>("n_head", defaults.n_head, positive);
  block.attention.qkv_bias = true;
  block.attention.scale = f.get<bool>("scale_attn_weights", true) ? 0.0F : 1.0F;
  block.attention.attn_drop = read_float(f, "attn_pdrop", 0.1, share);
  block.attention.proj_drop = resid_drop;
  block.mlp.dim = c.dim;
  block.mlp.hidden = f.optional<std::int64_t>("n_inner", positive).value_or(4 * c.dim);
  block.mlp.activation = ops::activation_named(timm_activation(f, "activation_function", defaults.activation));
  block.mlp.drop2 = resid_drop;
  block.norm = c.norm;
  c.positions =
      read_text_positions(f, {.added = nn::TokenPositionKind::learned}, block.attention, c.max_positions, false);
  c.block = nn::named_as_gpt2(std::move(block));
  c.names = {.embedding = "transformer.wte",
             .positions = "transformer.wpe",
             .blocks = "transformer.h",
             .norm = "transformer.ln_f"};
  return c;
}

void refuse_cross_attention(io::Fields& f) {
  check(!f.get<bool>("add_cross_attention", false),
        "{}: 'add_cross_attention': GPT-2 as a decoder of another model's states is one part of a "
        "VisionEncoderDecoderModel, and not alone",
        f.source());
}

constexpr std::array<std::string_view, 2> gpt2_architectures = {"GPT2LMHeadModel", "GPT2ForSequenceClassification"};

constexpr std::array<std::string_view, 3> gpt2_drop_rates = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};

// The masks of older versions are no parameters.
constexpr std::array<NameRule, 3> gpt2_names = {
    {{"", "~h.#.attn.bias"}, {"", "~h.#.attn.masked_bias"}, {"transformer.@", "~@"}}};

std::unique_ptr<TextNetwork> create_gpt2(io::Fields& f, std::string_view architecture, const nn::StoreOptions& store) {
  refuse_cross_attention(f);
  DecoderConfig config = read_gpt2(f, {});
  if (architecture != "GPT2ForSequenceClassification") {
    return std::make_unique<DecoderNetwork>(config, store);
  }
  config.tied_head = true;
  return std::make_unique<DecoderClassifier>(config, std::ssize(read_class_names(f)), store);
}

// Its norms take no mean away, and the last token, which begins a picture, is never predicted.
DecoderConfig read_imagegpt(io::Fields& f) {
  DecoderConfig c = read_gpt2(f, {.vocab_size = 512 + 1,
                                  .n_embd = 512,
                                  .n_layer = 24,
                                  .n_head = 8,
                                  .activation = "quick_gelu",
                                  .tied = false,
                                  .norm = nn::NormKind::rms});
  check(c.vocab_size > 1, "{}: 'vocab_size' {} has no colour beside the token that begins a picture", f.source(),
        c.vocab_size);
  c.predicted = c.vocab_size - 1;
  return c;
}

constexpr std::array<std::string_view, 1> imagegpt_architectures = {"ImageGPTForCausalImageModeling"};

std::vector<NameRule> gpt2_names_of(const TextNetwork& network) {
  if (network.classifier() == nullptr) {
    std::vector<NameRule> rules = decoder_names<gpt2_names>(network);
    rules.insert(rules.begin(), {"", "score.weight"});
    return rules;
  }
  std::vector<NameRule> rules = {{"", "lm_head.weight"}, {"score.@", "score.@"}};
  rules.insert(rules.end(), gpt2_names.begin(), gpt2_names.end());
  return rules;
}

}  // namespace

CrossDecoderConfig read_gpt2_cross_decoder(io::Fields& f) {
  const DecoderConfig own = read_gpt2(f, {});
  CrossDecoderConfig c;
  c.vocab_size = own.vocab_size;
  c.max_positions = own.max_positions;
  c.dim = own.dim;
  c.depth = own.depth;
  c.block = nn::named_as_gpt2(nn::DecoderBlockConfig{.attention = own.block.attention,
                                                     .cross = own.block.attention,
                                                     .mlp = own.block.mlp,
                                                     .norm = own.block.norm,
                                                     .norm_place = nn::NormPlace::pre});
  c.scale_by_inverse_layer = own.scale_by_inverse_layer;
  c.norm = own.norm;
  c.positions = own.positions;
  c.embd_drop = own.embd_drop;
  c.tied_head = own.tied_head;
  c.names = {.embedding = own.names.embedding,
             .positions = own.names.positions,
             .blocks = own.names.blocks,
             .norm = own.names.norm};
  return c;
}

const TextFamily gpt2_family = {.model_type = "gpt2",
                                .architectures = gpt2_architectures,
                                .prefix = "transformer.",
                                .create = create_gpt2,
                                .names = gpt2_names_of,
                                .models = R"({
  "gpt2": {},
  "gpt2-medium": {"n_embd": 1024, "n_layer": 24, "n_head": 16},
  "gpt2-large": {"n_embd": 1280, "n_layer": 36, "n_head": 20},
  "gpt2-xl": {"n_embd": 1600, "n_layer": 48, "n_head": 25}
})",
                                .drop_rates = gpt2_drop_rates};

const TextFamily imagegpt_family = {.model_type = "imagegpt",
                                    .architectures = imagegpt_architectures,
                                    .prefix = "transformer.",
                                    .create = create_decoder<read_imagegpt>,
                                    .names = decoder_names<gpt2_names>,
                                    .models = R"({
  "imagegpt-small": {},
  "imagegpt-medium": {"n_embd": 1024, "n_layer": 36},
  "imagegpt-large": {"n_embd": 1536, "n_layer": 48, "n_head": 16}
})",
                                    .drop_rates = gpt2_drop_rates};

}  // namespace vitrail::models
