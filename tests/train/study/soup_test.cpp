#include "vitrail/train/study/soup.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"

namespace vitrail::train {
namespace {

using test::error_of;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Soup : public ::testing::Test {
 protected:
  // A model whose parameters are noise of this stream, saved.
  fs::path save(const std::string& name, std::uint64_t stream, std::int64_t embed_dim = 24) {
    models::CreateOptions options;
    options.model_kwargs =
        fmt::format(R"({{"img_size": 8, "patch_size": 4, "embed_dim": {}, "depth": 1, "num_heads": 2}})", embed_dim);
    options.num_classes = 3;
    const models::Model model = models::create_model("vit_tiny_patch16_224", options);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      parameter.value.copy_from(test::random_tensor(parameter.value.shape(), mix(hash(parameter.name), stream)));
      parameter.value.touch();
    }
    models::save_model(model, folder / name);
    return folder / name;
  }
  test::TemporaryFolder folder;
};

TEST_F(Soup, IsTheMeanOfTheWeights) {
  const std::vector<fs::path> folders = {save("a", 1), save("b", 2), save("c", 3)};
  const models::Model soup = uniform_soup(folders);
  std::vector<models::Model> models;
  for (const fs::path& one : folders) {
    models.push_back(models::load_model(one));
  }
  for (const nn::Parameter& parameter : soup.net->parameters.all()) {
    std::vector<float> mean(static_cast<std::size_t>(parameter.value.numel()));
    for (const models::Model& model : models) {
      const std::vector<float> values = model.net->parameters.at(parameter.name).value.values();
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += values[i] / 3;
      }
    }
    test::expect_close(parameter.value, Tensor::from(mean, parameter.value.shape()), 1e-6, parameter.name);
  }
}

TEST(TextSoup, IsTheMeanOfTheWeights) {
  const test::TemporaryFolder folder;
  const auto save = [&](const char* name, std::uint64_t seed, int width) {
    const models::TextModel model = models::create_text_model(
        "transformer-small",
        {.model_kwargs = fmt::format(
             R"({{"vocab_size": 12, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "d_model": {}, "encoder_layers": 1,
                                          "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
                                          "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}})",
             width),
         .seed = seed});
    fs::create_directories(folder / name);
    models::write_text_model(model, folder / name);
    return folder / name;
  };
  const std::vector<fs::path> folders = {save("a", 1, 8), save("b", 2, 8)};
  const models::TextModel soup = uniform_text_soup(folders);
  const models::TextModel first = models::load_text_model(folders[0]);
  const models::TextModel second = models::load_text_model(folders[1]);
  for (const nn::Parameter& parameter : soup.net->parameters.all()) {
    const std::vector<float> a = first.net->parameters.at(parameter.name).value.values();
    const std::vector<float> b = second.net->parameters.at(parameter.name).value.values();
    std::vector<float> mean;
    for (std::size_t i = 0; i < a.size(); ++i) {
      mean.push_back((a[i] + b[i]) / 2);
    }
    test::expect_close(parameter.value, Tensor::from(mean, parameter.value.shape()), 1e-6, parameter.name);
  }
  EXPECT_THAT(error_of([&] { uniform_text_soup({folders[0], save("c", 1, 16)}); }), HasSubstr("config.json"));
}

// The accuracy of a soup is looked up by the first weight of its head, which tells who is in it.
TEST_F(Soup, TakesGreedilyWhatDoesNotHarm) {
  const std::vector<fs::path> folders = {save("a", 1), save("b", 2), save("c", 3), save("d", 4)};
  const auto mark = [](const models::Model& model) {
    return model.net->parameters.at("head.weight").value.data<float>()[0];
  };
  std::vector<float> marks;
  for (const fs::path& one : folders) {
    marks.push_back(mark(models::load_model(one)));
  }
  const std::vector<std::pair<float, double>> accuracies = {
      {marks[0], 60},
      {marks[1], 80},
      {marks[2], 70},
      {marks[3], 75},
      {(marks[1] + marks[3]) / 2, 80},             // no worse: taken
      {(marks[1] + marks[3] + marks[2]) / 3, 79},  // worse: not
      {(marks[1] + marks[3] + marks[0]) / 3, 85},  // better
  };
  const auto evaluate = [&](const models::Model& model) {
    for (const auto& [value, top1] : accuracies) {
      if (std::abs(mark(model) - value) < 1e-6F) {
        Evaluation evaluation;
        evaluation.top1 = top1;
        return evaluation;
      }
    }
    ADD_FAILURE() << "a soup that should not have been tried";
    return Evaluation();
  };
  const GreedySoup soup = greedy_soup(folders, evaluate);
  EXPECT_EQ(soup.top1, 85);
  EXPECT_NEAR(mark(soup.model), (marks[0] + marks[1] + marks[3]) / 3, 1e-6);
  std::vector<std::string> order;
  std::vector<bool> used;
  for (const GreedySoup::Ingredient& one : soup.ingredients) {
    order.push_back(one.folder.filename());
    used.push_back(one.used);
  }
  EXPECT_THAT(order, ::testing::ElementsAre("b", "d", "c", "a"));
  EXPECT_THAT(used, ::testing::ElementsAre(true, true, false, true));
  EXPECT_EQ(soup.ingredients[2].with_top1, 79);
}

TEST_F(Soup, RefusesModelsOfDifferentKinds) {
  const fs::path a = save("a", 1);
  EXPECT_THAT(error_of([&] { uniform_soup({a, save("wide", 2, 48)}); }), HasSubstr("cannot be averaged"));
  models::Model named = models::load_model(a);
  named.pretrained.label_names = {"x", "y", "z"};
  models::save_model(named, folder / "named");
  EXPECT_THAT(error_of([&] { uniform_soup({a, folder / "named"}); }), HasSubstr("different classes"));
  EXPECT_THAT(error_of([&] { uniform_soup({}); }), HasSubstr("at least one"));
  EXPECT_THAT(error_of([&] { uniform_soup({a, folder / "nowhere"}); }), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace vitrail::train
