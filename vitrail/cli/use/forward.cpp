// `vitrail forward` runs a model on tensors from a file, for comparison with other programs.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/use/detect.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::cli {
namespace {

struct ForwardFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string input;
  std::string output;
  bool features = false;
  bool attention = false;
};

// The tensors of --input, and which of them the model has taken.
class Inputs {
 public:
  explicit Inputs(const std::string& path) : file_(io::Safetensors::open(path)) {}

  bool contains(const std::string& name) const { return file_.contains(name); }
  Tensor get(const std::string& name) const {
    taken_.insert(name);
    return file_.get(name);
  }
  // An undefined one if it is not there.
  Tensor get_if_any(const std::string& name) const { return contains(name) ? get(name) : Tensor(); }
  std::vector<std::string> left() const {
    std::vector<std::string> names = file_.names();
    std::erase_if(names, [this](const std::string& name) { return taken_.contains(name); });
    return names;
  }

 private:
  io::Safetensors file_;
  mutable std::set<std::string> taken_;
};

// Writes and prints what the model has made of its input, and says what of that it did not take.
void finish(const ForwardFlags& flags, const Inputs& input, const io::NamedTensors& output) {
  io::save_safetensors(flags.output, output);
  if (const std::vector<std::string> left = input.left(); !left.empty()) {
    say("note: {}: {} no input of '{}'\n", flags.input,
        io::quoted_list(left, "and") + (left.size() == 1 ? " is" : " are"), flags.model.model);
  }
  for (const auto& [name, tensor] : output) {
    fmt::print("{:<16} {} {}\n", name, name_of(tensor.dtype()), tensor.shape().str());
  }
}

void forward_recurrent(const ForwardFlags& flags) {
  flags.model.check_unchanged("is a recurrent network");
  check_usage(!flags.features && !flags.attention, "'{}' is a recurrent network: it takes no --features or --attention",
              flags.model.model);
  const std::unique_ptr<models::RecurrentModel> model = models::load_recurrent(flags.model.name_or_folder());
  nn::Recurrent network = model->network;
  network.config.batch_first = true;
  const Inputs input(flags.input);
  check(input.contains("x"), "{}: there is no tensor 'x'; expected x f32 [B, T, {}]", flags.input,
        network.config.input_size);
  nn::Pass pass;
  pass.dtype = flags.compute.apply();
  const nn::RecurrentOutput result =
      network(input.get("x"), {input.get_if_any("h_0"), input.get_if_any("c_0")}, input.get_if_any("lengths"), pass);
  io::NamedTensors output = {{"output", result.output}, {"h_n", result.state.h}};
  if (result.state.c.defined()) {
    output.emplace_back("c_n", result.state.c);
  }
  finish(flags, input, output);
}

void add_records(io::NamedTensors& output, const std::string& name, const nn::Records& records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    output.emplace_back(fmt::format("{}.{}", name, i), records[i].value);
  }
}

// Says that the model attends to what fills up rows of ids where no mask leaves it out, as transformers does. A token
// that ends or begins texts, too, is no sign of it, nor what stands behind a text that is read from left to right.
void note_padding(const models::TextModel& model, const models::TextInputs& inputs, const std::string& file) {
  const nlohmann::json config = nlohmann::json::parse(model.config);
  const nlohmann::json pad = config.value("pad_token_id", nlohmann::json());
  const Tensor& ids = inputs.input_ids;
  const bool has_other_use =
      std::ranges::any_of(std::array{"eos_token_id", "bos_token_id", "sep_token_id"},
                          [&](const char* key) { return config.value(key, nlohmann::json()) == pad; });
  if (inputs.attention_mask.defined() || !pad.is_number_integer() || has_other_use || !ids.defined() ||
      ids.rank() != 2 || ids.dtype() != DType::i64 || ids.size(1) == 0) {
    return;
  }
  const auto has_padding = [&](std::int64_t column) {
    const Tensor tokens = ids.select(1, column).contiguous();
    return std::ranges::count(tokens.span<std::int64_t>(), pad.get<std::int64_t>()) > 0;
  };
  const bool begins = has_padding(0);
  if (begins || (model.net->language() == nullptr && has_padding(ids.size(1) - 1))) {
    say("note: {}: 'input_ids' {} the token for padding ({}), to which the model attends without an "
        "'attention_mask'\n",
        file, begins ? "begin with" : "end in", pad.get<std::int64_t>());
  }
}

void forward_text(const ForwardFlags& flags) {
  check(!flags.model.num_classes && !flags.model.img_size,
        "'{}' is a model of texts: it takes no --num-classes or --img-size", flags.model.model);
  const models::TextModel model = models::open_text_model(
      flags.model.name_or_folder(), {.model_kwargs = flags.model.options().model_kwargs, .seed = 0});
  check(!flags.attention || model.net->shape().num_heads > 0, "{} has no attention to write: leave out --attention",
        model.name);
  const Inputs input(flags.input);
  nn::Recorder recorder(flags.features, flags.attention);
  nn::Pass pass;
  pass.dtype = flags.compute.apply();
  pass.recorder = flags.features || flags.attention ? &recorder : nullptr;
  const models::TextInputs inputs{.input_ids = input.get_if_any("input_ids"),
                                  .attention_mask = input.get_if_any("attention_mask"),
                                  .token_type_ids = input.get_if_any("token_type_ids"),
                                  .decoder_input_ids = input.get_if_any("decoder_input_ids")};
  for (const Tensor& ids : {inputs.input_ids, inputs.decoder_input_ids}) {
    check(!ids.defined() || ids.numel() > 0, "{}: ids are {}: there is no token in them", flags.input, ids.shape());
  }
  note_padding(model, inputs, flags.input);
  io::NamedTensors output;
  try {
    output = model.net->run(inputs, pass);
    check(!flags.features || !recorder.features().empty(), "--features: {} records none", model.name);
  } catch (const Error& error) {
    fail("{}: {}", flags.input, error.what());
  }
  add_records(output, "features", recorder.features());
  for (const models::TextAttentionMap& map : model.net->attention_maps(recorder)) {
    output.emplace_back(fmt::format("{}.{}", models::name_of(map.kind), map.layer), map.map);
  }
  finish(flags, input, output);
}

// Of images, of texts, or of both.
void forward_joint(const ForwardFlags& flags) {
  flags.model.check_unchanged();
  const models::JointModel model = models::load_clip(flags.model.name_or_folder());
  const Inputs input(flags.input);
  const char* const images = input.contains("pixel_values") ? "pixel_values" : "x";
  const bool has_images = input.contains(images);
  const bool has_texts = input.contains("input_ids");
  const models::PretrainedConfig& p = model.pretrained;
  check(has_images || has_texts,
        "{}: there is neither 'pixel_values' (or 'x') f32 [B, {}, {}, {}] nor 'input_ids' i64 [B, N]", flags.input,
        p.channels, p.height, p.width);
  const bool recorded = flags.features || flags.attention;
  nn::Recorder of_vision(flags.features, flags.attention);
  nn::Recorder of_text(flags.features, flags.attention);
  const DType dtype = flags.compute.apply();
  io::NamedTensors output;
  try {
    if (has_images) {
      const Tensor x = input.get(images);
      check(x.rank() == 4 && x.dtype() == DType::f32 && x.size(1) == p.channels,
            "{} is {} {}, expected f32 [B, {}, H, W]", images, name_of(x.dtype()), x.shape(), p.channels);
      nn::Pass pass{.dtype = dtype, .recorder = recorded ? &of_vision : nullptr};
      output.emplace_back("image_embeds", model.net->image_embeds(x, pass));
    }
    if (has_texts) {
      nn::Pass pass{.dtype = dtype, .recorder = recorded ? &of_text : nullptr};
      output.emplace_back("text_embeds", model.net->text_embeds({input.get("input_ids")}, pass));
    }
  } catch (const Error& error) {
    fail("{}: {}", flags.input, error.what());
  }
  if (has_images && has_texts) {
    output.emplace_back("logits_per_image", model.net->logits_per_image(output[0].second, output[1].second));
  }
  add_records(output, "vision.features", of_vision.features());
  add_records(output, "vision.attention", of_vision.attention());
  if (!of_vision.pool_attention().empty()) {
    output.emplace_back("vision.attention.pool", of_vision.pool_attention()[0].value);
  }
  add_records(output, "text.features", of_text.features());
  add_records(output, "text.attention", of_text.attention());
  finish(flags, input, output);
}

// A detector, on padded batches.
void forward_detector(const ForwardFlags& flags) {
  const models::Detector detector = open_detector(flags.model);
  const Inputs input(flags.input);
  const char* const images = input.contains("pixel_values") ? "pixel_values" : "x";
  check(input.contains(images), "{}: there is neither 'pixel_values' nor 'x' f32 [B, {}, H, W]", flags.input,
        detector.net->config().backbone.in_chans);
  models::DetrInput batch{input.get(images), {}};
  check(batch.x.rank() == 4 && batch.x.dtype() == DType::f32, "{}: {} is {} {}, expected f32 [B, {}, H, W]",
        flags.input, images, name_of(batch.x.dtype()), batch.x.shape(), detector.net->config().backbone.in_chans);
  if (input.contains("pixel_mask")) {
    const Tensor mask = input.get("pixel_mask");
    batch.pixel_mask = mask.dtype() == DType::boolean ? mask : ops::cast(mask, DType::boolean);
  }
  nn::Recorder recorder(flags.features, flags.attention);
  nn::Pass pass{.dtype = flags.compute.apply(), .recorder = flags.features || flags.attention ? &recorder : nullptr};
  io::NamedTensors output;
  try {
    const models::SetPredictions found = detector.net->forward(batch, pass);
    output = {{"logits", found.logits}, {"pred_boxes", found.boxes}};
  } catch (const Error& error) {
    fail("{}: {}", flags.input, error.what());
  }
  const auto add = [&](const nn::Records& records, const std::string& start, const std::string& end,
                       const std::string& name) {
    std::int64_t number = 0;
    for (const nn::Recorded& record : records) {
      if (record.name.starts_with(start) && record.name.ends_with(end)) {
        output.emplace_back(fmt::format("{}.{}", name, number++), record.value);
      }
    }
  };
  add(recorder.features(), "model.decoder.layers.", "", "decoder");
  add(recorder.attention(), "model.encoder.layers.", ".self_attn", "encoder_attention");
  add(recorder.attention(), "model.decoder.layers.", ".self_attn", "decoder_attention");
  add(recorder.attention(), "model.decoder.layers.", ".encoder_attn", "cross_attention");
  finish(flags, input, output);
}

void forward(const ForwardFlags& flags) {
  check_not_input(flags.output, flags.input);
  check_not_of_model(flags.output, flags.model);
  if (flags.model.kind() == models::ModelKind::joint) {
    return forward_joint(flags);
  }
  if (flags.model.kind() == models::ModelKind::texts) {
    return forward_text(flags);
  }
  if (flags.model.kind() == models::ModelKind::detector) {
    return forward_detector(flags);
  }
  if (models::is_recurrent_folder(flags.model.name_or_folder())) {
    return forward_recurrent(flags);
  }
  const models::Model model = flags.model.open();
  check(!flags.attention || model.net->has_attention(), "{} has no attention to write: leave out --attention",
        model.architecture);
  const Inputs input(flags.input);
  const bool video = model.net->frames() > 0;
  const std::string expected = fmt::format("f32 [B, {}, {}H, W]", model.pretrained.channels, video ? "T, " : "");
  check(input.contains("x"), "{}: there is no tensor 'x'; expected x {}", flags.input, expected);
  const Tensor x = input.get("x");
  check(x.rank() == (video ? 5 : 4) && x.dtype() == DType::f32 && x.size(1) == model.pretrained.channels,
        "{}: x is {} {}, expected {}", flags.input, name_of(x.dtype()), x.shape(), expected);
  nn::Recorder recorder(flags.features, flags.attention);
  nn::Pass pass;
  pass.dtype = flags.compute.apply();
  pass.recorder = flags.features || flags.attention ? &recorder : nullptr;
  io::NamedTensors output = {{"logits", model.net->forward(x, pass)}};
  add_records(output, "features.stem", recorder.stem_features());
  add_records(output, "features", recorder.features());
  add_records(output, "attention", recorder.attention());
  if (!recorder.pool_attention().empty()) {
    output.emplace_back("attention.pool", recorder.pool_attention()[0].value);
  }
  finish(flags, input, output);
}

}  // namespace

void add_forward(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("forward", "Run a model on tensors from a safetensors file");
  const auto flags = std::make_shared<ForwardFlags>();
  add_model_argument(command, flags->model);
  command
      .add_option(
          "--input", flags->input,
          "Safetensors file with x [B, C, H, W] f32, normalized; for models of videos [B, C, T, H, W]; for recurrent "
          "networks x [B, T, I] and, if given, h_0, c_0 and lengths [B] i64; for models of texts input_ids [B, N] i64 "
          "and, as the model takes them, attention_mask, token_type_ids and decoder_input_ids; for CLIP pixel_values "
          "[B, C, H, W] (or x), input_ids, or both; for detectors pixel_values and, of padded images, pixel_mask "
          "[B, H, W]")
      ->required()
      ->type_name("FILE");
  expect_ending(command
                    .add_option("--output", flags->output,
                                "Safetensors file to write: logits [B, num_classes], or of tokens [B, N, vocab_size]; "
                                "of recurrent networks output, h_n and c_n; of models without a head "
                                "last_hidden_state; of CLIP image_embeds, text_embeds and logits_per_image")
                    ->required()
                    ->type_name("FILE"),
                ".safetensors");
  command.add_flag(
      "--features", flags->features,
      "Write features.{i} [B, N, D] after block i, or after stage i of models that have stages ([B, N, D], "
      "[B, H, W, C] or [B, C, H, W]); of a hybrid's ResNet, features.stem.{i} [B, C, H, W]");
  command.add_flag(
      "--attention", flags->attention,
      "Write attention.{i} [B, H, N, M], the probabilities of N queries and M keys in attention i, with windows "
      "[B W, H, N, N]; of attention pooling, attention.pool [B, H, 1, N]; of an encoder–decoder also "
      "decoder_attention.{i} and cross_attention.{i}; of CLIP's towers vision.attention.{i} and text.attention.{i}");
  add_compute_flags(command, flags->compute);
  add_examples(command,
               {"vitrail forward my_model --input x.safetensors --output y.safetensors",
                "vitrail forward my_model --input x.safetensors --output y.safetensors --features --attention"});
  command.callback([flags] { forward(*flags); });
}

}  // namespace vitrail::cli
