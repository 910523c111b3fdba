#include "vitrail/nn/recurrent/recurrent.h"

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::nn {
namespace {

using test::error_of;
using test::expect_close;
using test::random_tensor;

const io::Safetensors& cases() {
  static const io::Safetensors file = test::golden("nn/recurrent.safetensors");
  return file;
}

// A case of tools/golden/recurrent.py.
class RecurrentCase {
 public:
  explicit RecurrentCase(const std::string& name, DType dtype = DType::f32)
      : parameters_(cases(), name), name_(name), dtype_(dtype) {}

  Scope scope() { return parameters_.scope(); }
  bool has(const std::string& label) const {
    const auto names = cases().names();
    return std::ranges::find(names, name_ + "." + label) != names.end();
  }
  Tensor get(const std::string& label) const { return has(label) ? parameters_.get(label) : Tensor(); }

  // Compares the results of `run` on x, h_0 and c_0, and the gradients of all of them and of the parameters.
  void check(const std::function<RecurrentOutput(const Tensor& x, const RecurrentState& state, Pass& pass)>& run) {
    const double tolerance = dtype_ == DType::f32 ? 1e-5 : 3e-2;
    const double gradient_tolerance = dtype_ == DType::f32 ? 1e-4 : 6e-2;
    parameters_.load();
    parameters_.store().zero_grad();
    const auto leaf = [&](const std::string& label) {
      Tensor value = has(label) ? get(label).clone() : Tensor();
      if (value.defined()) {
        autograd::require_grad(value);
      }
      return value;
    };
    const Tensor x = leaf("x");
    const RecurrentState state{leaf("h_0"), leaf("c_0")};
    Pass pass{.dtype = dtype_};
    autograd::Tape tape;
    const RecurrentOutput result = run(x, state, pass);
    Tensor loss = Tensor::scalar(0);
    const auto compare = [&](const std::string& label, const Tensor& actual) {
      expect_close(actual, get(label), tolerance, name_ + ": " + label);
      loss = loss + ops::sum(ops::cast(actual, DType::f32) * get("d" + label));
    };
    compare("y", result.output);
    compare("h_n", result.state.h);
    if (has("c_n")) {
      compare("c_n", result.state.c);
    }
    if (dtype_ == DType::bf16 && has_kink_) {
      return;
    }
    tape.backward(loss);
    const auto compare_gradient = [&](const std::string& label, const Tensor& of) {
      if (of.defined()) {
        expect_close(autograd::grad(of), get(label), gradient_tolerance, name_ + ": " + label);
      }
    };
    compare_gradient("dx", x);
    compare_gradient("dh_0", state.h);
    compare_gradient("dc_0", state.c);
    for (const Parameter& parameter : parameters_.store().all()) {
      compare_gradient("g." + parameter.name, parameter.value);
    }
  }

  // The same of a whole network, with and without a tape.
  void check(const RecurrentConfig& config) {
    has_kink_ = config.kind == RecurrentKind::nas;
    const Recurrent network(scope(), config);
    check([&](const Tensor& x, const RecurrentState& state, Pass& pass) {
      return network(x, state, get("lengths"), pass);
    });
    Pass pass{.dtype = dtype_};
    const RecurrentOutput inferred = network(get("x"), {get("h_0"), get("c_0")}, get("lengths"), pass);
    expect_close(inferred.output, get("y"), dtype_ == DType::f32 ? 1e-5 : 3e-2, name_ + ": without a tape");
  }

 private:
  test::LayerCase parameters_;
  std::string name_;
  DType dtype_;
  bool has_kink_ = false;  // a relu whose argument rounding may move to the other side of 0, so that gradients jump
};

RecurrentConfig config_of(RecurrentKind kind, std::int64_t in, std::int64_t hidden) {
  RecurrentConfig config;
  config.kind = kind;
  config.input_size = in;
  config.hidden_size = hidden;
  return config;
}

struct Named {
  std::string name;
  RecurrentConfig config;
};

// The networks of the cases of a hundred steps.
std::vector<Named> long_cases() {
  std::vector<Named> result;
  for (const auto kind : {RecurrentKind::rnn, RecurrentKind::lstm, RecurrentKind::gru, RecurrentKind::mut1,
                          RecurrentKind::mut2, RecurrentKind::mut3, RecurrentKind::nas}) {
    const bool adds_input = kind == RecurrentKind::mut1 || kind == RecurrentKind::mut2;
    result.push_back({std::string(name_of(kind)), config_of(kind, adds_input ? 5 : 4, 5)});
  }
  result.push_back({"rnn_relu", config_of(RecurrentKind::rnn, 4, 5)});
  result.back().config.relu = true;
  result.push_back({"gru_before", config_of(RecurrentKind::gru, 4, 5)});
  result.back().config.reset_after = false;
  return result;
}

// The networks of the cases of unequal lengths: two layers in both directions.
std::vector<Named> packed_cases() {
  std::vector<Named> result;
  const auto add = [&](const std::string& name, RecurrentKind kind) -> RecurrentConfig& {
    result.push_back({name, config_of(kind, 4, 6)});
    result.back().config.num_layers = 2;
    result.back().config.bidirectional = true;
    return result.back().config;
  };
  add("rnn", RecurrentKind::rnn);
  add("lstm", RecurrentKind::lstm);
  add("lstm_proj", RecurrentKind::lstm).proj_size = 3;
  add("lstm_no_bias", RecurrentKind::lstm).bias = false;
  add("gru_time_first", RecurrentKind::gru).batch_first = false;
  add("gru_before", RecurrentKind::gru).reset_after = false;
  add("mut1", RecurrentKind::mut1).input_projection = true;
  add("mut2", RecurrentKind::mut2).input_projection = true;
  add("mut3", RecurrentKind::mut3);
  add("nas", RecurrentKind::nas);
  add("nas_proj", RecurrentKind::nas).proj_size = 3;
  return result;
}

TEST(Recurrent, AgreesWithItsReferenceOverAHundredSteps) {
  for (const Named& one : long_cases()) {
    RecurrentCase("long_" + one.name).check(one.config);
  }
}

TEST(Recurrent, AgreesOnSequencesOfUnequalLengthInBothDirections) {
  for (const Named& one : packed_cases()) {
    RecurrentCase("packed_" + one.name).check(one.config);
  }
}

TEST(Recurrent, AgreesInBf16) {
  for (const Named& one : packed_cases()) {
    RecurrentCase("packed_" + one.name, DType::bf16).check(one.config);
  }
}

TEST(RecurrentCell, AgreesWithTorch) {
  for (const auto kind : {RecurrentKind::rnn, RecurrentKind::lstm, RecurrentKind::gru}) {
    RecurrentCase one("cell_" + std::string(name_of(kind)));
    const RecurrentCell cell(one.scope(), config_of(kind, 4, 6));
    one.check([&](const Tensor& x, const RecurrentState& state, Pass& pass) {
      const ops::CellState next = cell(x, {state.h, state.c}, pass);
      return RecurrentOutput{next.h, {next.h, next.c}};
    });
  }
}

TEST(Recurrent, NeverReadsPadding) {
  for (const Named& one : packed_cases()) {
    RecurrentCase reference("packed_" + one.name);
    const Recurrent network(reference.scope(), one.config);
    const Tensor x = reference.get("x").clone();
    const auto lengths = reference.get("lengths").span<std::int64_t>();
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      const Tensor sequence = x.select(one.config.batch_first ? 0 : 1, static_cast<std::int64_t>(b));
      sequence.narrow(0, lengths[b], 7 - lengths[b]).fill(std::numeric_limits<double>::quiet_NaN());
    }
    Pass pass;
    const Tensor clean = network(reference.get("x"), {}, reference.get("lengths"), pass).output;
    expect_close(network(x, {}, reference.get("lengths"), pass).output, clean, 0, one.name);
  }
}

TEST(Recurrent, GoesOnFromAState) {
  for (Named& one : long_cases()) {
    one.config.num_layers = 2;
    if (one.config.input_size != one.config.hidden_size) {
      one.config.input_projection = true;
    }
    ParameterStore store;
    const Recurrent network(Scope(store), one.config);
    const Tensor x = random_tensor({3, 9, one.config.input_size});
    Pass pass;
    const RecurrentOutput whole = network(x, pass);
    const RecurrentOutput first = network(x.narrow(1, 0, 4), pass);
    const RecurrentOutput second = network(x.narrow(1, 4, 5), first.state, {}, pass);
    expect_close(first.output, whole.output.narrow(1, 0, 4), 1e-6, one.name);
    expect_close(second.output, whole.output.narrow(1, 4, 5), 1e-6, one.name);
    expect_close(second.state.h, whole.state.h, 1e-6, one.name);
    if (one.config.has_memory()) {
      expect_close(second.state.c, whole.state.c, 1e-6, one.name);
    }
  }
}

// The gradients of the loss of both chunks of a sequence, the second of which begins with the state after the first.
std::vector<Tensor> gradients_of_chunks(const Recurrent& network, const ParameterStore& store, const Tensor& x,
                                        bool truncated) {
  store.zero_grad();
  Pass pass;
  const auto loss = [](const Tensor& y) { return ops::sum(y * y); };
  if (truncated) {
    RecurrentState state;
    for (const std::int64_t begin : {0, 3}) {
      autograd::Tape tape;
      const RecurrentOutput chunk = network(x.narrow(1, begin, 3), state, {}, pass);
      tape.backward(loss(chunk.output));
      state = chunk.state.detached();
    }
  } else {
    autograd::Tape tape;
    const RecurrentOutput first = network(x.narrow(1, 0, 3), {}, {}, pass);
    const RecurrentOutput second = network(x.narrow(1, 3, 3), first.state, {}, pass);
    tape.backward(loss(first.output) + loss(second.output));
  }
  std::vector<Tensor> result;
  for (const Parameter& parameter : store.all()) {
    result.push_back(autograd::grad(parameter.value).clone());
  }
  return result;
}

TEST(Recurrent, TakesGradientsThroughAStateUnlessItIsDetached) {
  ParameterStore store;
  const Recurrent network(Scope(store), config_of(RecurrentKind::lstm, 4, 5));
  const Tensor x = random_tensor({3, 6, 4});
  store.zero_grad();
  Pass pass;
  {
    autograd::Tape tape;
    const Tensor y = network(x, pass).output;
    tape.backward(ops::sum(y * y));
  }
  std::vector<Tensor> whole;
  for (const Parameter& parameter : store.all()) {
    whole.push_back(autograd::grad(parameter.value).clone());
  }
  const std::vector<Tensor> chained = gradients_of_chunks(network, store, x, false);
  const std::vector<Tensor> truncated = gradients_of_chunks(network, store, x, true);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    expect_close(chained[i], whole[i], 1e-5, store.all()[i].name);
    EXPECT_GT(test::relative_error(truncated[i], whole[i]), 1e-3) << store.all()[i].name;
  }
}

// The peak of memory while a network learns from `time` steps, in chunks of `chunk` steps.
double peak_of_learning(std::int64_t time, std::int64_t chunk) {
  ParameterStore store;
  const Recurrent network(Scope(store), config_of(RecurrentKind::lstm, 8, 32));
  const Tensor x = random_tensor({8, time, 8});
  const std::size_t before = Allocator::instance().statistics().in_use;
  Allocator::instance().reset_peak();
  RecurrentState state;
  Pass pass;
  for (std::int64_t begin = 0; begin < time; begin += chunk) {
    autograd::Tape tape;
    const RecurrentOutput result = network(x.narrow(1, begin, chunk), state, {}, pass);
    tape.backward(ops::sum(result.output));
    state = result.state.detached();
  }
  return static_cast<double>(Allocator::instance().statistics().peak - before);
}

TEST(Recurrent, TakesMemoryByTheChunkIfTheStateIsDetached) {
  EXPECT_GT(peak_of_learning(128, 128), 1.8 * peak_of_learning(64, 64));
  EXPECT_NEAR(peak_of_learning(128, 16) / peak_of_learning(64, 16), 1, 0.02);
}

TEST(Recurrent, OfOneStepFromZeroIsADenseLayer) {
  ParameterStore store;
  const Recurrent network(Scope(store), config_of(RecurrentKind::rnn, 4, 5));
  const Tensor x = random_tensor({3, 1, 4});
  Pass pass;
  const Tensor dense = ops::tanh(ops::linear(x, store.at("weight_ih_l0").value, store.at("bias_ih_l0").value) +
                                 store.at("bias_hh_l0").value);
  expect_close(network(x, pass).output, dense, 1e-6);
}

TEST(Recurrent, DropsOutBetweenLayersInTraining) {
  RecurrentConfig config = config_of(RecurrentKind::gru, 4, 5);
  config.num_layers = 2;
  config.dropout = 1;
  ParameterStore store;
  const Recurrent network(Scope(store), config);
  Pass evaluation;
  Pass training{.training = true};
  const Tensor x = random_tensor({3, 6, 4}, 1);
  EXPECT_GT(test::relative_error(network(x, training).output, network(x, evaluation).output), 1e-3);
  // With all of the first layer dropped, the second does not depend on x.
  expect_close(network(x, training).output, network(random_tensor({3, 6, 4}, 2), training).output, 0);
}

TEST(Recurrent, StartsAsTorchDoes) {
  for (const auto kind : {RecurrentKind::lstm, RecurrentKind::mut3}) {
    ParameterStore store;
    const Recurrent network(Scope(store), config_of(kind, 9, 16));
    for (const Parameter& parameter : store.all()) {
      float largest = 0;
      for (const float value : parameter.value.values()) {
        largest = std::max(largest, std::abs(value));
      }
      EXPECT_LE(largest, 0.25F) << parameter.name;
      EXPECT_GT(largest, 0.18F) << parameter.name;
    }
  }
}

TEST(Recurrent, StartsWithAForgetBiasOfOneIfAsked) {
  RecurrentConfig config = config_of(RecurrentKind::lstm, 3, 4);
  config.forget_bias = true;
  ParameterStore store;
  const Recurrent network(Scope(store), config);
  const Tensor bias = store.at("bias_ih_l0").value + store.at("bias_hh_l0").value;
  expect_close(bias.narrow(0, 4, 4), Tensor::full({4}, 1), 0);
  for (const float other : bias.narrow(0, 8, 8).values()) {
    EXPECT_LT(std::abs(other), 1.0F);
    EXPECT_NE(other, 0.0F);
  }
}

TEST(Recurrent, SaysWhichConfigurationIsWrong) {
  const auto error = [](RecurrentConfig config) {
    ParameterStore store;
    return error_of([&] { Recurrent(Scope(store), config); });
  };
  EXPECT_EQ(error(config_of(RecurrentKind::mut1, 3, 4)),
            "a recurrent network: mut1 adds its input to its state, so their sizes must be equal, not 3 and 4; "
            "input_projection maps the input first");
  EXPECT_EQ(error(config_of(RecurrentKind::lstm, 0, 4)),
            "a recurrent network: the sizes of input and state must be positive, not 0 and 4");
  RecurrentConfig config = config_of(RecurrentKind::gru, 3, 4);
  config.proj_size = 2;
  EXPECT_EQ(error(config), "a recurrent network: only lstm and nas have a projection, not gru");
  config = config_of(RecurrentKind::lstm, 3, 4);
  config.proj_size = 4;
  EXPECT_EQ(error(config), "a recurrent network: proj_size must lie in 0 … 3, not be 4");
  config.proj_size = 0;
  config.num_layers = 0;
  EXPECT_EQ(error(config), "a recurrent network has at least one layer, not 0");
  config.num_layers = 1;
  config.dropout = 1.5F;
  EXPECT_EQ(error(config), "dropout must lie in [0, 1], not 1.5");
  EXPECT_EQ(
      error_of([] { recurrent_kind_named("lstn"); }),
      "unknown recurrent network 'lstn': expected rnn, lstm, gru, mut1, mut2, mut3 or nas (did you mean 'lstm'?)");
}

TEST(Recurrent, SaysWhichInputIsWrong) {
  ParameterStore store;
  const Recurrent network(Scope(store), config_of(RecurrentKind::gru, 3, 4));
  const auto error = [&](const Tensor& x, const RecurrentState& state = {}, const Tensor& lengths = {}) {
    Pass pass;
    return error_of([&] { network(x, state, lengths, pass); });
  };
  const Tensor x = random_tensor({2, 5, 3});
  EXPECT_EQ(error(random_tensor({2, 5, 4})),
            "the input of a recurrent network must be [batch, time, 3] f32 or bf16, not [2, 5, 4] f32");
  EXPECT_EQ(error(x, {random_tensor({1, 3, 4}), {}}), "h_0 must be [1, 2, 4] f32, not [1, 3, 4] f32");
  EXPECT_EQ(error(x, {{}, random_tensor({1, 2, 4})}), "gru has no c_0");
  EXPECT_EQ(error(x, {}, Tensor::from<std::int64_t>({5, 0}, {2})),
            "the length of sequence 1 is 0, which must lie in 1 … 5");
  EXPECT_EQ(error(x, {}, Tensor::from<std::int64_t>({6, 1}, {2})),
            "the length of sequence 0 is 6, which must lie in 1 … 5");
  EXPECT_EQ(error(x, {}, Tensor::from<std::int64_t>({5}, {1})),
            "the lengths of 2 sequences must be [2] i64, not [1] i64");
  EXPECT_EQ(error(random_tensor({2, 0, 3})), "a recurrent network needs at least one sequence of one step, not 2 of 0");

  const RecurrentCell cell(Scope(store) / "cell", config_of(RecurrentKind::lstm, 3, 4));
  Pass pass;
  EXPECT_EQ(error_of([&] {
              cell(random_tensor({2, 4}), {}, pass);
            }),
            "the input of a recurrent cell must be [batch, 3] f32 or bf16, not [2, 4] f32");
  EXPECT_EQ(error_of([&] {
              cell(random_tensor({2, 3}), {random_tensor({1, 4}), {}}, pass);
            }),
            "h must be [2, 4] f32, not [1, 4] f32");
}

}  // namespace
}  // namespace vitrail::nn
