// A data set and a model so small that training them takes moments.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/io/image.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/trainer.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/tasks/classify.h"

namespace vitrail::test {

// `count` images of 8 by 8 pixels for each of the classes, each class of a colour of its own with noise.
inline void write_images(const std::filesystem::path& folder, int count, int classes = 3, std::uint64_t stream = 0) {
  for (int c = 0; c < classes; ++c) {
    const std::filesystem::path place = folder / fmt::format("class{}", c);
    std::filesystem::create_directories(place);
    for (int i = 0; i < count; ++i) {
      Draws draws(Philox(7, stream * 10000 + static_cast<std::uint64_t>(c * 100 + i)));
      io::Image image(8, 8);
      for (std::size_t k = 0; k < image.pixels.size(); ++k) {
        const int own = static_cast<int>(k) % 3 == c % 3 ? 150 : 60;
        image.pixels[k] = static_cast<std::uint8_t>(own + draws.integer(0, 100));
      }
      io::write_png(place / fmt::format("{}.png", i), image);
    }
  }
}

// A run on images in folder/data: 24 of training (6 batches of 4), 12 of validation.
inline train::ClassifyOptions tiny_options(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "data")) {
    write_images(folder / "data" / "train", 8);
    write_images(folder / "data" / "validation", 4, 3, 1);
  }
  train::ClassifyOptions options;
  options.data_dir = (folder / "data").string();
  options.output = (folder / "runs").string();
  options.experiment = "tiny";
  options.model = "vit_tiny_patch16_224";
  options.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.drop = 0.1;
  options.drop_path = 0.1;
  options.batch_size = 4;
  options.epochs = 3;
  options.warmup_epochs = 1;
  options.lr = 1e-3;
  options.images.crop_pct = 1;
  options.workers = 1;
  options.log_interval = 1;
  options.threads = 1;  // so small a model only waits for a second
  return options;
}

// The records of a metrics.jsonl.
inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// The records of a run without its timings.
inline std::vector<nlohmann::json> untimed(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines = json_lines(path);
  for (nlohmann::json& line : lines) {
    line.erase("images_per_second");
  }
  return lines;
}

// Stops after `step` updates.
inline train::FitHooks stop_after(std::int64_t step) {
  train::FitHooks hooks;
  auto seen = std::make_shared<std::int64_t>(0);
  hooks.on_step = [seen](std::int64_t now, double) { *seen = now; };
  hooks.should_stop = [seen, step] { return *seen >= step; };
  return hooks;
}

// The options of the run in a folder, to go on with.
template <class Options>
Options resumed(const std::filesystem::path& folder) {
  Options options;
  train::resume(folder, options);
  return options;
}

// Trains until `steps` steps are done, as a run that is stopped, and then goes on with it to its end.
template <class Options>
void fit_in_two_parts(const Options& options, std::int64_t steps) {
  EXPECT_TRUE(train::fit(options, stop_after(steps)).stopped);
  train::fit(resumed<Options>(std::filesystem::path(options.output) / options.experiment));
}

// What a config.toml says, over the defaults or `options`.
template <class Options>
Options options_in(const std::filesystem::path& file, Options options = {}) {
  train::read_config(file, options);
  return options;
}

// A checksum of the weights in a model folder: equal for equal bits.
inline std::uint64_t weights_of(const std::filesystem::path& folder) {
  return train::weights_checksum(*models::load_model(folder).net);
}

}  // namespace vitrail::test
