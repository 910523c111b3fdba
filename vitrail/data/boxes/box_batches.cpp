#include "vitrail/data/boxes/box_batches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "vitrail/data/image_cache.h"
#include "vitrail/data/resize.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

void flip(BoxedImage& sample) {
  io::Image& image = sample.image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width / 2; ++x) {
      std::swap_ranges(image.at(x, y), image.at(x, y) + 3, image.at(image.width - 1 - x, y));
    }
  }
  const auto width = static_cast<double>(image.width);
  for (BoxedObject& object : sample.objects) {
    object.box = {width - object.box.x1, object.box.y0, width - object.box.x0, object.box.y1};
  }
}

void resize_to(BoxedImage& sample, std::int64_t shortest, std::int64_t longest) {
  const auto [width, height] = detector_size(sample.image.width, sample.image.height, shortest, longest);
  const double x = static_cast<double>(width) / static_cast<double>(sample.image.width);
  const double y = static_cast<double>(height) / static_cast<double>(sample.image.height);
  for (BoxedObject& object : sample.objects) {
    object.box = object.box.scaled(x, y);
    object.area *= x * y;
  }
  sample.image = resize(sample.image, width, height, Interpolation::bilinear);
}

void crop(BoxedImage& sample, const Region& region) {
  io::Image cropped(region.width, region.height);
  for (std::int64_t y = 0; y < region.height; ++y) {
    std::copy_n(sample.image.at(region.x, region.y + y), region.width * 3, cropped.at(0, y));
  }
  sample.image = std::move(cropped);
  const auto clamp_x = [&](double x) {
    return std::clamp(x - static_cast<double>(region.x), 0.0, static_cast<double>(region.width));
  };
  const auto clamp_y = [&](double y) {
    return std::clamp(y - static_cast<double>(region.y), 0.0, static_cast<double>(region.height));
  };
  for (BoxedObject& object : sample.objects) {
    object.box = {clamp_x(object.box.x0), clamp_y(object.box.y0), clamp_x(object.box.x1), clamp_y(object.box.y1)};
    object.area = object.box.area();
  }
  std::erase_if(sample.objects, [](const BoxedObject& object) { return object.box.empty(); });
}

// A share of the shorter side, whose values in the original are for 800 pixels.
std::int64_t share_of(std::int64_t side, double of_800) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * of_800 / 800));
}

void random_crop(BoxedImage& sample, std::int64_t shortest, Draws& draws) {
  const std::int64_t low = share_of(shortest, 384);
  const std::int64_t high = share_of(shortest, 600);
  const auto side = [&](std::int64_t whole) {
    const std::int64_t most = std::min(whole, high);
    return most <= low ? most : draws.integer(low, most + 1);
  };
  Region region;
  region.width = side(sample.image.width);
  region.height = side(sample.image.height);
  region.y = draws.integer(0, sample.image.height - region.height + 1);
  region.x = draws.integer(0, sample.image.width - region.width + 1);
  crop(sample, region);
}

class BoxSamples final : public Samples<BoxBatch> {
 public:
  BoxSamples(const BoxedImages& data, BoxTransform how, const LoaderOptions& options)
      : data_(data),
        how_(std::move(how)),
        seed_(options.seed),
        cache_(std::make_shared<ImageCache>(*data.images, options.cache)) {}

  std::string name(std::int64_t index) const override { return data_.images->name(index); }
  BoxBatch begin(const BatchPlan& plan) const override {
    BoxBatch batch;
    batch.samples.resize(plan.picks.size());
    batch.sizes.resize(plan.picks.size());
    batch.epoch = plan.epoch;
    batch.number = plan.number;
    return batch;
  }
  void fill(BoxBatch& batch, const BatchPlan& plan, std::int64_t i) const override {
    const auto place = static_cast<std::size_t>(i);
    const std::int64_t index = plan.picks[place].index;
    cache_->with(index, [&](const io::Image& image) {
      batch.sizes[place] = {image.width, image.height};
      batch.samples[place] =
          transformed(image, data_.objects[static_cast<std::size_t>(index)], how_, seed_, plan.epoch, index);
    });
  }
  void finish(BoxBatch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    std::size_t kept = 0;
    for (const std::int64_t from : whole) {
      const auto place = static_cast<std::size_t>(from);
      if (kept != place) {
        batch.samples[kept] = std::move(batch.samples[place]);
        batch.sizes[kept] = batch.sizes[place];
      }
      batch.indices.push_back(plan.picks[place].index);
      ++kept;
    }
    batch.samples.resize(kept);
    batch.sizes.resize(kept);
    stack_samples(batch, how_);
  }

 private:
  const BoxedImages& data_;
  const BoxTransform how_;
  const std::uint64_t seed_;
  std::shared_ptr<ImageCache> cache_;
};

}  // namespace

std::array<std::int64_t, 2> detector_size(std::int64_t width, std::int64_t height, std::int64_t shortest,
                                          std::int64_t longest) {
  const auto least = static_cast<double>(std::min(width, height));
  const auto most = static_cast<double>(std::max(width, height));
  auto exact = static_cast<double>(shortest);
  if (most / least * exact > static_cast<double>(longest)) {
    exact = static_cast<double>(longest) * least / most;
  }
  const auto side = std::max<std::int64_t>(1, std::llrint(exact));  // halves to even, as Python's round
  const auto other = [&](std::int64_t longer, std::int64_t shorter) {
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(exact * static_cast<double>(longer) / static_cast<double>(shorter)));
  };
  if (std::min(width, height) == side) {
    return {width, height};
  }
  return width < height ? std::array{side, other(height, width)} : std::array{other(width, height), side};
}

BoxedImage transformed(const io::Image& image, const std::vector<BoxedObject>& objects, const BoxTransform& how,
                       std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  BoxedImage sample{image, objects};
  Draws draws(
      Philox(mix(mix(seed, hash("boxes")), static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index)));
  if (how.hflip > 0 && draws.uniform() < how.hflip) {
    flip(sample);
  }
  std::int64_t shortest = how.shortest_edge;
  if (how.random_resize) {
    if (draws.uniform() < 0.5) {
      resize_to(sample, share_of(how.shortest_edge, 400 + 100 * static_cast<double>(draws.integer(0, 3))),
                std::numeric_limits<std::int32_t>::max());
      random_crop(sample, how.shortest_edge, draws);
    }
    shortest = share_of(how.shortest_edge, 480 + 32 * static_cast<double>(draws.integer(0, 11)));
  }
  resize_to(sample, shortest, how.longest_edge);
  return sample;
}

void stack_samples(BoxBatch& batch, const BoxTransform& how) {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool alike = true;
  for (const BoxedImage& sample : batch.samples) {
    alike = alike && sample.image.height == batch.samples[0].image.height &&
            sample.image.width == batch.samples[0].image.width;
    height = std::max(height, sample.image.height);
    width = std::max(width, sample.image.width);
  }
  const std::int64_t count = std::ssize(batch.samples);
  const std::int64_t channels = std::ssize(how.mean);
  check(channels == 3 && std::ssize(how.std) == 3, "a detector's images have three channels, not {}", channels);
  batch.x = alike ? Tensor::empty({count, channels, height, width}) : Tensor::zeros({count, channels, height, width});
  batch.pixel_mask = alike ? Tensor() : Tensor::zeros({count, height, width}, DType::boolean);
  batch.objects.clear();
  float* to = batch.x.data<float>();
  for (std::int64_t b = 0; b < count; ++b) {
    BoxedImage& sample = batch.samples[static_cast<std::size_t>(b)];
    const io::Image& image = sample.image;
    for (std::int64_t c = 0; c < channels; ++c, to += height * width) {
      const float mean = how.mean[static_cast<std::size_t>(c)];
      const float std = how.std[static_cast<std::size_t>(c)];
      for (std::int64_t y = 0; y < image.height; ++y) {
        const std::uint8_t* from = image.at(0, y) + c;
        for (std::int64_t x = 0; x < image.width; ++x) {
          to[y * width + x] = (static_cast<float>(from[x * 3]) / 255.0F - mean) / std;
        }
      }
    }
    for (std::int64_t y = 0; y < image.height && !alike; ++y) {
      std::fill_n(batch.pixel_mask.data<bool>() + (b * height + y) * width, image.width, true);
    }
    for (BoxedObject& object : sample.objects) {
      object.box = object.box.scaled(1 / static_cast<double>(image.width), 1 / static_cast<double>(image.height));
    }
    batch.objects.push_back(std::move(sample.objects));
  }
  batch.samples.clear();
}

BoxBatch batch_of_one(const io::Image& image, const BoxTransform& how) {
  BoxBatch batch;
  batch.samples.push_back(transformed(image, {}, how));
  batch.sizes.push_back({image.width, image.height});
  stack_samples(batch, how);
  return batch;
}

std::unique_ptr<BoxLoader> box_loader(const BoxedImages& data, const BoxTransform& how, const LoaderOptions& options) {
  const std::int64_t floats = 3 * how.shortest_edge * how.longest_edge;
  return std::make_unique<BoxLoader>(std::make_shared<BoxSamples>(data, how, options),
                                     plan_batches(plan_options(data.images->size(), options)),
                                     prefetch_images(*data.images, floats, options));
}

}  // namespace vitrail::data
