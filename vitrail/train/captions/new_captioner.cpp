#include "vitrail/train/captions/new_captioner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/joint/recurrent_captioner.h"
#include "vitrail/models/joint/vision_encoder_decoder.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/text/gpt2.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/train.h"
#include "vitrail/train/captions/captions.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The captioner that --model names, to go on from; empty: an image model.
fs::path given_captioner(const CaptionTaskOptions& options) {
  const fs::path folder = model_of(options.model);
  if (!models::is_captioner_folder(folder)) {
    return {};
  }
  check(nlohmann::json::parse(options.model_kwargs).empty() && nlohmann::json::parse(options.decoder_kwargs).empty() &&
            options.tokenizer.empty() && !options.img_size && options.input_size.empty() && !options.in_chans,
        "--model '{}' is a captioner, which is trained as it is: --model-kwargs, --decoder-kwargs, --tokenizer, "
        "--img-size, --input-size and --in-chans are for a new one",
        options.model);
  return folder;
}

// The tokenizer of texts that the captions are written with, and the tokens that begin and end one.
struct CaptionVocabulary {
  text::Tokenizer tokenizer;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t size = 0;  // of the model's vocabulary
};

// The tokens that the tokenizer itself puts around a text, or GPT-2's, or one more than it has.
CaptionVocabulary with_ends(text::Tokenizer tokenizer) {
  const std::int64_t size = tokenizer.vocab_size();
  const CaptionTokens::Ids ids = tokenizer.encode("a").ids;
  const CaptionTokens::Ids inside = tokenizer.encode("a", false).ids;
  if (ids.size() > inside.size() && ids.back() != inside.back()) {
    const std::int64_t start = ids.front() != inside.front() ? ids.front() : ids.back();
    return {std::move(tokenizer), start, ids.back(), size};
  }
  if (const auto end = tokenizer.id_of("<|endoftext|>")) {
    return {std::move(tokenizer), *end, *end, size};
  }
  return {std::move(tokenizer), size, size, size + 1};
}

CaptionVocabulary caption_vocabulary(const CaptionTaskOptions& options, const fs::path& trained,
                                     const std::vector<std::vector<std::string>>& captions) {
  if (!trained.empty()) {
    return with_ends(text::load_tokenizer(trained));
  }
  const std::string kind = !options.tokenizer.empty()               ? options.tokenizer
                           : options.decoder == transformer_decoder ? "bpe"
                                                                    : "char";
  if (kind == "byte") {
    return with_ends(text::byte_tokenizer());
  }
  if (kind != "char" && kind != "bpe") {
    return with_ends(text::load_tokenizer(model_of(kind)));
  }
  std::vector<std::string> all;
  for (const std::vector<std::string>& own : captions) {
    all.insert(all.end(), own.begin(), own.end());
  }
  if (kind == "bpe") {
    return with_ends(text::train_clip_bpe(all, options.vocab_size, options.max_length + 2));
  }
  std::string joined;
  for (const std::string& caption : all) {
    joined += caption;
  }
  return with_ends(text::char_tokenizer(joined));
}

// The fields of the decoder, beside those that the user gives.
nlohmann::json decoder_config(const CaptionTaskOptions& options, const CaptionVocabulary& vocabulary) {
  nlohmann::json decoder = nlohmann::json::parse(options.decoder_kwargs);
  decoder["vocab_size"] = vocabulary.size;
  decoder["eos_token_id"] = vocabulary.end;
  if (options.decoder != transformer_decoder) {
    decoder["architecture"] = options.decoder;
    decoder.emplace("hidden_size", 256);
    decoder.emplace("dropout", options.drop);
    return decoder;
  }
  decoder["bos_token_id"] = vocabulary.start;
  decoder.emplace("n_embd", 192);
  // GPT-2's 0.02 is that of a width of 2500. With it, a decoder as narrow as ours learns the words and not, in the time
  // that it has, where the image says what they are about (docs/results.md).
  if (decoder["n_embd"].is_number()) {
    decoder.emplace("initializer_range", 1 / std::sqrt(std::max(1.0, decoder["n_embd"].get<double>())));
  }
  decoder.emplace("n_layer", 3);
  decoder.emplace("n_head", 3);
  decoder.emplace("n_positions", options.max_length + 1);
  for (const char* rate : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    decoder.emplace(rate, options.drop);
  }
  return decoder;
}

// Configs of transformers have fields that are passed over; what the user gives should have a meaning.
void check_transformer_fields(const nlohmann::json& decoder, const std::string& source) {
  io::Fields f(decoder, source);
  models::read_gpt2_cross_decoder(f);
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    f.ignore(key);
  }
  f.finish();
}

// A new decoder for the image model that --model names.
std::unique_ptr<models::Captioner> new_captioner(const CaptionTaskOptions& options,
                                                 const CaptionVocabulary& vocabulary) {
  models::CreateOptions create = create_options(options);
  create.num_classes = 0;
  models::Model pictures = models::open_model(model_of(options.model).string(), create);
  models::check_takes_images(pictures);
  models::check_trainable(*pictures.net, options.model);
  const nlohmann::json fields = decoder_config(options, vocabulary);
  const std::string decoder = fields.dump();
  const std::string source = "--decoder-kwargs";
  if (options.decoder != transformer_decoder) {
    return std::make_unique<models::RecurrentCaptioner>(std::move(pictures), decoder, source);
  }
  check_transformer_fields(fields, source);
  const std::int64_t layers = options.encoder_layers.value_or(pictures.net->has_attention() ? 0 : 2);
  auto model = std::make_unique<models::VisionEncoderDecoder>(std::move(pictures), decoder, source, layers);
  if (model->in_transformers()) {
    model->generation_config = usual_generation_config(*model);
  }
  return model;
}

}  // namespace

MadeCaptioner make_captioner(const CaptionTaskOptions& options, const fs::path& checkpoint,
                             const std::vector<std::vector<std::string>>& captions) {
  const fs::path trained = checkpoint.empty() ? given_captioner(options) : checkpoint;
  CaptionVocabulary vocabulary = caption_vocabulary(options, trained, captions);
  std::unique_ptr<models::Captioner> model =
      trained.empty() ? new_captioner(options, vocabulary) : models::load_captioner(trained);
  models::check_vocabulary(text::ordinary_tokens(vocabulary.tokenizer), model->vocab_size());
  return {std::move(model), std::move(vocabulary.tokenizer)};
}

}  // namespace vitrail::train
