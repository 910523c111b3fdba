// Bloom (BigScience 2022), whose tokens know their places by linear biases (ALiBi: Press et al. 2022), as transformers'
// BloomForCausalLM.
#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"

namespace vitrail::models {
namespace {

constexpr std::array<std::string_view, 1> bloom_architectures = {"BloomForCausalLM"};
constexpr std::array<std::string_view, 2> bloom_drop_rates = {"hidden_dropout", "attention_dropout"};

constexpr std::array<NameRule, 1> bloom_names = {{{"transformer.@", "~@"}}};

// A field that transformers knows by a second name.
std::int64_t get_either(io::Fields& f, std::string_view key, std::string_view other, std::int64_t fallback,
                        io::Range range) {
  const std::string_view given = f.kind(other) != io::Kind::absent ? other : key;
  f.ignore(key);
  return f.get<std::int64_t>(given, fallback, range);
}

DecoderConfig read_bloom(io::Fields& f) {
  DecoderConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", 250880, positive);
  c.max_positions = unbounded_positions;
  c.dim = get_either(f, "hidden_size", "n_embed", 64, positive);
  c.depth = get_either(f, "n_layer", "num_hidden_layers", 2, most_layers);
  c.tied_head = f.get<bool>("tie_word_embeddings", true);
  c.init_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
  c.scaled_init = false;
  c.norm = {.kind = nn::NormKind::layer, .eps = static_cast<float>(f.get<double>("layer_norm_epsilon", 1e-5, {0, 1}))};
  c.embedding_norm = c.norm;
  // How a model that is spread over machines sums: the same sums here.
  f.ignore("pretraining_tp");
  f.ignore("slow_but_exact");
  nn::BlockConfig block;
  nn::AttentionConfig& attention = block.attention;
  attention.dim = c.dim;
  attention.num_heads = get_either(f, "n_head", "num_attention_heads", 8, positive);
  check(c.dim % attention.num_heads == 0, "{}: 'hidden_size' {} cannot be divided among {} heads", f.source(), c.dim,
        attention.num_heads);
  attention.qkv_bias = true;
  attention.attn_drop = static_cast<float>(f.get<double>("attention_dropout", 0, {0, 1}));
  attention.proj_drop = static_cast<float>(f.get<double>("hidden_dropout", 0, {0, 1}));
  block.mlp.dim = c.dim;
  block.mlp.hidden = 4 * c.dim;
  block.mlp.activation = ops::Activation::gelu_tanh;
  block.mlp.drop2 = attention.proj_drop;
  block.norm = c.norm;
  block.norm_place =
      f.get<bool>("apply_residual_connection_post_layernorm", false) ? nn::NormPlace::both : nn::NormPlace::pre;
  const nn::DistanceBiasConfig alibi{
      .kind = nn::DistanceBiasKind::alibi, .num_heads = attention.num_heads, .bidirectional = false};
  c.positions = read_text_positions(f, {.bias = alibi}, attention, c.max_positions, false);
  c.block = nn::named_as_bloom(std::move(block));
  c.names = {.embedding = "transformer.word_embeddings",
             .positions = "transformer.position_embeddings",
             .blocks = "transformer.h",
             .norm = "transformer.ln_f",
             .embedding_norm = "transformer.word_embeddings_layernorm"};
  return c;
}

}  // namespace

const TextFamily bloom_family = {.model_type = "bloom",
                                 .architectures = bloom_architectures,
                                 .prefix = "transformer.",
                                 .create = create_decoder<read_bloom>,
                                 .names = decoder_names<bloom_names>,
                                 .models = R"({
  "bloom-560m": {"hidden_size": 1024, "n_layer": 24, "n_head": 16},
  "bloom-1b1": {"hidden_size": 1536, "n_layer": 24, "n_head": 16},
  "bloom-1b7": {"hidden_size": 2048, "n_layer": 24, "n_head": 16},
  "bloom-3b": {"hidden_size": 2560, "n_layer": 30, "n_head": 32},
  "bloom-7b1": {"hidden_size": 4096, "n_layer": 30, "n_head": 32}
})",
                                 .drop_rates = bloom_drop_rates};

}  // namespace vitrail::models
