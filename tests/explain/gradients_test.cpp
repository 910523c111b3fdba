#include "vitrail/explain/gradients.h"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::explain {
namespace {

constexpr std::int64_t tokens = 7;  // of a text
constexpr std::int64_t hidden = 3;

models::TextModel small(const std::string& kind) {
  models::TextModel model = models::create_text_model(
      kind, {.model_kwargs = R"({"vocab_size": 5, "hidden_size": 3, "num_layers": 2})", .seed = 3});
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    for (float& value : parameter.value.span<float>()) {
      value *= 3;  // so that no gradient is lost in rounding
    }
  }
  return model;
}

// The loss of the last token, from a state in which the first tokens up to `begin` were read and `number` of h, or of
// c, was then changed by `change`.
double loss_of(const models::RecurrentLanguage& body, const Tensor& ids, std::int64_t begin, bool of_c,
               std::int64_t number, float change) {
  nn::Pass pass;
  models::RecurrentTextState state;
  body.forward(ids.narrow(1, 0, begin), pass, &state);
  state.state = {state.state.h.clone(), state.state.c.defined() ? state.state.c.clone() : Tensor()};
  (of_c ? state.state.c : state.state.h).data<float>()[number] += change;
  const Tensor logits = begin == tokens - 1 ? body.head(state.state.h.select(0, 1))
                                            : body.forward_last(ids.narrow(1, begin, tokens - 1 - begin), pass, state);
  return ops::cross_entropy(logits, ids.select(1, tokens - 1).contiguous()).item();
}

TEST(GradientReach, AgreesWithDifferencesForEveryCell) {
  for (const char* kind : {"rnn", "lstm", "gru", "mut1", "mut2", "mut3", "nas"}) {
    const models::TextModel model = small(kind);
    const models::RecurrentLanguage& body = *models::as_recurrent(models::language_of(model));
    const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 4, 0, 2, 2, 3, 1}, {1, tokens});
    const GradientReach reach = gradient_reach(body, ids);
    ASSERT_EQ(reach.h.size(), 6U);
    ASSERT_EQ(reach.c.size(), body.network().config.has_memory() ? 6U : 0U);
    for (const bool of_c : {false, true}) {
      const std::vector<double>& norms = of_c ? reach.c : reach.h;
      for (std::size_t k = 0; k < norms.size(); ++k) {
        double squares = 0;
        for (std::int64_t number = 0; number < 2 * hidden; ++number) {
          const auto begin = static_cast<std::int64_t>(tokens - 1 - k);
          const auto at = [&](float change) { return loss_of(body, ids, begin, of_c, number, change); };
          const double slope = (at(5e-3F) - at(-5e-3F)) / 1e-2;
          squares += slope * slope;
        }
        EXPECT_NEAR(norms[k], std::sqrt(squares), 1e-3 + 2e-2 * norms[k]) << kind << " k = " << k << " c " << of_c;
      }
    }
  }
}

// Of h_{t-k} of one unit, the product of w (1 - h²) over the steps between.
TEST(GradientReach, OfOneUnitIsAProduct) {
  const models::TextModel model = models::create_text_model(
      "rnn", {.model_kwargs = R"({"vocab_size": 5, "hidden_size": 1, "num_layers": 1})", .seed = 5});
  const models::RecurrentLanguage& body = *models::as_recurrent(models::language_of(model));
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 4, 0, 2, 2, 3, 1}, {1, tokens});
  const GradientReach reach = gradient_reach(body, ids);
  const double weight = model.net->parameters.at("rnn.weight_hh_l0").value.item();
  nn::Pass pass;
  const std::vector<float> h = body.network()(body.vectors()(ids.narrow(1, 0, tokens - 1), pass), pass).output.values();
  for (std::size_t k = 1; k < reach.h.size(); ++k) {
    const double state = h[h.size() - k];
    EXPECT_NEAR(reach.h[k], reach.h[k - 1] * std::abs(weight * (1 - state * state)), 1e-5 * reach.h[k - 1]) << k;
  }
}

TEST(GradientReach, IsTheMeanOverTheTexts) {
  const models::TextModel model = small("gru");
  const models::RecurrentLanguage& body = *models::as_recurrent(models::language_of(model));
  const std::vector<std::int64_t> first = {1, 4, 0, 2};
  const std::vector<std::int64_t> second = {3, 3, 1, 0};
  const GradientReach both =
      gradient_reach(body, Tensor::from(std::vector<std::int64_t>{1, 4, 0, 2, 3, 3, 1, 0}, {2, 4}));
  const GradientReach one = gradient_reach(body, Tensor::from(first, {1, 4}));
  const GradientReach other = gradient_reach(body, Tensor::from(second, {1, 4}));
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(both.h[k], (one.h[k] + other.h[k]) / 2, 1e-6);
  }
  EXPECT_EQ(test::error_of([&] {
              gradient_reach(body, Tensor::from(std::vector<std::int64_t>{1}, {1, 1}));
            }),
            "texts of at least two tokens [B, T + 1] are needed, not [1, 1]");
}

}  // namespace
}  // namespace vitrail::explain
