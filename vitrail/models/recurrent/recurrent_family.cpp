// The recurrent networks that read texts, by name.
#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/recurrent/recurrent_classifier.h"
#include "vitrail/models/recurrent/recurrent_language.h"
#include "vitrail/models/text/families.h"

namespace vitrail::models {
namespace {

constexpr std::string_view of_texts = "RecurrentForSequenceClassification";
constexpr std::string_view of_tokens = "RecurrentForTokenClassification";
constexpr std::array<std::string_view, 3> recurrent_architectures = {"RecurrentForCausalLM", of_texts, of_tokens};
constexpr std::array<std::string_view, 1> recurrent_drop_rates = {"dropout"};

std::unique_ptr<TextNetwork> create_recurrent(io::Fields& f, std::string_view architecture,
                                              const nn::StoreOptions& store) {
  const bool classifies = architecture == of_texts || architecture == of_tokens;
  RecurrentLanguageConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", {1, largest_size});
  read_cells(f, c.network);
  c.embedding_size = f.get<std::int64_t>("embedding_size", c.network.hidden_size, {0, largest_size});
  if (classifies) {
    c.network.bidirectional = f.get<bool>("bidirectional", false);
    return std::make_unique<RecurrentClassifier>(c, std::ssize(read_class_names(f)), architecture == of_tokens, store);
  }
  c.tied_head = f.get<bool>("tie_word_embeddings", false);
  return std::make_unique<RecurrentLanguageNetwork>(c, store);
}

// The heads that a network lacks, and the second copy of one that is tied, are passed over.
std::vector<NameRule> recurrent_names(const TextNetwork& network) {
  const auto* language = dynamic_cast<const RecurrentLanguageNetwork*>(&network);
  if (language == nullptr) {
    return {{"", "decoder.@"}, {"@", "@"}};
  }
  std::vector<NameRule> rules = {{"", "classifier.@"}};
  if (language->body.config().tied_head) {
    rules.push_back({"", "decoder.weight"});
  }
  rules.push_back({"@", "@"});
  return rules;
}

}  // namespace

constinit const TextFamily recurrent_family = {.model_type = "recurrent",
                                               .architectures = recurrent_architectures,
                                               .prefix = "",
                                               .create = create_recurrent,
                                               .names = recurrent_names,
                                               .models = R"({
  "rnn": {"architecture": "rnn", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "lstm": {"architecture": "lstm", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "gru": {"architecture": "gru", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "mut1": {"architecture": "mut1", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "mut2": {"architecture": "mut2", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "mut3": {"architecture": "mut3", "vocab_size": 256, "hidden_size": 256, "num_layers": 2},
  "nas": {"architecture": "nas", "vocab_size": 256, "hidden_size": 256, "num_layers": 2}
})",
                                               .drop_rates = recurrent_drop_rates};

}  // namespace vitrail::models
