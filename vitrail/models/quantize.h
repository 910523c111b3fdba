/// \file
/// Models whose linear layers run in int8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "vitrail/models/model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// While an object of this class exists, it records how large the inputs of the linear layers of a model get: run
/// images through the model in the meantime.
class InputRanges : public nn::InputObserver {
 public:
  void input(const Tensor& weight, const Tensor& x) override;
  /// The mean over the batches of the largest |x| that the layer with this weight got. Throws Error if it got none, or
  /// if the mean is not finite.
  float of(const nn::Parameter& weight) const;

 private:
  struct Range {
    double sum = 0;  ///< of the largest |x| of each batch
    double batches = 0;
  };
  std::map<const void*, Range> ranges_;  ///< by the address of the weight's elements
};

/// Returns a copy of the model in which the linear layers of the blocks have int8 weights, with one scale for each
/// output; embeddings, norms and the classifier stay as they are. The inputs of each layer are rounded to int8 with one
/// scale for each token or, given `ranges`, with one fixed scale for each layer. The result is for inference only.
/// Throws Error if the model is quantized already, or if no layer of it is large enough.
Model quantize(const Model& model, const InputRanges* ranges = nullptr);

/// The same for a model of texts, whose inputs are rounded by token. A decoder's embedding of tokens and its head are
/// in int8 too.
TextModel quantize(const TextModel& model);

/// Whether a model has int8 weights.
bool is_quantized(const nn::Network& net);
/// Throws Error, which names the model as `source`, if it has.
void check_trainable(const nn::Network& net, const std::string& source);
/// The bytes of a network's parameters.
std::int64_t parameter_bytes(const nn::Network& net);
/// The bytes that the parameters of a network take in the folder that it was loaded from, whose weights may be in half
/// the precision; where there is no such folder, parameter_bytes().
std::int64_t stored_bytes(const nn::Network& net, const std::filesystem::path& folder);
/// How many numbers of the weights of a model folder are in int8; 0 if there is no such folder.
std::int64_t int8_weights_in(const std::filesystem::path& folder);

}  // namespace vitrail::models
