/// \file
/// What all methods that learn from several views of each image have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/views.h"
#include "vitrail/train/image_options.h"
#include "vitrail/train/pretrain/encoder_network.h"

namespace vitrail::train {

/// The options of all these methods.
struct ViewTaskOptions : ImageTaskOptions {
  ViewTaskOptions();

  std::string views;  ///< a file of ready-made views in place of images
  std::optional<double> drop_path;

  // k-NN accuracy after each epoch
  std::string knn_data;
  std::string knn_split = "validation";
  std::int64_t knn_k = 20;

  std::string command() const override { return "vitrail pretrain"; }
  void validate() const override;
};

/// Adds the options of data, model, batches, optimizer and schedule; those of the method itself and the ones of
/// add_view_run_options() come behind them. `figures` are the names that --eval-metric may have.
void add_view_options(OptionList& list, ViewTaskOptions& options);
void add_view_run_options(OptionList& list, ViewTaskOptions& options, std::vector<std::string> figures);

/// How the views of a method differ from each other.
struct ViewRecipe {
  std::int64_t size = 0;                        ///< of its side in pixels; 0: the model's
  std::pair<double, double> scale = {0.08, 1};  ///< share of the image's area
  std::vector<double> color_jitter = {0.4, 0.4, 0.2, 0.1};
  double blur_prob = 0;  ///< never at 32 x 32 pixels and below: there is nothing to blur
  double solarize_prob = 0;
  std::string interpolation = "bicubic";
};
/// The transform that makes a view for a model of these images: crop, flip, colours (jitter with probability 0.8,
/// grayscale with 0.2), blur, solarization.
data::Transform view_transform(const data::ImageConfig& images, const ViewRecipe& recipe);

/// The encoder of a new run, by --model, or that of a checkpoint: without classifier, and with `drop_path` where it is
/// given. With `any_size` it takes images of other sizes than its own too, and resizes its positions for them as DINO's
/// code does.
models::Model open_encoder(const ViewTaskOptions& options, const std::filesystem::path& checkpoint,
                           std::optional<double> drop_path, bool any_size = false);

/// A method: it has the networks and the loss, and this class the rest. Its constructor ends with open_views().
class ViewTask : public Task {
 public:
  explicit ViewTask(const ViewTaskOptions& options);

  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override;
  Figures evaluate(const Work& work) override;
  bool keeps_latest() const override { return knn_data_ == nullptr && options_.eval_metric.empty(); }
  /// Copies into what state() returns.
  void load_state(const io::NamedTensors& state) override;
  void save(const std::filesystem::path& folder) const override;
  std::string name() const override;
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  /// The network that is trained.
  virtual const EncoderNetwork& trained() const = 0;
  /// The model that is saved for users, and measured: the trained encoder, or its teacher's.
  virtual const models::Model& kept() const { return trained().encoder; }

  /// Kinds of further figures, their values, and what they tell. look() is called in an evaluation for some images
  /// after the other, with their views 0 and 1.
  virtual std::vector<FigureKind> further_figures() const { return {}; }
  virtual void begin_looking() {}
  virtual void look(const Tensor& view0, const Tensor& view1, nn::Pass& pass) {
    (void)view0;
    (void)view1;
    (void)pass;
  }
  virtual void end_looking(Figures& figures) { (void)figures; }
  /// A sentence about a collapse that the figures show, and what to change; "" if they show none.
  virtual std::string collapse(const Figures& figures) const;

  /// Opens the images, or the ready-made views, by these transforms, of which the first two make whole views.
  void open_views(std::vector<data::Transform> transforms);
  /// Restores the parameters that save() has written beside the encoder.
  void load_trained(const std::filesystem::path& checkpoint) const;

  const data::ViewBatch& batch() const { return batch_; }
  std::int64_t updates_per_epoch() const;
  /// All updates, also those of epochs that the schedule adds (warm-up, cool-down, cycles).
  std::int64_t total_updates() const;
  /// The share of the training that lies before an update.
  double share_before(std::int64_t update) const {
    return std::min(static_cast<double>(update) / static_cast<double>(total_updates()), 1.0);
  }

 private:
  const std::unique_ptr<const TaskOptions> owned_;
  const ViewTaskOptions& options_;                 // *owned_
  std::shared_ptr<const data::Dataset> training_;  // null: ready-made views
  std::unique_ptr<data::Dataset> knn_training_;
  std::unique_ptr<data::Dataset> knn_data_;
  std::unique_ptr<data::Dataset> sample_;  // some of the training images, to be looked at
  std::unique_ptr<data::ViewLoader> loader_;
  std::unique_ptr<data::ViewLoader> sample_loader_;
  std::int64_t sampled_ = 0;
  data::ViewBatch batch_;
};

/// The features of two views of a batch, each [B, D] f32. An encoder without batch norm takes them in one pass.
std::pair<Tensor, Tensor> encode_two(const EncoderNetwork& network, const data::ViewBatch& batch, nn::Pass& pass);

/// The parameters and buffers of a network that follows another, for a task's state: under "momentum.".
io::NamedTensors momentum_state(const nn::Network& network);
/// Copies all parameters and buffers that both networks have.
void copy_parameters(const nn::Network& from, const nn::Network& to);

}  // namespace vitrail::train
