#include "vitrail/train/pretrain/autoencoder.h"

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/unlabeled_images.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t reconstructed_images = 8;  // rows of reconstructions.png

std::unique_ptr<Autoencoder> open_autoencoder(const PretrainAutoencoderOptions& options, const fs::path& checkpoint) {
  if (!checkpoint.empty()) {
    return Autoencoder::open(checkpoint);
  }
  models::CreateOptions create = create_options(options);
  create.num_classes = options.latent_dim;
  models::Model model = models::open_model(model_of(options.model).string(), create);
  data::apply(options.images, model.pretrained);
  LatentDecoderConfig decoder;
  const auto* vit = models::body_of<models::VisionTransformer>(*model.net);
  const bool tokens = options.decoder == "auto" ? vit != nullptr : options.decoder == "transformer";
  decoder.kind = tokens ? "transformer" : "conv";
  decoder.dim = options.decoder_dim;
  decoder.depth = options.decoder_depth;
  decoder.heads = options.decoder_heads;
  if (vit != nullptr) {
    decoder.patch = vit->config().patch_size;
  }
  return std::make_unique<Autoencoder>(std::move(model), decoder);
}

class PretrainAutoencoder final : public Task {
 public:
  PretrainAutoencoder(const PretrainAutoencoderOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override { return draw_images(*loader_, batch_); }
  Tensor loss(nn::Pass& pass) override { return model_->loss(batch_.x, pass); }
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override {
    return images_.validation == nullptr ? std::vector<FigureKind>() : std::vector{loss_figure(loss_axis())};
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "mean squared error of normalized pixels"; }
  void save(const fs::path& folder) const override { model_->save(folder); }
  std::vector<std::string> draw(const fs::path& run) const override;
  std::string name() const override {
    return fmt::format("autoencoder-{}-{}-{}", encoder().architecture, encoder().pretrained.height,
                       model_->latent_dim());
  }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return image_facts(encoder(), *images_.training, images_.validation.get());
  }

 private:
  const models::Model& encoder() const { return model_->encoder; }

  const PretrainAutoencoderOptions options_;
  const UnlabeledImages images_;
  std::unique_ptr<Autoencoder> model_;
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

PretrainAutoencoder::PretrainAutoencoder(const PretrainAutoencoderOptions& options, const fs::path& checkpoint)
    : options_(options), images_(options), model_(open_autoencoder(options, checkpoint)) {
  loader_ = std::make_unique<data::Loader>(
      *images_.training, data::train_transform(encoder().pretrained, options_.augment), training_loading(options_));
}

Figures PretrainAutoencoder::evaluate(const Work& work) {
  return {
      {"loss", mean_loss(images_, data::eval_transform(encoder().pretrained), options_, work,
                         [this](const data::Batch& batch, nn::Pass& pass) { return model_->loss(batch.x, pass); })}};
}

std::vector<std::string> PretrainAutoencoder::draw(const fs::path& run) const {
  const std::unique_ptr<Autoencoder> best = Autoencoder::open(run / "best");
  const data::Dataset& seen = images_.validation == nullptr ? *images_.training : *images_.validation;
  const std::vector<Tensor> inputs =
      inputs_to_draw(seen, data::eval_transform(best->encoder.pretrained), reconstructed_images, options_.skip_broken);
  if (inputs.empty()) {
    return {};
  }
  const fs::path file = run / "reconstructions.png";
  io::write_png(file, autoencoder_sheet(*best, inputs));
  return {fmt::format("original and decoded images: {}", file.string())};
}

std::vector<std::string> PretrainAutoencoder::summary() const {
  const LatentDecoderConfig& decoder = model_->decoder->config();
  std::vector<std::string> lines = data_summary(options_, *images_.training, images_.validation.get());
  lines.insert(
      lines.begin(),
      fmt::format("{}, a bottleneck of {}, and a {}decoder: {:.2f} M parameters together", model_summary(encoder()),
                  decoder.latent_dim == 1 ? "1 number" : fmt::format("{} numbers", decoder.latent_dim),
                  decoder.kind == "conv" ? "convolutional " : "transformer as its ",
                  static_cast<double>(model_->parameters.count()) * 1e-6));
  if (options_.resume.empty() && is_autoencoder(model_of(options_.model))) {
    lines.push_back(fmt::format(
        "note: of the autoencoder '{}' the encoder alone is taken: bottleneck and decoder begin anew", options_.model));
  }
  return lines;
}

}  // namespace

PretrainAutoencoderOptions::PretrainAutoencoderOptions() {
  eval_metric = "loss";
  val_split = "";
  lr = 1e-3;
  epochs = 100;
  augment.scale = {0.2, 1};
  augment.train_interpolation = "bicubic";
  augment.color_jitter = {0};
}

void PretrainAutoencoderOptions::describe(OptionList& list) {
  add_data_options(list, *this);
  list.group("model");
  list.add("model", model, "MODEL", "Name of the encoder (see: vitrail models), or a model folder").path().settled();
  add_model_options(list, *this);
  add_parameter_options(list, *this);
  add_fitting_options(list, *this);
  add_batch_augment_options(list, *this);
  list.group("pretraining");
  list.add("latent_dim", latent_dim, "N", "Numbers that an image goes through").at_least(1).settled();
  list.add("decoder", decoder, "KIND",
           "What makes images of them: a transformer, or convolutions (conv); auto: a transformer for a Vision "
           "Transformer")
      .one_of({"auto", "transformer", "conv"})
      .settled();
  list.add("decoder_dim", decoder_dim, "N", "Width of the decoder; of convolutions, where the map is smallest")
      .at_least(1)
      .settled();
  list.add("decoder_depth", decoder_depth, "N", "Blocks of the decoder, or convolutions at each size of the map")
      .at_least(1)
      .settled();
  list.add("decoder_heads", decoder_heads, "N", "Heads of a transformer")
      .at_least(1)
      .settled()
      .idle_if("with --decoder conv", [this] { return decoder == "conv"; });
  add_average_options(list, *this);
  add_run_options(list, *this, {"loss"});
  idle_without_images(list, *this);
}

std::unique_ptr<Task> PretrainAutoencoderOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainAutoencoder>(*this, checkpoint);
}

io::Image autoencoder_sheet(const Autoencoder& model, const std::vector<Tensor>& inputs, DType dtype) {
  const autograd::NoGrad no_grad;
  const models::Model& encoder = model.encoder;
  const auto image = [&](const Tensor& x) {
    return explain::image_of(x, encoder.pretrained.mean, encoder.pretrained.std);
  };
  std::vector<std::vector<io::Image>> rows;
  for (const Tensor& x : inputs) {
    nn::Pass pass;
    pass.dtype = dtype;
    rows.push_back({image(x), image(model.decode(model.encode(x, pass), pass))});
  }
  return explain::sheet(rows, {.rows = {}, .columns = {"original", "decoded"}});
}

}  // namespace vitrail::train
