// The command `vitrail augment`, which shows the augmented images that training sees.
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/option_flags.h"
#include "vitrail/data/transforms.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/image_options.h"

namespace vitrail::cli {
namespace {

constexpr std::int64_t smallest_shown = 112;  // pixels; smaller images are enlarged by an integer factor
constexpr std::ptrdiff_t most_shown = 64;     // images

struct AugmentFlags {
  std::vector<std::string> images;
  std::string output;
  data::AugmentOptions augment;
  std::int64_t seed = train::RunOptions().seed;
  std::int64_t img_size = 224;
  std::int64_t rows = 3;
  std::int64_t columns = 8;
  bool skip_broken = false;
};

void augment(AugmentFlags& flags) {
  std::vector<NamedImage> images = list_images(flags.images, flags.output, flags.skip_broken);
  data::ImageConfig config;
  config.width = config.height = flags.img_size;
  const data::Transform transform = data::train_transform(config, flags.augment);
  config.crop_mode = "border";  // the whole image in its own shape
  config.crop_pct = 1;
  const data::Transform whole = data::eval_transform(config);
  const auto shown = [&](const Tensor& x) { return explain::image_of(x, config.mean, config.std, smallest_shown); };

  std::vector<std::vector<io::Image>> sheet;
  explain::SheetLabels labels{.rows = {}, .columns = {"as it is"}};
  for (std::int64_t i = 1; i < flags.columns; ++i) {
    labels.columns.push_back(fmt::format("epoch {}", i));
  }
  const auto rows = [&] { return std::max<std::int64_t>(flags.rows, std::min(std::ssize(images), most_shown)); };
  for (std::int64_t row = 0; row < rows();) {
    const auto at = images.begin() + row % std::min(std::ssize(images), most_shown);
    const std::optional<io::Image> image = read_image(*at, flags.skip_broken);
    if (!image) {
      images.erase(at);
      check(!images.empty(), "none of the images could be read");
      continue;
    }
    std::vector<io::Image>& line = sheet.emplace_back();
    line.push_back(shown(whole(*image)));
    for (std::int64_t i = 1; i < flags.columns; ++i) {
      // Column i shows epoch i - 1 of a run, and each row is an image of the data.
      line.push_back(shown(transform(*image, static_cast<std::uint64_t>(flags.seed), i - 1, row)));
    }
    ++row;
  }
  io::write_png(flags.output, explain::sheet(sheet, labels));
  fmt::print("{}: {}, each the image as it is and {} as training may see it\n", flags.output,
             io::counted(std::ssize(sheet), "rows"), io::counted(flags.columns - 1, "times"));
  if (most_shown < std::ssize(images)) {
    fmt::print("the first {} of {} images are shown\n", most_shown, images.size());
  }
}

}  // namespace

void add_augment(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("augment", "Draw what training sees of images: a sheet of augmented ones");
  const auto flags = std::make_shared<AugmentFlags>();
  add_images_argument(command, flags->images);
  expect_ending(command.add_option("--output", flags->output, "Image to write")->required(), ".png");
  command.add_option("--img-size", flags->img_size, "Image size in pixels")
      ->capture_default_str()
      ->check(whole_number(1, 2048));
  command.add_option("--rows", flags->rows, "Fewest rows; each image has one or more")
      ->capture_default_str()
      ->check(whole_number(1, 64));
  command.add_option("--columns", flags->columns, "Images in a row, the first as it is")
      ->capture_default_str()
      ->check(whole_number(2, 64));
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  const auto list = std::make_shared<train::OptionList>();
  train::add_augment_options(*list, flags->augment);
  list->add("seed", flags->seed, "S", "Seed of all that is random").idle_if("with --no-aug", [flags] {
    return flags->augment.no_aug;
  });
  const auto options = std::make_shared<OptionFlags>(command);
  for (const train::Option& option : list->all()) {
    options->add(option, "As in training");
  }
  add_examples(command, {"vitrail augment cat.jpg --aa rand-m9-mstd0.5-inc1 --output sheet.png",
                         "vitrail augment photos/train/cat --aa 3a --reprob 0.25 --rows 8 --output sheet.png"});
  command.callback([flags, list, options] {
    as_usage([&] {
      options->apply(*list);
      list->validate();
      options->check_effects(*list);
    });
    augment(*flags);
  });
}

}  // namespace vitrail::cli
