// `vitrail shard` writes a data set as shards, tar archives that WebDataset reads too.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/say.h"
#include "vitrail/data/beside.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/shards/shard_writer.h"
#include "vitrail/io/image.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/sources/data_kinds.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct ShardFlags {
  std::string source;
  std::string split = "train";
  bool split_given = false;
  std::string output;
  std::int64_t megabytes = 256;
  std::int64_t seed = 0;
  bool in_order = false;
  bool unlabeled = false;
  bool skip_broken = false;
};

std::unique_ptr<data::Dataset> open_source(const ShardFlags& flags) {
  if (flags.unlabeled && !flags.split_given) {
    return data::open_unlabeled(flags.source, flags.skip_broken);
  }
  data::DatasetOptions options;
  options.split = flags.split;
  options.labeled = !flags.unlabeled;
  options.skip_broken = flags.skip_broken;
  return data::open_dataset(flags.source, options);
}

// The order in which the samples are written: a reader that goes through the shards meets the classes mixed.
std::vector<std::int64_t> order_of(std::int64_t count, const ShardFlags& flags) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!flags.in_order) {
    Draws draws(Philox(mix(static_cast<std::uint64_t>(flags.seed), hash("shards")), 0));
    for (std::int64_t i = count - 1; i > 0; --i) {
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draws.integer(0, i + 1))]);
    }
  }
  return order;
}

// The ending of an image's file; that of a PNG for images that lie in no files of their own.
std::string kind_of_file(const std::string& name) {
  return io::is_image_name(name) ? io::lower_case(fs::path(name).extension().string().substr(1)) : "png";
}

// The file of an image; with `skip_broken` nothing, with a line, if it cannot be decoded.
std::optional<std::vector<std::uint8_t>> bytes_of(const data::Dataset& images, std::int64_t index, bool skip_broken,
                                                  train::Progress& progress) {
  try {
    if (skip_broken) {
      images.image(index);
    }
    return images.encoded(index);
  } catch (const Error& error) {
    check(skip_broken, "{} (broken images can be skipped: --skip-broken)", error.what());
    progress.line(fmt::format("left out: {}", error.what()));
    return std::nullopt;
  }
}

void shard(const ShardFlags& flags) {
  data::check_beside_images(flags.output, flags.source);
  const std::unique_ptr<data::Dataset> images = open_source(flags);
  data::ShardWriter writer(flags.output, flags.split, flags.megabytes << 20, images->classes());
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("images", images->size());
  }
  const train::Interrupt interrupt;
  std::int64_t done = 0;
  std::int64_t broken = 0;
  for (const std::int64_t i : order_of(images->size(), flags)) {
    end_if_interrupted(&progress);
    if (const auto bytes = bytes_of(*images, i, flags.skip_broken, progress)) {
      const std::string name = images->name(i);
      writer.add(name, kind_of_file(name), *bytes, flags.unlabeled ? data::unlabeled : images->label(i));
    } else {
      ++broken;
    }
    if (progress.terminal()) {
      progress.update(++done, "");
    }
  }
  progress.end();
  check(broken < images->size(), "none of the {} images could be read", images->size());
  const fs::path index = writer.commit();
  say_notes_of(*images);
  const bool chosen = flags.split_given || flags.unlabeled;
  if (const data::Parts parts = chosen ? data::Parts() : data::parts_of_images(flags.source); parts.size() > 1) {
    say("note: the part '{}' alone of {}: --split says another\n", flags.split, data::names_in(parts));
  }
  if (fs::is_directory(flags.source) && !train::tasks_beside_classes(flags.source).empty()) {
    say("note: boxes, captions and questions are left out: a shard has images{}\n",
        flags.unlabeled ? " alone" : " and their classes");
  }
  tell("{} in {}: {}\n", io::counted(images->size() - broken, "images"), io::counted(writer.shards(), "shards"),
       index.string());
}

}  // namespace

void add_shard(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("shard", "Write a data set as shards: tar files that are read one after the other");
  const auto flags = std::make_shared<ShardFlags>();
  command.add_option("SOURCE", flags->source, "Images as `vitrail train` takes them")->required()->type_name("");
  command.add_option("--output", flags->output, "Folder of the shards")->type_name("DIR")->required();
  CLI::Option* split = command.add_option("--split", flags->split, "Part of SOURCE, after which the shards are called");
  split->type_name("NAME")->capture_default_str()->check([](const std::string& name) {
    return name.empty() || name.find('/') != std::string::npos ? "the name of a part was expected" : std::string();
  });
  command.add_option("--shard-mb", flags->megabytes, "Size of a shard")
      ->type_name("MB")
      ->capture_default_str()
      ->check(whole_number(1, 1 << 20));
  CLI::Option* seed =
      command.add_option("--seed", flags->seed, "Of the order of the images")->type_name("S")->capture_default_str();
  command.add_flag("--in-order", flags->in_order, "Write the images in their order, and not shuffled")->excludes(seed);
  command.add_flag(
      "--skip-broken", flags->skip_broken,
      "Leave broken images out and name them: each is decoded, where otherwise files are copied as they lie");
  command.add_flag("--unlabeled", flags->unlabeled,
                   "Take the images without classes: all of SOURCE, or those of --split");
  add_examples(command,
               {"vitrail shard photos --output shards", "vitrail shard photos --split validation --output shards",
                "vitrail train shards                    # or 'shards/train-{000000..000127}.tar'"});
  command.callback([flags, split] {
    flags->split_given = split->count() > 0;
    shard(*flags);
  });
}

}  // namespace vitrail::cli
