// Folders of language models as another implementation wrote them, and what it computes with them.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::test {

// A folder below tests/golden/models/text, by name.
class GoldenFolder : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return golden_path("models/text") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

// Compares the loss of the next tokens, and its gradients, with the golden ones.
inline void expect_golden_loss(const models::TextModel& model, const io::Safetensors& golden) {
  const Tensor ids = golden.get("input_ids");
  const std::int64_t length = ids.size(1) - 1;
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor logits = ops::narrow(models::language_of(model).forward(ids, pass), 1, 0, length);
  const Tensor loss = ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}),
                                         ids.narrow(1, 1, length).contiguous().reshape({-1}));
  EXPECT_NEAR(loss.item(), golden.get("loss").item(), 1e-5);
  tape.backward(loss);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-4, parameter.name);
  }
}

// Loads a folder and writes it again, which gives the same bits and fields; `look` gets the folder that was written.
template <class Look>
void expect_saved_alike(const std::filesystem::path& folder, const Look& look) {
  const TemporaryFolder temporary;
  models::write_text_model(models::load_text_model(folder), temporary.path());
  const io::Safetensors before = io::Safetensors::open(folder / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(temporary / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  EXPECT_EQ(io::read_json(temporary / "config.json"), io::read_json(folder / "config.json"));
  look(temporary.path());
}

}  // namespace vitrail::test
