// The recurrent networks that translate, by name.
#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/recurrent/recurrent_translator.h"
#include "vitrail/models/text/families.h"

namespace vitrail::models {
namespace {

constexpr std::array<std::string_view, 1> seq2seq_architectures = {"RecurrentForConditionalGeneration"};
constexpr std::array<std::string_view, 1> seq2seq_drop_rates = {"dropout"};

std::unique_ptr<TextNetwork> create_seq2seq(io::Fields& f, std::string_view, const nn::StoreOptions& store) {
  RecurrentTranslatorConfig c;
  c.source_vocab_size = f.get<std::int64_t>("vocab_size", {1, largest_size});
  const auto separate = f.optional<std::int64_t>("decoder_vocab_size", {0, largest_size}).value_or(0);
  c.shared_embedding = f.get<bool>("share_encoder_decoder_embeddings", true);
  c.target_vocab_size = c.shared_embedding || separate == 0 ? c.source_vocab_size : separate;
  c.tied_head = f.get<bool>("tie_word_embeddings", false);
  read_cells(f, c.network);
  c.network.bidirectional = f.get<bool>("bidirectional", false);
  c.embedding_size = f.get<std::int64_t>("embedding_size", c.network.hidden_size, {1, largest_size});
  c.reverse_source = f.get<bool>("reverse_source", false);
  const bool attends = f.choice("attention", "none", {"none", "bahdanau"}) == "bahdanau";
  if (attends) {
    c.attention_size = f.get<std::int64_t>("attention_size", c.network.hidden_size, {1, largest_size});
  }
  for (const char* key : {"decoder_start_token_id", "forced_eos_token_id"}) {  // of generating
    f.ignore(key);
  }
  return std::make_unique<RecurrentTranslatorNetwork>(c, store);
}

std::vector<NameRule> seq2seq_names(const TextNetwork&) { return {{"@", "@"}}; }

}  // namespace

constinit const TextFamily recurrent_seq2seq_family = {.model_type = "recurrent_seq2seq",
                                                       .architectures = seq2seq_architectures,
                                                       .prefix = "",
                                                       .create = create_seq2seq,
                                                       .names = seq2seq_names,
                                                       .models = R"({
  "lstm_seq2seq": {
    "architecture": "lstm", "vocab_size": 8000, "hidden_size": 256, "num_layers": 2, "reverse_source": true,
    "tie_word_embeddings": true
  },
  "gru_seq2seq": {
    "architecture": "gru", "vocab_size": 8000, "hidden_size": 256, "num_layers": 2, "reverse_source": true,
    "tie_word_embeddings": true
  },
  "lstm_bahdanau": {
    "architecture": "lstm", "vocab_size": 8000, "hidden_size": 256, "num_layers": 1, "bidirectional": true,
    "attention": "bahdanau", "tie_word_embeddings": true
  },
  "gru_bahdanau": {
    "architecture": "gru", "vocab_size": 8000, "hidden_size": 256, "num_layers": 1, "bidirectional": true,
    "attention": "bahdanau", "tie_word_embeddings": true
  }
})",
                                                       .drop_rates = seq2seq_drop_rates};

}  // namespace vitrail::models
