#include "vitrail/train/pretrain/simclr.h"

#include "vitrail/ops/shape/shape.h"
#include "vitrail/train/pretrain/losses.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

class PretrainSimclr final : public ViewTask {
 public:
  PretrainSimclr(const PretrainSimclrOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *network_; }
  Tensor loss(nn::Pass& pass) override;
  std::string loss_axis() const override { return "NT-Xent"; }

 protected:
  const EncoderNetwork& trained() const override { return *network_; }

 private:
  const PretrainSimclrOptions options_;
  std::unique_ptr<ProjectedEncoder> network_;
};

PretrainSimclr::PretrainSimclr(const PretrainSimclrOptions& options, const fs::path& checkpoint)
    : ViewTask(options), options_(options) {
  network_ = std::make_unique<ProjectedEncoder>(
      open_encoder(options_, checkpoint, options_.drop_path),
      nn::ProjectorConfig{.hidden = options_.hidden_dim, .out = options_.projection_dim});
  if (!checkpoint.empty()) {
    load_trained(checkpoint);
  }
  open_views(options_.view_transforms(network_->encoder.pretrained));
}

Tensor PretrainSimclr::loss(nn::Pass& pass) {
  const auto temperature = static_cast<float>(options_.temperature);
  const std::int64_t images = batch().images();
  if (options_.batch_stats == "both") {
    const Tensor z = network_->head(network_->encode(batch().all_views(0), pass), pass);
    return nt_xent(ops::narrow(z, 0, 0, images), ops::narrow(z, 0, images, images), temperature);
  }
  const auto [h0, h1] = encode_two(*network_, batch(), pass);
  const Tensor z0 = network_->head(h0, pass);
  return nt_xent(z0, network_->head(h1, pass), temperature);
}

}  // namespace

PretrainSimclrOptions::PretrainSimclrOptions() {
  model = "resnet18";
  batch_size = 256;
  lr_base = 1e-3;
  weight_decay = 1e-4;
}

void PretrainSimclrOptions::describe(OptionList& list) {
  add_view_options(list, *this);
  list.group("pretraining");
  list.add("temperature", temperature, "T", "Temperature of the loss").positive();
  list.add("projection_dim", projection_dim, "N", "Width of the projections that are compared").at_least(1).settled();
  list.add("hidden_dim", hidden_dim, "N", "Width inside the projector").at_least(1).settled();
  list.add("batch_stats", batch_stats, "WHICH",
           "Batch norms take their statistics from both views together (both) or from each view (view)")
      .one_of({"both", "view"});
  list.add("crop_min", crop_min, "SHARE", "Least share of an image's area that a view shows").positive().share();
  list.add("color_strength", color_strength, "S", "Strength of the colour jitter").share();
  add_view_run_options(list, *this, {"deviation", "effective_rank"});
}

std::vector<data::Transform> PretrainSimclrOptions::view_transforms(const data::ImageConfig& images) const {
  const double s = color_strength;
  const data::Transform view = view_transform(
      images, {.scale = {crop_min, 1}, .color_jitter = {0.8 * s, 0.8 * s, 0.8 * s, 0.2 * s}, .blur_prob = 0.5});
  return {view, view};
}

std::unique_ptr<Task> PretrainSimclrOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainSimclr>(*this, checkpoint);
}

}  // namespace vitrail::train
