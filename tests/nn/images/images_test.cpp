#include "tests/support/layers.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/images/image_attention.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::nn {
namespace {

using test::LayerCase;
using Inputs = std::vector<Tensor>;

// The layer in both precisions. `run` takes the layer and the input.
template <class Layer, class Run, class... Arguments>
void check_image_layer(const std::string& name, Run&& run, Arguments&&... arguments) {
  static const io::Safetensors file = test::golden("nn/images.safetensors");
  LayerCase one(file, name);
  const Layer layer(one.scope(), std::forward<Arguments>(arguments)...);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    one.check([&](const Inputs& in) { return run(layer, in[0]); }, {"x"}, dtype);
  }
}

constexpr auto plainly = [](const auto& layer, const Tensor& x) { return layer(x); };
constexpr auto with_pass = [](const auto& layer, const Tensor& x) {
  const Pass pass{.dtype = x.dtype()};
  return layer(x, pass);
};

TEST(GroupNorm, AgreesWithTorch) {
  check_image_layer<GroupNorm>("group_norm", plainly, 12, 4);
  ParameterStore store;
  EXPECT_THROW(GroupNorm(Scope(store), 10, 4), Error);
}

TEST(StyledConv2d, AgreesWithTimmsStdConv2d) {
  check_image_layer<StyledConv2d>("std_conv", plainly, 3, 5, 3, 2, ConvStyle{.standardize = 1e-6F});
  const ConvStyle same{.standardize = 1e-8F, .same_padding = true};
  check_image_layer<StyledConv2d>("std_conv_same", plainly, 3, 5, 3, 2, same);
  check_image_layer<StyledConv2d>("std_conv_same_seven", plainly, 2, 4, 7, 2, same);
  check_image_layer<StyledConv2d>("std_conv_same_unit", plainly, 3, 5, 3, 1, same);
}

TEST(StyledConv2d, KnowsItsOutputSize) {
  for (const bool same : {false, true}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t kernel : {1, 3, 7}) {
        ParameterStore store;
        const StyledConv2d layer(Scope(store), 2, 3, kernel, stride, {.same_padding = same});
        for (const Size2& size : {Size2{7, 8}, Size2{1, 2}, Size2{12, 5}}) {
          const Tensor y = layer(test::random_tensor({1, 2, size[0], size[1]}));
          EXPECT_EQ(layer.output_size(size), (Size2{y.size(2), y.size(3)})) << same << stride << kernel;
        }
      }
    }
  }
}

// In inference the norm is folded into the convolution: the same as one after the other, with weights that change in
// between, and with every activation and residual.
TEST(ConvNorm, FoldsTheNormInInference) {
  for (const std::int64_t kernel : {1, 3}) {
    ParameterStore store;
    const Scope root(store);
    const ConvNorm layer(root / "conv", root / "bn", 6, 9, {kernel, kernel},
                         {.stride = {1, 1}, .padding = {kernel / 2, kernel / 2}});
    const Tensor x = test::random_tensor({2, 6, 5, 4}, 9);
    const Tensor residual = test::random_tensor({2, 9, 5, 4}, 10);
    const Pass pass;
    std::uint64_t stream = 20;
    for (const nn::Parameter& changed : store.all()) {
      if (changed.value.dtype() != DType::f32) {
        continue;
      }
      changed.value.copy_from(ops::abs(test::random_tensor(changed.value.shape(), ++stream)));
      changed.value.touch();
      for (const ops::Activation activation :
           {ops::Activation::identity, ops::Activation::relu, ops::Activation::silu}) {
        for (const Tensor& added : {Tensor(), residual}) {
          const Tensor expected = activate_image(layer.norm(layer.conv(x), pass), activation, added);
          test::expect_close(layer(x, pass, activation, added), expected, 1e-5, changed.name);
        }
      }
    }
    EXPECT_THROW(layer(x, pass, ops::Activation::relu, test::random_tensor({2, 9, 5, 5})), Error);
  }
}

TEST(SqueezeExcite, AgreesWithTimm) { check_image_layer<SqueezeExcite>("squeeze_excite", plainly, 12, 8); }

TEST(NonLocal, AgreesWithTimmAndThePapersEquations) {
  for (const std::string kind : {"embedded_gaussian", "gaussian", "dot_product", "concatenation"}) {
    check_image_layer<NonLocal>("non_local_" + kind, with_pass, 24, 8, NonLocal::kind_named(kind));
  }
  EXPECT_THROW(NonLocal::kind_named("sum"), Error);
}

TEST(SaganAttention, AgreesWithThePapersEquations) { check_image_layer<SaganAttention>("sagan", with_pass, 24); }

}  // namespace
}  // namespace vitrail::nn
