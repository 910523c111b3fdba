#include "vitrail/train/tasks/pretrain_clip.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/train.h"
#include "vitrail/train/pretrain/losses.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/spread.h"
#include "vitrail/train/study/zero_shot.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const float largest_scale = std::log(100.0F);  // as in open_clip, e^logit_scale stays from 1 to 100

// The fields of a new model's towers that may be given, and what they are by default: towers that a CPU trains.
const Json& tower_defaults(const std::string& tower) {
  static const Json all = {{"vision",
                            {{"hidden_size", 192},
                             {"intermediate_size", 768},
                             {"num_hidden_layers", 6},
                             {"num_attention_heads", 3},
                             {"image_size", 64},
                             {"patch_size", 8},
                             {"num_channels", 3},
                             {"hidden_act", "quick_gelu"},
                             {"layer_norm_eps", 1e-5},
                             {"attention_dropout", 0.0}}},
                           {"text",
                            {{"hidden_size", 128},
                             {"intermediate_size", 512},
                             {"num_hidden_layers", 4},
                             {"num_attention_heads", 4},
                             {"max_position_embeddings", 77},
                             {"hidden_act", "quick_gelu"},
                             {"layer_norm_eps", 1e-5},
                             {"attention_dropout", 0.0}}}};
  return all[tower];
}

Json tower_config(const std::string& tower, const std::string& kwargs) {
  Json config = tower_defaults(tower);
  std::vector<std::string> known;
  for (const auto& [key, value] : config.items()) {
    known.push_back(key);
  }
  const Json given = Json::parse(kwargs);  // must outlive its items()
  for (const auto& [key, value] : given.items()) {
    check(config.contains(key), "--{}-kwargs: there is no field '{}', only {}{}", tower, key,
          io::quoted_list(known, "and"), io::did_you_mean(key, known));
    config[key] = value;
  }
  config["model_type"] = "clip_" + tower + "_model";
  return config;
}

std::vector<std::string> all_texts(const data::TextPairs& pairs) {
  std::vector<std::string> texts;
  for (const std::vector<std::string>& own : pairs.texts) {
    texts.insert(texts.end(), own.begin(), own.end());
  }
  return texts;
}

text::Tokenizer open_pair_tokenizer(const PretrainClipOptions& options, const fs::path& checkpoint,
                                    const data::TextPairs& training) {
  if (!checkpoint.empty()) {
    return load_pair_tokenizer(checkpoint);
  }
  if (!options.tokenizer.empty()) {
    return load_pair_tokenizer(options.tokenizer);
  }
  if (!options.model.empty()) {
    return load_pair_tokenizer(model_of(options.model));
  }
  const Json text = tower_config("text", options.text_kwargs);
  check(text["max_position_embeddings"].is_number_integer(),
        "--text-kwargs: 'max_position_embeddings' must be a whole "
        "number");
  return text::train_clip_bpe(all_texts(training), options.vocab_size,
                              text["max_position_embeddings"].get<std::int64_t>());
}

// The tokens that the tokenizer puts in front of a text and behind it. Throws Error if it puts none behind.
std::pair<std::int64_t, std::int64_t> ends_of_texts(const text::Tokenizer& tokenizer) {
  const std::vector<std::int64_t> ids = tokenizer.encode("a").ids;
  const std::vector<std::int64_t> inside = tokenizer.encode("a", false).ids;
  check(ids.size() > inside.size() && ids.back() != inside.back(),
        "the tokenizer puts no end token behind a text, whose state stands for the text");
  check(ids.back() != 2, "the tokenizer's end token has the id 2, which transformers' CLIPModel takes for another one");
  return {ids.front(), ids.back()};
}

Json new_config(const PretrainClipOptions& options, const text::Tokenizer& tokenizer) {
  const auto [start, end] = ends_of_texts(tokenizer);
  Json config = {{"projection_dim", options.projection_dim},
                 {"vision_config", tower_config("vision", options.vision_kwargs)},
                 {"text_config", tower_config("text", options.text_kwargs)},
                 {"logit_scale_init_value", options.loss == "siglip" ? std::log(10.0) : 2.6592}};
  config["text_config"]["vocab_size"] = tokenizer.vocab_size();
  config["text_config"]["bos_token_id"] = start;
  config["text_config"]["eos_token_id"] = end;
  config["text_config"]["pad_token_id"] = end;
  return config;
}

// What SigLIP's logits have in addition: a bias, at first -10.
Json with_bias(Json config) {
  config["vitrail"]["logit_bias"] = -10;
  return config;
}

models::JointModel make_pair_model(const PretrainClipOptions& options, const fs::path& checkpoint,
                                   const text::Tokenizer& tokenizer) {
  const nn::StoreOptions store{.seed = static_cast<std::uint64_t>(options.seed)};
  const bool siglip = options.loss == "siglip";
  models::JointModel model;
  if (!checkpoint.empty()) {
    model = models::load_clip(checkpoint);
  } else if (options.model.empty()) {
    const Json config = new_config(options, tokenizer);
    model = models::create_clip((siglip ? with_bias(config) : config).dump(), "the new model", store);
  } else {
    model = models::load_clip(model_of(options.model));
    if (siglip && !model.net->logit_bias().defined()) {
      const models::JointModel without = std::exchange(model, {});
      model = models::create_clip(with_bias(Json::parse(without.config)).dump(), options.model, store);
      model.pretrained = without.pretrained;
      for (const nn::Parameter& parameter : without.net->parameters.all()) {
        model.net->parameters.set(model.net->parameters.at(parameter.name), parameter.value);
      }
    }
  }
  models::check_vocabulary(text::ordinary_tokens(tokenizer), model.net->config().text.vocab_size);
  data::apply(options.images, model.pretrained);
  model.pretrained.processor = models::processor_of(model.pretrained);  // as the folder will say
  return model;
}

class PretrainClip final : public Task {
 public:
  PretrainClip(const PretrainClipOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override { return draw_images(*loader_, batch_); }
  Tensor loss(nn::Pass& pass) override;
  void updated(std::int64_t step) override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override {
    return options_.loss == "clip" ? "cross-entropy of the right pair in a batch" : "cross-entropy of all pairs";
  }
  void save(const fs::path& folder) const override;
  std::string name() const override { return fmt::format("{}-{}", options_.loss, model_.pretrained.height); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void open_pairs();

  const PretrainClipOptions options_;
  bool parted_ = false;  // whether --data has parts, of which two are taken
  data::TextPairs training_;
  data::TextPairs validation_;  // without images: none
  std::optional<text::Tokenizer> tokenizer_;
  models::JointModel model_;
  std::vector<PairTexts> texts_;  // of each training image
  std::string cut_;
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

void PretrainClip::open_pairs() {
  const auto has_validation = [](const std::string& source) {
    const data::Parts parts = data::parts_of_pairs(source);
    return parts.size() > 1 && std::ranges::any_of(parts, [](const data::Part& part) {
             return data::is_of_part(part.name, "validation") || data::is_of_part(part.name, "test");
           });
  };
  parted_ = has_validation(options_.data);
  check(!parted_ || options_.val_share == PretrainClipOptions().val_share || !options_.resume.empty(),
        "--val-share has no effect: {} is split into parts, of which 'validation' is evaluated on", options_.data);
  training_ = data::open_text_pairs(options_.data, parted_ ? "train" : "", {.skip_broken = options_.skip_broken});
  if (!options_.val_data.empty()) {
    validation_ = data::open_text_pairs(options_.val_data, has_validation(options_.val_data) ? "validation" : "",
                                        {.skip_broken = options_.skip_broken});
  } else if (parted_) {
    validation_ = data::open_text_pairs(options_.data, "validation", {.skip_broken = options_.skip_broken});
  } else {
    const Philox draws(static_cast<std::uint64_t>(options_.seed), hash("validation"));
    std::vector<std::int64_t> kept;
    std::vector<std::int64_t> evaluated;
    for (std::int64_t i = 0; i < training_.images->size(); ++i) {
      const bool apart = static_cast<double>(draws.uniform(static_cast<std::uint64_t>(i))) < options_.val_share;
      (apart ? evaluated : kept).push_back(i);
    }
    const data::TextPairs all = training_;
    training_ = data::part_of(all, std::move(kept));
    if (!evaluated.empty()) {
      validation_ = data::part_of(all, std::move(evaluated));
    }
  }
  check(training_.images->size() >= options_.batch_size,
        "a batch of {} is more than the {}: choose a smaller --batch-size", options_.batch_size,
        io::counted(training_.images->size(), "training images"));
}

PretrainClip::PretrainClip(const PretrainClipOptions& options, const fs::path& checkpoint) : options_(options) {
  open_pairs();
  tokenizer_ = open_pair_tokenizer(options_, checkpoint, training_);
  model_ = make_pair_model(options_, checkpoint, *tokenizer_);
  const std::int64_t longest = model_.net->max_positions();
  PairTexts all = encode_pair_texts(*model_.net, *tokenizer_, all_texts(training_));
  cut_ = cut_note(all, longest);
  auto next = all.ids.begin();
  for (const std::vector<std::string>& own : training_.texts) {
    const auto end = next + std::ssize(own);
    texts_.push_back({{std::make_move_iterator(next), std::make_move_iterator(end)}});
    next = end;
  }
  loader_ = std::make_unique<data::Loader>(
      *training_.images, data::train_transform(model_.pretrained, options_.augment), training_loading(options_));
}

// Of an image with several texts, each step draws one.
Tensor PretrainClip::loss(nn::Pass& pass) {
  const Philox draws = pass.random.next();
  models::TextRow row;
  for (std::size_t i = 0; i < batch_.indices.size(); ++i) {
    const auto& own = texts_[static_cast<std::size_t>(batch_.indices[i])].ids;
    row.add(own[draws.word(i) % own.size()]);
  }
  const models::ClipModel& net = *model_.net;
  const Tensor images = net.image_embeds(batch_.x, pass);
  const Tensor logits = net.logits_per_image(images, net.text_embeds(row.texts(), pass));
  return options_.loss == "clip" ? clip_loss(logits) : siglip_loss(logits);
}

// SigLIP's own training lets the scale go where it will; Google's models end above CLIP's bound.
void PretrainClip::updated(std::int64_t /*step*/) {
  if (model_.net->is_siglip()) {
    return;
  }
  const Tensor& scale = model_.net->logit_scale();
  float& value = *scale.data<float>();
  value = std::clamp(value, 0.0F, largest_scale);
  scale.touch();
}

std::vector<FigureKind> PretrainClip::figures() const {
  if (validation_.images == nullptr) {
    return {};
  }
  const auto recall = [](const char* name, const char* label) {
    return FigureKind{.name = name,
                      .label = label,
                      .unit = "%",
                      .decimals = 2,
                      .higher_is_better = true,
                      .chart = "Recall@1",
                      .axis = "% of the questions",
                      .axis_max = 100};
  };
  std::vector<FigureKind> kinds = {recall("recall_at_1", "recall@1"), recall("image_to_text", "image to text"),
                                   recall("text_to_image", "text to image")};
  if (validation_.images->size() > 1) {
    std::ranges::move(spread_kinds(), std::back_inserter(kinds));
  }
  return kinds;
}

Figures PretrainClip::evaluate(const Work& work) {
  work.begin("evaluating", validation_.images->size());
  const Retrieval found = retrieval(model_, *tokenizer_, validation_, evaluation_options(options_, work));
  const double images_first = found.image_to_text[0];
  const double texts_first = found.text_to_image[0];
  Figures figures = {{"recall_at_1", (images_first + texts_first) / 2},
                     {"image_to_text", images_first},
                     {"text_to_image", texts_first}};
  if (validation_.images->size() > 1) {
    const std::int64_t some = std::min<std::int64_t>(found.images, 256);
    const EmbeddingSpread spread = some > 1 ? embedding_spread(found.image_vectors.narrow(0, 0, some))
                                            : EmbeddingSpread{std::nan(""), std::nan("")};
    std::ranges::move(spread_figures(spread), std::back_inserter(figures));
    constexpr std::int64_t enough = 16;  // of fewer, the vectors differ in few directions whatever the model
    const std::string words = collapse_of_spread(spread, model_.net->config().projection_dim);
    if (found.images >= enough && !words.empty()) {
      work.say(words);
    }
  }
  return figures;
}

void PretrainClip::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::write_clip(model_, temporary);
    tokenizer_->save(temporary);
  });
}

std::vector<std::string> PretrainClip::summary() const {
  const models::ClipConfig& c = model_.net->config();
  std::vector<std::string> lines = {
      fmt::format("{}, {:.2f} M parameters, {} x {} pixels, {} blocks of width {} for images and {} of width {} for "
                  "texts, {} of {}",
                  model_.net->is_siglip() ? "siglip" : "clip",
                  static_cast<double>(model_.net->parameters.count()) * 1e-6, model_.pretrained.width,
                  model_.pretrained.height, c.vision.depth, c.vision.embed_dim, c.text.depth, c.text.dim,
                  io::counted(tokenizer_->vocab_size(), "tokens"), tokenizer_->kind()),
      fmt::format("{} with {}", io::counted(training_.images->size(), "training images"),
                  io::counted(training_.count(), "texts"))};
  if (validation_.images != nullptr) {
    lines.push_back(fmt::format("{} with {}", io::counted(validation_.images->size(), "validation images"),
                                io::counted(validation_.count(), "texts")));
    if (validation_.images->size() == 1) {
      lines.emplace_back("note: of one image every text is its own: recall@1 says nothing");
    }
  }
  if (!cut_.empty()) {
    lines.push_back(cut_);
  }
  std::vector<std::string> same;
  if (!parted_) {  // else the two are different parts of it
    note_same_data(same, "images", {options_.data}, {options_.val_data});
  }
  if (same.empty()) {
    note_shared_images(same, *training_.images, validation_.images.get());
  }
  std::ranges::move(same, std::back_inserter(lines));
  note_unfilled(lines, "images", training_.images->size(), options_.batch_size);
  std::ranges::move(data::notes_of({training_.images.get(), validation_.images.get()}), std::back_inserter(lines));
  return lines;
}

std::vector<std::pair<std::string, std::string>> PretrainClip::facts() const {
  return {{"training_images", std::to_string(training_.images->size())},
          {training_digest, data::digest_of_names(*training_.images)},
          {"training_texts", std::to_string(training_.count())},
          {"validation_images", std::to_string(validation_.images == nullptr ? 0 : validation_.images->size())},
          {"vocab_size", std::to_string(tokenizer_->vocab_size())}};
}

}  // namespace

PretrainClipOptions::PretrainClipOptions() {
  eval_metric = "recall_at_1";
  model = "";
  batch_size = 128;
  lr = 5e-4;
  weight_decay = 0.2;
  epochs = 32;
  optimizer.betas = std::array{0.9, 0.98};
  augment.scale = {0.9, 1};
  augment.hflip = 0;  // a caption may speak of left and right
  augment.color_jitter = {0};
  augment.train_interpolation = "bicubic";
}

void PretrainClipOptions::describe(OptionList& list) {
  const auto is_made = [this]() -> std::string { return model.empty() ? "" : "on --model " + model; };
  list.group("data");
  list.add("data", data, "DIR",
           "Images with texts: a folder with captions.json (COCO's layout), such a .json, a .csv of path,caption, or "
           "WebDataset shards (.tar, or a folder of them)")
      .argument("DATA")
      .path()
      .check_that(
          [this](const Option& self) { check(!data.empty(), "{} is missing: images with texts", self.flag()); });
  list.add("val_data", val_data, "DIR", "Images with texts to evaluate on").path();
  list.add("val_share", val_share, "SHARE", "Without --val-data, share of the images to evaluate on; 0: none")
      .below_one()
      .settled()
      .idle_if("beside --val-data", [this] { return !val_data.empty(); });
  list.add("tokenizer", tokenizer, "NAME",
           "A tokenizer.json or a folder with one (default: the model's; of a new one, learned from the texts)")
      .path()
      .settled();
  list.add("vocab_size", vocab_size, "N", "Tokens at most that a new tokenizer has")
      .at_least(514)
      .settled()
      .idle_if("beside --tokenizer", [this] { return !tokenizer.empty(); })
      .idle_if(is_made);
  add_order_options(list, *this);
  list.add("skip_broken", skip_broken, "", "Leave broken images out and count them");
  list.group("model");
  list.add("model", model, "MODEL", "Folder of a CLIPModel to go on from (default: a new one)").path().settled();
  list.add_arguments("vision_kwargs", vision_kwargs, "KEY=VALUE",
                     "Fields of a new model's vision_config: image_size=64 patch_size=8 hidden_size=192 …")
      .settled()
      .idle_if(is_made);
  list.add_arguments("text_kwargs", text_kwargs, "KEY=VALUE",
                     "Fields of its text_config: hidden_size=128 num_hidden_layers=4 max_position_embeddings=77 …")
      .settled()
      .idle_if(is_made);
  list.add("projection_dim", projection_dim, "N", "Width of the space of a new model")
      .at_least(1)
      .settled()
      .idle_if(is_made);
  add_parameter_options(list, *this);
  add_fitting_options(list, *this);
  list.group("pretraining");
  list.add("loss", loss, "LOSS",
           "Loss: clip, which text belongs to which image of a batch; siglip, of each pair whether it belongs together")
      .one_of({"clip", "siglip"})
      .settled();
  add_average_options(list, *this);
  add_run_options(list, *this, {"recall_at_1", "image_to_text", "text_to_image", "deviation", "effective_rank"});
  idle_without_evaluation(list, "images to evaluate on (--val-share, --val-data)",
                          [this] { return val_share > 0 || !val_data.empty(); });
}

void PretrainClipOptions::validate() const {
  ImageTaskOptions::validate();
  check(batch_size >= 2, "--batch-size {} is too small: pairs are compared with the others of their batch", batch_size);
}

std::unique_ptr<Task> PretrainClipOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainClip>(*this, checkpoint);
}

}  // namespace vitrail::train
