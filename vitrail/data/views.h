/// \file
/// Batches of several views of each image, for networks that learn from images without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// The views of a batch of images.
struct ViewBatch {
  /// For each run of consecutive views of one size, [V, B, C, H, W] f32, normalized: view v of all images lies in one
  /// piece, and so do all views of a size.
  std::vector<Tensor> sizes;
  std::vector<std::int64_t> indices;  ///< [B], of the images in the data set; B is smaller if some were broken
  std::int64_t epoch = 0;
  std::int64_t number = 0;  ///< its number in the epoch

  std::int64_t images() const { return std::ssize(indices); }
  std::int64_t views() const;                ///< of all sizes
  Tensor view(std::int64_t v) const;         ///< [B, C, H, W]
  Tensor all_views(std::size_t size) const;  ///< the views of a size, one after the other: [V · B, C, H, W]
};

/// The batches of views.
using ViewLoader = Prefetch<ViewBatch>;

/// Makes views of the images of `dataset`, view v by transforms[v], in the order, batches and memory that `options`
/// ask for (MixUp, CutMix, repeats and resplit are not for views). The draws of a view depend on (seed, epoch, index,
/// v) alone. The data set must outlive the loader. Throws Error if there are no views.
std::unique_ptr<ViewLoader> view_loader(const Dataset& dataset, std::vector<Transform> transforms,
                                        const LoaderOptions& options);

/// Reads ready-made views in order from a safetensors file, so that another program can repeat a run step by step. The
/// file has f32 tensors "view0" to "view{V-1}", normalized, each [N, C, H, W] for every epoch or [E, N, C, H, W] for E
/// epochs in turn. Batch i of an epoch has images i · batch_size and on; what does not fill a batch is left out. Throws
/// Error, naming the tensor, unless there is one of the shape `shapes[v]` ([C, H, W]) for each view, and no other, and
/// all have equally many images, at least batch_size.
std::unique_ptr<ViewLoader> ready_views(const std::filesystem::path& file, const std::vector<Shape>& shapes,
                                        const LoaderOptions& options);

}  // namespace vitrail::data
