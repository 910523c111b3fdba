#include "vitrail/data/prefetch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <thread>

#include "vitrail/tensor/clock.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

using Clock = std::chrono::steady_clock;

// How many samples a worker takes at a time: few enough that several workers share a batch of large samples, many
// enough that tiny ones do not queue for the lock.
constexpr std::int64_t samples_at_once = 16;

// Fisher and Yates' shuffle.
void shuffle(std::span<std::int64_t> numbers, Draws& draws) {
  for (std::int64_t i = std::ssize(numbers) - 1; i > 0; --i) {
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(draws.integer(0, i + 1))]);
  }
}

std::vector<std::int64_t> numbers_to(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

std::vector<std::int64_t> order_of(const PlanOptions& options, std::int64_t epoch) {
  std::vector<std::int64_t> order = numbers_to(options.size);
  if (!options.shuffle) {
    return order;
  }
  Draws draws(Philox(mix(options.seed, hash("order")), static_cast<std::uint64_t>(epoch)));
  const std::int64_t block = options.shuffle_block == 0 ? options.size : std::min(options.shuffle_block, options.size);
  if (block == options.size) {
    shuffle(order, draws);
    return order;
  }
  std::vector<std::int64_t> blocks = numbers_to((options.size + block - 1) / block);
  shuffle(blocks, draws);
  auto end = order.begin();
  for (std::size_t b = 0; b < blocks.size();) {
    const auto begin = end;
    const std::size_t last = std::min(b + blocks_together, blocks.size());
    for (; b < last; ++b) {
      const std::int64_t first = blocks[b] * block;
      const auto next = end + std::min(block, options.size - first);
      std::iota(end, next, first);
      end = next;
    }
    shuffle({begin, end}, draws);
  }
  return order;
}

// Which item of the epoch comes at a position of it: with three repeats 0, 0, 0, 1, 1, 1, 2 …
std::int64_t place_of(std::int64_t position, double repeats) {
  const auto at = static_cast<double>(position);
  return repeats == 0 ? position : std::llround((at - std::fmod(at, repeats)) / repeats);
}

std::int64_t samples_per_epoch(const PlanOptions& options) {
  std::int64_t size = options.size;
  if (options.repeats > 0 && size >= 256) {
    size = size / 256 * 256;  // as in timm's RepeatAugSampler
  }
  const std::int64_t full = size / options.batch_size * options.batch_size;
  return options.drop_last && full > 0 ? full : size;
}

}  // namespace

EpochPlan plan_batches(const PlanOptions& options) {
  check(options.batch_size > 0, "the batch size must be positive, but is {}", options.batch_size);
  check(options.repeats == 0 || (options.repeats >= 1 && options.repeats <= 1e6),
        "each item can be repeated once or more an epoch (0: off), not {} times", options.repeats);
  check(options.shuffle_block >= 0, "a block to shuffle has items (0: all), not {}", options.shuffle_block);
  return [options](std::int64_t epoch) {
    const std::vector<std::int64_t> order = order_of(options, epoch);
    const std::int64_t samples = samples_per_epoch(options);
    std::vector<std::vector<Pick>> batches;
    std::int64_t repeat = 0;
    for (std::int64_t position = 0; position < samples; ++position) {
      const std::int64_t place = place_of(position, options.repeats);
      repeat = position > 0 && place_of(position - 1, options.repeats) == place ? repeat + 1 : 0;
      if (position % options.batch_size == 0) {
        batches.emplace_back();
      }
      batches.back().push_back({order[static_cast<std::size_t>(place)], repeat});
    }
    return batches;
  };
}

EpochPlan plan_by_units(std::vector<std::int64_t> units, std::int64_t most, bool shuffle, std::uint64_t seed) {
  const auto count = std::ssize(units);
  const std::int64_t total = std::accumulate(units.begin(), units.end(), std::int64_t{0});
  check(most > 0, "a batch has at least one unit, not {}", most);
  check(count > 0 && total > 0, "there is nothing to make batches of");
  const std::int64_t batches = std::clamp<std::int64_t>((total + most - 1) / most, 1, count);
  // All items in one "batch", of which the real ones are cut.
  const EpochPlan order = plan_batches({.size = count, .batch_size = count, .shuffle = shuffle, .seed = seed});
  return [=, units = std::move(units)](std::int64_t epoch) {
    std::vector<std::vector<Pick>> result(static_cast<std::size_t>(batches));
    const std::vector<Pick> all = order(epoch).front();
    std::int64_t done = 0;
    std::int64_t last = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      // The batch by the units before it, but such that no batch is without an item.
      const auto left = static_cast<std::int64_t>(all.size() - i);
      const std::int64_t batch = std::clamp(done * batches / total, batches - left, last + 1);
      last = batch;
      result[static_cast<std::size_t>(batch)].push_back(all[i]);
      done += units[static_cast<std::size_t>(all[i].index)];
    }
    return result;
  };
}

// The queue of batches. Workers take a few samples of a batch at a time, and the one that finishes the last sample
// finishes the batch.
struct Batches::State {
  struct Pending {
    std::shared_ptr<Job> job;
    std::vector<std::string> failures;  // [samples]: what is wrong with a broken item, else empty
    std::atomic<bool> out_of_memory = false;
    std::vector<std::int64_t> whole;  // the samples that were filled; set once `ready`
    std::exception_ptr error;

    // Guarded by the mutex.
    std::int64_t taken = 0;
    std::int64_t missing = 0;
    bool ready = false;

    std::int64_t samples() const { return static_cast<std::int64_t>(failures.size()); }
  };

  State(EpochPlan p, Begin b, PrefetchOptions o) : plan(std::move(p)), begin(std::move(b)), options(std::move(o)) {}
  ~State();
  void enqueue();
  void announce_from(std::int64_t batch);
  void announce(const std::vector<std::int64_t>& items) const noexcept;
  void fill(Pending& pending, std::int64_t first, std::int64_t last) const;
  void finish(Pending& pending) const noexcept;
  void work();
  std::shared_ptr<Pending> take_ready();

  const EpochPlan plan;
  const Begin begin;
  const PrefetchOptions options;

  // Used by the calling thread alone.
  std::vector<std::vector<Pick>> epoch_plan;
  std::int64_t epoch = 0;
  std::int64_t next_batch = 0;
  std::function<bool(std::int64_t)> wanted;  // empty: all
  std::int64_t announced_to = 0;             // the batches of the epoch before this one have been announced
  double seconds_waited = 0;
  std::vector<std::string> broken;
  std::set<std::int64_t> broken_indices;

  // Shared with the workers.
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable has_batch;
  std::deque<std::shared_ptr<Pending>> queue;  // in the order of the epoch
  std::deque<std::vector<std::int64_t>> announcements;
  bool stop = false;
  std::vector<std::thread> workers;
};

Batches::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  has_work.notify_all();
  for (std::thread& worker : workers) {
    worker.join();
  }
}

// Tells what is read soon, which is only advice: that it fails does no harm.
void Batches::State::announce(const std::vector<std::int64_t>& items) const noexcept {
  try {
    options.announce(items);
  } catch (...) {
  }
}

// Announces the items of the batches that are wanted from `batch` to the end of those that are announced with it.
void Batches::State::announce_from(std::int64_t batch) {
  announced_to = std::min((batch / options.announced + 1) * options.announced, std::ssize(epoch_plan));
  if (!options.announce) {
    return;
  }
  std::vector<std::int64_t> items;
  for (; batch < announced_to; ++batch) {
    if (!wanted || wanted(batch)) {
      std::ranges::transform(epoch_plan[static_cast<std::size_t>(batch)], std::back_inserter(items), &Pick::index);
    }
  }
  if (workers.empty()) {
    announce(items);
  } else {
    announcements.push_back(std::move(items));
  }
}

// Adds batches to the queue up to the number that may wait.
void Batches::State::enqueue() {
  while (std::ssize(queue) < std::max<std::int64_t>(options.most_ahead, 1) && next_batch < std::ssize(epoch_plan)) {
    if (wanted && !wanted(next_batch)) {
      ++next_batch;
      continue;
    }
    if (next_batch >= announced_to) {
      announce_from(next_batch);
    }
    auto pending = std::make_shared<Pending>();
    pending->job = begin({epoch, next_batch, epoch_plan[static_cast<std::size_t>(next_batch)]});
    ++next_batch;
    pending->failures.resize(pending->job->plan.picks.size());
    pending->missing = pending->samples();
    queue.push_back(std::move(pending));
  }
  has_work.notify_all();
}

void Batches::State::fill(Pending& pending, std::int64_t first, std::int64_t last) const {
  for (std::int64_t i = first; i < last; ++i) {
    try {
      pending.job->fill(i);
    } catch (const std::bad_alloc&) {
      pending.out_of_memory = true;  // not the fault of the item
    } catch (const std::exception& error) {
      const std::string name = pending.job->name(pending.job->plan.picks[static_cast<std::size_t>(i)].index);
      std::string& failure = pending.failures[static_cast<std::size_t>(i)];
      failure = error.what();
      if (failure.find(name) == std::string::npos) {
        failure = name + ": " + failure;
      }
    }
  }
}

void Batches::State::finish(Pending& pending) const noexcept {
  try {
    check(!pending.out_of_memory, "out of memory while {} were prepared", options.items);
    for (std::int64_t i = 0; i < pending.samples(); ++i) {
      const std::string& failure = pending.failures[static_cast<std::size_t>(i)];
      check(failure.empty() || options.skip_broken, "{} (broken {} can be skipped: --skip-broken)", failure,
            options.items);
      if (failure.empty()) {
        pending.whole.push_back(i);
      }
    }
    if (!pending.whole.empty()) {
      pending.job->finish(pending.whole);
    }
  } catch (...) {
    pending.error = std::current_exception();
  }
}

void Batches::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    const auto unfinished = [](const std::shared_ptr<Pending>& p) { return p->taken < p->samples(); };
    auto at = queue.end();
    has_work.wait(lock, [&] {
      at = std::find_if(queue.begin(), queue.end(), unfinished);
      return stop || !announcements.empty() || at != queue.end();
    });
    if (stop) {
      return;
    }
    if (!announcements.empty()) {
      const std::vector<std::int64_t> items = std::move(announcements.front());
      announcements.pop_front();
      lock.unlock();
      announce(items);
      lock.lock();
      continue;
    }
    const std::shared_ptr<Pending> pending = *at;  // keeps it alive: start_epoch() may drop it from the queue meanwhile
    const std::int64_t first = pending->taken;
    const std::int64_t last = std::min(first + samples_at_once, pending->samples());
    pending->taken = last;
    lock.unlock();
    fill(*pending, first, last);
    lock.lock();
    pending->missing -= last - first;
    if (pending->missing == 0) {
      lock.unlock();
      finish(*pending);
      lock.lock();
      pending->ready = true;
      has_batch.notify_all();
    }
  }
}

// Waits for the first batch of the queue; null at the end of the epoch.
std::shared_ptr<Batches::State::Pending> Batches::State::take_ready() {
  std::unique_lock lock(mutex);
  enqueue();
  if (queue.empty()) {
    return nullptr;
  }
  const std::shared_ptr<Pending> first = queue.front();
  if (!first->ready) {
    const Clock::time_point start = Clock::now();
    if (workers.empty()) {
      fill(*first, 0, first->samples());
      finish(*first);
    } else {
      has_batch.wait(lock, [&] { return first->ready; });
    }
    seconds_waited += seconds_since(start);
  }
  queue.pop_front();
  if (!workers.empty()) {
    enqueue();
  }
  return first;
}

Batches::Batches(EpochPlan plan, Begin begin, const PrefetchOptions& options)
    : state_(std::make_unique<State>(std::move(plan), std::move(begin), options)) {
  check(options.workers >= 0, "the number of workers must not be negative, but is {}", options.workers);
  check(options.announced > 0, "one batch or more is announced at a time, not {}", options.announced);
  state_->epoch_plan = state_->plan(0);
  for (int i = 0; i < options.workers; ++i) {
    state_->workers.emplace_back([state = state_.get()] { state->work(); });
  }
}

Batches::~Batches() = default;

void Batches::start_epoch(std::int64_t epoch, std::int64_t first_batch, std::function<bool(std::int64_t)> wanted) {
  check(epoch >= 0 && first_batch >= 0, "there is no batch {} of epoch {}", first_batch, epoch);
  const std::lock_guard lock(state_->mutex);
  state_->queue.clear();
  state_->announcements.clear();
  if (epoch != state_->epoch) {
    state_->epoch = epoch;
    state_->epoch_plan = state_->plan(epoch);
  }
  state_->next_batch = first_batch;
  state_->announced_to = first_batch;
  state_->wanted = std::move(wanted);
  if (!state_->workers.empty()) {
    state_->enqueue();
  }
}

std::shared_ptr<Batches::Job> Batches::take() {
  for (;;) {
    const std::shared_ptr<State::Pending> pending = state_->take_ready();
    if (pending == nullptr) {
      return nullptr;
    }
    if (pending->error != nullptr) {
      std::rethrow_exception(pending->error);
    }
    for (std::int64_t i = 0; i < pending->samples(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!pending->failures[at].empty() && state_->broken_indices.insert(pending->job->plan.picks[at].index).second) {
        state_->broken.push_back(std::move(pending->failures[at]));
      }
    }
    if (!pending->whole.empty()) {  // all of its items may have been broken
      return pending->job;
    }
  }
}

std::int64_t Batches::batches_per_epoch() const { return std::ssize(state_->epoch_plan); }
std::int64_t Batches::largest_batch() const {
  const auto size = [](const std::vector<Pick>& picks) { return std::ssize(picks); };
  const auto& batches = state_->epoch_plan;
  return batches.empty() ? 0 : size(*std::ranges::max_element(batches, {}, size));
}
double Batches::seconds_waited() const { return state_->seconds_waited; }
const std::vector<std::string>& Batches::broken() const { return state_->broken; }

void Batches::check_any(std::int64_t count, std::string_view purpose) const {
  check(count > 0, "there was nothing to {}: all {} {} are broken, the first: {}", purpose, broken().size(),
        state_->options.items, broken().empty() ? "" : broken().front());
}

}  // namespace vitrail::data
