// Captions that generate() writes, against transformers' (tools/golden/captioner.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/generate/generate.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/joint/captioner.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

// What transformers returns: the tokens behind the first, and padding behind the one that ended it.
Ids padded(Ids ids, std::int64_t start, std::int64_t pad, std::size_t length) {
  ids.insert(ids.begin(), start);
  ids.resize(length, pad);
  return ids;
}

TEST(Captions, AreTransformersTokens) {
  for (const char* name : {"vit", "deit", "swin"}) {
    const std::filesystem::path folder = test::golden_path("models/joint/captioner") / name;
    const std::unique_ptr<models::Captioner> model = models::load_captioner(folder);
    const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
    const models::Captioning captioning(*model, golden.get("pixel_values"), DType::f32);
    const nlohmann::json expected = io::read_json(folder / "expected.json");
    for (const auto& [way, wanted] : expected.items()) {
      GenerationConfig config = read_generation_config(folder);
      config.max_length = 12;
      config.num_beams = wanted["config"]["num_beams"].get<std::int64_t>();
      config.length_penalty = wanted["config"].value("length_penalty", 1.0);
      config.num_return_sequences = wanted["config"].value("num_return_sequences", 1);
      config.early_stopping =
          wanted["config"].value("early_stopping", false) ? EarlyStopping::at_once : EarlyStopping::heuristic;
      std::vector<Ids> written;
      for (const auto& sequences : generate_batch(captioning, std::vector<Ids>(3, Ids{model->start}), config)) {
        for (const Sequence& sequence : sequences) {
          written.push_back(padded(sequence.ids, model->start, model->end, wanted["ids"][0].get<Ids>().size()));
        }
      }
      EXPECT_EQ(written, wanted["ids"].get<std::vector<Ids>>()) << name << " " << way;
    }
  }
}

}  // namespace
}  // namespace vitrail::generate
