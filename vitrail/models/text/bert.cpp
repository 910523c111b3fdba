// BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019), as transformers' Bert… and Roberta… classes.
#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"

namespace vitrail::models {
namespace {

constexpr io::Range drop_range{0, 1};

// What an encoder of either family has in config.json, with what the families' defaults differ in.
struct BertFields {
  EncoderConfig encoder;
  ops::Activation activation = ops::Activation::gelu;
  float eps = 0;
  float init_std = 0;
  float classifier_drop = 0;
};

// With `behind_padding`, the first token has the position behind that of padding.
BertFields read_bert_fields(io::Fields& f, std::int64_t vocab_size, const std::string& root, bool behind_padding) {
  BertFields fields;
  EncoderConfig& c = fields.encoder;
  check(!f.get<bool>("is_decoder", false) && !f.get<bool>("add_cross_attention", false),
        "{}: 'is_decoder': as a decoder, the model is not supported", f.source());
  const std::vector<std::string> absolute = {"absolute"};
  f.choice("position_embedding_type", absolute[0], absolute);
  check(f.get<bool>("tie_word_embeddings", true), "{}: 'tie_word_embeddings': a free head is not supported",
        f.source());
  c.vocab_size = f.get<std::int64_t>("vocab_size", vocab_size, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", 512, positive);
  std::int64_t offset = 0;
  if (behind_padding) {
    offset = f.get<std::int64_t>("pad_token_id", 1, {0, largest_size}) + 1;
    check(c.max_positions > offset, "{}: 'max_position_embeddings' {} leaves no position behind 'pad_token_id' {}",
          f.source(), c.max_positions, offset - 1);
    c.max_positions -= offset;
  }
  c.dim = f.get<std::int64_t>("hidden_size", 768, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, most_layers);
  c.type_vocab_size = f.get<std::int64_t>("type_vocab_size", 2, positive);
  fields.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-12, {0, 1}));
  fields.init_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
  fields.activation = ops::activation_named(timm_activation(f, "hidden_act", "gelu"));
  const auto drop = static_cast<float>(f.get<double>("hidden_dropout_prob", 0.1, drop_range));
  fields.classifier_drop = static_cast<float>(f.optional<double>("classifier_dropout", drop_range).value_or(drop));
  c.embd_drop = drop;
  const nn::NormConfig norm{.kind = nn::NormKind::layer, .eps = fields.eps};
  c.embedding_norm = norm;
  nn::BlockConfig block;
  block.norm = norm;
  block.norm_place = nn::NormPlace::post;
  block.attention.dim = c.dim;
  block.attention.num_heads = f.get<std::int64_t>("num_attention_heads", 12, positive);
  check(c.dim % block.attention.num_heads == 0, "{}: 'hidden_size' {} cannot be divided among {} heads", f.source(),
        c.dim, block.attention.num_heads);
  block.attention.qkv_bias = true;
  block.attention.attn_drop = static_cast<float>(f.get<double>("attention_probs_dropout_prob", 0.1, drop_range));
  block.attention.proj_drop = drop;
  block.mlp.dim = c.dim;
  block.mlp.hidden = f.get<std::int64_t>("intermediate_size", 3072, positive);
  block.mlp.activation = fields.activation;
  block.mlp.drop2 = drop;
  c.positions = read_text_positions(f, {.added = nn::TokenPositionKind::learned, .offset = offset}, block.attention,
                                    c.max_positions, true);
  c.block = nn::named_as_bert(std::move(block));
  c.names = {.embedding = root + "embeddings.word_embeddings",
             .positions = root + "embeddings.position_embeddings",
             .types = root + "embeddings.token_type_embeddings",
             .embedding_norm = root + "embeddings.LayerNorm",
             .blocks = root + "encoder.layer",
             .norm = ""};
  return fields;
}

// Of a bare encoder, as transformers' constructors take it.
bool has_pooler(io::Fields& f) { return f.get<bool>("add_pooling_layer", true); }

std::unique_ptr<TextNetwork> create_bert(io::Fields& f, std::string_view architecture, const nn::StoreOptions& store) {
  const bool bare = architecture == "BertModel";
  const BertFields fields = read_bert_fields(f, 30522, bare ? "" : "bert.", false);
  EncoderHeads heads;
  if ((bare && has_pooler(f)) || architecture == "BertForPreTraining" ||
      architecture == "BertForSequenceClassification") {
    heads.pooler = PoolerConfig{.dense = bare ? "pooler.dense" : "bert.pooler.dense"};
  }
  if (architecture == "BertForPreTraining" || architecture == "BertForMaskedLM") {
    heads.masked = MaskedHeadConfig{.dense = "cls.predictions.transform.dense",
                                    .norm = "cls.predictions.transform.LayerNorm",
                                    .bias = "cls.predictions.bias",
                                    .activation = fields.activation,
                                    .eps = fields.eps};
  }
  if (architecture == "BertForPreTraining") {
    heads.next_sentence = "cls.seq_relationship";
  }
  if (architecture.ends_with("Classification")) {
    heads.classifier = ClassifierConfig{.linear = "classifier",
                                        .num_labels = std::ssize(read_class_names(f)),
                                        .each_token = architecture == "BertForTokenClassification",
                                        .drop = fields.classifier_drop};
  }
  return std::make_unique<EncoderNetwork>(fields.encoder, heads, fields.init_std, store);
}

std::unique_ptr<TextNetwork> create_roberta(io::Fields& f, std::string_view architecture,
                                            const nn::StoreOptions& store) {
  const bool bare = architecture == "RobertaModel";
  const BertFields fields = read_bert_fields(f, 50265, bare ? "" : "roberta.", true);
  EncoderHeads heads;
  if (bare && has_pooler(f)) {
    heads.pooler = PoolerConfig{.dense = "pooler.dense"};
  }
  if (architecture == "RobertaForMaskedLM") {
    heads.masked = MaskedHeadConfig{
        .dense = "lm_head.dense", .norm = "lm_head.layer_norm", .bias = "lm_head.bias", .eps = fields.eps};
  }
  if (architecture.ends_with("Classification")) {
    const bool each_token = architecture == "RobertaForTokenClassification";
    if (!each_token) {
      heads.pooler = PoolerConfig{.dense = "classifier.dense", .drop = fields.classifier_drop};
    }
    heads.classifier = ClassifierConfig{.linear = each_token ? "classifier" : "classifier.out_proj",
                                        .num_labels = std::ssize(read_class_names(f)),
                                        .each_token = each_token,
                                        .drop = fields.classifier_drop};
  }
  return std::make_unique<EncoderNetwork>(fields.encoder, heads, fields.init_std, store);
}

constexpr std::array<std::string_view, 5> bert_architectures = {"BertModel", "BertForPreTraining", "BertForMaskedLM",
                                                                "BertForSequenceClassification",
                                                                "BertForTokenClassification"};
constexpr std::array<std::string_view, 4> roberta_architectures = {
    "RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification", "RobertaForTokenClassification"};

constexpr std::array<std::string_view, 2> bert_drop_rates = {"hidden_dropout_prob", "attention_probs_dropout_prob"};

// Files may have second copies of what is tied, and heads that a network lacks.
constexpr std::array<NameRule, 6> bert_heads = {{{"", "cls.predictions.decoder.weight"},
                                                 {"", "cls.predictions.decoder.bias"},
                                                 {"cls.predictions.@", "cls.predictions.@"},
                                                 {"cls.seq_relationship.@", "cls.seq_relationship.@"},
                                                 {"classifier.@", "classifier.@"},
                                                 {"", "qa_outputs.@"}}};
constexpr std::array<NameRule, 5> roberta_heads = {{{"", "lm_head.decoder.weight"},
                                                    {"", "lm_head.decoder.bias"},
                                                    {"lm_head.@", "lm_head.@"},
                                                    {"classifier.@", "classifier.@"},
                                                    {"", "qa_outputs.@"}}};

// The head for texts has two layers, that for tokens one: of a file with the other, none fits.
std::vector<NameRule> roberta_heads_of(const TextNetwork& network) {
  const bool of_texts = network.parameters.find("classifier.dense.weight") != nullptr;
  std::vector<NameRule> rules = of_texts
                                    ? std::vector<NameRule>{{"", "classifier.weight"}, {"", "classifier.bias"}}
                                    : std::vector<NameRule>{{"", "classifier.dense.@"}, {"", "classifier.out_proj.@"}};
  rules.insert(rules.end(), roberta_heads.begin(), roberta_heads.end());
  return rules;
}

}  // namespace

const TextFamily bert_family = {.model_type = "bert",
                                .architectures = bert_architectures,
                                .prefix = "bert.",
                                .create = create_bert,
                                .names =
                                    [](const TextNetwork& network) {
                                      return encoder_names(network, bert_heads, {"bert.@", "~@"});
                                    },
                                .models = R"({
  "bert-base-uncased": {},
  "bert-base-cased": {"vocab_size": 28996},
  "bert-large-uncased": {
    "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096
  },
  "bert-tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
  "bert-mini": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
  "bert-small": {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048},
  "bert-medium": {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 2048},
  "all-MiniLM-L6-v2": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
})",
                                .drop_rates = bert_drop_rates};

const TextFamily roberta_family = {.model_type = "roberta",
                                   .architectures = roberta_architectures,
                                   .prefix = "roberta.",
                                   .create = create_roberta,
                                   .names =
                                       [](const TextNetwork& network) {
                                         return encoder_names(network, roberta_heads_of(network), {"roberta.@", "~@"});
                                       },
                                   .models = R"({
  "roberta-base": {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-05},
  "roberta-large": {
    "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-05, "hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096
  }
})",
                                   .drop_rates = bert_drop_rates};

}  // namespace vitrail::models
