#include "vitrail/train/tasks/registry.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/toml.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/captions/caption.h"
#include "vitrail/train/detection/detect.h"
#include "vitrail/train/pretrain/autoencoder.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"
#include "vitrail/train/pretrain/simclr.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sets/set2set.h"
#include "vitrail/train/tasks/classify.h"
#include "vitrail/train/tasks/classify_text.h"
#include "vitrail/train/tasks/embed_sentences.h"
#include "vitrail/train/tasks/frames.h"
#include "vitrail/train/tasks/language.h"
#include "vitrail/train/tasks/pixels.h"
#include "vitrail/train/tasks/pretrain_bert.h"
#include "vitrail/train/tasks/pretrain_clip.h"
#include "vitrail/train/tasks/pretrain_mae.h"
#include "vitrail/train/tasks/tag.h"
#include "vitrail/train/tasks/translate.h"
#include "vitrail/train/vqa/vqa.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

template <class Options>
std::unique_ptr<TaskOptions> defaults() {
  return std::make_unique<Options>();
}

}  // namespace

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> all = {
      {"classify", "train", "tell images of classes apart", defaults<ClassifyOptions>},
      {"caption", "train", "say what is in images", defaults<CaptionTaskOptions>},
      {"classify-text", "train", "tell texts of classes apart", defaults<ClassifyTextOptions>},
      {"detect", "train", "find objects, and draw boxes around them", defaults<DetectionOptions>},
      {"embed", "train", "give sentences vectors, near for pairs", defaults<EmbedSentencesOptions>},
      {"frames", "train", "read sequences of images", defaults<FrameTaskOptions>},
      {"lm", "train", "predict the next token of a text", defaults<LanguageOptions>},
      {"pixels", "train", "predict the next pixel of an image", defaults<PixelOptions>},
      {"set2set", "train", "say a set of a set: numbers sorted, the centres of points", defaults<Set2SetOptions>},
      {"tag", "train", "give each word of a sentence a label", defaults<TagOptions>},
      {"translate", "train", "translate texts", defaults<TranslationOptions>},
      {"vqa", "train", "answer questions about images", defaults<VqaOptions>},
      {"mae", "pretrain", "masked autoencoder (He et al. 2022)", defaults<PretrainMaeOptions>},
      {"autoencoder", "pretrain", "encoder, bottleneck and decoder", defaults<PretrainAutoencoderOptions>},
      {"simclr", "pretrain", "contrastive learning (Chen et al. 2020)", defaults<PretrainSimclrOptions>},
      {"mocov3", "pretrain", "contrastive learning with a momentum encoder (Chen et al. 2021)",
       defaults<PretrainMocov3Options>},
      {"dino", "pretrain", "self-distillation (Caron et al. 2021)", defaults<PretrainDinoOptions>},
      {"clip", "pretrain", "images and texts in one space (Radford et al. 2021)", defaults<PretrainClipOptions>},
      {"bert", "pretrain", "masked words and the next sentence (Devlin et al. 2019)", defaults<PretrainBertOptions>},
  };
  return all;
}

std::vector<const TaskKind*> task_kinds_of(std::string_view command) {
  std::vector<const TaskKind*> result;
  for (const TaskKind& kind : task_kinds()) {
    if (kind.command == command) {
      result.push_back(&kind);
    }
  }
  return result;
}

const TaskKind& task_kind(std::string_view name) {
  const auto it = std::ranges::find(task_kinds(), name, &TaskKind::name);
  if (it == task_kinds().end()) {
    std::vector<std::string_view> known;
    for (const TaskKind& kind : task_kinds()) {
      known.push_back(kind.name);
    }
    fail("there is no task '{}', only {}", name, fmt::join(known, ", "));
  }
  return *it;
}

const TaskKind& task_kind_of_run(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? run_folder_of(path) / "config.toml" : path;
  const std::string name = task_in_config(file);
  if (!name.empty()) {
    return task_kind(name);
  }
  const nlohmann::json config = io::read_toml(file);
  const auto pretraining = config.find("pretraining");
  const bool was_pretrained =
      pretraining != config.end() && pretraining->is_object() && pretraining->contains("pretrain");
  return task_kind(was_pretrained ? "mae" : "classify");
}

}  // namespace vitrail::train
