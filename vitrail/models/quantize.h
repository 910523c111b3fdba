// Models whose linear maps run in int8.
#pragma once

#include <map>

#include "vitrail/models/model.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

// While it is alive, sees how large the inputs of a model's linear maps get: run pictures through the model meanwhile.
class InputRanges : public nn::InputObserver {
 public:
  void input(const Tensor& weight, const Tensor& x) override;
  // The mean over the batches of the largest |x| that the map with this weight saw; Error if it saw none.
  float of(const nn::Parameter& weight) const;

 private:
  struct Range {
    double sum = 0;  // of the largest of each batch
    double batches = 0;
  };
  std::map<const void*, Range> ranges_;  // by the elements of the weight
};

// The same model with the weights of the linear maps in its blocks held in int8, by a scale for each output;
// embeddings, norms and the classifier stay as they are. The inputs of each map are rounded to int8 by a scale for each
// token, or, given `ranges`, by one fixed scale for each map. For inference only.
Model quantize(const Model& model, const InputRanges* ranges = nullptr);

// Whether a model has linear maps in int8.
bool is_quantized(const ImageModel& net);

}  // namespace vitrail::models
