// `vitrail convert` writes a model folder in another layout.
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/joint/blip_captioner.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/joint/vision_encoder_decoder.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/models/quantize.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertFlags {
  ModelFlags model;
  std::string output;
  std::string layout;
  std::string dtype = "float32";
};

constexpr const char* layout_of_transformers = "the layout of Hugging Face's transformers";
constexpr const char* own_layout = "vitrail's own layout";

// A model that is more than an image model is written whole by `write`; what belongs to its tokenizer is copied.
void write_whole(const nn::Network& net, const std::function<void(const fs::path&)>& write, const char* layout,
                 const fs::path& source, const fs::path& output) {
  io::replace_folder(output, [&](const fs::path& temporary) {
    write(temporary);
    for (const char* file : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
                             "merges.txt", "vocab.txt"}) {
      if (fs::exists(source / file)) {
        fs::copy_file(source / file, temporary / file);
      }
    }
  });
  fmt::print("{:.2f} M parameters, in {}: {}\n", static_cast<double>(net.parameters.count()) * 1e-6, layout,
             output.string());
}

// Writes a model that open_model() does not take as a whole: all but models of images, texts and sequences of images.
void convert_whole(const ConvertFlags& flags, models::ModelKind kind, DType dtype) {
  const fs::path source = flags.model.name_or_folder();
  const auto write = [&](const nn::Network& net, const char* layout, const std::function<void(const fs::path&)>& fill) {
    check_usage(flags.layout.empty() || layout == layout_of_transformers, "'{}' has {}, and no other",
                flags.model.model, layout);
    write_whole(net, fill, layout, source, flags.output);
  };
  if (models::is_blip_folder(source)) {
    const models::BlipModel model = models::load_blip(source);
    write(*model.net, layout_of_transformers, [&](const fs::path& to) { models::write_blip(model, to, dtype); });
  } else if (kind == models::ModelKind::joint) {
    const models::JointModel model = models::load_clip(source);
    write(*model.net, layout_of_transformers, [&](const fs::path& to) { models::write_clip(model, to, dtype); });
  } else if (kind == models::ModelKind::detector) {
    const models::Detector model = models::load_detector(source);
    write(*model.net, layout_of_transformers, [&](const fs::path& to) { models::write_detector(model, to, dtype); });
  } else if (kind == models::ModelKind::captioner) {
    const std::unique_ptr<models::Captioner> model = models::load_captioner(source);
    const bool of_transformers = models::model_type_in(source) == models::vision_encoder_decoder_type ||
                                 models::is_blip_captioner_folder(source);
    write(*model, of_transformers ? layout_of_transformers : own_layout,
          [&](const fs::path& to) { model->write(to, dtype); });
  } else {
    const models::VqaModel model = models::load_vqa(source);
    write(*model.net, own_layout, [&](const fs::path& to) { models::write_vqa(model, to, dtype); });
  }
}

// Whether convert_whole() takes models of this kind.
bool is_written_whole(models::ModelKind kind) {
  return kind == models::ModelKind::joint || kind == models::ModelKind::detector ||
         kind == models::ModelKind::captioner || kind == models::ModelKind::answerer;
}

// Says where transformers, for which a folder is written, crops images in another place than timm does.
void note_other_crop(const models::PretrainedConfig& images) {
  if (images.processor || images.crop_mode != "center") {
    return;
  }
  const std::int64_t resized = models::processor_of(images).height;
  if (images.height != images.width) {
    say("note: transformers resizes the shorter side of an image to {} pixels and takes {}x{} from its middle, where "
        "timm "
        "resizes each image to fill these (docs/data.md): predictions differ\n",
        resized, images.width, images.height);
  } else if ((resized - images.height) % 2 != 0) {
    say("note: of images resized to {} pixels transformers takes the middle {} a pixel beside where timm does "
        "(docs/data.md): predictions may differ a little\n",
        resized, images.height);
  }
}

void convert(const ConvertFlags& flags) {
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  const DType dtype = flags.dtype.starts_with("b") ? DType::bf16 : DType::f32;
  const std::string source = flags.model.name_or_folder();
  const bool timm = flags.layout != "huggingface";
  const models::ModelKind kind = flags.model.kind();
  if (is_written_whole(kind) && (kind != models::ModelKind::joint || flags.layout != "timm")) {
    flags.model.check_unchanged();
    check_usage(flags.layout != "timm", "'{}' {}, for which there is no layout of timm's", flags.model.model,
                models::words_of(kind).is_or_does);
    check_usage(!flags.model.prepares_images(), "'{}' {}, and keeps its preparation of images: it takes no flags of it",
                flags.model.model, models::words_of(kind).is_or_does);
    convert_whole(flags, kind, dtype);
    return;
  }
  models::Model model = flags.model.open();
  flags.model.note_random_weights(model);
  note_left_out(source);
  if (timm) {
    settle_processor(model.pretrained, source);
  }
  models::save_model(model, flags.output, timm ? models::Layout::timm : models::Layout::huggingface, dtype);
  std::vector<std::string> own = timm ? models::arguments_beyond_timm(model) : std::vector<std::string>();
  std::erase(own, "pos_embed_resize");  // of images of another size alone
  const std::vector<std::string> refused = timm ? models::arguments_refused_by_timm(model) : std::vector<std::string>();
  if (!refused.empty()) {
    say("note: timm has no '{}' with another {}: vitrail alone reads this folder\n", model.architecture,
        io::quoted_list(refused, "or"));
  }
  if (!timm) {
    note_other_crop(model.pretrained);
  } else if (!own.empty()) {
    say("note: timm does not know {} of this model: where it matters, timm computes something else (docs/models.md)\n",
        io::quoted_list(own, "and"));
  }
  fmt::print("{}, {:.2f} M parameters, in the layout of {}{}: {}\n", model.architecture,
             static_cast<double>(model.net->parameters.count()) * 1e-6, timm ? "timm" : "Hugging Face's transformers",
             models::is_quantized(*model.net) ? " with int8 weights, which vitrail alone reads" : "", flags.output);
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("convert", "Write a model folder in timm's or in Hugging Face's layout");
  const auto flags = std::make_shared<ConvertFlags>();
  add_model_argument(command, flags->model);
  command.add_option("--output", flags->output, "New model folder")->required()->type_name("DIR");
  command
      .add_option("--layout", flags->layout,
                  "Layout: timm (default), or huggingface, which transformers' from_pretrained() reads (default of a "
                  "CLIPModel or SiglipModel, whose image model alone has a layout of timm's). What finds objects, "
                  "captions or answers has one layout only")
      ->check(CLI::IsMember({"timm", "huggingface"}));
  command
      .add_option("--dtype", flags->dtype,
                  "Of the weights in the file: float32, or bfloat16, half as large, which is loaded into float32 again")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "f32", "bfloat16", "bf16"}));
  add_image_flags(command, flags->model);
  add_examples(command, {"# what AutoModelForImageClassification.from_pretrained(\"hub\") reads",
                         "vitrail convert output/train/NAME/best --output hub --layout huggingface",
                         "# and back, for timm.create_model(\"local-dir:model\", pretrained=True)",
                         "vitrail convert hub --output model", "# half the size on disk",
                         "vitrail convert output/train/NAME/best --output small --dtype bf16"});
  command.callback([flags] { convert(*flags); });
}

}  // namespace vitrail::cli
