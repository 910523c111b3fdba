#include "vitrail/train/captions/caption.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/joint/vision_encoder_decoder.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/captions/captions.h"
#include "vitrail/train/captions/new_captioner.h"
#include "vitrail/train/guided_attention.h"
#include "vitrail/train/run/held_out.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Whether scenes may have to be known of images that are held out.
bool may_hold_out(const CaptionTaskOptions& options) {
  return options.val_share || (!data::is_scene_source(options.data_dir) && options.val_dir.empty());
}

class CaptionTask final : public Task {
 public:
  CaptionTask(const CaptionTaskOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override { return draw_images(*loader_, batch_); }
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override {
    return options_.attn_loss_coef > 0 ? "cross-entropy of the next token, and of the attention"
                                       : "cross-entropy of the next token";
  }
  void save(const fs::path& folder) const override;
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override {
    return fmt::format("{}-{}", model_->image_model.architecture, model_->decoder_kind());
  }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void find_targets();
  std::int64_t longest() const { return most_new_tokens(*model_, options_.max_length); }

  const CaptionTaskOptions options_;
  data::CaptionedImages training_;
  std::optional<data::CaptionedImages> validation_;
  double held_out_ = 0;  // the share of the training images that validation_ is
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<CaptionTokens> captions_;
  std::unique_ptr<models::Captioner> model_;
  std::vector<std::vector<std::vector<bool>>> targets_;  // of each caption of each image: guided_caption_loss()
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

// The model as one whose decoder is a GPT-2; null if it is another.
const models::VisionEncoderDecoder* as_vision_encoder_decoder(const models::Captioner& model) {
  return dynamic_cast<const models::VisionEncoderDecoder*>(&model);
}

CaptionTask::CaptionTask(const CaptionTaskOptions& options, const fs::path& checkpoint)
    : options_(options),
      training_(data::open_captioned_images(options.data_dir, {.split = options.train_split,
                                                               .scenes = may_hold_out(options),
                                                               .places = options.attn_loss_coef > 0,
                                                               .skip_broken = options.skip_broken})) {
  const auto open_captions = [&](const std::string& source, const std::string& split) {
    validation_ =
        data::open_captioned_images(source, {.split = split, .scenes = true, .skip_broken = options_.skip_broken});
  };
  held_out_ = open_evaluation(
      options_, {.open_dir =
                     [&] {
                       open_captions(options_.val_dir,
                                     part_of_val_dir(options_, data::parts_of_captioned_images(options_.val_dir)));
                     },
                 .open_part = [&] { open_captions(options_.data_dir, options_.val_split); },
                 .is_all_for_training =
                     [&] { return data::is_all_for_training(data::parts_of_captioned_images(options_.data_dir)); }});
  if (held_out_ > 0) {
    data::HeldOut drawn = draw_held_out(options_, held_out_, *training_.images);
    if (!drawn.held.empty()) {
      validation_ = data::part_of(training_, std::move(drawn.held));
    }
    training_ = data::part_of(training_, std::move(drawn.learned));
  }
  training_.scenes.clear();  // which are for evaluation alone
  MadeCaptioner made = make_captioner(options_, checkpoint, training_.texts);
  model_ = std::move(made.model);
  tokenizer_ = std::move(made.tokenizer);
  captions_.emplace(training_.texts, *tokenizer_, longest());
  data::apply(options_.images, model_->image_model.pretrained);
  if (!model_->cross_attention().empty()) {  // as the folder will say
    models::PretrainedConfig& images = model_->image_model.pretrained;
    images.processor = models::processor_of(images);
  }
  if (options_.attn_loss_coef > 0) {
    find_targets();
  }
  loader_ = std::make_unique<data::Loader>(*training_.images,
                                           data::train_transform(model_->image_model.pretrained, options_.augment),
                                           training_loading(options_));
}

// Throws Error if there is nothing that --attn-loss-coef could guide.
void CaptionTask::find_targets() {
  const models::VisionEncoderDecoder* const attending = as_vision_encoder_decoder(*model_);
  check(attending != nullptr, "--attn-loss-coef is for captioners whose decoder is a gpt2");
  check(options_.augment.no_aug,
        "--attn-loss-coef takes places in images as they are, which augmentation would move: give --no-aug too");
  check(!training_.places.empty(),
        "{}: no caption says what it is about ('boxes' in its annotation, as `vitrail scenes` writes them), which "
        "--attn-loss-coef takes",
        options_.data_dir);
  const models::PretrainedConfig& images = model_->image_model.pretrained;
  const autograd::NoGrad no_grad;
  nn::Pass pass;
  const Tensor seen = attending->look(Tensor::zeros({1, images.channels, images.height, images.width}), pass);
  const models::TokenLayout layout =
      models::layout_of_tokens(*model_->image_model.net, images.height, images.width, seen.size(1));
  targets_.resize(training_.places.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    for (const std::vector<data::Box>& boxes : training_.places[i]) {
      std::vector<bool> target(static_cast<std::size_t>(layout.prefix));  // tokens that have no place
      std::ranges::copy(touched_patches(boxes, {layout.rows, layout.columns}), std::back_inserter(target));
      targets_[i].push_back(std::move(target));
    }
  }
}

// Of an image with several captions, each step takes some that follow each other, from one that is drawn.
Tensor CaptionTask::loss(nn::Pass& pass) {
  const Philox draws = pass.random.next();
  const auto each = static_cast<std::size_t>(options_.captions_per_image);
  std::vector<const CaptionTokens::Ids*> texts;
  std::vector<const std::vector<bool>*> targets;
  texts.reserve(batch_.indices.size() * each);
  for (std::size_t i = 0; i < batch_.indices.size(); ++i) {
    const auto image = static_cast<std::size_t>(batch_.indices[i]);
    const auto& own = captions_->ids[image];
    const std::size_t first = draws.word(i) % own.size();
    for (std::size_t k = 0; k < each; ++k) {
      const std::size_t which = (first + k) % own.size();
      texts.push_back(&own[which]);
      if (!targets_.empty()) {
        targets.push_back(&targets_[image][which]);
      }
    }
  }
  if (!targets_.empty()) {
    return guided_caption_loss(*model_, batch_.x, texts, targets, static_cast<float>(options_.attn_loss_coef), pass,
                               static_cast<float>(options_.smoothing));
  }
  return caption_loss(*model_, batch_.x, texts, pass, static_cast<float>(options_.smoothing));
}

std::vector<FigureKind> CaptionTask::figures() const {
  if (!validation_) {
    return {};
  }
  std::vector<FigureKind> kinds = {
      FigureKind{.name = "cider", .label = "CIDEr", .higher_is_better = true, .chart = "CIDEr-D", .axis = "CIDEr-D"},
      FigureKind{.name = "bleu_4",
                 .label = "BLEU-4",
                 .higher_is_better = true,
                 .chart = "BLEU-4",
                 .axis = "BLEU-4",
                 .axis_max = 1}};
  const auto share = [](const char* name, const char* label) {
    FigureKind kind = accuracy_figure(name, label, "% of the images");
    kind.decimals = 2;
    kind.chart = "Captions that are right";
    return kind;
  };
  if (!validation_->scenes.empty()) {
    kinds.push_back(share("true", "true of the scene"));
  }
  if (!validation_->counts.empty()) {
    kinds.push_back(share("counts", "numbers right"));
  }
  kinds.push_back(share("exact", "exact"));
  kinds.push_back(loss_figure("cross-entropy of the next token"));
  return kinds;
}

Figures CaptionTask::evaluate(const Work& work) {
  work.begin("evaluating", validation_->images->size());
  const CaptionEvaluation result =
      evaluate_captions(*model_, *tokenizer_, *validation_, evaluation_options(options_, work),
                        caption_options(*model_, 1, options_.max_length + 1, work.dtype), options_.max_length);
  work.say_left_out(result.broken);
  Figures figures = {{"cider", result.scores.cider}, {"bleu_4", result.scores.bleu[3]}};
  if (result.truth) {
    figures.push_back({"true", *result.truth});
  }
  if (result.counting) {
    figures.push_back({"counts", result.counting->right});
  }
  figures.push_back({"exact", result.exact});
  figures.push_back({"loss", result.loss});
  return figures;
}

void CaptionTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    model_->write(temporary);
    tokenizer_->save(temporary);
  });
}

std::vector<std::string> CaptionTask::draw(const fs::path& run) const {
  const fs::path best = run / "best";
  if (!validation_ || !fs::exists(best)) {
    return {};
  }
  const std::unique_ptr<models::Captioner> model = models::load_captioner(best);
  io::write_png(run / "captions.png", caption_sheet(*model, *tokenizer_, *validation_, options_.skip_broken));
  return {fmt::format("what it says of images to evaluate on: {}", (run / "captions.png").string())};
}

std::vector<std::string> CaptionTask::summary() const {
  const models::PretrainedConfig& images = model_->image_model.pretrained;
  std::vector<std::string> lines = {
      fmt::format("{} and {}, {:.2f} M parameters, {}x{} pixels, {} of {}", model_->image_model.architecture,
                  model_->decoder_kind(), static_cast<double>(model_->parameters.count()) * 1e-6, images.width,
                  images.height, io::counted(tokenizer_->vocab_size(), "tokens"), tokenizer_->kind()),
      fmt::format("{} with {}, {} different ones", io::counted(training_.images->size(), "training images"),
                  io::counted(training_.count(), "captions"), captions_->different)};
  const std::vector<std::string> data =
      data_summary(options_, *training_.images, validation_ ? validation_->images.get() : nullptr, held_out_);
  lines.insert(lines.end(), data.begin(), data.end());
  const models::VisionEncoderDecoder* const attending = as_vision_encoder_decoder(*model_);
  if (attending != nullptr && !attending->in_transformers()) {
    lines.push_back(fmt::format("transformers has no {} as part of a captioner: the folder is vitrail's own",
                                model_->image_model.architecture));
  }
  add_note(lines, captions_->unknown.note("the training captions"));
  if (validation_) {
    add_note(lines,
             CaptionTokens(validation_->texts, *tokenizer_, longest()).unknown.note("the captions to evaluate on"));
  }
  if (captions_->cut > 0) {
    lines.push_back(fmt::format("{} longer than {} tokens {} cut", io::counted(captions_->cut, "captions"), longest(),
                                captions_->cut == 1 ? "is" : "are"));
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> CaptionTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"architecture", model_->image_model.architecture},
      {"decoder", model_->decoder_kind()},
      {"training_images", std::to_string(training_.images->size())},
      {training_digest, data::digest_of_names(*training_.images)},
      {"validation_images", std::to_string(validation_ ? validation_->images->size() : 0)},
      {"captions", std::to_string(captions_->different)}};
  std::ranges::move(held_out_facts(options_, held_out_, validation_.has_value()), std::back_inserter(facts));
  return facts;
}

}  // namespace

CaptionTaskOptions::CaptionTaskOptions() { eval_metric = "cider"; }

void CaptionTaskOptions::describe(OptionList& list) {
  const char* const with_captioner = "with a captioner as --model, which is trained as it is";
  const auto continues = [this] { return models::is_captioner_folder(model_of(model)); };
  add_data_options(list, *this);
  add_val_share_option(list, *this);
  list.add("tokenizer", tokenizer, "NAME",
           "Tokenizer: char (a token a character), bpe (pieces of words, learned from the captions, in lower case), "
           "byte, or "
           "a tokenizer.json or a folder with one (default: char, of a gpt2 bpe)")
      .path()
      .settled();
  list.add("vocab_size", vocab_size, "N", "Most tokens of a new bpe tokenizer")
      .at_least(514)
      .settled()
      .idle_if("without --tokenizer bpe",
               [this] { return tokenizer.empty() ? decoder != transformer_decoder : tokenizer != "bpe"; });
  list.add("captions_per_image", captions_per_image, "N",
           "Captions that each step learns from for an image, which is looked at once; those of one with fewer are "
           "repeated")
      .at_least(1);
  list.add("max_length", max_length, "N", "Cut captions to N tokens").at_least(1);
  list.group("model");
  list.add("model", model, "MODEL",
           "Image model that looks: a name (see: vitrail models), or a model folder; or the folder of a captioner, to "
           "go on "
           "from")
      .path()
      .settled();
  add_model_options(list, *this);
  list.add("decoder", decoder, "CELL",
           "What writes: gpt2, a transformer that attends to the image; rnn, lstm, gru, mut3 or nas …, a recurrent "
           "network "
           "that begins with it")
      .settled()
      .idle_if(with_captioner, continues);
  list.add_arguments("decoder_kwargs", decoder_kwargs, "KEY=VALUE",
                     "Its fields: hidden_size=256 num_layers=1 …, of gpt2 n_embd=192 n_layer=3 n_head=3 …")
      .settled();
  list.add("encoder_layers", encoder_layers, "N",
           "Transformer layers between image model and gpt2, as DETR has them (default: 2 behind a convolutional "
           "network)")
      .at_least(0)
      .settled()
      .idle_if(with_captioner, continues)
      .idle_if("without --decoder gpt2", [this] { return decoder != transformer_decoder; });
  list.add("drop", drop, "P", "Dropout of the decoder").below_one().settled().idle_if(with_captioner, continues);
  list.add("smoothing", smoothing, "S", "Label smoothing").below_one();
  list.add("attn_loss_coef", attn_loss_coef, "W",
           "Weight of a loss by which the last layer of gpt2 looks at what captions are about, where the data say it; "
           "0: none")
      .at_least(0);
  add_parameter_options(list, *this);
  add_fitting_options(list, *this);
  add_batch_augment_options(list, *this);
  add_average_options(list, *this);
  add_run_options(list, *this, {"cider", "bleu_4", "true", "counts", "exact", "loss"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> CaptionTaskOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<CaptionTask>(*this, checkpoint);
}

}  // namespace vitrail::train
