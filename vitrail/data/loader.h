// Batches, decoded ahead by worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

struct Batch {
  Tensor x;                           // [B, C, H, W] f32, normalized; pictures without labels come last
  Tensor labels;                      // [L] i64, of the L ≤ B pictures that have labels
  Tensor targets;                     // [L, C] f32 when MixUp/CutMix mixed the labels, else undefined
  std::vector<std::int64_t> indices;  // of the pictures in the data set (fewer than a batch if some were broken)
  std::int64_t number = 0;            // in the epoch
};

struct LoaderOptions {
  std::int64_t batch_size = 64;
  bool shuffle = false;    // by a permutation that depends on (seed, epoch) alone
  bool drop_last = false;  // leave out the last batch if it is not full
  // --aug-repeats: repeated augmentation (Hoffer et al. 2020; timm's RepeatAugSampler in one process). Each picture
  // comes so often one after the other, augmented anew; an epoch is as long as before (from 256 pictures on, a multiple
  // of 256) and has so many fewer pictures. 0: off.
  double aug_repeats = 0;
  bool resplit = false;  // --resplit: nothing is erased in the first half of each batch
  std::uint64_t seed = 0;
  int workers = 1;                              // 0: decode in next()
  std::size_t memory = std::size_t{256} << 20;  // bytes of decoded batches waiting at most (at least one batch waits)
  // Bytes of decoded pictures kept for the next epochs, if the whole data set fits: then tiny pictures are decoded
  // once.
  std::size_t cache = std::size_t{256} << 20;
  bool skip_broken = false;      // leave broken pictures out and count them; otherwise the first is an Error naming it
  MixOptions mix;                // MixUp and CutMix
  std::int64_t num_classes = 0;  // for mixed targets
  double label_smoothing = 0;    // of mixed targets, as timm's Mixup
};

// One epoch's batches in order. What happens to a sample depends on (seed, epoch, index) alone, whatever the number of
// workers. The data set must outlive it. One thread calls its functions.
class Loader {
 public:
  Loader(const Dataset& dataset, const Transform& transform, const LoaderOptions& options);
  // One sample of a picture.
  struct Take {
    std::int64_t epoch = 0;
    std::int64_t index = 0;  // of the picture
    std::int64_t draw = 0;   // what is drawn for it depends on this: the index, or another number where it comes again
    bool erase = true;       // whether random erasing may touch it
  };
  // Samples of another kind: `make` writes one of this shape, or throws what is wrong with the picture. It is called
  // from several threads.
  using Make = std::function<void(const Take& take, float* out)>;
  Loader(const Dataset& dataset, const Shape& shape, Make make, const LoaderOptions& options);
  ~Loader();  // stops and joins the workers
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins epoch `epoch` at batch `first_batch` (> 0 when a run resumes in the middle of an epoch).
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0);
  // The next batch; false at the end of the epoch. Throws what a worker threw, in the batch's turn. Without
  // start_epoch() the epoch is 0.
  bool next(Batch& batch);
  std::int64_t batches_per_epoch() const;

  double seconds_waited() const;                   // how long next() has waited for workers, in all
  const std::vector<std::string>& broken() const;  // names and reasons of the pictures left out so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vitrail::data
