#include "vitrail/train/run/updates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "vitrail/dist/number_sum.h"
#include "vitrail/dist/packed.h"
#include "vitrail/dist/tree_sum.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/train/run/gradient_sum.h"

namespace vitrail::train {
namespace {

// The loss of a batch, weighted by its units.
struct LeafLoss {
  double loss = 0;
  std::int64_t units = 0;
};

// What a rank tells the others about its part of an update.
struct Report {
  Wishes wishes;
  double seconds = 0;  // from the beginning of the update to the end of its own work
  std::vector<LeafLoss> leaves;
  std::vector<std::uint8_t> touched;
};

std::string packed(const Report& report) {
  dist::Packer packer;
  packer.put(report.wishes);
  packer.put(report.seconds);
  packer.put_all(report.leaves);
  packer.put_all(report.touched);
  return packer.bytes();
}

Report unpacked(const std::string& bytes) {
  dist::Unpacker unpacker(bytes);
  Report report;
  report.wishes = unpacker.get<Wishes>();
  report.seconds = unpacker.get<double>();
  report.leaves = unpacker.get_all<LeafLoss>();
  report.touched = unpacker.get_all<std::uint8_t>();
  return report;
}

// The statistics of the network that a task trains, and those that are its own.
std::vector<Tensor> all_statistics(Task& task) {
  std::vector<Tensor> statistics = running_statistics(task.network().parameters);
  std::ranges::copy(task.statistics(), std::back_inserter(statistics));
  return statistics;
}

}  // namespace

std::int64_t batches_of_update(const RunOptions& options, int ranks) {
  return options.grad_shards > 0 ? options.grad_shards : options.grad_accum_steps * ranks;
}

std::string note_of_update(const RunOptions& options, int ranks, std::int64_t batches) {
  const std::int64_t asked = batches_of_update(options, ranks);
  return asked <= batches ? ""
                          : fmt::format("an update has {} instead of {}: an epoch has no more",
                                        io::counted(batches, "batches"), asked);
}

std::string with_remedy(std::string words, std::int64_t batch_size) {
  if (words.find("out of memory") != std::string::npos) {
    words += fmt::format("; try a --batch-size below {} (and more --grad-accum-steps)", batch_size);
  } else if (words.find("more than one value a channel") != std::string::npos) {
    words += fmt::format("; try a --batch-size above {}, or more data", batch_size);
  }
  return words;
}

std::int64_t updates_of_epoch(std::int64_t batches, std::int64_t batches_of_update) {
  return (batches + batches_of_update - 1) / batches_of_update;
}

struct Updates::Parts {
  // What adds up the parts of several ranks, or of shards.
  struct Sums {
    Sums(Task& task, dist::Communicator& ranks, const RunOptions& options)
        : gradients(task.network().parameters, ranks, options.grad_dtype == "bf16" ? DType::bf16 : DType::f32,
                    options.bucket_mb << 20, options.zero >= 2 ? dist::Share::part : dist::Share::whole,
                    dist::first_free_tag),
          statistics(all_statistics(task), ranks, dist::first_free_tag + gradients.tags()) {}
    int free_tag() const { return dist::first_free_tag + gradients.tags() + StatisticsMean::tags; }  // behind their own
    GradientSum gradients;
    StatisticsMean statistics;
  };

  Task& task;
  Learner& learner;
  dist::Communicator& ranks;
  bool checkpointing;
  std::int64_t group;
  // Unless this process goes through all batches one after the other.
  std::optional<Sums> sums = {};
  // A batch that has been drawn and is not of this update: those before it were broken.
  std::optional<Drawn> ahead = {};
  // With --sync-bn, the ranks that train a batch at once with this one, and sums over what they train.
  std::vector<int> together = {};
  std::optional<kernels::BatchSum> batch_sum = {};

  std::optional<Drawn> draw(Counters& counters);
  std::optional<Drawn> draw(std::int64_t number);
  std::uint64_t number_in_run(const Counters& counters, const Drawn& batch) const {
    return static_cast<std::uint64_t>(counters.epoch * counters.batches_per_epoch + batch.number);
  }
  // The update that comes next, from 0: its place in the schedules, as if all epochs before had had as many updates as
  // this one. Those of a run that has gone on with other batches, or whose items were broken, were more or fewer.
  std::int64_t next_update(const Counters& counters) const {
    return counters.epoch * updates_of_epoch(counters.batches_per_epoch, group) + counters.batch / group;
  }
  // The ranks that have a batch number `leaf`, from 0, of an update of so many batches.
  std::vector<int> ranks_with_leaf(std::int64_t batches, std::int64_t leaf) const {
    std::vector<int> result;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto [first, last] = dist::leaves_of(batches, rank, ranks.size());
      if (leaf < last - first) {
        result.push_back(rank);
      }
    }
    return result;
  }
  void check_loss(double loss, const Counters& counters, double lr) const;
  std::optional<Update> make_alone(Counters& counters, std::int64_t batches);
  std::optional<Update> make_together(Counters& counters, std::int64_t batches, const Wishes& wishes);
};

Updates::Updates(Task& task, Learner& learner, dist::Communicator& ranks, const RunOptions& options)
    : parts_(new Parts{task, learner, ranks, options.grad_checkpointing, batches_of_update(options, ranks.size())}) {
  const std::int64_t batches = task.batches().batches_per_epoch();
  dist::check_agreed(batches >= ranks.size(),
                     "there are {}, but an epoch has {}: take fewer, or a smaller --batch-size",
                     io::counted(ranks.size(), "ranks"), io::counted(batches, "batches"));
  dist::check_agreed(parts_->group % ranks.size() == 0,
                     "--grad-shards {} cannot be divided among {} ranks: take a multiple of {}", parts_->group,
                     ranks.size(), ranks.size());
  parts_->group = std::min(parts_->group, batches);
  if (ranks.size() > 1 || options.grad_shards > 0) {
    parts_->sums.emplace(task, ranks, options);
  }
  if (options.sync_bn) {
    dist::check_agreed(!running_statistics(task.network().parameters).empty(),
                       "--sync-bn has no effect: the network has no batch norms");
    if (ranks.size() > 1) {
      parts_->batch_sum = [p = parts_.get(), tag = parts_->sums->free_tag()](std::span<double> numbers) {
        dist::add_up(p->ranks, p->together, numbers, tag, "a batch norm");
      };
    }
  }
}

Updates::~Updates() = default;

std::int64_t Updates::group() const { return parts_->group; }

void Updates::start_epoch(const Counters& counters) {
  const Parts& p = *parts_;
  parts_->ahead.reset();
  const auto is_own = [group = p.group, first = counters.batch, batches = counters.batches_per_epoch,
                       rank = p.ranks.rank(), ranks = p.ranks.size()](std::int64_t number) {
    const std::int64_t begin = first + (number - first) / group * group;
    const auto [own, end] = dist::leaves_of(std::min(group, batches - begin), rank, ranks);
    return number - begin >= own && number - begin < end;
  };
  p.task.batches().start_epoch(counters.epoch, counters.batch,
                               p.ranks.size() > 1 ? is_own : std::function<bool(std::int64_t)>());
}

std::optional<Update> Updates::next(Counters& counters, const std::function<Wishes(std::int64_t)>& wishes) {
  const std::int64_t batches = std::min(parts_->group, counters.batches_per_epoch - counters.batch);
  parts_->task.updating(parts_->next_update(counters));
  if (parts_->sums) {
    return parts_->make_together(counters, batches, wishes(counters.step + 1));
  }
  return parts_->make_alone(counters, batches);
}

// The next batch of the task; empty if broken items have made the epoch shorter.
std::optional<Drawn> Updates::Parts::draw(Counters& counters) {
  std::optional<Drawn> drawn = task.next();
  counters.batch = drawn ? drawn->number + 1 : counters.batches_per_epoch;
  return drawn;
}

// The batch of that number; empty if all its items are broken.
std::optional<Drawn> Updates::Parts::draw(std::int64_t number) {
  if (!ahead) {
    ahead = task.next();
  }
  return ahead && ahead->number == number ? std::exchange(ahead, std::nullopt) : std::nullopt;
}

void Updates::Parts::check_loss(double loss, const Counters& counters, double lr) const {
  dist::check_agreed(std::isfinite(loss),
                     "the loss is {} in step {} (epoch {}, learning rate {:.3g}): try a smaller --lr, more "
                     "--warmup-epochs or --clip-grad 1",
                     std::isnan(loss) ? "NaN" : "infinite", counters.step + 1, counters.epoch + 1, lr);
}

// The loss is the mean over the units of all batches: each is weighted by its share of the units. As the sizes of the
// later batches are not known yet, they are assumed to be that of the first, and the error of this assumption is
// corrected in the end.
std::optional<Update> Updates::Parts::make_alone(Counters& counters, std::int64_t batches) {
  const Loss loss_of_batch = [&](nn::Pass& pass) { return task.loss(pass); };
  Update made;
  const std::int64_t update = next_update(counters);
  made.lr = learner.lr(update);
  double expected = 0;  // the assumed units of all batches
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::optional<Drawn> batch = draw(counters);
    if (!batch) {
      break;
    }
    expected = i == 0 ? static_cast<double>(batch->units * batches) : expected;
    const double share = static_cast<double>(batch->units) / expected;
    const std::uint64_t number = number_in_run(counters, *batch);
    double one = 0;
    if (batches == 1) {
      const Learner::Step step = learner.step(loss_of_batch, number, update);
      one = step.loss;
      made.gradient_norm = step.gradient_norm;
    } else {
      one = learner.accumulate(loss_of_batch, number, static_cast<float>(share));
    }
    check_loss(one, counters, made.lr);
    made.loss += one * share;
    made.units += batch->units;
  }
  if (made.units == 0) {
    return std::nullopt;
  }
  const double correction = expected / static_cast<double>(made.units);  // 1 if all batches have equally many units
  made.loss *= correction;
  if (batches > 1) {
    made.gradient_norm = learner.update(update, correction);
  }
  ++counters.step;
  return made;
}

// Each batch is weighted by its units, and the sum divided by those of all.
std::optional<Update> Updates::Parts::make_together(Counters& counters, std::int64_t batches, const Wishes& wishes) {
  const Loss loss_of_batch = [&](nn::Pass& pass) { return task.loss(pass); };
  const auto [first, last] = dist::leaves_of(batches, ranks.rank(), ranks.size());
  const auto began = std::chrono::steady_clock::now();
  Report own;
  sums->gradients.begin(batches);
  sums->statistics.begin(batches);
  for (std::int64_t i = first; i < last; ++i) {
    LeafLoss leaf;
    sums->statistics.begin_leaf();
    if (batch_sum) {
      together = ranks_with_leaf(batches, i - first);
    }
    if (const std::optional<Drawn> batch = draw(counters.batch + i)) {
      leaf.units = batch->units;
      leaf.loss = learner.accumulate(loss_of_batch, number_in_run(counters, *batch), static_cast<float>(batch->units),
                                     checkpointing ? autograd::Tape::Complete() : sums->gradients.collector(),
                                     batch_sum ? &*batch_sum : nullptr);
    } else {
      check(!batch_sum,
            "all items of a batch are broken, of which the other ranks wait for the statistics: --sync-bn "
            "needs batches with something in them");
    }
    own.leaves.push_back(leaf);
    sums->gradients.end_leaf();
    sums->statistics.end_leaf();
  }
  own.wishes = wishes;
  own.seconds = seconds_since(began);
  own.touched = sums->gradients.touched();
  Update made;
  const std::int64_t update = next_update(counters);
  made.lr = learner.lr(update);
  Wishes agreed;
  std::vector<std::uint8_t> touched(own.touched.size(), 0);
  for (int rank = 0;
       const std::string& text : dist::all_gather(ranks, packed(own), fmt::format("step {}", counters.step + 1))) {
    const Report report = unpacked(text);
    check(report.touched.size() == touched.size(), "rank {} trains {} parameters, this one {}", rank,
          report.touched.size(), touched.size());
    for (const LeafLoss& leaf : report.leaves) {
      made.loss += leaf.units == 0 ? 0 : leaf.loss * static_cast<double>(leaf.units);
      made.units += leaf.units;
    }
    for (std::size_t i = 0; i < touched.size(); ++i) {
      touched[i] |= report.touched[i];
    }
    agreed.stop = agreed.stop || report.wishes.stop;
    agreed.save = agreed.save || (rank == 0 && report.wishes.save);
    made.rank_seconds.push_back(report.seconds);
    ++rank;
  }
  if (ranks.size() > 1) {
    made.agreed = agreed;
  } else {
    made.rank_seconds.clear();
  }
  const std::string when = fmt::format("of step {}", counters.step + 1);
  const std::optional<double> norm = sums->gradients.finish(touched, learner.clips_by_norm(), when);
  sums->statistics.finish(when);
  check_loss(made.loss, counters, made.lr);
  counters.batch += batches;
  if (made.units == 0) {  // all items were broken
    return std::nullopt;
  }
  made.loss /= static_cast<double>(made.units);
  made.gradient_norm = learner.update(update, 1 / static_cast<double>(made.units), norm);
  ++counters.step;
  return made;
}

}  // namespace vitrail::train
