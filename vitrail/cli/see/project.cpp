// `vitrail project` lays features out in the plane, and makes a page of them.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/data/resize.h"
#include "vitrail/explain/map_page.h"
#include "vitrail/explain/projection.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/study/features.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t thumbnail_side = 48;

struct ProjectFlags {
  std::string features;
  std::string method = "tsne";
  std::string output;
  DataFlags images;
  explain::TsneOptions tsne;  ///< but for the perplexity
  std::optional<double> perplexity;
  std::optional<std::int64_t> limit;
  std::uint64_t seed = 0;
  ComputeFlags compute;
  bool json = false;
  std::vector<const CLI::Option*> of_tsne;
};

// A part of the features, drawn by `seed`, in their order.
train::Features some_of(const train::Features& features, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(features.x.size(0)));
  for (std::int64_t i = 0; i < std::ssize(order); ++i) {
    order[static_cast<std::size_t>(i)] = i;
  }
  Draws draws(Philox(seed, hash("features to project")));
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draws.integer(i, std::ssize(order)))]);
  }
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  train::Features part;
  part.classes = features.classes;
  part.part = features.part;
  part.x = Tensor::empty({count, features.x.size(1)});
  part.labels = Tensor::empty({count}, DType::i64);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = order[static_cast<std::size_t>(i)];
    part.x.select(0, i).copy_from(features.x.select(0, from));
    part.labels.data<std::int64_t>()[i] = features.labels.data<std::int64_t>()[from];
    if (!features.names.empty()) {
      part.names.push_back(features.names[static_cast<std::size_t>(from)]);
    }
  }
  return part;
}

// The middle of an image, as a small square.
io::Image thumbnail(const io::Image& image) {
  const std::int64_t side = std::min(image.width, image.height);
  const data::Region middle{(image.width - side) / 2, (image.height - side) / 2, side, side};
  return data::resize(image, middle, thumbnail_side, thumbnail_side, data::Interpolation::bicubic);
}

// The images that the features are of: those of their part, or where they have no labels all of them.
std::unique_ptr<data::Dataset> images_of(const train::Features& features, const DataFlags& flags) {
  check(flags.split.empty() || features.part.empty() || flags.split == features.part,
        "the features are of the part '{}', not of --split {}", features.part, flags.split);
  const auto labels = features.labels.span<std::int64_t>();
  const bool unlabeled = std::ranges::all_of(labels, [](std::int64_t label) { return label == data::unlabeled; });
  if (unlabeled && flags.split.empty() && features.part.empty()) {
    auto all = data::open_unlabeled(flags.data, true);  // images are found by their names
    say_notes_of(*all);
    return all;
  }
  data::DatasetOptions where;
  where.split = flags.split.empty() && data::has_parts(flags.data) ? features.part : flags.split;
  where.labeled = false;
  where.skip_broken = true;
  return data::open_dataset(flags.data, where);
}

// The thumbnails of the images, which are found by their names.
std::vector<io::Image> thumbnails(const train::Features& features, const DataFlags& flags) {
  const auto dataset = images_of(features, flags);
  std::map<std::string, std::int64_t> places;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    places.emplace(io::as_utf8(dataset->name(i)), i);  // as files of features have them
  }
  std::vector<io::Image> result;
  for (const std::string& name : features.names) {
    const auto place = places.find(name);
    check(place != places.end(), "'{}' has no image '{}', of which there are features: were they made of other images?",
          flags.data, name);
    result.push_back(thumbnail(dataset->image(place->second)));
  }
  return result;
}

// --perplexity, or else the usual one; where there are too few features for that, a third of the others, and a line on
// stderr says so.
double perplexity_for(std::int64_t features, const std::optional<double>& asked) {
  const double usual = explain::TsneOptions().perplexity;
  const auto most = static_cast<double>(features);
  if (asked || usual < most) {
    check_usage(asked.value_or(0) < most, "--perplexity must be below the number of features, {}, but is {:g}",
                features, asked.value_or(0));
    return asked.value_or(usual);
  }
  const double fitting = (most - 1) / 3;
  say("note: of {} features the perplexity is {:.4g}, not {:g}: --perplexity chooses another\n", features, fitting,
      usual);
  return fitting;
}

struct Projection {
  Tensor coordinates;
  std::string lead;
  nlohmann::ordered_json facts;
};

Projection projected(const train::Features& features, const ProjectFlags& flags) {
  check(features.x.size(0) > 1, "'{}' has a single feature, which lies beside no other", flags.features);
  Projection result;
  const std::string what =
      fmt::format("{} of {} numbers each", io::counted(features.x.size(0), "features"), features.x.size(1));
  if (flags.method == "pca") {
    const explain::Pca pca = explain::pca(features.x, 2);
    check(pca.explained_variance_ratio[0] > 0, "all points to project are the same");
    result.coordinates = pca.coordinates;
    const auto& share = pca.explained_variance_ratio;
    result.lead =
        fmt::format("{}, along their first two principal components, which have {:.1f} and {:.1f} % of the variance",
                    what, 100 * share[0], 100 * share[1]);
    result.facts["explained_variance_ratio"] = share;
    return result;
  }
  explain::TsneOptions options = flags.tsne;
  options.perplexity = perplexity_for(features.x.size(0), flags.perplexity);
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("t-SNE", options.iterations);
  }
  const explain::Tsne tsne = explain::tsne(features.x, options, [&](std::int64_t done) {
    if (progress.terminal()) {
      progress.update(done, "");
    }
  });
  progress.end();
  result.coordinates = tsne.coordinates;
  result.lead = fmt::format("{}, by t-SNE with a perplexity of {:.4g}: divergence {:.3f}", what, options.perplexity,
                            tsne.kl_divergence);
  result.facts["kl_divergence"] = tsne.kl_divergence;
  result.facts["iterations"] = tsne.iterations;
  return result;
}

void project(const ProjectFlags& flags) {
  for (const CLI::Option* option : flags.of_tsne) {
    check_usage(flags.method == "tsne" || option->count() == 0, "{} belongs to --method tsne", option->get_name());
  }
  flags.compute.apply();
  if (!flags.images.data.empty()) {
    check_beside_data(flags.output, flags.images.data);
  }
  train::Features features = train::load_features(flags.features);
  if (flags.limit && *flags.limit < features.x.size(0)) {
    features = some_of(features, *flags.limit, flags.seed);
  } else if (flags.limit && *flags.limit > features.x.size(0)) {
    say("note: '{}' has {}, fewer than --limit {}\n", flags.features, io::counted(features.x.size(0), "features"),
        *flags.limit);
  }
  check(flags.method == "pca" || features.x.size(0) <= explain::most_tsne_points,
        "'{}' has {} features, and t-SNE, which compares each with all others, takes at most {}: --limit {} takes some "
        "of them",
        flags.features, features.x.size(0), explain::most_tsne_points, explain::most_tsne_points);
  check(flags.images.data.empty() || !features.names.empty(), "'{}' does not say of which images the features are",
        flags.features);
  explain::MapPoints points;
  if (!flags.images.data.empty()) {
    points.thumbnails = thumbnails(features, flags.images);
  }
  Projection result = projected(features, flags);
  points.coordinates = result.coordinates;
  points.names = features.names;
  const auto labels = features.labels.span<std::int64_t>();
  points.labels.assign(labels.begin(), labels.end());
  points.classes = features.classes;
  const std::int64_t neighbors = std::min<std::int64_t>(5, (features.x.size(0) - 1) / 2);
  if (neighbors >= 1 && features.x.size(0) <= explain::most_tsne_points) {
    const double trust = explain::trustworthiness(features.x, result.coordinates, neighbors);
    result.lead += fmt::format("; trustworthiness {:.3f}", trust);
    result.facts["trustworthiness"] = trust;
  }
  const fs::path folder = flags.output;
  for (const char* file : {"map.safetensors", "map.png", "index.html"}) {
    check_not_input((folder / file).string(), flags.features);
  }
  make_page_folder(folder);
  explain::write_map_page(folder, fs::path(flags.features).stem().string(), result.lead, points);
  train::Features places = features;
  places.x = result.coordinates;
  train::save_features(folder / "map.safetensors", places, {{"format", "pt"}, {"method", flags.method}});
  if (flags.json) {
    print_json(result.facts);
  } else {
    fmt::print("{}\n{}/index.html, map.png, map.safetensors\n", result.lead, flags.output);
  }
}

}  // namespace

void add_project(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("project", "Lay features out in the plane: a page to move about in");
  const auto flags = std::make_shared<ProjectFlags>();
  command.add_option("FEATURES", flags->features, "Features from vitrail embed")->required()->type_name("");
  command
      .add_option("--method", flags->method,
                  "The first two principal components (pca), or neighbours that stay near (tsne)")
      ->capture_default_str()
      ->check(CLI::IsMember({"pca", "tsne"}))
      ->type_name("NAME");
  command.add_option("--output", flags->output, "Folder for index.html, map.png, map.safetensors")
      ->required()
      ->type_name("DIR");
  add_data_flag(command, flags->images, "--images", "Images that the features are of, to show them at their places");
  flags->of_tsne = {
      command
          .add_option("--perplexity", flags->perplexity,
                      "Number of neighbours that count, about (default: 30, or of 30 features and fewer a third)")
          ->check(positive())
          ->type_name("N"),
      command.add_option("--iterations", flags->tsne.iterations, "Steps of t-SNE, 250 of them with early exaggeration")
          ->capture_default_str()
          ->check(at_least(1))
          ->type_name("N"),
      command
          .add_option("--learning-rate", flags->tsne.learning_rate, "Of t-SNE (default: features / 48, at least 50)")
          ->check(positive())
          ->type_name("X")};
  command.add_option("--limit", flags->limit, "Take this many of the features, drawn by --seed")
      ->check(at_least(3))
      ->type_name("N");
  command.add_option("--seed", flags->seed, "Seed of --limit")
      ->capture_default_str()
      ->needs("--limit")
      ->check(at_least(0))
      ->type_name("N");
  add_threads_flag(command, flags->compute);
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_examples(command, {"vitrail embed runs/photos/best photos --split validation --output features.safetensors",
                         "vitrail project features.safetensors --images photos --split validation --output map",
                         "vitrail project features.safetensors --method pca --output components"});
  command.callback([flags] { project(*flags); });
}

}  // namespace vitrail::cli
