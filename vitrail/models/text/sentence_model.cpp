#include "vitrail/models/text/sentence_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/segments.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

constexpr const char* modules_file = "modules.json";
constexpr const char* lengths_file = "sentence_bert_config.json";

struct PoolingName {
  std::string_view name;
  std::string_view older;  // the field of 1_Pooling/config.json that is true
  SentencePooling pooling;
};
constexpr std::array<PoolingName, 6> pooling_names = {
    {{"cls", "pooling_mode_cls_token", SentencePooling::cls},
     {"max", "pooling_mode_max_tokens", SentencePooling::max},
     {"mean", "pooling_mode_mean_tokens", SentencePooling::mean},
     {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", SentencePooling::mean_sqrt_len_tokens},
     {"weightedmean", "pooling_mode_weightedmean_tokens", SentencePooling::weightedmean},
     {"lasttoken", "pooling_mode_lasttoken", SentencePooling::lasttoken}}};

// The vectors [S, 1] of a number that follows from the length of each text.
template <class Function>
Tensor by_length(const Tensor& offsets, const Function& number) {
  const std::span<const std::int64_t> at = offsets.span<std::int64_t>();
  Tensor result = Tensor::empty({std::ssize(at) - 1, 1});
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    result.data<float>()[s] = number(static_cast<float>(at[s + 1] - at[s]));
  }
  return result;
}

// Texts side by side as a row: their states without those of padding, and their offsets.
std::pair<Tensor, Tensor> in_a_row(const Tensor& states, const Texts& texts) {
  if (texts.offsets.defined()) {
    return {ops::reshape(states, {-1, states.size(2)}), texts.offsets.contiguous()};
  }
  const std::int64_t width = states.size(1);
  TextRow row;  // the places of real tokens
  std::vector<std::int64_t> places;
  for (std::int64_t b = 0; b < states.size(0); ++b) {
    places.resize(static_cast<std::size_t>(texts.lengths.defined() ? texts.lengths.data<std::int64_t>()[b] : width));
    std::iota(places.begin(), places.end(), b * width);
    row.add(places);
  }
  const Texts real = row.texts();
  return {ops::index_select(ops::reshape(states, {-1, states.size(2)}), 0, real.ids.select(0, 0)), real.offsets};
}

SentencePooling read_pooling(const std::filesystem::path& path) {
  const nlohmann::json json = io::read_json(path);
  io::Fields f(json, path.string());
  check(f.get<bool>("include_prompt", true),
        "{}: 'include_prompt' must be true: pooling without the prompt is not "
        "supported",
        f.source());
  if (f.kind("pooling_mode") != io::Kind::absent) {
    const auto names = f.kind("pooling_mode") == io::Kind::list ? f.get<std::vector<std::string>>("pooling_mode")
                                                                : std::vector{f.get<std::string>("pooling_mode")};
    check(names.size() == 1, "{}: 'pooling_mode': one kind of pooling is supported, not {}", f.source(), names.size());
    try {
      return sentence_pooling_named(names[0]);
    } catch (const Error& error) {
      fail("{}: 'pooling_mode': {}", f.source(), error.what());
    }
  }
  std::vector<SentencePooling> chosen;
  for (const PoolingName& name : pooling_names) {
    if (f.get<bool>(name.older, false)) {
      chosen.push_back(name.pooling);
    }
  }
  check(chosen.size() <= 1, "{}: one kind of pooling is supported, not {} joined", f.source(), chosen.size());
  return chosen.empty() ? SentencePooling::mean : chosen[0];
}

// The length that the files of the encoder's folder give, if they do.
std::optional<std::int64_t> read_length(const std::filesystem::path& folder) {
  constexpr io::Range counts{1, largest_size};
  if (std::filesystem::exists(folder / lengths_file)) {
    const nlohmann::json json = io::read_json(folder / lengths_file);
    io::Fields f(json, (folder / lengths_file).string());
    check(!f.get<bool>("do_lower_case", false), "{}: 'do_lower_case' is not supported: the tokenizer does that",
          f.source());
    if (const auto length = f.optional<std::int64_t>("max_seq_length", counts)) {
      return length;
    }
  }
  const std::filesystem::path of_tokenizer = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(of_tokenizer)) {
    return std::nullopt;
  }
  const nlohmann::json json = io::read_json(of_tokenizer);
  io::Fields f(json, of_tokenizer.string());
  // A number beyond all sizes says that there is no length.
  const bool stated = f.kind("model_max_length") == io::Kind::integer || f.kind("model_max_length") == io::Kind::number;
  const double length = stated ? f.get<double>("model_max_length", io::at_least(1)) : counts.high + 1;
  return length <= counts.high ? std::optional(static_cast<std::int64_t>(length)) : std::nullopt;
}

std::string read_prompt(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    return "";
  }
  const nlohmann::json json = io::read_json(path);
  io::Fields f(json, path.string());
  const auto name = f.optional<std::string>("default_prompt_name");
  return name ? f.object("prompts").get<std::string>(*name) : "";
}

// One of the modules that a sentence goes through.
struct Module {
  std::string kind;            // the last part of its class: "Pooling"
  std::filesystem::path path;  // its folder
};

std::vector<Module> read_modules(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / modules_file;
  const nlohmann::json json = io::read_json(path);
  check(json.is_array() && !json.empty(), "{}: a list of modules was expected", path.string());
  std::vector<Module> modules;
  for (const nlohmann::json& item : json) {
    io::Fields f(item, path.string());
    const auto type = f.get<std::string>("type");
    const std::filesystem::path own = f.get<std::string>("path");
    const bool inside = own.is_relative() && std::ranges::find(own, "..") == own.end();
    check(inside, "{}: the path '{}' of a module leads out of the folder", path.string(), own.string());
    modules.push_back({type.substr(type.rfind('.') + 1), folder / own});
  }
  const std::vector<std::string> known = {"Transformer", "Pooling", "Normalize"};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    check(i < known.size() && modules[i].kind == known[i],
          "{}: module {} is '{}', but what is supported is {}, in this order", path.string(), i, modules[i].kind,
          "'Transformer', 'Pooling' and perhaps 'Normalize'");
  }
  check(modules.size() >= 2, "{}: there is no 'Pooling'", path.string());
  return modules;
}

}  // namespace

SentencePooling sentence_pooling_named(std::string_view name) {
  std::vector<std::string> known;
  for (const PoolingName& entry : pooling_names) {
    if (entry.name == name) {
      return entry.pooling;
    }
    known.emplace_back(entry.name);
  }
  fail("there is no pooling '{}', only {}", name, io::quoted_list(known, "and"));
}

Tensor pool_tokens(const Tensor& states, const Texts& texts, SentencePooling pooling) {
  using ops::SegmentReduction;
  if (pooling == SentencePooling::cls || pooling == SentencePooling::lasttoken) {
    const bool first = pooling == SentencePooling::cls;
    return ops::cast(first ? first_states(states, texts) : last_states(states, texts), DType::f32);
  }
  const auto [rows, offsets] = in_a_row(ops::cast(states, DType::f32), texts);
  switch (pooling) {
    case SentencePooling::max:
      return ops::segment_reduce(rows, SegmentReduction::max, offsets);
    case SentencePooling::mean_sqrt_len_tokens:
      return ops::segment_reduce(rows, SegmentReduction::sum, offsets) *
             by_length(offsets, [](float n) { return 1 / std::sqrt(n); });
    case SentencePooling::weightedmean: {
      const Tensor weights = ops::cast(places_in_texts(offsets), DType::f32) + 1.0F;
      return ops::segment_reduce(rows * ops::unsqueeze(weights, 1), SegmentReduction::sum, offsets) *
             by_length(offsets, [](float n) { return 2 / (n * (n + 1)); });
    }
    default:
      return ops::segment_reduce(rows, SegmentReduction::mean, offsets);
  }
}

Tensor SentenceModel::embed(const EncoderInput& input, nn::Pass& pass) const {
  const Tensor vectors = pool_tokens(encoder_of(model).body(input, pass), input.texts(), pooling);
  return normalized ? ops::normalize(vectors) : vectors;
}

bool is_sentence_folder(const std::filesystem::path& folder) { return std::filesystem::exists(folder / modules_file); }

SentenceModel open_sentence_model(const std::string& name_or_folder, const TextModelOptions& options) {
  SentenceModel result;
  std::string source = name_or_folder;
  if (is_sentence_folder(name_or_folder)) {
    const std::vector<Module> modules = read_modules(name_or_folder);
    source = modules[0].path.string();
    result.pooling = read_pooling(modules[1].path / config_file);
    result.normalized = modules.size() > 2;
    result.prompt = read_prompt(std::filesystem::path(name_or_folder) / "config_sentence_transformers.json");
  }
  encoder_of(open_text_model(source, {.fill = nn::Fill::meta}));  // throws for any other model
  TextModelOptions own = options;
  own.architecture = architecture_for(source, "Model");
  result.model = open_text_model(source, own);
  const std::int64_t positions = encoder_of(result.model).shape().max_positions;
  result.max_seq_length = std::min(read_length(source).value_or(positions), positions);
  return result;
}

void write_sentence_model(const SentenceModel& model, const std::filesystem::path& folder) {
  using Json = nlohmann::ordered_json;
  const auto write = [](const std::filesystem::path& path, const Json& json) {
    io::write_atomically(path, json.dump(2) + "\n");
  };
  write_text_model(model.model, folder);
  const std::string library = "sentence_transformers.models.";  // later versions understand it too
  Json modules = {{{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", library + "Transformer"}},
                  {{"idx", 1}, {"name", "1"}, {"path", "1_Pooling"}, {"type", library + "Pooling"}}};
  io::make_folder(folder / "1_Pooling");
  Json pooling = {{"word_embedding_dimension", encoder_of(model.model).body.config().dim}};
  for (const PoolingName& name : pooling_names) {
    pooling[std::string(name.older)] = name.pooling == model.pooling;
  }
  write(folder / "1_Pooling" / config_file, pooling);
  if (model.normalized) {
    modules.push_back({{"idx", 2}, {"name", "2"}, {"path", "2_Normalize"}, {"type", library + "Normalize"}});
    io::make_folder(folder / "2_Normalize");
    write(folder / "2_Normalize" / config_file, Json::object());
  }
  write(folder / modules_file, modules);
  write(folder / lengths_file, {{"max_seq_length", model.max_seq_length}, {"do_lower_case", false}});
  if (!model.prompt.empty()) {
    write(folder / "config_sentence_transformers.json",
          {{"prompts", {{"default", model.prompt}}}, {"default_prompt_name", "default"}});
  }
}

}  // namespace vitrail::models
