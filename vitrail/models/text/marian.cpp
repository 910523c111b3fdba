// Marian's translation models (Junczys-Dowmunt et al. 2018), as transformers' MarianMTModel.
#include <array>
#include <cmath>

#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/families.h"

namespace vitrail::models {
namespace {

constexpr std::array<std::string_view, 1> marian_architectures = {"MarianMTModel"};

float rate_of(io::Fields& f, std::string_view key, double fallback) {
  return static_cast<float>(f.get<double>(key, fallback, {0, 1}));
}

nn::AttentionConfig marian_attention(io::Fields& f, std::int64_t dim, std::string_view heads) {
  nn::AttentionConfig attention;
  attention.dim = dim;
  attention.num_heads = f.get<std::int64_t>(heads, 16, positive);
  check(dim % attention.num_heads == 0, "{}: 'd_model' {} cannot be divided among the {} of '{}'", f.source(), dim,
        attention.num_heads, heads);
  attention.qkv_bias = true;
  attention.attn_drop = rate_of(f, "attention_dropout", 0);
  attention.proj_drop = rate_of(f, "dropout", 0.1);
  return attention;
}

nn::MlpConfig marian_mlp(io::Fields& f, std::int64_t dim, std::string_view width) {
  nn::MlpConfig mlp;
  mlp.dim = dim;
  mlp.hidden = f.get<std::int64_t>(width, 4096, positive);
  mlp.activation = ops::activation_named(timm_activation(f, "activation_function", "gelu"));
  mlp.drop1 = rate_of(f, "activation_dropout", 0);
  mlp.drop2 = rate_of(f, "dropout", 0.1);
  return mlp;
}

std::unique_ptr<TextNetwork> create_marian(io::Fields& f, std::string_view, const nn::StoreOptions& store) {
  EncoderDecoderConfig c;
  const auto dim = f.get<std::int64_t>("d_model", 1024, positive);
  check(dim % 2 == 0, "{}: 'd_model' {} is odd: sines and cosines need pairs", f.source(), dim);
  c.source_vocab_size = f.get<std::int64_t>("vocab_size", 58101, positive);
  const auto separate = f.optional<std::int64_t>("decoder_vocab_size", {0, largest_size}).value_or(0);
  c.shared_embedding = f.get<bool>("share_encoder_decoder_embeddings", true);
  c.decoder.vocab_size = c.shared_embedding || separate == 0 ? c.source_vocab_size : separate;
  c.decoder.tied_head = f.get<bool>("tie_word_embeddings", true);
  check(c.decoder.tied_head || !c.shared_embedding,
        "{}: 'tie_word_embeddings' cannot be false while 'share_encoder_decoder_embeddings' is true", f.source());
  c.decoder.logits_bias = true;
  c.padding = f.optional<std::int64_t>("pad_token_id", {0, largest_size}).value_or(-1);
  check(c.padding < std::min(c.source_vocab_size, c.decoder.vocab_size),
        "{}: 'pad_token_id' {} is none of the vocabulary's {} ids", f.source(), c.padding,
        std::min(c.source_vocab_size, c.decoder.vocab_size));

  EncoderConfig& encoder = c.encoder;
  encoder.dim = dim;
  encoder.max_positions = f.get<std::int64_t>("max_position_embeddings", 1024, positive);
  encoder.depth = f.get<std::int64_t>("encoder_layers", 12, most_layers);
  encoder.embedding_scale =
      f.get<bool>("scale_embedding", false) ? static_cast<float>(std::sqrt(static_cast<double>(dim))) : 1;
  encoder.embd_drop = rate_of(f, "dropout", 0.1);
  encoder.block.attention = marian_attention(f, dim, "encoder_attention_heads");
  encoder.positions = read_text_positions(f, {.added = nn::TokenPositionKind::sine_halves}, encoder.block.attention,
                                          encoder.max_positions, true);
  encoder.block.mlp = marian_mlp(f, dim, "encoder_ffn_dim");
  encoder.block.norm = {.kind = nn::NormKind::layer, .eps = 1e-5F};
  encoder.block.norm_place = nn::NormPlace::post;
  encoder.block = nn::named_as_marian(encoder.block);
  encoder.names.positions = "model.encoder.embed_positions";
  encoder.names.blocks = "model.encoder.layers";

  c.decoder.depth = f.get<std::int64_t>("decoder_layers", 12, most_layers);
  c.decoder.block.attention = marian_attention(f, dim, "decoder_attention_heads");
  c.decoder.block.cross = c.decoder.block.attention;
  c.decoder.block.mlp = marian_mlp(f, dim, "decoder_ffn_dim");
  c.decoder.block.norm = encoder.block.norm;
  c.decoder.block = nn::named_as_marian(c.decoder.block);
  c.source_embedding = c.shared_embedding ? "model.shared" : "model.encoder.embed_tokens";
  c.decoder.names.embedding = c.shared_embedding ? "model.shared" : "model.decoder.embed_tokens";
  c.decoder.names.positions = "model.decoder.embed_positions";
  c.decoder.names.blocks = "model.decoder.layers";

  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    check(f.get<double>(key, 0.0, {0, 1}) == 0, "{}: '{}' must be 0: no layers are dropped", f.source(), key);
  }
  // Of initialization and of generating.
  for (const char* key : {"init_std", "decoder_start_token_id", "forced_eos_token_id", "use_cache"}) {
    f.ignore(key);
  }
  return std::make_unique<EncoderDecoderNetwork>(c, store);
}

// Files have further copies of shared embeddings, and tables of positions that follow from their sizes.
std::vector<NameRule> marian_names(const TextNetwork& network) {
  const EncoderDecoderConfig& c = dynamic_cast<const EncoderDecoderNetwork&>(network).body.config();
  std::vector<NameRule> rules;
  if (c.encoder.positions.added != nn::TokenPositionKind::learned) {
    rules = {{"", "~encoder.embed_positions.weight"}, {"", "~decoder.embed_positions.weight"}};
  }
  if (c.decoder.tied_head) {
    rules.push_back({"", "lm_head.weight"});
  }
  if (c.shared_embedding) {
    rules.push_back({"", "~encoder.embed_tokens.weight"});
    rules.push_back({"", "~decoder.embed_tokens.weight"});
  } else {
    rules.push_back({"", "~shared.weight"});
  }
  rules.push_back({"model.@", "~@"});
  rules.push_back({"lm_head.weight", "lm_head.weight"});
  // Files of transformers 3 have none, which transformers reads as zeros.
  rules.push_back({.own = "final_logits_bias", .theirs = "final_logits_bias", .optional = true});
  return rules;
}

}  // namespace

const TextFamily marian_family = {.model_type = "marian",
                                  .architectures = marian_architectures,
                                  .prefix = "model.",
                                  .create = create_marian,
                                  .names = marian_names,
                                  .models = R"({
  "transformer-base": {
    "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
    "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "activation_function": "relu",
    "scale_embedding": true, "vocab_size": 37000, "pad_token_id": 36999, "decoder_start_token_id": 36999
  },
  "transformer-small": {
    "d_model": 256, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "activation_function": "relu",
    "scale_embedding": true, "vocab_size": 8000, "pad_token_id": 7999, "decoder_start_token_id": 7999
  },
  "transformer-big": {
    "d_model": 1024, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 16,
    "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "activation_function": "relu",
    "scale_embedding": true, "dropout": 0.3, "vocab_size": 37000, "pad_token_id": 36999, "decoder_start_token_id": 36999
  }
})"};

}  // namespace vitrail::models
