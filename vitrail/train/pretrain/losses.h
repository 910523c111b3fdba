/// \file
/// The losses of methods that learn from several views of each image, or from images and texts.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// NT-Xent over the 2N projections of two views (SimCLR: Chen et al. 2020, equation 1; lightly's NTXentLoss), z0 and z1
/// [N, D] f32 of any lengths:
///
/// ```text
/// s_ij = cos(z_i, z_j) / temperature,   mean over i of -log( e^s_i,partner(i) / Σ_{j ≠ i} e^s_ij )
/// ```
///
/// The pair (i, i) is masked out before the softmax, so that no gradient passes through it. Throws Error unless there
/// are at least two images.
Tensor nt_xent(const Tensor& z0, const Tensor& z1, float temperature);

/// MoCo v3's contrastive loss (Chen et al. 2021, facebookresearch/moco-v3), q and k [N, D] f32 of any lengths: the
/// cross-entropy of cos(q_i, k_j) / temperature with target j = i, times 2 · temperature. k gets no gradient. Throws
/// Error unless there are at least two images.
Tensor contrastive_loss(const Tensor& q, const Tensor& k, float temperature);

/// DINO's targets (Caron et al. 2021): softmax((teacher - centre) / temperature), [N, K] f32. teacher [N, K], center
/// [1, K].
Tensor dino_targets(const Tensor& teacher, const Tensor& center, double temperature);
/// DINO's loss: the mean, over all pairs of a global view i and another view v, of the cross-entropy between the
/// teacher's targets for i and softmax(student / student_temperature) for v. A view is never compared with itself.
/// student [views · B, K] f32, view by view with the global ones first; targets [globals · B, K], which get no
/// gradient.
Tensor dino_loss(const Tensor& student, const Tensor& targets, std::int64_t views, double student_temperature = 0.1);
/// The centre after a batch: momentum · center + (1 - momentum) · the mean row of `teacher`.
Tensor dino_center(const Tensor& center, const Tensor& teacher, double momentum = 0.9);

/// CLIP's loss (Radford et al. 2021, figure 3; transformers' image_text_contrastive_loss) of the logits [N, N] of N
/// images and their N texts: the mean of the cross-entropies of rows and of columns with the right ones on the
/// diagonal. Throws Error unless there are at least two pairs.
Tensor clip_loss(const Tensor& logits);
/// SigLIP's loss (Zhai et al. 2023, algorithm 1; transformers' SiglipModel) of such logits: for each pair by itself
/// whether it belongs together, -Σ_ij log σ(±logits_ij) / N, with + on the diagonal.
Tensor siglip_loss(const Tensor& logits);

}  // namespace vitrail::train
