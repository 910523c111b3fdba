/// \file
/// Batches of sequences of images, decoded ahead by worker threads.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/data/prefetch.h"
#include "vitrail/data/sequences/sequences.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// A batch of sequences, whose frames lie one after the other.
struct SequenceBatch {
  Tensor x;                             ///< [N, C, H, W] f32, normalized
  Tensor lengths;                       ///< [B] i64: the frames of each sequence
  std::vector<std::int64_t> sequences;  ///< [B], by their numbers in the data set
  std::vector<std::int64_t> frames;     ///< [N]: which image of the data set each frame is
  std::vector<std::int64_t> places;     ///< [N]: its place in its whole sequence
  std::int64_t number = 0;              ///< its number in the epoch
};

/// How a SequenceLoader makes its batches.
struct SequenceLoaderOptions {
  std::int64_t batch_size = 16;
  bool shuffle = false;            ///< by a permutation that depends on (seed, epoch) alone
  std::int64_t shuffle_block = 0;  ///< PlanOptions::shuffle_block, of sequences
  bool drop_last = false;          ///< leave out the last batch if it is not full, unless it is the only one
  /// Take so many frames in a row of a longer sequence, from a place that depends on (seed, epoch, its number); 0: all.
  std::int64_t max_frames = 0;
  /// Sequences are circles, and begin at a frame that depends on (seed, epoch, their number).
  bool circular = false;
  std::uint64_t seed = 0;
  int workers = 1;                              ///< threads; 0: next() decodes
  std::size_t memory = std::size_t{256} << 20;  ///< most bytes of batches made ahead (but at least one batch)
  std::size_t cache = std::size_t{256} << 20;   ///< of decoded images that are kept, if the whole data set fits
  bool skip_broken = false;                     ///< leave out sequences with a broken frame and count them
};

/// Makes batches of sequences in order. All frames of a sequence are augmented alike, as (seed, epoch, its number) say.
/// The data set must outlive the loader.
class SequenceLoader : public Prefetch<SequenceBatch> {
 public:
  /// Loads the sequences of these numbers.
  SequenceLoader(const Sequences& data, std::vector<std::int64_t> numbers, const Transform& transform,
                 const SequenceLoaderOptions& options);
};

}  // namespace vitrail::data
