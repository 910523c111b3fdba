// Models as they are, with no size made smaller. Their weights would be too large to keep: each element is a hash of
// its tensor's name and its index (tools/golden/full_size.py).
#include <bit>
#include <cstdlib>

#include "tests/support/golden.h"
#include "vitrail/models/model.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

// CRC-32 as zlib's, of a name.
std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
  }
  return ~crc;
}

// Fills x with numbers in [-1/2, 1/2), times `scale`, plus `mean`.
void fill_uniform(const Tensor& x, const std::string& name, float scale, float mean = 0) {
  const std::uint32_t start = crc32(name);
  float* values = x.data<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 0x9E3779B1U + start;
    for (const std::uint32_t factor : {0x85EBCA6BU, 0xC2B2AE35U}) {
      bits ^= bits >> 16U;
      bits *= factor;
    }
    bits ^= bits >> 16U;
    values[i] = mean + scale * (static_cast<float>(bits >> 8U) * 0x1p-24F - 0.5F);
  }
}

void fill(const nn::Parameter& parameter) {
  const std::string& name = parameter.name;
  const Tensor& x = parameter.value;
  if (x.dtype() != DType::f32) {
    return;  // a counter of a batch norm
  }
  if (name.ends_with("bias") || name.ends_with("running_mean")) {
    fill_uniform(x, name, 0.25F);
  } else if (x.rank() <= 1) {
    fill_uniform(x, name, 0.5F, 1);
  } else if (name.ends_with("_token") || name.ends_with("pos_embed") || name.ends_with("bias_table")) {
    fill_uniform(x, name, 1);
  } else {
    const auto fan_in = static_cast<std::uint64_t>(x.numel() / x.size(0));
    const int doublings = std::bit_width(fan_in - 1);  // ceil(log2(fan_in))
    fill_uniform(x, name, 0x1p2F / static_cast<float>(1 << ((doublings + 1) / 2)));
  }
  x.touch();
}

Model filled_model(const std::string& name) {
  CreateOptions options;
  options.fill = nn::Fill::leave;
  Model model = create_model(name, options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    fill(parameter);
  }
  return model;
}

Tensor logits_of_image(const Model& model) {
  const Tensor x = Tensor::empty(input_shape(model).inserted(0, 1));
  fill_uniform(x, "image", 4);
  nn::Pass pass;
  return model.net->forward(x, pass);
}

class FullSize : public testing::TestWithParam<std::string> {};

TEST_P(FullSize, GivesTimmsLogits) {
  const io::Safetensors golden = test::golden("models/full_size.safetensors");
  const Tensor expected = golden.get(GetParam());
  const Model model = filled_model(GetParam());
  test::expect_close(logits_of_image(model), expected, 1e-4);
  if (golden.contains(GetParam() + ".int8")) {
    const double error = test::relative_error(logits_of_image(quantize(model)), expected);
    EXPECT_LE(error, test::relative_error(golden.get(GetParam() + ".int8"), expected)) << "what PyTorch's int8 costs";
    EXPECT_GT(error, 1e-4);
  }
}

// Slow without fast kernels and with sanitizers, which have the small models.
std::vector<std::string> full_size_names() {
#ifdef VITRAIL_FEW_TARGETS
  return {};
#else
  std::vector<std::string> names;
  if (std::getenv("VITRAIL_TEST_ISA") == nullptr) {
    const io::Safetensors golden = test::golden("models/full_size.safetensors");
    for (const std::string& name : golden.names()) {
      if (!name.ends_with(".int8")) {
        names.push_back(name);
      }
    }
  }
  return names;
#endif
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullSize);
INSTANTIATE_TEST_SUITE_P(Models, FullSize, testing::ValuesIn(full_size_names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace vitrail::models
