// `vitrail reconstruct` shows what an autoencoder makes of images.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/texts.h"
#include "vitrail/explain/reconstruction.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/train/pretrain/autoencoder.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

struct ReconstructFlags {
  std::string model;
  std::vector<std::string> images;
  std::string output = "reconstructions.png";
  models::MaeOptions mae;
  std::int64_t most = 16;
  std::uint64_t seed = 0;
  const CLI::Option* seed_flag = nullptr;
  bool skip_broken = false;
  ComputeFlags compute;
};

void reconstruct(const ReconstructFlags& flags) {
  const DType dtype = flags.compute.apply();
  const std::string folder = train::model_of(flags.model).string();
  check_trained(folder, flags.model);
  std::unique_ptr<train::Autoencoder> with_bottleneck;
  models::Model masked;
  if (train::is_autoencoder(folder)) {
    check_usage(!flags.mae.mask_ratio && flags.seed_flag->count() == 0,
                "'{}' hides no patches: --mask-ratio and --seed are for masked autoencoders", flags.model);
    with_bottleneck = train::Autoencoder::open(folder);
  } else {
    masked = models::open_masked_autoencoder(folder, {}, flags.mae);
  }
  const models::Model& model = with_bottleneck ? with_bottleneck->encoder : masked;
  std::vector<NamedImage> images = list_images(flags.images, flags.output, flags.skip_broken);
  const std::size_t all = images.size();
  const auto most = static_cast<std::size_t>(flags.most);
  if (all > most) {  // some from all of the list, which often has one class after the other
    std::vector<NamedImage> some;
    for (std::size_t i = 0; i < most; ++i) {
      some.push_back(images[i * all / most]);
    }
    images = std::move(some);
  }
  std::vector<Tensor> inputs;
  inputs.reserve(images.size());
  for (const NamedImage& image : images) {
    if (const std::optional<io::Image> read = read_image(image, flags.skip_broken)) {
      inputs.push_back(model_input(model, *read));
    }
  }
  check(!inputs.empty(), "none of the images could be read");
  io::write_png(flags.output, with_bottleneck ? train::autoencoder_sheet(*with_bottleneck, inputs, dtype)
                                              : explain::reconstruction_sheet(model, inputs, flags.seed, dtype));
  fmt::print("{} of {}, each {}: {}\n", inputs.size(), io::counted(static_cast<std::int64_t>(all), "images"),
             with_bottleneck ? "as it is and decoded" : "masked, reconstructed and as it is", flags.output);
}

}  // namespace

void add_reconstruct(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "reconstruct", "Draw images, with patches hidden or not, and what an autoencoder makes of them");
  const auto flags = std::make_shared<ReconstructFlags>();
  command
      .add_option("MODEL", flags->model,
                  "Folder of `vitrail pretrain mae` or `autoencoder`, or of transformers' masked autoencoder")
      ->required()
      ->type_name("");
  add_images_argument(command, flags->images);
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  expect_ending(command.add_option("--output", flags->output, "Image to write, with a row for each of IMAGES")
                    ->capture_default_str(),
                ".png");
  command
      .add_option("--mask-ratio", flags->mae.mask_ratio, "Share of the patches that are hidden (default: the model's)")
      ->check(inner_share());
  command.add_option("--most", flags->most, "Most rows")->capture_default_str()->check(at_least(1));
  flags->seed_flag = command.add_option("--seed", flags->seed, "Seed of the choice of hidden patches")
                         ->capture_default_str()
                         ->check(at_least(0));
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail reconstruct output/train/NAME/best photos/test --output sheet.png",
                         "vitrail reconstruct vit-mae-base cat.jpg dog.jpg --mask-ratio 0.9"});
  command.callback([flags] { reconstruct(*flags); });
}

}  // namespace vitrail::cli
