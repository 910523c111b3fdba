// `vitrail positions` shows what a model knows about where its patches lie.
#include "vitrail/explain/positions.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/models/base/owner.h"

namespace vitrail::cli {
namespace {

struct PositionFlags {
  ModelFlags model;
  std::string output = "positions.png";
  std::optional<std::int64_t> layer;
};

void draw(const PositionFlags& flags) {
  const models::Model model = flags.model.open();
  flags.model.note_random_weights(model);
  const auto* transformer = models::body_of<models::VisionTransformer>(*model.net);
  check(transformer != nullptr, "{} is not a plain Vision Transformer, whose positions this command draws",
        model.architecture);
  const models::TokenLayout layout = transformer->token_layout(model.pretrained.height, model.pretrained.width);
  const explain::ModelPositions positions = explain::positions_of(*transformer, {layout.rows, layout.columns});
  check_usage(!flags.layer || positions.in_scores(),
              "--layer has no effect on '{}', whose blocks have no positions of their own", flags.model.model);
  const std::int64_t layer = from_end(flags.layer.value_or(0), transformer->depth());
  io::write_png(flags.output, explain::position_image(positions, layer));
  fmt::print("{}: positions of {} x {} patches\n", flags.output, layout.rows, layout.columns);
}

}  // namespace

void add_positions(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("positions", "Draw what a model knows about where its patches lie");
  const auto flags = std::make_shared<PositionFlags>();
  add_model_argument(command, flags->model);
  command
      .add_option("--layer", flags->layer,
                  "Block whose relative or rotary positions are drawn, from 0 (default); -1 is the last")
      ->check(whole_number());
  expect_ending(command.add_option("--output", flags->output, "Image to write")->capture_default_str(), ".png");
  add_examples(command, {"vitrail positions runs/photos/best --output learned.png",
                         "vitrail positions vit_tiny_patch16_224 --model-kwargs pos_embed=rope2d_mixed"});
  command.callback([flags] { draw(*flags); });
}

}  // namespace vitrail::cli
