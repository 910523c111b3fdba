/// \file
/// Batches of any kind, made ahead by worker threads: their order, restarting at a batch, and broken items.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrail::data {

/// An item of a data set as one sample of a batch.
struct Pick {
  std::int64_t index = 0;   ///< of the item in the data set
  std::int64_t repeat = 0;  ///< how often it has come earlier in this epoch
};

/// The samples that a batch is to be made of.
struct BatchPlan {
  std::int64_t epoch = 0;
  std::int64_t number = 0;  ///< its number in the epoch
  std::vector<Pick> picks;  ///< its samples in order
};

/// Returns the batches of an epoch in order, the same for the same epoch at each call. A plan can put samples of equal
/// length into one batch (buckets), or draw each batch independently. All epochs have equally many batches.
using EpochPlan = std::function<std::vector<std::vector<Pick>>(std::int64_t epoch)>;

/// How many blocks of PlanOptions::shuffle_block items are shuffled together.
inline constexpr std::int64_t blocks_together = 16;

/// Options of plan_batches().
struct PlanOptions {
  std::int64_t size = 0;  ///< items
  std::int64_t batch_size = 64;
  bool shuffle = false;  ///< by a permutation that depends on (seed, epoch) alone
  /// Shuffles blocks of so many neighbours, and the items of each `blocks_together` blocks that follow each other then,
  /// so that what is near on a disk is read at about the same time. 0: all items, whatever their places.
  std::int64_t shuffle_block = 0;
  bool drop_last = false;  ///< leaves out the last batch if it is not full, unless it is the only one

  /// Repeated augmentation (Hoffer et al. 2020; timm's RepeatAugSampler in one process): each item comes `repeats`
  /// times in a row. An epoch has as many samples as without it (from 256 items on, the next lower multiple of 256),
  /// and so fewer different items by this factor. 0: off.
  double repeats = 0;
  std::uint64_t seed = 0;
};
/// A plan with all items in order, or shuffled, in batches of one size. Throws Error unless the batch size is positive
/// and `repeats` is 0 or from 1 to 1e6.
EpochPlan plan_batches(const PlanOptions& options);

/// A plan with all items in order, or shuffled by a permutation that depends on (seed, epoch) alone, in batches of
/// about equally many units, of which item i has units[i]: at most `most` of them on average, but at least one item.
EpochPlan plan_by_units(std::vector<std::int64_t> units, std::int64_t most, bool shuffle, std::uint64_t seed);

/// How batches of one kind are filled. The functions are called from several threads at once; those of one batch in the
/// order begin(), fill() of every sample, finish(). Their results must depend on their arguments alone.
template <class Batch>
struct Samples {
  virtual ~Samples() = default;
  /// The name of an item in messages.
  virtual std::string name(std::int64_t index) const = 0;
  /// A batch with memory for the samples of the plan.
  virtual Batch begin(const BatchPlan& plan) const = 0;
  /// Fills in sample `i`; no other thread touches its memory meanwhile. Throws an error that says what is wrong with
  /// the item if it is broken.
  virtual void fill(Batch& batch, const BatchPlan& plan, std::int64_t i) const = 0;
  /// Completes a batch. `whole` lists in order the samples that could be filled: finish() closes the gaps that broken
  /// ones leave, and does what concerns all samples together.
  virtual void finish(Batch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const = 0;
};

/// How batches are made ahead.
struct PrefetchOptions {
  int workers = 1;                ///< threads; 0: next() makes the batches
  std::int64_t most_ahead = 1;    ///< most batches that wait or are being made
  bool skip_broken = false;       ///< leave out broken items and count them; otherwise the first one throws Error
  std::string items = "samples";  ///< what messages call the items
  /// Is told the items of each `announced` batches, of those that are wanted, as the first of them begins, by a worker
  /// if there is one; unset: nothing is. What it throws is forgotten.
  std::function<void(std::span<const std::int64_t> items)> announce = {};
  std::int64_t announced = 1;
};

/// The batches of one epoch in order, made ahead: the part that all kinds of batches share. Only one thread may call
/// its functions.
class Batches {
 public:
  virtual ~Batches();  ///< stops and joins the workers
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  /// Begins epoch `epoch` at batch `first_batch`, which is above 0 if a run is resumed in the middle of an epoch. If it
  /// is not called, the first epoch is number 0. With `wanted`, only the batches with such numbers are made.
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0,
                   std::function<bool(std::int64_t number)> wanted = {});
  std::int64_t batches_per_epoch() const;
  std::int64_t largest_batch() const;              ///< samples of the largest batch of an epoch
  double seconds_waited() const;                   ///< how long next() has waited for workers so far
  const std::vector<std::string>& broken() const;  ///< names of the items left out so far, with the reasons
  /// Throws Error, naming the first broken item, if the `count` items that next() has given are none. `purpose` says
  /// what they were for: "evaluate".
  void check_any(std::int64_t count, std::string_view purpose) const;

 protected:
  /// A batch that is being made.
  struct Job {
    explicit Job(BatchPlan what) : plan(std::move(what)) {}
    virtual ~Job() = default;
    virtual std::string name(std::int64_t index) const = 0;
    virtual void fill(std::int64_t i) = 0;
    virtual void finish(std::span<const std::int64_t> whole) = 0;
    BatchPlan plan;
  };
  using Begin = std::function<std::shared_ptr<Job>(BatchPlan plan)>;
  Batches(EpochPlan plan, Begin begin, const PrefetchOptions& options);
  /// Waits for the next batch that has at least one whole sample; null at the end of the epoch. If a worker threw an
  /// error, this rethrows it when it is the turn of that batch.
  std::shared_ptr<Job> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Batches of one kind, filled by `samples` in the order of `plan`.
template <class Batch>
class Prefetch : public Batches {
 public:
  Prefetch(std::shared_ptr<const Samples<Batch>> samples, EpochPlan plan, const PrefetchOptions& options)
      : Batches(
            std::move(plan),
            [samples = std::move(samples)](BatchPlan what) { return std::make_shared<Made>(samples, std::move(what)); },
            options) {}

  /// Moves the next batch into `batch`; returns false at the end of the epoch.
  bool next(Batch& batch) {
    const std::shared_ptr<Job> job = take();
    if (job != nullptr) {
      batch = std::move(static_cast<Made&>(*job).batch);
    }
    return job != nullptr;
  }

 private:
  struct Made final : Job {
    Made(std::shared_ptr<const Samples<Batch>> how, BatchPlan what)
        : Job(std::move(what)), samples(std::move(how)), batch(samples->begin(plan)) {}
    std::string name(std::int64_t index) const override { return samples->name(index); }
    void fill(std::int64_t i) override { samples->fill(batch, plan, i); }
    void finish(std::span<const std::int64_t> whole) override { samples->finish(batch, plan, whole); }
    std::shared_ptr<const Samples<Batch>> samples;
    Batch batch;
  };
};

}  // namespace vitrail::data
