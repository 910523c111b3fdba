// Gathers what a person wants to see of a forward pass.
#pragma once

#include <map>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Hand one to a Pass and the model fills it. Layers ask wants_… first and compute maps only then, so that nobody pays
// who does not look.
class Recorder {
 public:
  explicit Recorder(bool features, bool attention) : features_wanted_(features), attention_wanted_(attention) {}

  bool wants_features() const { return features_wanted_; }
  bool wants_attention() const { return attention_wanted_; }
  // After block i: [B, N, D], as "features.{i}".
  void feature(int block, const Tensor& x) { features_[block] = x.detach(); }
  // The probabilities of block i: [B, H, N, M] f32, as "attention.{i}".
  void attention(int block, const Tensor& probabilities) { attention_[block] = probabilities.detach(); }

  const std::map<int, Tensor>& features() const { return features_; }
  const std::map<int, Tensor>& attention() const { return attention_; }

 private:
  bool features_wanted_;
  bool attention_wanted_;
  std::map<int, Tensor> features_;
  std::map<int, Tensor> attention_;
};

}  // namespace vitrail::nn
