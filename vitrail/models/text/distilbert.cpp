// DistilBERT (Sanh et al. 2019), as transformers' DistilBert… classes.
#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"

namespace vitrail::models {
namespace {

constexpr float distilbert_eps = 1e-12F;  // of all norms; no field of the config

float read_drop(io::Fields& f, std::string_view key, double fallback) {
  return static_cast<float>(f.get<double>(key, fallback, {0, 1}));
}

EncoderConfig read_distilbert(io::Fields& f, const std::string& root) {
  EncoderConfig c;
  check(f.get<bool>("tie_word_embeddings", true), "{}: 'tie_word_embeddings': a free head is not supported",
        f.source());
  c.vocab_size = f.get<std::int64_t>("vocab_size", 30522, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", 512, positive);
  c.dim = f.get<std::int64_t>("dim", 768, positive);
  c.depth = f.get<std::int64_t>("n_layers", 6, most_layers);
  const bool sines = f.get<bool>("sinusoidal_pos_embds", false);
  c.embd_drop = read_drop(f, "dropout", 0.1);
  const nn::NormConfig norm{.kind = nn::NormKind::layer, .eps = distilbert_eps};
  c.embedding_norm = norm;
  nn::BlockConfig block;
  block.norm = norm;
  block.norm_place = nn::NormPlace::post;
  block.attention.dim = c.dim;
  block.attention.num_heads = f.get<std::int64_t>("n_heads", 12, positive);
  check(c.dim % block.attention.num_heads == 0, "{}: 'dim' {} cannot be divided among {} heads", f.source(), c.dim,
        block.attention.num_heads);
  block.attention.qkv_bias = true;
  block.attention.attn_drop = read_drop(f, "attention_dropout", 0.1);
  block.mlp.dim = c.dim;
  block.mlp.hidden = f.get<std::int64_t>("hidden_dim", 4 * 768, positive);
  block.mlp.activation = ops::activation_named(timm_activation(f, "activation", "gelu"));
  block.mlp.drop2 = c.embd_drop;
  const auto learned = sines ? nn::TokenPositionKind::learned_sines : nn::TokenPositionKind::learned;
  c.positions = read_text_positions(f, {.added = learned}, block.attention, c.max_positions, true);
  c.block = nn::named_as_distilbert(std::move(block));
  c.names = {.embedding = root + "embeddings.word_embeddings",
             .positions = root + "embeddings.position_embeddings",
             .types = "",
             .embedding_norm = root + "embeddings.LayerNorm",
             .blocks = root + "transformer.layer",
             .norm = ""};
  return c;
}

std::unique_ptr<TextNetwork> create_distilbert(io::Fields& f, std::string_view architecture,
                                               const nn::StoreOptions& store) {
  const EncoderConfig c = read_distilbert(f, architecture == "DistilBertModel" ? "" : "distilbert.");
  EncoderHeads heads;
  if (architecture == "DistilBertForMaskedLM") {
    heads.masked = MaskedHeadConfig{.dense = "vocab_transform",
                                    .norm = "vocab_layer_norm",
                                    .bias = "vocab_projector.bias",
                                    .activation = c.block.mlp.activation,
                                    .eps = distilbert_eps};
  }
  const float classifier_drop = read_drop(f, "seq_classif_dropout", 0.2);
  if (architecture.ends_with("Classification")) {
    const bool each_token = architecture == "DistilBertForTokenClassification";
    if (!each_token) {
      heads.pooler = PoolerConfig{.dense = "pre_classifier", .activation = ops::Activation::relu};
    }
    heads.classifier = ClassifierConfig{.linear = "classifier",
                                        .num_labels = std::ssize(read_class_names(f)),
                                        .each_token = each_token,
                                        .drop = each_token ? c.embd_drop : classifier_drop};
  }
  const auto init_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
  return std::make_unique<EncoderNetwork>(c, heads, init_std, store);
}

constexpr std::array<std::string_view, 4> distilbert_architectures = {"DistilBertModel", "DistilBertForMaskedLM",
                                                                      "DistilBertForSequenceClassification",
                                                                      "DistilBertForTokenClassification"};

constexpr std::array<std::string_view, 3> distilbert_drop_rates = {"dropout", "attention_dropout",
                                                                   "seq_classif_dropout"};

constexpr std::array<NameRule, 7> distilbert_heads = {{{"", "vocab_projector.weight"},
                                                       {"vocab_transform.@", "vocab_transform.@"},
                                                       {"vocab_layer_norm.@", "vocab_layer_norm.@"},
                                                       {"vocab_projector.@", "vocab_projector.@"},
                                                       {"pre_classifier.@", "pre_classifier.@"},
                                                       {"classifier.@", "classifier.@"},
                                                       {"", "qa_outputs.@"}}};

}  // namespace

const TextFamily distilbert_family = {.model_type = "distilbert",
                                      .architectures = distilbert_architectures,
                                      .prefix = "distilbert.",
                                      .create = create_distilbert,
                                      .names =
                                          [](const TextNetwork& network) {
                                            return encoder_names(network, distilbert_heads, {"distilbert.@", "~@"});
                                          },
                                      .models = R"({"distilbert-base-uncased": {}})",
                                      .drop_rates = distilbert_drop_rates};

}  // namespace vitrail::models
