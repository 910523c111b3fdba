#include "vitrail/train/tasks/caption.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/recurrent/captioner.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/captions.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<data::Dataset> open_captioned(const std::string& source, const std::string& split) {
  data::DatasetOptions part;
  part.split = split;
  return data::open_dataset(source, part);
}

text::Tokenizer open_caption_tokenizer(const CaptionTaskOptions& options, const fs::path& checkpoint,
                                       const std::vector<std::string>& captions) {
  if (!checkpoint.empty()) {
    return text::load_tokenizer(checkpoint);
  }
  if (options.tokenizer == "byte") {
    return text::byte_tokenizer();
  }
  if (!options.tokenizer.empty() && options.tokenizer != "char") {
    return text::load_tokenizer(model_of(options.tokenizer));
  }
  std::string all;
  for (const std::string& caption : captions) {
    all += caption;
  }
  return text::char_tokenizer(all);
}

// The network of a checkpoint, or a new decoder for the image model that --model names.
std::unique_ptr<models::Captioner> make_captioner(const CaptionTaskOptions& options, const fs::path& checkpoint,
                                                  const text::Tokenizer& tokenizer) {
  if (!checkpoint.empty()) {
    return models::load_captioner(checkpoint);
  }
  models::CreateOptions create = create_options(options);
  create.num_classes = 0;
  models::Model pictures = models::open_model(model_of(options.model).string(), create);
  models::check_takes_images(pictures);
  check(!models::is_quantized(*pictures.net), "the weights of '{}' are in int8 and cannot be trained", options.model);
  nlohmann::json decoder = nlohmann::json::parse(options.decoder_kwargs);
  decoder["architecture"] = options.decoder;
  decoder["vocab_size"] = tokenizer.vocab_size() + 1;
  decoder["eos_token_id"] = tokenizer.vocab_size();  // begins and ends a caption
  decoder.emplace("hidden_size", 256);
  decoder.emplace("dropout", options.drop);
  return std::make_unique<models::Captioner>(std::move(pictures), decoder.dump(), "--decoder-kwargs");
}

class CaptionTask final : public Task {
 public:
  CaptionTask(const CaptionTaskOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override { return draw_images(*loader_, batch_); }
  Tensor loss(nn::Pass& pass) override {
    return caption_loss(*model_, batch_.x, batch_.labels, *captions_, pass, static_cast<float>(options_.smoothing));
  }
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy of the next token"; }
  void save(const fs::path& folder) const override;
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override { return fmt::format("{}-{}", model_->image_model.architecture, options_.decoder); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  const CaptionTaskOptions options_;
  std::unique_ptr<data::Dataset> training_;
  std::unique_ptr<data::Dataset> validation_;  // null: none
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<Captions> captions_;
  std::unique_ptr<models::Captioner> model_;
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

CaptionTask::CaptionTask(const CaptionTaskOptions& options, const fs::path& checkpoint)
    : options_(options), training_(open_captioned(options.data_dir, options.train_split)) {
  if (!options_.val_dir.empty()) {
    validation_ = open_captioned(options_.val_dir, "");
  } else if (!options_.val_split.empty()) {
    validation_ = open_captioned(options_.data_dir, options_.val_split);
  }
  tokenizer_ = open_caption_tokenizer(options_, checkpoint, training_->classes());
  captions_.emplace(training_->classes(), *tokenizer_, options_.max_length);
  model_ = make_captioner(options_, checkpoint, *tokenizer_);
  data::apply(options_.images, model_->image_model.pretrained);
  loader_ = std::make_unique<data::Loader>(
      *training_, data::train_transform(model_->image_model.pretrained, options_.augment), training_loading(options_));
}

std::vector<FigureKind> CaptionTask::figures() const {
  if (validation_ == nullptr) {
    return {};
  }
  return {FigureKind{.name = "exact",
                     .label = "exact",
                     .unit = "%",
                     .decimals = 2,
                     .higher_is_better = true,
                     .chart = "Captions that are right to the letter",
                     .axis = "% of the images",
                     .axis_max = 100},
          loss_figure(loss_axis())};
}

Figures CaptionTask::evaluate(const Work& work) {
  work.begin("evaluating", validation_->size());
  const CaptionEvaluation result =
      evaluate_captions(*model_, *tokenizer_, *validation_, evaluation_options(options_, work), options_.max_length);
  work.say_left_out(result.broken);
  return {{"exact", result.exact}, {"loss", result.loss}};
}

void CaptionTask::save(const fs::path& folder) const {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::write_captioner(*model_, temporary);
    tokenizer_->save(temporary);
  });
}

std::vector<std::string> CaptionTask::draw(const fs::path& run) const {
  const fs::path best = run / "best";
  if (validation_ == nullptr || !fs::exists(best)) {
    return {};
  }
  const std::unique_ptr<models::Captioner> model = models::load_captioner(best);
  data::apply(options_.images, model->image_model.pretrained);
  io::write_png(run / "captions.png", caption_sheet(*model, *tokenizer_, *validation_));
  return {fmt::format("what it says of images to evaluate on: {}", (run / "captions.png").string())};
}

std::vector<std::string> CaptionTask::summary() const {
  const models::PretrainedConfig& images = model_->image_model.pretrained;
  std::vector<std::string> lines = {
      fmt::format("{} and {}, {:.2f} M parameters, {}x{} pixels, {} of {}", model_->image_model.architecture,
                  options_.decoder, static_cast<double>(model_->parameters.count()) * 1e-6, images.width, images.height,
                  io::counted(tokenizer_->vocab_size(), "tokens"), tokenizer_->kind()),
      io::counted(std::ssize(captions_->ids), "different captions")};
  const std::vector<std::string> data = data_summary(options_, *training_, validation_.get());
  lines.insert(lines.end(), data.begin(), data.end());
  return lines;
}

std::vector<std::pair<std::string, std::string>> CaptionTask::facts() const {
  return {{"architecture", model_->image_model.architecture},
          {"decoder", model_->decoder_config()},
          {"training_images", std::to_string(training_->size())},
          {"validation_images", std::to_string(validation_ == nullptr ? 0 : validation_->size())},
          {"captions", std::to_string(captions_->ids.size())}};
}

}  // namespace

CaptionTaskOptions::CaptionTaskOptions() { eval_metric = "exact"; }

void CaptionTaskOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  list.add("tokenizer", tokenizer, "NAME",
           "Tokenizer: char (a token a character of the captions), byte, or a tokenizer.json or a folder with one "
           "(default: char)")
      .path()
      .settled();
  list.add("max_length", max_length, "N", "Cut captions to N tokens").at_least(1);
  list.group("model");
  list.add("model", model, "MODEL", "Image model that looks: a name (see: vitrail models), or a model folder")
      .path()
      .settled();
  add_model_options(list, *this);
  list.add("decoder", decoder, "CELL", "Recurrent network that writes: rnn, lstm, gru, mut3 or nas …").settled();
  list.add_arguments("decoder_kwargs", decoder_kwargs, "KEY=VALUE",
                     "Its fields: hidden_size=256 num_layers=1 embedding_size=64 …")
      .settled();
  list.add("drop", drop, "P", "Dropout of the recurrent network").below_one().settled();
  list.add("smoothing", smoothing, "S", "Label smoothing").below_one();
  add_parameter_options(list, *this);
  add_fitting_options(list, *this);
  add_batch_augment_options(list, *this);
  add_average_options(list, *this);
  add_run_options(list, *this, {"exact", "loss"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> CaptionTaskOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<CaptionTask>(*this, checkpoint);
}

}  // namespace vitrail::train
