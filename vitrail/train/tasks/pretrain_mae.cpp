#include "vitrail/train/tasks/pretrain_mae.h"

#include <utility>

#include <fmt/format.h>

#include "vitrail/explain/reconstruction.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/unlabeled_images.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/tasks/classify.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t drawn_images = 8;  // rows of reconstructions.png

models::Model make_autoencoder(const PretrainMaeOptions& options, const fs::path& checkpoint) {
  models::MaeOptions mae;
  mae.mask_ratio = options.mask_ratio;
  if (!checkpoint.empty()) {
    return models::open_masked_autoencoder(checkpoint.string(), {}, mae);
  }
  mae.norm_pix_loss = options.norm_pix_loss;
  const std::string name = model_of(options.model).string();
  if (!fs::is_directory(name)) {  // the decoder of a folder has sizes of its own
    mae.decoder_dim = options.decoder_dim;
    mae.decoder_depth = options.decoder_depth;
    mae.decoder_heads = options.decoder_heads;
  }
  return models::open_masked_autoencoder(name, create_options(options), mae);
}

// The noise [B, N] that the masks of images are drawn by. The noise of an image depends on (seed, index) alone.
Tensor mask_noise(const models::VitConfig& encoder, const std::vector<std::int64_t>& indices, std::uint64_t seed) {
  const std::int64_t patches =
      (encoder.img_size[0] / encoder.patch_size[0]) * (encoder.img_size[1] / encoder.patch_size[1]);
  Tensor noise = Tensor::empty({std::ssize(indices), patches});
  float* out = noise.data<float>();
  for (const std::int64_t index : indices) {
    const Philox draws(seed, static_cast<std::uint64_t>(index));
    for (std::int64_t n = 0; n < patches; ++n) {
      *out++ = draws.uniform(static_cast<std::uint64_t>(n));
    }
  }
  return noise;
}

class PretrainMae final : public Task {
 public:
  PretrainMae(const PretrainMaeOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override { return draw_images(*loader_, batch_); }
  Tensor loss(nn::Pass& pass) override { return masked_autoencoding_loss(mae(), batch_.x, pass); }
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override {
    return images_.validation == nullptr ? std::vector<FigureKind>() : std::vector{loss_figure(loss_axis())};
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "mean squared error of masked patches"; }
  void save(const fs::path& folder) const override { models::save_model(model_, folder); }
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override { return fmt::format("{}-{}", model_.architecture, model_.pretrained.height); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return image_facts(model_, *images_.training, images_.validation.get());
  }

 private:
  const models::MaskedAutoencoder& mae() const { return *models::masked_autoencoder(model_); }

  const PretrainMaeOptions options_;
  const UnlabeledImages images_;
  models::Model model_;
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

PretrainMae::PretrainMae(const PretrainMaeOptions& options, const fs::path& checkpoint)
    : options_(options), images_(options) {
  model_ = make_autoencoder(options_, checkpoint);
  data::apply(options_.images, model_.pretrained);
  model_.pretrained.processor = models::processor_of(model_.pretrained);  // as the folder will say
  loader_ = std::make_unique<data::Loader>(
      *images_.training, data::train_transform(model_.pretrained, options_.augment), training_loading(options_));
}

// The loss of images that are not trained on. The same patches of an image are masked in every evaluation, whatever the
// batch size: they depend on (seed, image) alone.
Figures PretrainMae::evaluate(const Work& work) {
  const std::uint64_t seed = mix(static_cast<std::uint64_t>(options_.seed), hash("validation masks"));
  const auto loss = [&](const data::Batch& batch, nn::Pass& pass) {
    return mae().loss(batch.x, mae().masking(mask_noise(mae().config().encoder, batch.indices, seed)), pass);
  };
  return {{"loss", mean_loss(images_, data::eval_transform(model_.pretrained), options_, work, loss)}};
}

// Draws the reconstructions of a few of the training images by the best network.
std::vector<std::string> PretrainMae::draw(const fs::path& run) const {
  const models::Model best = models::open_masked_autoencoder((run / "best").string());
  const std::vector<Tensor> inputs =
      inputs_to_draw(*images_.training, data::eval_transform(best.pretrained), drawn_images, options_.skip_broken);
  if (inputs.empty()) {
    return {};
  }
  const fs::path file = run / "reconstructions.png";
  io::write_png(file, explain::reconstruction_sheet(best, inputs, static_cast<std::uint64_t>(options_.seed)));
  return {fmt::format("masked, reconstructed and original images: {}", file.string())};
}

std::vector<std::string> PretrainMae::summary() const {
  std::vector<std::string> lines = data_summary(options_, *images_.training, images_.validation.get());
  lines.insert(lines.begin(), fmt::format("{}, masked autoencoder, {:.0f} % of the patches hidden",
                                          model_summary(model_), 100 * options_.mask_ratio));
  return lines;
}

}  // namespace

PretrainMaeOptions::PretrainMaeOptions() {
  eval_metric = "loss";
  model = "vit_small_patch16_224";
  val_split = "";
  optimizer.betas = std::array{0.9, 0.95};
  lr_base = 1.5e-4;
  lr_base_scale = "linear";
  schedule.warmup_lr = 0;
  epochs = 400;
  augment.scale = {0.2, 1};
  augment.train_interpolation = "bicubic";
  augment.color_jitter = {0};
}

void PretrainMaeOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  list.group("model");
  list.add("model", model, "MODEL",
           "Name of a Vision Transformer (see: vitrail models), or the folder of a masked autoencoder")
      .path()
      .settled();
  add_model_options(list, *this);
  add_parameter_options(list, *this);
  add_fitting_options(list, *this);
  add_batch_augment_options(list, *this);
  list.group("pretraining");
  list.add("mask_ratio", mask_ratio, "SHARE", "Share of the patches that are hidden from the encoder")
      .check_that([this](const Option& self) {
        check(mask_ratio > 0 && mask_ratio < 1, "{} must be above 0 and below 1, but is {}", self.flag(), mask_ratio);
      });
  list.add("norm_pix_loss", norm_pix_loss, "",
           "Predict each patch normalized by its own mean and deviation, not its pixels")
      .settled();
  list.add("decoder_dim", decoder_dim, "N", "Width of the decoder").at_least(1).settled();
  list.add("decoder_depth", decoder_depth, "N", "Blocks of the decoder").at_least(1).settled();
  list.add("decoder_heads", decoder_heads, "N", "Heads of the decoder").at_least(1).settled();
  add_average_options(list, *this);
  add_run_options(list, *this, {"loss"});
  idle_without_images(list, *this);
}

// Earlier versions wrote the options of all tasks to config.toml.
std::set<std::string> PretrainMaeOptions::retired_options() const {
  ClassifyOptions others;
  OptionList list;
  others.describe(list);
  std::set<std::string> names = {"pretrain"};
  for (const Option& option : list.all()) {
    names.insert(option.name);
  }
  return names;
}

std::unique_ptr<Task> PretrainMaeOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainMae>(*this, checkpoint);
}

Tensor masked_autoencoding_loss(const models::MaskedAutoencoder& mae, const Tensor& x, nn::Pass& pass) {
  const models::Masking masking = mae.random_masking(x.size(0), pass.random);
  return mae.loss(x, masking, pass);
}

}  // namespace vitrail::train
