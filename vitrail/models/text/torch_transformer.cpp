// The translator of PyTorch's tutorial "Language Translation with nn.Transformer", whose Seq2SeqTransformer has
// torch.nn.Transformer inside. Its config.json has the arguments of the two by their names.
#include <array>
#include <cmath>

#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"

namespace vitrail::models {
namespace {

constexpr std::array<std::string_view, 1> torch_architectures = {"Seq2SeqTransformer"};

std::unique_ptr<TextNetwork> create_torch(io::Fields& f, std::string_view, const nn::StoreOptions& store) {
  EncoderDecoderConfig c;
  const auto dim = f.get<std::int64_t>("d_model", 512, positive);
  check(dim % 2 == 0, "{}: 'd_model' {} is odd: sines and cosines need pairs", f.source(), dim);
  const auto drop = static_cast<float>(f.get<double>("dropout", 0.1, {0, 1}));
  c.source_vocab_size = f.get<std::int64_t>("src_vocab_size", 32000, positive);
  c.decoder.vocab_size = f.get<std::int64_t>("tgt_vocab_size", 32000, positive);
  c.shared_embedding = false;
  c.decoder.tied_head = false;
  c.decoder.head_bias = true;

  nn::AttentionConfig attention;
  attention.dim = dim;
  attention.num_heads = f.get<std::int64_t>("nhead", 8, positive);
  check(dim % attention.num_heads == 0, "{}: 'd_model' {} cannot be divided among the {} of 'nhead'", f.source(), dim,
        attention.num_heads);
  attention.qkv_bias = true;
  attention.attn_drop = drop;
  attention.proj_drop = drop;
  nn::MlpConfig mlp;
  mlp.dim = dim;
  mlp.hidden = f.get<std::int64_t>("dim_feedforward", 2048, positive);
  mlp.activation = ops::activation_named(f.choice("activation", "relu", {"relu", "gelu"}));
  mlp.drop1 = drop;
  mlp.drop2 = drop;
  const nn::NormConfig norm{.kind = nn::NormKind::layer,
                            .eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-5, {0, 1}))};
  const nn::NormPlace place = f.get<bool>("norm_first", false) ? nn::NormPlace::pre : nn::NormPlace::post;

  EncoderConfig& encoder = c.encoder;
  encoder.dim = dim;
  encoder.max_positions = f.get<std::int64_t>("max_position_embeddings", 5000, positive);
  encoder.depth = f.get<std::int64_t>("num_encoder_layers", 6, most_layers);
  encoder.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(dim)));
  encoder.positions =
      read_text_positions(f, {.added = nn::TokenPositionKind::sines}, attention, encoder.max_positions, true);
  encoder.embd_drop = drop;
  encoder.block = nn::named_as_torch(nn::BlockConfig{.attention = attention, .mlp = mlp, .norm = norm});
  encoder.block.norm_place = place;
  encoder.norm = norm;  // which nn.Transformer has behind blocks of either kind
  encoder.names.positions = "transformer.encoder.embed_positions";
  encoder.names.blocks = "transformer.encoder.layers";
  encoder.names.norm = "transformer.encoder.norm";

  c.decoder.depth = f.get<std::int64_t>("num_decoder_layers", 6, most_layers);
  c.decoder.block = nn::named_as_torch(nn::DecoderBlockConfig{
      .attention = attention, .cross = attention, .mlp = mlp, .norm = norm, .norm_place = place});
  c.decoder.norm = norm;
  c.source_embedding = "src_tok_emb.embedding";
  c.decoder.names = {.embedding = "tgt_tok_emb.embedding",
                     .positions = "transformer.decoder.embed_positions",
                     .blocks = "transformer.decoder.layers",
                     .norm = "transformer.decoder.norm",
                     .head = "generator"};
  return std::make_unique<EncoderDecoderNetwork>(c, store);
}

// The table of positions follows from its size.
std::vector<NameRule> torch_names(const TextNetwork&) {
  return {{"", "positional_encoding.pos_embedding"}, {"@", "@"}};
}

}  // namespace

const TextFamily torch_transformer_family = {.model_type = "torch_transformer",
                                             .architectures = torch_architectures,
                                             .prefix = "",
                                             .create = create_torch,
                                             .names = torch_names,
                                             .models = "{}"};

}  // namespace vitrail::models
