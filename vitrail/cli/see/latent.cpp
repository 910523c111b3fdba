// `vitrail latent` goes through the latent space of an autoencoder and draws what lies on the way.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/train/pretrain/latent_space.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct LatentFlags {
  std::string model;
  std::vector<std::string> direction;
  std::vector<std::string> between;
  std::vector<std::string> images;
  std::optional<std::int64_t> steps;
  std::optional<double> strength;
  std::string output = "latent.png";
  ComputeFlags compute;
};

// The paths of a list, one a line; those that are not there lie beside the list.
std::vector<std::string> paths_in(const fs::path& list) {
  check(io::is_file(list), "there is no list of images '{}'", list.string());
  std::vector<std::string> paths;
  std::set<std::string> seen;
  std::error_code none;
  for (std::string line : io::read_lines(list)) {
    check(text::find_invalid_utf8(line) == std::string::npos,
          "'{}' is no text: a list of images, a path a line, was expected", list.string());
    while (line.ends_with(' ')) {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    const fs::path beside = list.parent_path() / line;
    paths.push_back(!fs::exists(line, none) && fs::exists(beside, none) ? beside.string() : line);
    if (!seen.insert(paths.back()).second) {
      say("note: '{}' names '{}' twice, which weighs as two images\n", list.string(), line);
    }
  }
  check(!paths.empty(), "the list '{}' names no images", list.string());
  return paths;
}

std::vector<Tensor> inputs_of(const train::Autoencoder& model, const std::vector<std::string>& paths,
                              const std::string& output) {
  std::vector<Tensor> inputs;
  for (const NamedImage& image : list_images(paths, output)) {
    inputs.push_back(model_input(model.encoder, image.read()));
  }
  return inputs;
}

// The amounts of a direction: as many on either side of 0.
std::vector<double> amounts_of(const LatentFlags& flags) {
  const std::int64_t steps = flags.steps.value_or(7);
  std::vector<double> amounts;
  for (std::int64_t i = 0; i < steps; ++i) {
    amounts.push_back(flags.strength.value_or(1.5) * (2 * static_cast<double>(i) / static_cast<double>(steps - 1) - 1));
  }
  return amounts;
}

void draw_direction(const train::Autoencoder& model, const LatentFlags& flags, DType dtype) {
  const std::vector<std::string> a = paths_in(flags.direction[0]);
  const std::vector<std::string> b = paths_in(flags.direction[1]);
  check(std::multiset<std::string>(a.begin(), a.end()) != std::multiset<std::string>(b.begin(), b.end()),
        "'{}' and '{}' name the same images: a direction leads from the mean of some to the mean of others",
        flags.direction[0], flags.direction[1]);
  std::set<std::string> shared(a.begin(), a.end());
  std::erase_if(shared, [&](const std::string& path) { return std::ranges::find(b, path) == b.end(); });
  if (!shared.empty()) {
    say("note: {} in both lists, such as '{}': they lie on either side of the direction\n",
        io::counted(std::ssize(shared), "images"), *shared.begin());
  }
  const std::vector<Tensor> inputs_a = inputs_of(model, a, flags.output);
  const std::vector<Tensor> inputs_b = inputs_of(model, b, flags.output);
  const train::LatentDirection direction = train::latent_direction(train::latent_vectors(model, inputs_a, dtype),
                                                                   train::latent_vectors(model, inputs_b, dtype));
  std::vector<Tensor> starts;
  std::vector<std::string> names;
  if (flags.images.empty()) {  // the first of both lists
    for (const auto& [inputs, list] :
         {std::pair(&inputs_b, flags.direction[1]), std::pair(&inputs_a, flags.direction[0])}) {
      const auto count = std::min<std::ptrdiff_t>(3, std::ssize(*inputs));
      starts.insert(starts.end(), inputs->begin(), inputs->begin() + count);
      names.insert(names.end(), static_cast<std::size_t>(count), fs::path(list).stem().string());
    }
  } else {
    for (const NamedImage& image : list_images(flags.images, flags.output)) {
      starts.push_back(model_input(model.encoder, image.read()));
      names.push_back(fs::path(image.name).stem().string());
    }
  }
  io::write_png(flags.output, train::direction_sheet(model, starts, names, direction.vector, amounts_of(flags), dtype));
  fmt::print(
      "from {} to {}: a direction of length {:.3f} in {}; along it, {:.1f} % of the images lie on their own side\n{}\n",
      io::counted(std::ssize(inputs_b), "images"), std::ssize(inputs_a), direction.length,
      io::counted(model.latent_dim(), "dimensions"), 100 * direction.told_apart, flags.output);
}

void latent(const LatentFlags& flags) {
  check_usage(flags.direction.empty() != flags.between.empty(),
              "--direction A.txt B.txt or --between a.png b.png is required, and not both");
  for (const auto& [name, given] :
       {std::pair("--direction", &flags.direction), std::pair("--between", &flags.between)}) {
    check_usage(given->empty() || given->size() == 2, "{} takes two {}, not {}", name,
                given == &flags.between ? "images" : "lists", given->size());
  }
  check_usage(flags.images.empty() || flags.between.empty(), "IMAGES go along a --direction, not --between two images");
  check_usage(!flags.strength || flags.between.empty(), "--strength has no effect on --between: it is for --direction");
  const DType dtype = flags.compute.apply();
  const std::filesystem::path folder = train::model_of(flags.model);
  check_trained(folder, flags.model);
  const std::unique_ptr<train::Autoencoder> model = train::Autoencoder::open(folder);
  if (!flags.direction.empty()) {
    draw_direction(*model, flags, dtype);
    return;
  }
  const std::vector<Tensor> ends = inputs_of(*model, flags.between, flags.output);
  check(ends.size() == 2, "--between takes two images, but '{}' and '{}' are {}", flags.between[0], flags.between[1],
        ends.size());
  std::error_code not_there;
  check(!std::filesystem::equivalent(flags.between[0], flags.between[1], not_there),
        "--between names '{}' twice: there is no way between an image and itself", flags.between[0]);
  io::write_png(flags.output, train::between_sheet(*model, ends[0], ends[1], flags.steps.value_or(8), dtype));
  fmt::print("{}\n", flags.output);
}

}  // namespace

void add_latent(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "latent", "Draw ways through the latent space of an autoencoder: from one image to another, or along a meaning");
  const auto flags = std::make_shared<LatentFlags>();
  command.add_option("MODEL", flags->model, "Run of `vitrail pretrain autoencoder`, or its model folder")
      ->required()
      ->type_name("");
  command.add_option("IMAGES", flags->images, "Images to move along --direction (default: the first of both lists)")
      ->type_name("");
  command
      .add_option("--direction", flags->direction,
                  "Two lists of images, a path a line: the direction from the mean of B's to the mean of A's")
      ->expected(2)
      ->allow_extra_args(false)
      ->type_name("A.txt B.txt");
  command.add_option("--between", flags->between, "Two images, between whose latent vectors the way goes")
      ->expected(2)
      ->allow_extra_args(false)
      ->type_name("A B");
  command.add_option("--steps", flags->steps, "Images on the way (default: 7 of a direction, 8 between images)")
      ->check(whole_number(2, 100))
      ->type_name("N");
  command
      .add_option("--strength", flags->strength,
                  "How far a direction is followed; 1: as far as the means are apart (default: 1.5)")
      ->check(positive())
      ->type_name("X");
  expect_ending(command.add_option("--output", flags->output, "Image to write")->capture_default_str(), ".png");
  add_compute_flags(command, flags->compute);
  add_examples(command, {"vitrail pretrain autoencoder photos --latent-dim 32 --output runs --experiment ae",
                         "vitrail latent runs/ae --direction ships.txt frogs.txt --output ships.png",
                         "vitrail latent runs/ae --between a.png b.png"});
  command.callback([flags] { latent(*flags); });
}

}  // namespace vitrail::cli
