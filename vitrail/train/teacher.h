// A trained model that another one learns from (Hinton et al. 2015; DeiT: Touvron et al. 2021).
#pragma once

#include <string>
#include <vector>

#include "vitrail/models/model.h"

namespace vitrail::train {

// Answers for the pictures that a student is trained on. It sees the same augmented pictures, brought to its own mean,
// deviation and size, runs in evaluation mode and leaves nothing on a tape.
class Teacher {
 public:
  // Opens the folder or name for a student of the same classes, and of as many colour channels. Error if the teacher
  // has other classes, or takes videos. Both may know their classes in different orders.
  Teacher(const std::string& name_or_folder, const models::Model& student, DType dtype);

  // x [B, C, H, W] f32, normalized for the student → logits [B, num_classes] f32, the classes in the student's order.
  Tensor operator()(const Tensor& x) const;

  const models::Model& model() const { return model_; }

 private:
  Tensor prepared(const Tensor& x) const;

  models::Model model_;
  DType dtype_;
  Tensor scale_;  // [1, C, 1, 1], with shift_: from the student's normalization to the teacher's; undefined if the same
  Tensor shift_;
  Tensor order_;  // [C] i64: the teacher's number of each of the student's classes; undefined if the same
};

}  // namespace vitrail::train
