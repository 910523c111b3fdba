/// \file
/// Batches of images, decoded ahead by worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// A batch of images, or of features in their place.
struct Batch {
  Tensor x;                           ///< [B, C, H, W] f32, normalized; images without labels come last
  Tensor labels;                      ///< [L] i64, of the L ≤ B images that have labels
  Tensor targets;                     ///< [L, C] f32 if MixUp or CutMix has mixed the labels, else undefined
  std::vector<std::int64_t> indices;  ///< [B], of the images in the data set; B is smaller if some were broken
  std::int64_t number = 0;            ///< its number in the epoch
  std::int64_t epoch = 0;             ///< from 0
};

/// How a Loader makes its batches.
struct LoaderOptions {
  std::int64_t batch_size = 64;
  bool shuffle = false;            ///< by a permutation that depends on (seed, epoch) alone
  std::int64_t shuffle_block = 0;  ///< --shuffle-block: PlanOptions::shuffle_block
  bool drop_last = false;          ///< leave out the last batch if it is not full, unless it is the only one

  /// --aug-repeats: repeated augmentation (PlanOptions::repeats); an image is augmented anew each time. 0: off.
  double aug_repeats = 0;
  bool resplit = false;  ///< --resplit: nothing is erased in the first half of each batch
  std::uint64_t seed = 0;
  int workers = 1;                              ///< threads; 0: next() decodes
  std::size_t memory = std::size_t{256} << 20;  ///< most bytes of batches made ahead (but at least one batch)

  /// How many bytes of decoded images are kept for the next epochs, if the whole data set fits: then small images are
  /// decoded only once.
  std::size_t cache = std::size_t{256} << 20;
  bool skip_broken = false;      ///< leave out broken images and count them; otherwise the first one throws Error,
                                 ///< naming it
  MixOptions mix;                ///< MixUp and CutMix
  std::int64_t num_classes = 0;  ///< C of mixed targets
  double label_smoothing = 0;    ///< of mixed targets, as in timm's Mixup
};

/// The order of `size` items by these options.
PlanOptions plan_options(std::int64_t size, const LoaderOptions& options);
/// How far ahead batches are made of samples that take so many floats each.
PrefetchOptions prefetch_options(std::int64_t sample_floats, const LoaderOptions& options);
/// The same for samples made of `images`, which are told what is read soon (Dataset::will_read()), and must outlive
/// what uses these options.
PrefetchOptions prefetch_images(const Dataset& images, std::int64_t sample_floats, const LoaderOptions& options);

/// Makes batches of images in order. What happens to a sample depends on (seed, epoch, index) alone, whatever the
/// number of workers. The data set must outlive the loader.
class Loader : public Prefetch<Batch> {
 public:
  /// Loads the images of `dataset`, decoded and transformed.
  Loader(const Dataset& dataset, const Transform& transform, const LoaderOptions& options);
  /// A sample that is made of an image.
  struct Sample {
    std::int64_t epoch = 0;
    std::int64_t index = 0;  ///< of the image in the data set
    std::int64_t draw = 0;   ///< what its random numbers depend on: the index, or another number if the image
                             ///< comes again
    bool erase = true;       ///< whether random erasing may touch it
  };
  /// Writes the sample to `out`, or throws an error that says what is wrong with the image. It is called from several
  /// threads.
  using Fill = std::function<void(const Sample& sample, float* out)>;
  /// Loads something else for each image, such as features: samples of this shape that `fill` writes.
  Loader(const Dataset& dataset, const Shape& shape, Fill fill, const LoaderOptions& options);
};

}  // namespace vitrail::data
