// `vitrail patches` shows what a model takes the patches of images for.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/see/whole_images.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/explain/patch_images.h"
#include "vitrail/explain/projection.h"
#include "vitrail/explain/segments.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/wording.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_images = 64;

struct PatchesFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::vector<std::string> images;
  std::string method = "pca";
  std::string output = "patches";
  std::string raw;
  std::int64_t clusters = 6;
  std::int64_t most = 40;
  std::uint64_t seed = 0;
  bool skip_broken = false;
  std::vector<const CLI::Option*> of_kmeans;
  const CLI::Option* of_match = nullptr;
};

// The tokens of some images, and the images as they are shown.
struct PatchesOfImages {
  std::vector<std::string> names;
  std::vector<io::Image> images;
  std::vector<nn::Size2> grids;
  Tensor tokens;  // [N, D], those of one image after those of another

  std::int64_t patches(std::size_t image) const { return grids[image][0] * grids[image][1]; }
  // The rows of a tensor [N, …] that belong to an image, on its grid.
  Tensor of_image(const Tensor& all, std::size_t image) const {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < image; ++i) {
      begin += patches(i);
    }
    return all.narrow(0, begin, patches(image)).contiguous();
  }
};

PatchesOfImages read_patches(const PatchesFlags& flags) {
  const WholeImageModel whole = open_for_whole_images(flags.model);
  const DType dtype = flags.compute.apply();
  const std::vector<NamedImage> named = list_images(flags.images, "", flags.skip_broken);
  check(flags.method != "match" || named.size() == 2, "patches of two images are matched, not of {}", named.size());
  check(named.size() <= most_images, "{} images were given: {} at most can be compared", named.size(), most_images);
  PatchesOfImages result;
  std::vector<Tensor> all;
  std::int64_t count = 0;
  for (const NamedImage& one : named) {
    const std::optional<io::Image> read = read_image(one, flags.skip_broken);
    if (!read) {
      continue;
    }
    const io::Image& image = *read;
    const Tensor tokens = explain::patch_tokens(*whole.model.net, whole.input(image), dtype);
    result.names.push_back(one.name);
    result.images.push_back(explain::large_enough(whole.seen(image)));
    result.grids.push_back({tokens.size(0), tokens.size(1)});
    all.push_back(tokens.reshape({tokens.size(0) * tokens.size(1), tokens.size(2)}));
    count += all.back().size(0);
  }
  check(!all.empty(), "none of the images could be read");
  check(flags.method != "match" || all.size() == 2, "patches of two images are matched, and one of them is broken");
  result.tokens = Tensor::empty({count, all[0].size(1)});
  std::int64_t at = 0;
  for (const Tensor& tokens : all) {
    result.tokens.narrow(0, at, tokens.size(0)).copy_from(tokens);
    at += tokens.size(0);
  }
  return result;
}

void check_none_is_input(const fs::path& folder, const std::vector<std::string>& outputs,
                         const std::vector<std::string>& inputs) {
  for (const std::string& output : outputs) {
    for (const std::string& input : inputs) {
      check_not_input((folder / output).string(), input);
    }
  }
}

// Writes each image with its drawing, a sheet of all and a page.
void write_drawings(const PatchesFlags& flags, const PatchesOfImages& patches, const std::vector<io::Image>& drawings,
                    const std::string& lead) {
  const fs::path folder = flags.output;
  explain::Section section{.title = "Images", .text = {}, .table = {}, .figures = {}, .figure_width = 240};
  std::int64_t width = 0;
  std::int64_t height = 0;
  for (const io::Image& image : drawings) {
    width = std::max(width, image.width);
    height = std::max(height, image.height);
  }
  const auto evened = [&](const io::Image& image) {
    io::Image even = explain::white_image(width, height);
    explain::paste(even, image, 0, 0);
    return even;
  };
  std::vector<std::vector<io::Image>> rows;
  std::vector<std::string> outputs = {"sheet.png"};
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    outputs.push_back(fmt::format("image{:02}.png", i));
    outputs.push_back(fmt::format("{}{:02}.png", flags.method, i));
  }
  check_none_is_input(folder, outputs, patches.names);
  make_page_folder(folder);
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::string image = fmt::format("image{:02}.png", i);
    const std::string drawing = fmt::format("{}{:02}.png", flags.method, i);
    io::write_png(folder / image, patches.images[i]);
    io::write_png(folder / drawing, drawings[i]);
    section.figures.push_back({image, patches.names[i]});
    section.figures.push_back({drawing, fmt::format("{} x {} patches", patches.grids[i][0], patches.grids[i][1])});
    rows.push_back({evened(patches.images[i]), evened(drawings[i])});
  }
  io::write_png(folder / "sheet.png", explain::sheet(rows));
  io::write_atomically(folder / "index.html", explain::html_page("Patches", lead, {section}));
}

std::string draw_components(const PatchesFlags& flags, const PatchesOfImages& patches, io::NamedTensors& raw) {
  const explain::Pca pca = explain::pca(patches.tokens, 3);
  const Tensor colors = explain::component_colors(pca.coordinates);
  std::vector<io::Image> drawings;
  for (std::size_t i = 0; i < patches.images.size(); ++i) {
    const nn::Size2& grid = patches.grids[i];
    const io::Image& image = patches.images[i];
    drawings.push_back(
        explain::color_patches(patches.of_image(colors, i).reshape({grid[0], grid[1], 3}), image.width, image.height));
    raw.emplace_back(fmt::format("coordinates.{}", i),
                     patches.of_image(pca.coordinates, i).reshape({grid[0], grid[1], 3}));
  }
  const auto& share = pca.explained_variance_ratio;
  const std::string lead = fmt::format(
      "The patch tokens of {} along their first three principal components, as red, green and blue in one "
      "basis: {:.1f}, {:.1f} and {:.1f} % of the variance.",
      io::counted(std::ssize(drawings), "images"), 100 * share[0], 100 * share[1], 100 * share[2]);
  write_drawings(flags, patches, drawings, lead);
  return lead;
}

std::string draw_groups(const PatchesFlags& flags, const PatchesOfImages& patches, io::NamedTensors& raw) {
  const explain::KMeans groups =
      explain::kmeans(patches.tokens, explain::kmeans_start(patches.tokens, flags.clusters, flags.seed));
  const Tensor labels = Tensor::from(groups.labels, {std::ssize(groups.labels)});
  const std::vector<explain::Color> colors = explain::segment_colors(flags.clusters);
  std::vector<io::Image> drawings;
  for (std::size_t i = 0; i < patches.images.size(); ++i) {
    const Tensor own = patches.of_image(labels, i).reshape({patches.grids[i][0], patches.grids[i][1]});
    drawings.push_back(explain::paint_segments(patches.images[i], own, colors));
    raw.emplace_back(fmt::format("labels.{}", i), own);
  }
  raw.emplace_back("centers", groups.centers);
  const std::string lead = fmt::format(
      "The patch tokens of {} in {} by k-means, after {}: inertia {:.6g}.", io::counted(std::ssize(drawings), "images"),
      io::counted(flags.clusters, "groups"), io::counted(groups.iterations, "rounds"), groups.inertia);
  write_drawings(flags, patches, drawings, lead);
  return lead;
}

std::string draw_pairs(const PatchesFlags& flags, const PatchesOfImages& patches, io::NamedTensors& raw) {
  std::vector<explain::Match> matches =
      explain::mutual_matches(patches.of_image(patches.tokens, 0), patches.of_image(patches.tokens, 1));
  const auto all = std::ssize(matches);
  matches.resize(static_cast<std::size_t>(std::min<std::int64_t>(all, flags.most)));
  const fs::path folder = flags.output;
  check_none_is_input(folder, {"match.png"}, patches.names);
  make_page_folder(folder);
  io::write_png(folder / "match.png", explain::draw_matches(patches.images[0], patches.grids[0], patches.images[1],
                                                            patches.grids[1], matches));
  std::vector<std::int64_t> pairs;
  std::vector<float> cosines;
  for (const explain::Match& match : matches) {
    pairs.insert(pairs.end(), {match.first, match.second});
    cosines.push_back(static_cast<float>(match.similarity));
  }
  raw.emplace_back("matches", Tensor::from(pairs, {std::ssize(matches), 2}));
  raw.emplace_back("similarities", Tensor::from(cosines, {std::ssize(matches)}));
  const std::string lead =
      fmt::format("The {} of {} whose tokens are each other's nearest: cosines from {:.3f} to {:.3f}.",
                  std::ssize(matches) < all ? fmt::format("best {}", matches.size()) : std::to_string(all),
                  io::counted(all, "pairs of patches"), matches.back().similarity, matches.front().similarity);
  explain::Section section{.title = "Pairs", .text = {}, .table = {}, .figures = {}, .figure_width = 900};
  section.figures = {{"match.png", fmt::format("{} and {}", patches.names[0], patches.names[1])}};
  io::write_atomically(folder / "index.html", explain::html_page("Patches", lead, {section}));
  return lead;
}

void patches(const PatchesFlags& flags) {
  for (const CLI::Option* option : flags.of_kmeans) {
    check_usage(flags.method == "kmeans" || option->count() == 0, "{} belongs to --method kmeans", option->get_name());
  }
  check_usage(flags.method == "match" || flags.of_match->count() == 0, "--most belongs to --method match");
  check_not_of_model(flags.raw, flags.model);
  const PatchesOfImages read = read_patches(flags);
  for (const std::string& name : read.names) {
    check_not_input(flags.raw, name);
  }
  io::NamedTensors raw;
  const std::string lead = flags.method == "pca"      ? draw_components(flags, read, raw)
                           : flags.method == "kmeans" ? draw_groups(flags, read, raw)
                                                      : draw_pairs(flags, read, raw);
  if (!flags.raw.empty()) {
    io::save_safetensors(flags.raw, raw);
  }
  fmt::print("{}\n{}/index.html, {}\n", lead, flags.output, flags.method == "match" ? "match.png" : "sheet.png");
}

}  // namespace

void add_patches(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("patches", "Draw what a model's patch tokens have in common: colours, groups, pairs");
  const auto flags = std::make_shared<PatchesFlags>();
  add_model_argument(command, flags->model);
  add_images_argument(command, flags->images);
  command.add_flag("--skip-broken", flags->skip_broken, "Leave broken images out and name them");
  command
      .add_option("--method", flags->method,
                  "Principal components as red, green and blue (pca), groups (kmeans), or lines between patches of two "
                  "images that are each other's nearest (match)")
      ->capture_default_str()
      ->check(CLI::IsMember({"pca", "kmeans", "match"}).description(""))
      ->type_name("NAME");
  flags->of_kmeans = {command.add_option("--clusters", flags->clusters, "Groups of k-means")
                          ->capture_default_str()
                          ->check(whole_number(1, 64))
                          ->type_name("K"),
                      command.add_option("--seed", flags->seed, "Seed of the points that k-means begins with")
                          ->capture_default_str()
                          ->check(at_least(0))
                          ->type_name("N")};
  flags->of_match = command.add_option("--most", flags->most, "Most pairs that are drawn, the most similar ones")
                        ->capture_default_str()
                        ->check(whole_number(1, 1000))
                        ->type_name("N");
  command.add_option("--output", flags->output, "Folder for the images")->capture_default_str()->type_name("DIR");
  expect_ending(
      command.add_option(
          "--raw", flags->raw,
          "Write coordinates.{i} [rows, columns, 3] f32, labels.{i} [rows, columns] i64 and centers [K, D], or "
          "matches [N, 2] i64 (patches counted row by row) and similarities [N]"),
      ".safetensors");
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail patches my_dino cats/*.jpg --output colours",
                         "vitrail patches my_dino cats/*.jpg --method kmeans --clusters 8 --img-size 448",
                         "vitrail patches my_dino cat.jpg lion.jpg --method match --output pairs"});
  command.callback([flags] { patches(*flags); });
}

}  // namespace vitrail::cli
