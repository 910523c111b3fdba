#include "vitrail/cli/use/index_model.h"

#include <nlohmann/json.hpp>

#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/json.h"
#include "vitrail/models/features.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/train/study/zero_shot.h"

namespace vitrail::cli {

std::string changes_of(const ModelFlags& flags) {
  nlohmann::json json = nlohmann::json::object();
  const auto keep = [&](const char* name, const auto& value, bool given) {
    if (given) {
      json[name] = value;
    }
  };
  keep("model_kwargs", flags.kwargs, !flags.kwargs.empty());
  keep("img_size", flags.img_size.value_or(0), flags.img_size.has_value());
  keep("crop_pct", flags.images.crop_pct.value_or(0), flags.images.crop_pct.has_value());
  keep("crop_mode", flags.images.crop_mode, !flags.images.crop_mode.empty());
  keep("interpolation", flags.images.interpolation, !flags.images.interpolation.empty());
  keep("mean", flags.images.mean, !flags.images.mean.empty());
  keep("std", flags.images.std, !flags.images.std.empty());
  return json.empty() ? "" : json.dump();
}

void apply_changes(const std::string& changes, const std::string& file, ModelFlags& flags) {
  if (changes.empty()) {
    return;
  }
  const nlohmann::json json = io::parse_json(changes, file + ": changes");
  try {
    flags.kwargs = json.value("model_kwargs", flags.kwargs);
    if (json.contains("img_size")) {
      flags.img_size = json["img_size"].get<std::int64_t>();
    }
    if (json.contains("crop_pct")) {
      flags.images.crop_pct = json["crop_pct"].get<double>();
    }
    flags.images.crop_mode = json.value("crop_mode", flags.images.crop_mode);
    flags.images.interpolation = json.value("interpolation", flags.images.interpolation);
    flags.images.mean = json.value("mean", flags.images.mean);
    flags.images.std = json.value("std", flags.images.std);
  } catch (const nlohmann::json::exception&) {
    fail("{}: 'changes' in the metadata are none of a model and its images", file);
  }
}

IndexModel::IndexModel(const ModelFlags& flags, const std::string& pool) : name_(flags.model), pool_(pool) {
  const std::string source = flags.name_or_folder();
  if (!pool.empty() || flags.kind() != models::ModelKind::joint) {
    trunk_ = models::without_head(flags.open_for_images(), pool);
    return;
  }
  flags.check_unchanged();
  folder_ = source;
  joint_ = models::load_clip(source);
  data::apply(flags.images, joint_->pretrained);
}

train::IndexEncoder IndexModel::encoder(const std::string& name) const {
  return joint_ ? train::index_encoder(*joint_, name) : train::index_encoder(*trunk_, name);
}

Tensor IndexModel::of_image(const io::Image& image, DType dtype) const {
  if (joint_) {
    return train::embed_images(*joint_, std::vector<io::Image>{image}, dtype);
  }
  nn::Pass pass;
  pass.dtype = dtype;
  return ops::cast(trunk_->net->forward(model_input(*trunk_, image), pass), DType::f32).contiguous();
}

Tensor IndexModel::of_texts(const std::vector<std::string>& texts, DType dtype) const {
  check(joint_ || pool_.empty(),
        "the features of the index were pooled by --pool '{}', and texts have none of this kind: an index for --text "
        "is made without --pool",
        pool_);
  check(joint_.has_value(),
        "the index was made by '{}', which knows no texts: --text takes an index by a model of images and texts "
        "(CLIP, SigLIP)",
        name_);
  const text::Tokenizer tokenizer = train::load_pair_tokenizer(folder_);
  models::check_vocabulary(text::ordinary_tokens(tokenizer), joint_->net->config().text.vocab_size, folder_);
  note_unread_words(tokenizer, texts);
  const train::PairTexts encoded = train::encode_pair_texts(*joint_->net, tokenizer, texts);
  if (const std::string note = train::cut_note(encoded, joint_->net->max_positions()); !note.empty()) {
    say("note: {}\n", note);
  }
  return train::embed_pair_texts(*joint_->net, encoded, dtype);
}

}  // namespace vitrail::cli
