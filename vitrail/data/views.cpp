#include "vitrail/data/views.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "vitrail/data/image_cache.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

// Writes view v of the sample i of a batch to `out`.
struct ViewSource {
  virtual ~ViewSource() = default;
  virtual std::string name(std::int64_t index) const = 0;
  virtual void fill(const BatchPlan& plan, std::int64_t i, const std::vector<float*>& out) const = 0;
};

class ViewsOfImages final : public ViewSource {
 public:
  ViewsOfImages(const Dataset& dataset, std::vector<Transform> transforms, const LoaderOptions& options)
      : dataset_(dataset),
        cache_(dataset, options.cache),
        transforms_(std::move(transforms)),
        seed_(mix(options.seed, hash("views"))) {}

  std::string name(std::int64_t index) const override { return dataset_.name(index); }

  void fill(const BatchPlan& plan, std::int64_t i, const std::vector<float*>& out) const override {
    const std::int64_t index = plan.picks[static_cast<std::size_t>(i)].index;
    cache_.with(index, [&](const io::Image& image) {
      for (std::size_t v = 0; v < transforms_.size(); ++v) {
        transforms_[v].apply(image, mix(seed_, v), plan.epoch, index, out[v]);
      }
    });
  }

 private:
  const Dataset& dataset_;
  mutable ImageCache cache_;
  const std::vector<Transform> transforms_;
  const std::uint64_t seed_;
};

class ReadyViews final : public ViewSource {
 public:
  explicit ReadyViews(std::vector<Tensor> views) : views_(std::move(views)) {}

  std::string name(std::int64_t index) const override { return fmt::format("image {} of the ready-made views", index); }

  void fill(const BatchPlan& plan, std::int64_t i, const std::vector<float*>& out) const override {
    const std::int64_t index = plan.picks[static_cast<std::size_t>(i)].index;
    for (std::size_t v = 0; v < views_.size(); ++v) {
      const Tensor& epochs = views_[v];  // [E, N, C, H, W]
      const std::int64_t size = epochs.numel() / epochs.size(0) / epochs.size(1);
      const float* from = epochs.data<float>() + (plan.epoch % epochs.size(0) * epochs.size(1) + index) * size;
      std::copy_n(from, size, out[v]);
    }
  }

 private:
  const std::vector<Tensor> views_;
};

class ViewSamples final : public Samples<ViewBatch> {
 public:
  ViewSamples(std::shared_ptr<const ViewSource> source, const std::vector<Shape>& shapes) : source_(std::move(source)) {
    for (const Shape& shape : shapes) {
      if (sizes_.empty() || !(sizes_.back().shape == shape)) {
        sizes_.push_back({shape, 0});
      }
      ++sizes_.back().views;
    }
  }

  std::string name(std::int64_t index) const override { return source_->name(index); }

  ViewBatch begin(const BatchPlan& plan) const override {
    ViewBatch batch;
    for (const Size& size : sizes_) {
      batch.sizes.push_back(Tensor::empty(size.shape.inserted(0, std::ssize(plan.picks)).inserted(0, size.views)));
    }
    batch.epoch = plan.epoch;
    batch.number = plan.number;
    return batch;
  }

  void fill(ViewBatch& batch, const BatchPlan& plan, std::int64_t i) const override {
    std::vector<float*> places;
    for (const Tensor& views : batch.sizes) {
      for (std::int64_t v = 0; v < views.size(0); ++v) {
        places.push_back(views.data<float>() + (v * views.size(1) + i) * views.numel() / views.size(0) / views.size(1));
      }
    }
    source_->fill(plan, i, places);
  }

  void finish(ViewBatch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    for (const std::int64_t from : whole) {
      batch.indices.push_back(plan.picks[static_cast<std::size_t>(from)].index);
    }
    if (std::ssize(whole) == std::ssize(plan.picks)) {
      return;
    }
    for (Tensor& views : batch.sizes) {
      const Tensor kept = Tensor::empty(Shape(views.shape()).inserted(1, std::ssize(whole)).removed(2));
      for (std::int64_t i = 0; i < std::ssize(whole); ++i) {
        kept.select(1, i).copy_from(views.select(1, whole[static_cast<std::size_t>(i)]));
      }
      views = kept;
    }
  }

 private:
  struct Size {
    Shape shape;  // of one view
    std::int64_t views;
  };
  std::shared_ptr<const ViewSource> source_;
  std::vector<Size> sizes_;
};

// `images` are those of which views are made; null where they are ready.
std::unique_ptr<ViewLoader> loader_of(std::shared_ptr<const ViewSource> source, const std::vector<Shape>& shapes,
                                      EpochPlan plan, const Dataset* images, const LoaderOptions& options) {
  check(!shapes.empty(), "a batch of views needs at least one view of each image");
  std::int64_t floats = 0;
  for (const Shape& shape : shapes) {
    floats += shape.numel();
  }
  return std::make_unique<ViewLoader>(
      std::make_shared<ViewSamples>(std::move(source), shapes), std::move(plan),
      images == nullptr ? prefetch_options(floats, options) : prefetch_images(*images, floats, options));
}

}  // namespace

std::int64_t ViewBatch::views() const {
  std::int64_t count = 0;
  for (const Tensor& of_size : sizes) {
    count += of_size.size(0);
  }
  return count;
}

Tensor ViewBatch::view(std::int64_t v) const {
  for (const Tensor& of_size : sizes) {
    if (v < of_size.size(0)) {
      return of_size.select(0, v);
    }
    v -= of_size.size(0);
  }
  fail("there is no view {} of a batch of {} views", v + views(), views());
}

Tensor ViewBatch::all_views(std::size_t size) const {
  const Tensor& x = sizes.at(size);
  return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3), x.size(4)});
}

std::unique_ptr<ViewLoader> view_loader(const Dataset& dataset, std::vector<Transform> transforms,
                                        const LoaderOptions& options) {
  std::vector<Shape> shapes;
  shapes.reserve(transforms.size());
  for (const Transform& transform : transforms) {
    shapes.push_back(transform.shape());
  }
  return loader_of(std::make_shared<ViewsOfImages>(dataset, std::move(transforms), options), shapes,
                   plan_batches(plan_options(dataset.size(), options)), &dataset, options);
}

std::unique_ptr<ViewLoader> ready_views(const std::filesystem::path& path, const std::vector<Shape>& shapes,
                                        const LoaderOptions& options) {
  const io::Safetensors file = io::Safetensors::open(path);
  std::vector<Tensor> views;
  for (std::size_t v = 0; v < shapes.size(); ++v) {
    const std::string name = fmt::format("view{}", v);
    check(file.contains(name), "{}: there is no tensor '{}', but the views are {}", file.source(), name, shapes.size());
    Tensor view = file.get(name);
    view = view.rank() == 4 ? view.unsqueeze(0) : view;
    check(view.dtype() == DType::f32 && view.rank() == 5 && view.size(0) > 0 &&
              Shape({view.size(2), view.size(3), view.size(4)}) == shapes[v],
          "{}: '{}' is {} {}, expected f32 [N, {}, {}, {}], or that for each of some epochs", file.source(), name,
          name_of(view.dtype()), view.shape(), shapes[v][0], shapes[v][1], shapes[v][2]);
    check(views.empty() || view.size(1) == views.front().size(1), "{}: 'view0' is of {} images, but '{}' of {}",
          file.source(), views.empty() ? 0 : views.front().size(1), name, view.size(1));
    views.push_back(view.contiguous());
    const std::span<const float> values = views.back().span<float>();
    const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    check(bad == values.end(), "{}: '{}' has a number that is not finite, in image {}", file.source(), name,
          (bad - values.begin()) / shapes[v].numel() % view.size(1));
  }
  check(file.names().size() == shapes.size(), "{}: there are {} tensors, but the views are {}", file.source(),
        file.names().size(), shapes.size());
  const std::int64_t images = views.front().size(1);
  check(images >= options.batch_size, "{}: {} images do not fill a batch of {}", file.source(), images,
        options.batch_size);
  return loader_of(std::make_shared<ReadyViews>(std::move(views)), shapes,
                   plan_batches({.size = images, .batch_size = options.batch_size, .drop_last = true}), nullptr,
                   options);
}

}  // namespace vitrail::data
