#include "vitrail/cli/see/detector_attention.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/use/detect.h"
#include "vitrail/explain/box_overlay.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/wording.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/train/detection/detection_sheet.h"
#include "vitrail/train/detection/detections.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using train::FoundObject;

constexpr std::size_t most_boxes = 16;  // that one sheet shows

void write_raw(const std::string& path, const DetectorLooks& looked) {
  io::NamedTensors tensors = {{"logits", looked.predictions.logits}, {"pred_boxes", looked.predictions.boxes}};
  for (std::size_t i = 0; i < looked.encoder.size(); ++i) {
    tensors.emplace_back(fmt::format("encoder_attention.{}", i), looked.encoder[i].contiguous());
  }
  for (std::size_t i = 0; i < looked.decoder.size(); ++i) {
    tensors.emplace_back(fmt::format("cross_attention.{}", i), looked.decoder[i].contiguous());
  }
  io::save_safetensors(path, tensors);
  fmt::print("{}: predictions and the probabilities of {}\n", path,
             io::counted(std::ssize(looked.encoder) + std::ssize(looked.decoder), "layers"));
}

class DetectorReport {
 public:
  DetectorReport(const DetectorAttentionFlags& flags, const models::Detector& detector, io::Image image,
                 DetectorLooks looked)
      : flags_(flags),
        detector_(detector),
        width_(image.width),
        height_(image.height),
        image_(explain::fit_for_sheet(image)),
        zoom_x_(static_cast<double>(image_.width) / static_cast<double>(image.width)),
        zoom_y_(static_cast<double>(image_.height) / static_cast<double>(image.height)),
        looked_(std::move(looked)) {}

  void write() {
    if (flags_.point) {
      of_point();
    } else if (flags_.box) {
      of_box();
    } else {
      of_all_boxes();
    }
  }

 private:
  std::string name_of(const FoundObject& object) const {
    return fmt::format("{} {:.2f}", detector_.labels[static_cast<std::size_t>(object.label)], object.score);
  }
  explain::NamedBox framed(const FoundObject& object) const {
    return {object.box.scaled(zoom_x_, zoom_y_), name_of(object), explain::class_color(object.label)};
  }
  Tensor on_grid(const Tensor& weights) const {
    return weights.contiguous().reshape({looked_.grid[0], looked_.grid[1]});
  }

  void of_box() {
    const std::int64_t count = std::ssize(looked_.found);
    check(*flags_.box >= 1 && *flags_.box <= count, "there is no box {}: {} says 1 to {}, the likeliest first",
          *flags_.box, flags_.model.model, count);
    const FoundObject& object = looked_.found[static_cast<std::size_t>(*flags_.box - 1)];
    draw_layers(looked_.decoder, object.query, explain::OverlayOptions{}, framed(object),
                fmt::format("Where the decoder looked for box {} of {}: {}, query {}.", *flags_.box, flags_.image,
                            name_of(object), object.query));
  }

  void of_point() {
    const auto [x, y] = point();
    const std::int64_t column = std::min(looked_.grid[1] - 1, x * looked_.grid[1] / width_);
    const std::int64_t row = std::min(looked_.grid[0] - 1, y * looked_.grid[0] / height_);
    explain::OverlayOptions how;
    how.patch = explain::Query{.kind = explain::Query::Kind::patch, .row = row, .column = column};
    how.grid = looked_.grid;
    draw_layers(
        looked_.encoder, row * looked_.grid[1] + column, how, std::nullopt,
        fmt::format("What the encoder looks at from the point {}, {} of {}: row {}, column {} of {} x {} features.", x,
                    y, flags_.image, row, column, looked_.grid[0], looked_.grid[1]));
  }

  std::pair<std::int64_t, std::int64_t> point() const {
    long long x = -1;
    long long y = -1;
    char rest = 0;
    const bool read = std::sscanf(flags_.point->c_str(), "%lld,%lld%c", &x, &y, &rest) == 2;
    check(read && x >= 0 && y >= 0 && x < width_ && y < height_,
          "--point '{}' is no place in an image of {} x {} pixels: expected X,Y, counted from 0", *flags_.point, width_,
          height_);
    return {x, y};
  }

  // A sheet of the maps of one query, a row a layer and a column a head, and the mean of all heads first.
  void draw_layers(const std::vector<Tensor>& maps, std::int64_t query, const explain::OverlayOptions& how,
                   const std::optional<explain::NamedBox>& box, const std::string& lead) {
    check(!maps.empty(), "{} has no layers there", flags_.model.model);
    const std::int64_t heads = maps[0].size(0);
    const auto index_of = [](const std::optional<std::int64_t>& asked, std::int64_t count, const char* what) {
      const std::optional<std::int64_t> index = asked ? std::optional(from_end(*asked, count)) : std::nullopt;
      check(!index || (*index >= 0 && *index < count), "there is no {} {}: there are {}, from 0", what,
            asked.value_or(0), count);
      return index;
    };
    const std::vector<std::int64_t> layers =
        chosen(index_of(flags_.layer, std::ssize(maps), "layer"), std::ssize(maps));
    const std::optional<std::int64_t> head = index_of(flags_.head, heads, "head");
    std::vector<std::vector<io::Image>> rows;
    explain::SheetLabels labels;
    for (const std::int64_t layer : layers) {
      labels.rows.push_back(fmt::format("layer {}", layer));
      const Tensor of_query = maps[static_cast<std::size_t>(layer)].select(1, query).contiguous();  // [H, N]
      std::vector<io::Image>& row = rows.emplace_back();
      const auto add = [&](const Tensor& weights) {
        row.push_back(explain::overlay(image_, on_grid(weights), how));
        if (box) {
          explain::draw_boxes(row.back(), {{box->box, "", box->color}});
        }
      };
      if (!head) {
        add(ops::mean(of_query, {0}));
      }
      for (const std::int64_t h : chosen(head, heads)) {
        add(of_query.select(0, h));
      }
    }
    if (!head) {
      labels.columns.emplace_back("all heads");
    }
    for (const std::int64_t h : chosen(head, heads)) {
      labels.columns.push_back(fmt::format("head {}", h));
    }
    io::Image seen = image_;
    if (box) {
      explain::draw_boxes(seen, {*box});
    }
    finish(seen, explain::sheet(rows, labels), lead);
  }

  // The boxes that were found, and for each where the decoder's last layer looked, over all heads.
  void of_all_boxes() {
    std::vector<FoundObject> shown;
    for (const FoundObject& object : looked_.found) {
      if ((object.score >= train::shown_score || shown.empty()) && shown.size() < most_boxes) {
        shown.push_back(object);
      }
    }
    std::vector<std::vector<io::Image>> rows;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i % 4 == 0) {
        rows.emplace_back();
      }
      const Tensor weights = ops::mean(looked_.decoder.back().select(1, shown[i].query).contiguous(), {0});
      io::Image drawn = explain::overlay(image_, on_grid(weights));
      explain::draw_boxes(drawn, {framed(shown[i])});
      rows.back().push_back(std::move(drawn));
    }
    const bool any = shown.front().score >= train::shown_score;
    const std::string what = any ? fmt::format("each box that {} found in {}", flags_.model.model, flags_.image)
                                 : fmt::format("the likeliest box in {}: {} found nothing with {:g} % or more",
                                               flags_.image, flags_.model.model, 100 * train::shown_score);
    finish(train::with_detections(image_, scaled_found(), detector_.labels), explain::sheet(rows),
           fmt::format("Where the last layer of the decoder looked for {}. --query-box N draws one by layer and head.",
                       what));
  }

  std::vector<FoundObject> scaled_found() const {
    std::vector<FoundObject> all = looked_.found;
    for (FoundObject& object : all) {
      object.box = object.box.scaled(zoom_x_, zoom_y_);
    }
    return all;
  }

  void finish(const io::Image& seen, const io::Image& sheet, const std::string& lead) const {
    const fs::path folder = flags_.output;
    for (const char* name : {"image.png", "sheet.png"}) {
      check_not_input((folder / name).string(), flags_.image);
    }
    make_page_folder(folder);
    io::write_png(folder / "image.png", seen);
    io::write_png(folder / "sheet.png", sheet);
    explain::Section section{.title = "Attention", .text = {}, .table = {}, .figures = {}, .figure_width = 1000};
    section.figures = {{"sheet.png", "bright where it looks"}};
    explain::Section found{.title = "What was found", .text = {}, .table = {}, .figures = {}, .figure_width = 480};
    found.figures = {{"image.png", flags_.image}};
    io::write_atomically(folder / "index.html", explain::html_page("Attention of a detector", lead, {found, section}));
    fmt::print("{}\n{}/index.html, image.png, sheet.png\n", lead, folder.string());
  }

  const DetectorAttentionFlags& flags_;
  const models::Detector& detector_;
  std::int64_t width_;
  std::int64_t height_;
  io::Image image_;  // as it is drawn
  double zoom_x_;
  double zoom_y_;
  DetectorLooks looked_;
};

}  // namespace

DetectorLooks looks_of(const models::Detector& detector, const io::Image& image, DType dtype) {
  const autograd::NoGrad no_grad;
  const data::BoxBatch batch = data::batch_of_one(image, train::box_transform(detector.images));
  nn::Recorder recorder(false, true);
  nn::Pass pass{.dtype = dtype, .recorder = &recorder};
  DetectorLooks result;
  result.predictions = detector.net->forward({batch.x, batch.pixel_mask}, pass);
  result.found = train::found_objects(result.predictions, batch.sizes).front();
  result.grid = detector.net->grid(batch.x.size(2), batch.x.size(3));
  const models::DetrConfig& config = detector.net->config();
  for (std::int64_t i = 0; i < config.encoder_layers; ++i) {
    result.encoder.push_back(
        recorder.attention().at(fmt::format("model.encoder.layers.{}.self_attn", i)).value.select(0, 0));
  }
  for (std::int64_t i = 0; i < config.decoder_layers; ++i) {
    result.decoder.push_back(
        recorder.attention().at(fmt::format("model.decoder.layers.{}.encoder_attn", i)).value.select(0, 0));
  }
  return result;
}

void draw_detector_attention(const DetectorAttentionFlags& flags) {
  const models::Detector detector = open_detector(flags.model);
  const io::Image image = io::read_image(flags.image);
  DetectorLooks looked = looks_of(detector, image, flags.dtype);
  if (!flags.raw.empty()) {
    write_raw(flags.raw, looked);
  }
  DetectorReport(flags, detector, image, std::move(looked)).write();
}

}  // namespace vitrail::cli
