/// \file
/// MoCo v3 (Chen et al. 2021): the task of `vitrail pretrain mocov3`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/pretrain/view_task.h"

namespace vitrail::train {

/// The options of MoCo v3, by the reference's names and with its values for a Vision Transformer.
struct PretrainMocov3Options : ViewTaskOptions {
  PretrainMocov3Options();

  std::int64_t moco_dim = 256;
  std::int64_t moco_mlp_dim = 4096;
  double moco_m = 0.99;
  bool moco_m_cos = true;
  std::optional<double> moco_t;  ///< unset: 0.2 for a Vision Transformer, 1 for others
  bool stop_grad_conv1 = true;   ///< of a Vision Transformer: its patch embedding stays as it is at first
  double crop_min = 0.08;

  std::string kind() const override { return "mocov3"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainMocov3Options>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
  /// The transforms of the two views, as the reference makes them.
  std::vector<data::Transform> view_transforms(const data::ImageConfig& images) const;
};

/// Initializes a Vision Transformer as MoCo v3's code does where that is not timm's weight_init "moco": learnt
/// positions on the grid of patches are mocov3_positions(), the patch embedding is Xavier-uniform without bias, the
/// class token N(0, 1e-6²).
void initialize_as_mocov3(const models::Model& model, std::uint64_t seed);
/// MoCo v3's fixed positions of a grid of patches, behind `prefix` tokens: [1, prefix + rows · columns, D] f32. With
/// ω_i = 10000^(-4 i / D), i < D / 4, the patch at (row, column) has [sin(row ω), cos(row ω), sin(column ω), cos(column
/// ω)]; the class token, and others before the patches, have zeros. Those of MAE have the column first. Throws Error
/// unless D is divisible by 4.
Tensor mocov3_positions(std::int64_t rows, std::int64_t columns, std::int64_t dim, std::int64_t prefix = 1);
/// The momentum at the share 0 … 1 of the training: from `start` by half a cosine to 1.
double mocov3_momentum(double start, double share);

}  // namespace vitrail::train
