/// \file
/// Teachers: trained models that others learn from (Hinton et al. 2015; DeiT: Touvron et al. 2021).
#pragma once

#include <string>
#include <vector>

#include "vitrail/models/model.h"

namespace vitrail::train {

/// Computes the logits of a teacher for the images that a student is trained on. The teacher gets the same augmented
/// images, converted to its own mean, standard deviation and size. It runs in evaluation mode, and leaves nothing on a
/// tape.
class Teacher {
 public:
  /// Opens a teacher by name or folder for a student of the same number of colour channels. The two may know their
  /// classes in different orders, and the teacher may know more: then only its logits of the student's classes count,
  /// with which its probabilities are those of an image that is known to be of one of these. Throws Error if the
  /// teacher does not know all classes of the student, or takes videos.
  Teacher(const std::string& name_or_folder, const models::Model& student, DType dtype);

  /// Maps x [B, C, H, W] f32, normalized for the student, to logits [B, num_classes] f32, with the classes in the
  /// student's order.
  Tensor operator()(const Tensor& x) const;

  const models::Model& model() const { return model_; }

 private:
  Tensor prepared(const Tensor& x) const;

  models::Model model_;
  DType dtype_;
  Tensor scale_;  ///< [1, C, 1, 1]; x · scale_ + shift_ has the teacher's normalization; undefined if the
                  ///< student has the same
  Tensor shift_;  ///< [1, C, 1, 1]
  Tensor order_;  ///< [C] i64: the teacher's index of each of the student's classes; undefined if all are the same
};

}  // namespace vitrail::train
