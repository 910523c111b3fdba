#include "vitrail/cli/see/class_attention.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "vitrail/cli/images.h"
#include "vitrail/cli/see/whole_images.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/explain/segment_score.h"
#include "vitrail/explain/segments.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/finite.h"
#include "vitrail/train/run/progress.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_map_tokens = 12'000;  // of which twelve heads have probabilities of 7 GB

// Throws Error if the probabilities of a layer would not fit into memory.
void check_map_memory(const WholeImageModel& whole, const Tensor& x) {
  const models::TokenLayout layout = whole.model.net->token_layout(x.size(2), x.size(3));
  const std::int64_t tokens = layout.prefix + layout.rows * layout.columns;
  check(tokens <= most_map_tokens,
        "an image of {} x {} pixels has {} tokens, each of which looks at all: that takes too much memory; --img-size "
        "makes it smaller",
        x.size(3), x.size(2), tokens);
}

explain::Attention recorded(const WholeImageModel& whole, const Tensor& x, DType dtype) {
  check_map_memory(whole, x);
  explain::Attention attention = explain::record_attention(*whole.model.net, x, dtype, explain::Looking::class_token);
  check(!attention.layers.empty(), "{} has no attention to show", whole.model.architecture);
  std::ranges::for_each(attention.layers, [](const Tensor& layer) { train::check_finite(layer); });
  return attention;
}

// A part of a mask as the segments of one head.
Tensor segments_of_mask(const Tensor& mask, std::int64_t head) {
  Tensor segments = Tensor::empty(mask.shape(), DType::i64);
  const Tensor dense = mask.contiguous();
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    segments.data<std::int64_t>()[i] = dense.data<std::uint8_t>()[i] != 0 ? head : -1;
  }
  return segments;
}

}  // namespace

void measure_class_attention(const AttentionScoreFlags& flags) {
  const WholeImageModel whole = open_for_whole_images(flags.model);
  const std::vector<NamedImage> images = list_images({flags.images});
  explain::SegmentScore score;
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin("masks", std::ssize(images));
  }
  for (const NamedImage& image : images) {
    const io::Image picture = image.read();
    const io::Image mask = io::read_image(fs::path(flags.masks) / fs::path(image.name).filename());
    check(mask.width == picture.width && mask.height == picture.height,
          "the mask of '{}' has {} x {} pixels, but the image {} x {}", image.name, mask.width, mask.height,
          picture.width, picture.height);
    const explain::Attention attention = recorded(whole, whole.input(picture), flags.dtype);
    const std::int64_t layer = from_end(flags.layer.value_or(-1), std::ssize(attention.layers));
    score.add(explain::mass_mask(explain::class_token_maps(attention, layer), flags.threshold),
              whole.seen_by_nearest(mask));
    if (progress.terminal()) {
      progress.update(score.images(), "");
    }
  }
  progress.end();
  const std::vector<double> heads = score.heads();
  fmt::print("Jaccard index of {:g} % of the class token's attention and the foreground of {}:\n",
             100 * flags.threshold, io::counted(score.images(), "images"));
  for (std::size_t head = 0; head < heads.size(); ++head) {
    fmt::print("  head {:<15} {:.3f}{}\n", head, heads[head],
               static_cast<std::int64_t>(head) == score.best_head() ? "  the best head" : "");
  }
  fmt::print("  best of each image   {:.3f}\n  the whole image      {:.3f}\n", score.best_of_each(),
             score.everything());
}

void draw_class_attention(const ClassAttentionFlags& flags) {
  const WholeImageModel whole = open_for_whole_images(flags.model);
  const io::Image picture = io::read_image(flags.image);
  const Tensor x = whole.input(picture);
  const explain::Attention attention = recorded(whole, x, flags.dtype);
  const std::int64_t layer = from_end(flags.layer.value_or(-1), std::ssize(attention.layers));
  const Tensor maps = explain::class_token_maps(attention, layer);
  const Tensor masks = explain::mass_mask(maps, flags.threshold);
  const std::int64_t heads = maps.size(0);
  const std::vector<explain::Color> colors = explain::segment_colors(heads);

  const fs::path folder = flags.output;
  const auto file = [&](const std::string& name) {
    check_not_input((folder / name).string(), flags.image);
    return folder / name;
  };
  const io::Image image = explain::large_enough(whole.seen(picture));
  std::vector<std::pair<std::string, io::Image>> images = {{"image.png", image}};
  images.emplace_back("heads.png", explain::paint_segments(image, explain::strongest_heads(maps, masks), colors));
  explain::Section overview{.title = "All heads", .text = {}, .table = {}, .figures = {}, .figure_width = 360};
  overview.figures = {{"image.png", "what the model sees"},
                      {"heads.png", fmt::format("in the colour of the head that looks there most, the places that hold "
                                                "{:g} % of a head's attention",
                                                100 * flags.threshold)}};
  explain::Section each{.title = "Each head", .text = {}, .table = {}, .figures = {}, .figure_width = 240};
  std::vector<std::vector<io::Image>> rows(2);
  explain::SheetLabels labels{.rows = {"attention", fmt::format("{:g} %", 100 * flags.threshold)}, .columns = {}};
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::string name = fmt::format("head{:02}", head);
    rows[0].push_back(explain::overlay(image, maps.select(0, head)));
    rows[1].push_back(explain::paint_segments(image, segments_of_mask(masks.select(0, head), head), colors));
    images.emplace_back(name + ".png", rows[0].back());
    images.emplace_back(name + "-mask.png", rows[1].back());
    each.figures.push_back({name + ".png", fmt::format("head {}", head)});
    each.figures.push_back({name + "-mask.png", fmt::format("head {}, {:g} % of it", head, 100 * flags.threshold)});
    labels.columns.push_back(fmt::format("head {}", head));
  }
  images.emplace_back("sheet.png", explain::sheet(rows, labels));
  for (const auto& [name, content] : images) {
    file(name);
  }
  make_page_folder(folder);
  for (const auto& [name, content] : images) {
    io::write_png(folder / name, content);
  }
  if (!flags.raw.empty()) {
    io::save_safetensors(flags.raw, {{"attention", maps}, {"mask", masks}});
    fmt::print("{}: attention and mask of {} heads at {} x {} patches\n", flags.raw, heads, maps.size(1), maps.size(2));
  }
  const std::string who = attention.layout.class_token ? "the class token looks" : "the patches look on average";
  const std::string lead = fmt::format("{}: where {} in layer {} of {}, on {} x {} patches.", flags.image, who, layer,
                                       flags.model.model, maps.size(1), maps.size(2));
  io::write_atomically(folder / "index.html", explain::html_page("Attention as segmentation", lead, {overview, each}));
  fmt::print("{} heads on {} x {} patches in {}: heads.png, sheet.png, index.html\n", heads, maps.size(1), maps.size(2),
             folder.string());
}

}  // namespace vitrail::cli
