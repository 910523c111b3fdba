#include "vitrail/train/detection/detections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::train {

data::BoxTransform box_transform(const models::DetectorImages& images) {
  return {.shortest_edge = images.shortest_edge,
          .longest_edge = images.longest_edge,
          .mean = images.mean,
          .std = images.std};
}

std::vector<ObjectSet> object_sets(const data::BoxBatch& batch) {
  std::vector<ObjectSet> result;
  for (const std::vector<data::BoxedObject>& objects : batch.objects) {
    ObjectSet& set = result.emplace_back();
    for (const data::BoxedObject& object : objects) {
      if (!object.crowd) {
        set.labels.push_back(object.label);
        set.boxes.push_back(object.box);
      }
    }
  }
  return result;
}

std::vector<std::vector<FoundObject>> found_objects(const models::SetPredictions& predictions,
                                                    std::span<const std::array<std::int64_t, 2>> sizes) {
  const Tensor probabilities = ops::softmax(predictions.logits.detach(), 2).contiguous();
  const Tensor boxes = predictions.boxes.detach().contiguous();
  const std::int64_t queries = probabilities.size(1);
  const std::int64_t classes = probabilities.size(2);
  std::vector<std::vector<FoundObject>> result;
  for (std::int64_t s = 0; s < probabilities.size(0); ++s) {
    const auto [width, height] = sizes[static_cast<std::size_t>(s)];
    std::vector<FoundObject>& found = result.emplace_back();
    for (std::int64_t q = s * queries; q < (s + 1) * queries; ++q) {
      const float* p = probabilities.data<float>() + q * classes;
      const float* likeliest = std::max_element(p, p + classes - 1);
      const float* b = boxes.data<float>() + q * 4;
      found.push_back(
          {data::centred_box(b[0], b[1], b[2], b[3]).scaled(static_cast<double>(width), static_cast<double>(height)),
           likeliest - p, *likeliest, q - s * queries});
    }
    std::ranges::stable_sort(found, std::greater{}, &FoundObject::score);
  }
  return result;
}

std::vector<std::vector<FoundObject>> detect(const models::Detector& detector, const std::vector<io::Image>& images,
                                             DType dtype) {
  const autograd::NoGrad no_grad;
  const data::BoxTransform how = box_transform(detector.images);
  std::vector<std::vector<FoundObject>> result;
  for (const io::Image& image : images) {
    const data::BoxBatch batch = data::batch_of_one(image, how);
    nn::Pass pass{.dtype = dtype};
    result.push_back(found_objects(detector.net->forward({batch.x, batch.pixel_mask}, pass), batch.sizes).front());
  }
  return result;
}

namespace {

// Brings the images into the order of their ids, in which pycocotools takes them: among detections of equal scores in
// different images, the first counts first.
void sort_by_id(DetectorEvaluation& result, const data::BoxedImages& data) {
  std::vector<std::size_t> order(result.indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return data.ids[static_cast<std::size_t>(result.indices[i])]; });
  const auto in_order = [&](auto& list) {
    std::remove_reference_t<decltype(list)> sorted;
    sorted.reserve(list.size());
    for (const std::size_t i : order) {
      sorted.push_back(std::move(list[i]));
    }
    list = std::move(sorted);
  };
  in_order(result.indices);
  in_order(result.sizes);
  in_order(result.found);
}

}  // namespace

DetectorEvaluation evaluate_detector(const models::Detector& detector, const data::BoxedImages& data,
                                     const EvaluateOptions& options, const MatchCosts& costs,
                                     const SetLossWeights& weights) {
  const autograd::NoGrad no_grad;
  const auto loader = data::box_loader(data, box_transform(detector.images), loading(options));
  DetectorEvaluation result;
  std::int64_t batches = 0;
  const auto judge = [&](const data::BoxBatch& batch, dist::Packer& packer) {
    nn::Pass pass{.dtype = options.dtype};
    const models::SetPredictions layers = detector.net->forward_layers({batch.x, batch.pixel_mask}, pass);
    packer.put(static_cast<double>(set_loss(layers, object_sets(batch), costs, weights).loss.item()));
    packer.put_all(batch.indices);
    packer.put_all(batch.sizes);
    const std::int64_t images = std::ssize(batch.indices);
    const auto last = [&](const Tensor& x) { return x.narrow(0, x.size(0) - images, images); };
    for (const std::vector<FoundObject>& found :
         found_objects({last(layers.logits), last(layers.boxes)}, batch.sizes)) {
      packer.put_all(found);
    }
    return images;
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    result.loss += unpacker.get<double>();
    ++batches;
    const auto indices = unpacker.get_all<std::int64_t>();
    for (const auto& size : unpacker.get_all<std::array<std::int64_t, 2>>()) {
      result.sizes.push_back(size);
    }
    for (const std::int64_t index : indices) {
      result.indices.push_back(index);
      result.found.push_back(unpacker.get_all<FoundObject>());
    }
    result.count += std::ssize(indices);
  };
  result.broken = share_batches<data::BoxBatch>(*loader, sharing(options, data.images->size()), judge, take);
  loader->check_any(result.count, "evaluate");
  result.loss /= static_cast<double>(batches);
  sort_by_id(result, data);
  std::vector<std::vector<data::BoxedObject>> objects;
  for (const std::int64_t index : result.indices) {
    objects.push_back(data.judged(index));
  }
  result.figures = coco_figures(result.found, objects, std::ssize(data.classes));
  return result;
}

std::string coco_results(const std::vector<std::vector<FoundObject>>& found, const std::vector<ResultImage>& images,
                         std::span<const std::int64_t> category_ids) {
  const auto rounded = [](double pixels) { return std::round(pixels * 1e6) / 1e6; };
  std::string text = "[";
  const char* between = "\n";
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const FoundObject& object : found[i]) {
      const nlohmann::ordered_json line = {
          {"image_id", images[i].id},
          {"file_name", io::as_utf8(images[i].name)},
          {"category_id", category_ids[static_cast<std::size_t>(object.label)]},
          {"bbox",
           {rounded(object.box.x0), rounded(object.box.y0), rounded(object.box.width()), rounded(object.box.height())}},
          {"score", object.score}};
      text += between + line.dump();
      between = ",\n";
    }
  }
  return text + "\n]\n";
}

std::string coco_table(const CocoFigures& figures, const std::vector<std::string>& classes) {
  const auto value = [](double figure) { return figure < 0 ? "    –" : fmt::format("{:.3f}", figure); };
  std::string text;
  for (std::size_t i = 0; i < figures.stats.size(); ++i) {
    text += fmt::format("{:<6} {}{}", coco_figure_names()[i], value(figures.stats[i]), i % 6 == 5 ? "\n" : "   ");
  }
  std::size_t widest = 5;
  for (const std::string& name : classes) {
    widest = std::max(widest, name.size());
  }
  text += fmt::format("{:<{}}   AP      AP50\n", "class", widest);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    text +=
        fmt::format("{:<{}}   {}   {}\n", classes[c], widest, value(figures.class_ap[c]), value(figures.class_ap50[c]));
  }
  return text;
}

}  // namespace vitrail::train
