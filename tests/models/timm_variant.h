// What every family's models are held to: the fixtures of tools/golden/timm_models.py. The tests are in
// timm_variant_test.cpp; a family's test names its own fixtures:
//
//   INSTANTIATE_TEST_SUITE_P(Swin, TimmVariant, testing::Values("swin", "swin_padded"), variant_name);
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/model.h"

namespace vitrail::models {

// A folder that timm wrote, and what timm computes with it.
class TimmVariant : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return test::golden_path("models") / GetParam(); }
  Model load() const { return load_model(folder()); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

inline std::string variant_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace vitrail::models
