#include "vitrail/train/pretrain/dino.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/losses.h"
#include "vitrail/train/run/gradient_sum.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The sides of a model's patches; 1 if it has none.
nn::Size2 patches_of(const models::Model& model) {
  const auto* vit = models::body_of<models::VisionTransformer>(*model.net);
  return vit == nullptr ? nn::Size2{1, 1} : vit->config().patch_size;
}

// The side of the small crops: by default 3/7 of the image's, as 96 of 224 pixels, rounded up to whole patches.
std::int64_t local_size(const PretrainDinoOptions& options, const models::Model& model) {
  const std::int64_t patch = std::max(patches_of(model)[0], patches_of(model)[1]);
  const std::int64_t usual = (3 * model.pretrained.height + 6) / 7;
  const std::int64_t size = options.local_crops_size.value_or((usual + patch - 1) / patch * patch);
  check(size % patches_of(model)[0] == 0 && size % patches_of(model)[1] == 0,
        "--local-crops-size {} is not made of whole patches: it must be a multiple of {}", size, patch);
  check(size <= model.pretrained.height, "--local-crops-size {} is more than the {} pixels of the large crops", size,
        model.pretrained.height);
  return size;
}

double mean_entropy(const Tensor& p) {
  const std::vector<float> values = p.values();
  double sum = 0;
  for (const float value : values) {
    sum -= value > 0 ? static_cast<double>(value) * std::log(static_cast<double>(value)) : 0;
  }
  return sum / static_cast<double>(p.size(0));
}

class PretrainDino final : public ViewTask {
 public:
  PretrainDino(const PretrainDinoOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *student_; }
  Tensor loss(nn::Pass& pass) override;
  void updating(std::int64_t update) override { update_ = update; }
  void updated(std::int64_t step) override;
  std::vector<Tensor> statistics() const override;
  io::NamedTensors state() const override;
  std::string loss_axis() const override { return "cross-entropy with the teacher"; }
  std::vector<std::string> summary() const override;

 protected:
  const EncoderNetwork& trained() const override { return *student_; }
  const models::Model& kept() const override { return teacher_->encoder; }
  std::vector<FigureKind> further_figures() const override;
  void begin_looking() override;
  void look(const Tensor& view0, const Tensor& view1, nn::Pass& pass) override;
  void end_looking(Figures& figures) override;
  std::string collapse(const Figures& figures) const override;

 private:
  std::int64_t epoch() const { return *epoch_.data<std::int64_t>(); }

  const PretrainDinoOptions options_;
  std::int64_t update_ = 0;  // the present one
  std::unique_ptr<DinoEncoder> student_;
  std::unique_ptr<DinoEncoder> teacher_;          // without stochastic depth; follows the student
  Tensor center_;                                 // [1, out_dim]
  Tensor epoch_ = Tensor::zeros({}, DType::i64);  // that of the last batch, which the temperature goes by

  // What look() has added up over the images of an evaluation.
  double entropy_ = 0;
  double divergence_ = 0;
  std::int64_t looked_at_ = 0;  // views
  Tensor marginal_;             // [1, out_dim], the sum of the teacher's distributions
};

PretrainDino::PretrainDino(const PretrainDinoOptions& options, const fs::path& checkpoint)
    : ViewTask(options), options_(options), center_(Tensor::zeros({1, options.out_dim})) {
  const bool crops = options_.local_crops_number > 0;
  nn::DinoHeadConfig head = {.out_dim = options_.out_dim,
                             .use_bn = options_.use_bn_in_head,
                             .norm_last_layer = options_.norm_last_layer,
                             .hidden_dim = options_.head_hidden_dim,
                             .bottleneck_dim = options_.head_bottleneck_dim};
  student_ =
      std::make_unique<DinoEncoder>(open_encoder(options_, checkpoint, options_.drop_path.value_or(0.1), crops), head);
  teacher_ = std::make_unique<DinoEncoder>(open_encoder(options_, checkpoint, 0, crops), head);
  student_->decays_tokens = true;
  if (!checkpoint.empty()) {
    load_trained(checkpoint);
  }
  copy_parameters(*student_, *teacher_);

  open_views(
      options_.view_transforms(student_->encoder.pretrained, crops ? local_size(options_, student_->encoder) : 0));
}

// The teacher sees the two global views alone; the student's encoder runs once for each size of views, and its head
// over all of them together.
Tensor PretrainDino::loss(nn::Pass& pass) {
  *epoch_.data<std::int64_t>() = batch().epoch;
  Tensor teacher;
  {
    const autograd::NoGrad no_grad;
    const std::int64_t globals = 2 * batch().images();
    teacher = teacher_->head(teacher_->encode(batch().all_views(0).narrow(0, 0, globals), pass), pass);
  }
  std::vector<Tensor> features;
  for (std::size_t size = 0; size < batch().sizes.size(); ++size) {
    features.push_back(student_->encode(batch().all_views(size), pass));
  }
  const bool frozen = batch().epoch < options_.freeze_last_layer;
  const Tensor student =
      student_->head(features.size() == 1 ? features.front() : ops::concat(features, 0), pass, frozen);
  const Tensor targets = dino_targets(teacher, center_, options_.teacher_temperature(batch().epoch));
  const Tensor result = dino_loss(student, targets, batch().views(), options_.student_temp);
  center_.copy_from(dino_center(center_, teacher, options_.center_momentum));  // for the next batch
  return result;
}

void PretrainDino::updated(std::int64_t /*step*/) {
  optim::follow(teacher_->parameters, student_->parameters,
                optim::cosine_between(options_.momentum_teacher, 1, share_before(update_)));
}

std::vector<Tensor> PretrainDino::statistics() const {
  std::vector<Tensor> statistics = running_statistics(teacher_->parameters);
  statistics.push_back(center_);
  return statistics;
}

io::NamedTensors PretrainDino::state() const {
  io::NamedTensors state = momentum_state(*teacher_);
  state.emplace_back("center", center_);
  state.emplace_back("epoch", epoch_);
  return state;
}

std::vector<std::string> PretrainDino::summary() const {
  std::vector<std::string> lines = ViewTask::summary();
  if (options_.freeze_last_layer >= options_.epochs) {
    lines.push_back(fmt::format("the head's last layer is not trained: --freeze-last-layer {} of {}",
                                options_.freeze_last_layer, io::counted(options_.epochs, "epochs")));
  }
  if (options_.local_crops_number > 0) {
    const std::int64_t size = local_size(options_, student_->encoder);
    lines.push_back(fmt::format("2 views of {0}x{0} and {1} of {2}x{2} pixels of each image, {3} outputs",
                                student_->encoder.pretrained.height, options_.local_crops_number, size,
                                options_.out_dim));
  }
  return lines;
}

std::vector<FigureKind> PretrainDino::further_figures() const {
  return {{.name = "teacher_entropy",
           .label = "teacher entropy",
           .decimals = 3,
           .chart = "Teacher",
           .axis = fmt::format("nats, of at most ln {} = {:.2f}", options_.out_dim,
                               std::log(static_cast<double>(options_.out_dim)))},
          {.name = "information",
           .label = "information",
           .decimals = 3,
           .higher_is_better = true,
           .chart = "Teacher",
           .axis = "nats"},
          {.name = "kl", .label = "KL", .decimals = 3, .chart = "Teacher", .axis = "nats"}};
}

void PretrainDino::begin_looking() {
  entropy_ = divergence_ = 0;
  looked_at_ = 0;
  marginal_ = Tensor::zeros({1, options_.out_dim});
}

void PretrainDino::look(const Tensor& view0, const Tensor& view1, nn::Pass& pass) {
  const double temperature = options_.teacher_temperature(epoch());
  const std::array<Tensor, 2> views = {view0, view1};
  std::array<Tensor, 2> targets;
  for (std::size_t v = 0; v < 2; ++v) {
    targets[v] = dino_targets(teacher_->head(teacher_->encode(views[v], pass), pass), center_, temperature);
    entropy_ += mean_entropy(targets[v]) * static_cast<double>(view0.size(0));
    marginal_ = marginal_ + ops::sum(targets[v], {0}, true);
  }
  for (std::size_t v = 0; v < 2; ++v) {  // the teacher of one view against the student of the other
    const Tensor student = student_->head(student_->encode(views[1 - v], pass), pass);
    const Tensor cross = ops::soft_cross_entropy(student * static_cast<float>(1 / options_.student_temp), targets[v]);
    divergence_ += (static_cast<double>(cross.item()) - mean_entropy(targets[v])) * static_cast<double>(view0.size(0));
  }
  looked_at_ += 2 * view0.size(0);
}

// The information between image and output, H(mean of p) - mean of H(p), is 0 where all images have the same
// distribution, whether that is uniform or a single output.
void PretrainDino::end_looking(Figures& figures) {
  const auto count = static_cast<double>(looked_at_);
  const double entropy = entropy_ / count;
  figures.push_back({"teacher_entropy", entropy});
  figures.push_back({"information", mean_entropy(marginal_ * static_cast<float>(1 / count)) - entropy});
  figures.push_back({"kl", divergence_ / count});
}

std::string PretrainDino::collapse(const Figures& figures) const {
  const double entropy = figure(figures, "teacher_entropy");
  const double information = figure(figures, "information");
  const double most = std::log(static_cast<double>(options_.out_dim));
  const bool short_run = total_updates() < 20000 && options_.momentum_teacher > 0.99;
  const std::string momentum = short_run ? "; a run as short as this also wants --momentum-teacher 0.99" : "";
  if (information < 0.01 && entropy > 0.98 * most) {
    return fmt::format(
        "collapse: the teacher gives all {} outputs the same probability for every image (entropy {:.3f} of ln {} = "
        "{:.3f}): sharpen it by a lower --teacher-temp{}{}",
        options_.out_dim, entropy, options_.out_dim, most,
        options_.warmup_teacher_temp_epochs > 0 ? " and --warmup-teacher-temp" : "", momentum);
  }
  if (information < 0.01) {
    return fmt::format(
        "collapse: the teacher gives every image the same outputs (entropy {:.3f}, information {:.3f}): try a larger "
        "--batch-size, for a few images do not centre, or a higher --teacher-temp{}",
        entropy, information, momentum);
  }
  return ViewTask::collapse(figures);
}

}  // namespace

PretrainDinoOptions::PretrainDinoOptions() {
  model = "vit_small_patch16_224";
  lr_base = 5e-4;
  schedule.sched = "dino";
  schedule.min_lr = 1e-6;
  weight_decay = 0.04;
  weight_decay_end = 0.4;
  clip_grad = 3;
  clip_mode = "parameter";
}

void PretrainDinoOptions::describe(OptionList& list) {
  add_view_options(list, *this);
  list.group("pretraining");
  list.add("out_dim", out_dim, "N", "Outputs of the head; fewer for small data").at_least(2).settled();
  list.add("norm_last_layer", norm_last_layer, "", "Keep the lengths of the head's last weights at 1").settled();
  list.add("use_bn_in_head", use_bn_in_head, "", "Batch norms in the head").settled();
  list.add("head_hidden_dim", head_hidden_dim, "N", "Width inside the head").at_least(1).settled();
  list.add("head_bottleneck_dim", head_bottleneck_dim, "N", "Width before the head's last layer").at_least(1).settled();
  list.add("momentum_teacher", momentum_teacher, "M",
           "Momentum of the teacher at first, from which it grows to 1; a short run wants 0.99")
      .share();
  list.add("warmup_teacher_temp", warmup_teacher_temp, "T", "Temperature of the teacher at first")
      .positive()
      .needs("--warmup-teacher-temp-epochs", [this] { return warmup_teacher_temp_epochs > 0; });
  list.add("teacher_temp", teacher_temp, "T", "Temperature of the teacher after its warm-up; lower is sharper")
      .positive();
  list.add("warmup_teacher_temp_epochs", warmup_teacher_temp_epochs, "N", "Epochs of that warm-up").at_least(0);
  list.add("student_temp", student_temp, "T", "Temperature of the student").positive();
  list.add("center_momentum", center_momentum, "M", "Momentum of the centre").share();
  list.add("freeze_last_layer", freeze_last_layer, "N", "Epochs in which the head's last layer is not trained")
      .at_least(0);
  list.add("local_crops_number", local_crops_number, "N", "Small crops of each image, besides the two large ones")
      .at_least(0)
      .at_most(1000)
      .settled();
  list.add("local_crops_size", local_crops_size, "N",
           "Side of the small crops in pixels (default: 3/7 of the image's, in whole patches)")
      .at_least(1)
      .idle_if("with --local-crops-number 0", [this] { return local_crops_number == 0; })
      .settled();
  list.add("global_crops_scale", global_crops_scale, "PCT", "Share of the image's area in the large crops")
      .ascending()
      .at_most(1);
  list.add("local_crops_scale", local_crops_scale, "PCT", "Share of the image's area in the small crops")
      .ascending()
      .at_most(1)
      .idle_if("with --local-crops-number 0", [this] { return local_crops_number == 0; });
  add_view_run_options(list, *this, {"deviation", "effective_rank", "teacher_entropy", "information", "kl"});
}

void PretrainDinoOptions::validate() const {
  ViewTaskOptions::validate();
  check(warmup_teacher_temp_epochs <= epochs, "--warmup-teacher-temp-epochs {} is more than the {} --epochs of the run",
        warmup_teacher_temp_epochs, epochs);
  check(freeze_last_layer < epochs || freeze_last_layer == 0 || (epochs == 1 && freeze_last_layer == 1),
        "--freeze-last-layer {} would leave it untrained in all {} --epochs", freeze_last_layer, epochs);
}

std::vector<data::Transform> PretrainDinoOptions::view_transforms(const data::ImageConfig& images,
                                                                  std::int64_t local_size) const {
  const auto large = global_crops_scale.value_or(std::pair(0.4, 1.0));
  const auto small = local_crops_scale.value_or(std::pair(0.05, 0.4));
  std::vector<data::Transform> views = {
      view_transform(images, {.scale = large, .blur_prob = 1}),
      view_transform(images, {.scale = large, .blur_prob = 0.1, .solarize_prob = 0.2})};
  if (local_crops_number > 0) {
    views.insert(views.end(), static_cast<std::size_t>(local_crops_number),
                 view_transform(images, {.size = local_size, .scale = small, .blur_prob = 0.5}));
  }
  return views;
}

double PretrainDinoOptions::teacher_temperature(std::int64_t epoch) const {
  if (epoch >= warmup_teacher_temp_epochs) {
    return teacher_temp;
  }
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, warmup_teacher_temp_epochs - 1));
  return warmup_teacher_temp + (teacher_temp - warmup_teacher_temp) * static_cast<double>(epoch) / steps;
}

std::unique_ptr<Task> PretrainDinoOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainDino>(*this, checkpoint);
}

}  // namespace vitrail::train
