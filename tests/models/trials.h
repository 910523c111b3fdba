// What tests of several families try with a model.
#pragma once

#include <string>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/model.h"

namespace vitrail::models {

// Options with these --model-kwargs.
inline CreateOptions with(const std::string& kwargs) {
  CreateOptions options;
  options.model_kwargs = kwargs;
  return options;
}

// A checkpoint's tensor, made for images of the size `source`, as the model takes it.
inline Tensor adapted(const Model& model, const std::string& parameter, const Tensor& value, const nn::Size2& source) {
  return model.net->adapt(parameter, value, model.net->parameters.at(parameter).value.shape(), source);
}

// These arguments are an Error whose sentence contains `part`.
inline void expect_refused(const std::string& architecture, const std::string& kwargs, const std::string& part) {
  const std::string message = test::error_of([&] { describe_model(architecture, with(kwargs)); });
  EXPECT_NE(message, "no error") << kwargs << " was taken";
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// What the model says of images [B, C, H, W] (or clips) of this shape: the sentence of its Error, or "no error".
inline std::string error_of_forward(const Model& model, const Shape& shape) {
  nn::Pass pass;
  return test::error_of([&] { model.net->forward(test::random_tensor(shape), pass); });
}

// `actual` has every parameter and buffer of `expected`, to the bit.
inline void expect_same_parameters(const Model& actual, const Model& expected) {
  for (const nn::Parameter& parameter : expected.net->parameters.all()) {
    test::expect_close(actual.net->parameters.at(parameter.name).value, parameter.value, 0,
                       expected.architecture + ": " + parameter.name);
  }
}

// The fixture's folder `variant`, loaded with other arguments, gives the logits NAME.logits for NAME.x.
inline void expect_adapted(const io::Safetensors& expected, const std::string& name, const std::string& variant,
                           const std::string& kwargs) {
  const Model model = load_model(test::golden_path("models") / variant, with(kwargs));
  nn::Pass pass;
  test::expect_close(model.net->forward(expected.get(name + ".x"), pass), expected.get(name + ".logits"), 1e-4, name);
}

// What is drawn in training depends on the pass's random stream alone: a parameter's gradient is the same for the same
// seed, also where blocks are run again in backward, and another for another one.
inline void expect_repeatable_training(const Model& model, const Tensor& x, const std::string& parameter) {
  const auto gradient = [&](std::uint64_t seed, bool checkpoint) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.training = true, .random = RandomStream(seed), .checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor logits = model.net->forward(x, pass);
    tape.backward(logits, test::random_tensor(logits.shape(), 5));
    return autograd::grad(model.net->parameters.at(parameter).value);
  };
  for (const bool checkpoint : {false, true}) {
    test::expect_close(gradient(1, checkpoint), gradient(1, checkpoint), 0, model.architecture);
    EXPECT_GT(test::relative_error(gradient(1, checkpoint), gradient(2, checkpoint)), 1e-2) << model.architecture;
  }
}

}  // namespace vitrail::models
