// A folder that is not there, or that is none of a model, is told in the same words by all that load one.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/models/vit/mae.h"

namespace vitrail::models {
namespace {

using test::error_of;

TEST(MissingFolder, IsToldAlike) {
  const test::TemporaryFolder empty;
  const std::string none = (empty / "none").string();
  const std::string folder = (empty / ".").string();
  const std::vector<std::function<void(const std::string&)>> loaders = {
      [](const std::string& path) { load_model(path); },
      [](const std::string& path) { load_text_model(path); },
      [](const std::string& path) { load_recurrent(path); },
      [](const std::string& path) { load_clip(path); },
      [](const std::string& path) { open_masked_autoencoder(path); },
  };
  for (const auto& load : loaders) {
    EXPECT_EQ(error_of([&] { load(none); }), "there is no model folder '" + none + "'");
    EXPECT_EQ(error_of([&] { load(folder); }), "'" + folder + "' is not a model folder: it has no config.json");
  }
}

}  // namespace
}  // namespace vitrail::models
