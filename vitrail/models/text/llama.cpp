// Llama (Touvron et al. 2023) and the decoders that differ from it in options: Mistral and Qwen2, as transformers'
// LlamaForCausalLM, MistralForCausalLM and Qwen2ForCausalLM.
#include <array>
#include <cmath>
#include <numbers>

#include "vitrail/io/suggest.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/text/families.h"
#include "vitrail/nn/attention/block_names.h"

namespace vitrail::models {
namespace {

// What rotary positions are scaled by: `rope_parameters`, or the older `rope_theta` and `rope_scaling`.
struct RotaryScaling {
  std::string type = "default";
  double theta = 10000;
  double factor = 1;
  double low = 1;         // of "llama3": low_freq_factor
  double high = 4;        // high_freq_factor
  double context = 8192;  // original_max_position_embeddings
};

void read_scaling(io::Fields f, RotaryScaling& rope) {
  const std::vector<std::string> known = {"default", "linear", "llama3"};
  const char* key = f.kind("rope_type") != io::Kind::absent ? "rope_type" : "type";
  rope.type = f.choice(key, "default", known);
  rope.theta = f.get<double>("rope_theta", rope.theta, {1, 1e12});
  check(f.get<double>("partial_rotary_factor", 1.0) == 1.0,
        "{}: 'partial_rotary_factor' must be 1: whole heads are rotated", f.source());
  if (rope.type == "default") {
    return;
  }
  rope.factor = f.get<double>("factor", {1e-6, 1e6});
  if (rope.type == "llama3") {
    rope.low = f.get<double>("low_freq_factor", {1e-6, 1e6});
    rope.high = f.get<double>("high_freq_factor", {1e-6, 1e6});
    check(rope.high > rope.low, "{}: 'high_freq_factor' {} must be above 'low_freq_factor' {}", f.source(), rope.high,
          rope.low);
    rope.context = f.get<double>("original_max_position_embeddings", {1, 1e9});
  }
}

RotaryScaling read_rotary(io::Fields& f) {
  RotaryScaling rope;
  rope.theta = f.get<double>("rope_theta", rope.theta, {1, 1e12});
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (f.kind(key) != io::Kind::absent && f.kind(key) != io::Kind::null) {
      read_scaling(f.object(key), rope);
    }
  }
  return rope;
}

// The frequencies θ^(-2i/d), i < d/2, as transformers' modeling_rope_utils.py scales them.
std::vector<float> frequencies(const RotaryScaling& rope, std::int64_t head_dim) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    double frequency = std::pow(rope.theta, -2 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (rope.type == "linear") {
      frequency /= rope.factor;
    } else if (rope.type == "llama3") {
      // Short waves stay, long ones are stretched, and in between it is a mean of both (Llama 3.1).
      const double turns = rope.context * frequency / (2 * std::numbers::pi);
      const double kept = std::clamp((turns - rope.low) / (rope.high - rope.low), 0.0, 1.0);
      frequency *= kept + (1 - kept) / rope.factor;
    }
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

// What the three kinds have in common, with the defaults of LlamaConfig, of which the others differ in sizes.
struct Defaults {
  std::int64_t vocab_size = 32000;
  std::int64_t intermediate_size = 11008;
  std::int64_t num_key_value_heads = 0;  // 0: as many as there are heads
  std::int64_t max_position_embeddings = 2048;
};

DecoderConfig read_decoder(io::Fields& f, const Defaults& defaults) {
  DecoderConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", defaults.vocab_size, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", defaults.max_position_embeddings, {1, 1 << 28});
  c.dim = f.get<std::int64_t>("hidden_size", 4096, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 32, most_layers);
  c.tied_head = f.get<bool>("tie_word_embeddings", false);
  c.init_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
  c.scaled_init = false;
  c.norm = {.kind = nn::NormKind::rms, .eps = static_cast<float>(f.get<double>("rms_norm_eps", 1e-6, {0, 1}))};
  nn::BlockConfig block;
  nn::AttentionConfig& attention = block.attention;
  attention.dim = c.dim;
  attention.num_heads = f.get<std::int64_t>("num_attention_heads", 32, positive);
  // As in transformers, null stands for as many as there are heads; Llama takes a field that is absent for that too.
  const bool is_absent = f.kind("num_key_value_heads") == io::Kind::absent && defaults.num_key_value_heads > 0;
  attention.num_kv_heads =
      is_absent ? std::min(defaults.num_key_value_heads, attention.num_heads)
                : f.optional<std::int64_t>("num_key_value_heads", positive).value_or(attention.num_heads);
  check(attention.num_heads % attention.num_kv_heads == 0,
        "{}: 'num_key_value_heads' {} does not divide 'num_attention_heads' {}", f.source(), attention.num_kv_heads,
        attention.num_heads);
  const auto head_dim = f.optional<std::int64_t>("head_dim", positive);
  check(head_dim || c.dim % attention.num_heads == 0, "{}: 'hidden_size' {} cannot be divided among {} heads",
        f.source(), c.dim, attention.num_heads);
  attention.key_dim = head_dim.value_or(c.dim / attention.num_heads);
  check(attention.key_dim % 2 == 0, "{}: rotary positions need heads of an even width, not {}", f.source(),
        attention.key_dim);
  attention.proj_bias = false;
  attention.attn_drop = static_cast<float>(f.get<double>("attention_dropout", 0, {0, 1}));
  block.mlp_kind = nn::MlpKind::swiglu;
  block.mlp.dim = c.dim;
  block.mlp.hidden = f.get<std::int64_t>("intermediate_size", defaults.intermediate_size, positive);
  block.mlp.activation = ops::activation_named(timm_activation(f, "hidden_act", "silu"));
  block.mlp.fc1_bias = false;
  block.mlp.fc2_bias = false;
  block.norm = c.norm;
  c.positions = read_text_positions(f, {.rotary = frequencies(read_rotary(f), attention.key_dim)}, attention,
                                    c.max_positions, false);
  c.block = nn::named_as_llama(std::move(block));
  c.names = {.embedding = "model.embed_tokens",
             .positions = "model.embed_positions",
             .blocks = "model.layers",
             .norm = "model.norm"};
  return c;
}

DecoderConfig read_llama(io::Fields& f) {
  DecoderConfig c = read_decoder(f, {});
  c.block.attention.qkv_bias = f.get<bool>("attention_bias", false);
  c.block.attention.proj_bias = c.block.attention.qkv_bias;
  c.block.mlp.fc1_bias = f.get<bool>("mlp_bias", false);
  c.block.mlp.fc2_bias = c.block.mlp.fc1_bias;
  return c;
}

DecoderConfig read_mistral(io::Fields& f) {
  DecoderConfig c =
      read_decoder(f, {.intermediate_size = 14336, .num_key_value_heads = 8, .max_position_embeddings = 4096 * 32});
  const bool given = f.kind("sliding_window") != io::Kind::absent;
  c.sliding_window = given ? f.optional<std::int64_t>("sliding_window", {1, 1 << 28}).value_or(0) : 4096;
  return c;
}

DecoderConfig read_qwen2(io::Fields& f) {
  DecoderConfig c = read_decoder(
      f,
      {.vocab_size = 151936, .intermediate_size = 22016, .num_key_value_heads = 32, .max_position_embeddings = 32768});
  c.block.attention.qkv_bias = true;
  std::int64_t first = 0;  // of the layers that slide, unless each says so itself
  if (f.get<bool>("use_sliding_window", false)) {
    c.sliding_window = f.optional<std::int64_t>("sliding_window", {1, 1 << 28}).value_or(0);
    first = f.get<std::int64_t>("max_window_layers", 28, {0, 1 << 28});
  }
  const auto types = f.optional<std::vector<std::string>>("layer_types");
  check(!types || std::ssize(*types) == c.depth, "{}: 'layer_types' has {} entries for {} layers", f.source(),
        types ? types->size() : 0, c.depth);
  for (std::int64_t i = 0; i < c.depth; ++i) {
    bool slides = i >= first;
    if (types) {
      const std::string& type = (*types)[static_cast<std::size_t>(i)];
      slides = type == "sliding_attention";
      check(slides || type == "full_attention",
            "{}: 'layer_types': layer {} is '{}', expected 'full_attention' or 'sliding_attention'", f.source(), i,
            type);
      check(!slides || c.sliding_window > 0,
            "{}: 'layer_types': layer {} is 'sliding_attention', but 'use_sliding_window' and 'sliding_window' give it "
            "no window",
            f.source(), i);
    }
    c.slides.push_back(slides);
  }
  return c;
}

constexpr std::array<std::string_view, 1> llama_architectures = {"LlamaForCausalLM"};
constexpr std::array<std::string_view, 1> mistral_architectures = {"MistralForCausalLM"};
constexpr std::array<std::string_view, 1> qwen2_architectures = {"Qwen2ForCausalLM"};

constexpr std::array<std::string_view, 1> llama_drop_rates = {"attention_dropout"};

// Older versions wrote the frequencies, which are no parameters.
constexpr std::array<NameRule, 2> llama_names = {{{"", "~layers.#.self_attn.rotary_emb.inv_freq"}, {"model.@", "~@"}}};

}  // namespace

const TextFamily llama_family = {.model_type = "llama",
                                 .architectures = llama_architectures,
                                 .prefix = "model.",
                                 .create = create_decoder<read_llama>,
                                 .names = decoder_names<llama_names>,
                                 .models = R"({
  "llama-3.2-1b": {
    "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "bos_token_id": 128000, "eos_token_id": 128001,
    "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
                        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
  },
  "smollm2-135m": {
    "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
    "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0}
  },
  "tinyllama-1.1b": {
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-05
  }
})",
                                 .drop_rates = llama_drop_rates};

const TextFamily mistral_family = {.model_type = "mistral",
                                   .architectures = mistral_architectures,
                                   .prefix = "model.",
                                   .create = create_decoder<read_mistral>,
                                   .names = decoder_names<llama_names>,
                                   .models = "{}",
                                   .drop_rates = llama_drop_rates};

const TextFamily qwen2_family = {.model_type = "qwen2",
                                 .architectures = qwen2_architectures,
                                 .prefix = "model.",
                                 .create = create_decoder<read_qwen2>,
                                 .names = decoder_names<llama_names>,
                                 .models = R"({
  "qwen2-0.5b": {
    "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
    "num_key_value_heads": 2, "max_position_embeddings": 131072, "tie_word_embeddings": true,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}
  }
})",
                                 .drop_rates = llama_drop_rates};

}  // namespace vitrail::models
