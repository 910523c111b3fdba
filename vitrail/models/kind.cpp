#include "vitrail/models/kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "vitrail/io/suggest.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/detection/set2set.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/models/text/families.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

struct KnownKind {
  ModelKind kind;
  bool (*holds)(const std::string& name_or_folder);
  KindWords words;
};

// All kinds but models of images, in the order of ModelKind.
const std::array<KnownKind, 7> kinds = {{
    {ModelKind::joint,
     [](const std::string& name) { return is_clip_folder(name); },
     {"is a model of images and texts", "`vitrail zeroshot` tells images apart by names"}},
    {ModelKind::texts,
     [](const std::string& name) { return names_text_model(name); },
     {"is a model of texts", "the tasks lm, translate, classify-text, tag and embed of `vitrail train` take such"}},
    {ModelKind::captioner,
     [](const std::string& name) { return is_captioner_folder(name); },
     {"captions images", "`vitrail caption` takes it, and `vitrail train --task caption --model` goes on with it"}},
    {ModelKind::frames,
     [](const std::string& name) { return is_frame_network_folder(name); },
     {"reads sequences of images",
      "`vitrail predict` takes it, and `vitrail train --task frames --resume` goes on with its run"}},
    {ModelKind::detector,
     [](const std::string& name) { return is_detector_folder(name); },
     {"finds objects", "`vitrail detect` and `vitrail train --task detect` take it"}},
    {ModelKind::answerer,
     [](const std::string& name) { return is_vqa_folder(name) || is_blip_folder(name); },
     {"answers questions about images",
      "`vitrail ask` takes it, and `vitrail train --task vqa --model` goes on with it"}},
    {ModelKind::sets,
     [](const std::string& name) { return is_set_model_folder(name); },
     {"says sets of sets", "`vitrail predict`, `vitrail eval` and `vitrail train --task set2set` take it"}},
}};

// Throws Error if a folder is one of transformers that no reader knows, nor that of any kind of image models.
void check_known(const std::string& name_or_folder) {
  if (names_folder(name_or_folder)) {
    const std::filesystem::path folder = shipped_or(name_or_folder);
    const std::string type = model_type_in(folder);
    std::vector<std::string> known = hub_image_types();
    if (!type.empty() && std::ranges::find(known, type) == known.end()) {
      std::ranges::copy(text_model_types(), std::back_inserter(known));
      fail("{}: 'model_type' is '{}', which vitrail does not have{}: docs/models.md says what it reads of transformers",
           (folder / config_file).string(), type, io::did_you_mean(type, known));
    }
  }
}

}  // namespace

const KindWords& words_of(ModelKind kind) {
  static const KindWords of_images = {"is a model of images", "`vitrail predict` takes it"};
  const auto* const found = std::ranges::find(kinds, kind, &KnownKind::kind);
  return found == kinds.end() ? of_images : found->words;
}

ModelKind kind_of(const std::string& name_or_folder) {
  std::error_code none;
  check(name_or_folder.find('/') == std::string::npos || is_shipped_name(name_or_folder) ||
            std::filesystem::exists(name_or_folder, none),
        "there is no model folder '{}'", name_or_folder);
  const auto* const found =
      std::ranges::find_if(kinds, [&](const KnownKind& one) { return one.holds(name_or_folder); });
  if (found == kinds.end()) {
    check_known(name_or_folder);
    return ModelKind::images;
  }
  return found->kind;
}

void check_architecture(const std::string& name) {
  const std::string without_tag = name.substr(0, name.find('.'));
  std::vector<std::string> known = text_models();
  std::ranges::transform(architectures(), std::back_inserter(known), &Architecture::name);
  const bool is_known = std::ranges::find(known, without_tag) != known.end() || has_shipped("vitrail/" + name);
  const std::string near = is_known ? "" : io::did_you_mean(name, known);
  check(near.empty(), "there is no model '{}'{}", name, near);
  find_architecture(name);
}

bool has_image_model(ModelKind kind) { return kind == ModelKind::images || kind == ModelKind::joint; }

void check_has_image_model(const std::string& name_or_folder, const std::string& given) {
  const ModelKind kind = kind_of(name_or_folder);
  check(has_image_model(kind), "'{}' {}, but this takes models that classify or embed images: {}",
        given.empty() ? name_or_folder : given, words_of(kind).is_or_does, words_of(kind).use);
}

}  // namespace vitrail::models
