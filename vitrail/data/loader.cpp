#include "vitrail/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

using Clock = std::chrono::steady_clock;

// Samples that a worker takes at a time: few enough that several workers share a batch of large pictures, many enough
// that tiny ones do not queue for the lock.
constexpr std::int64_t kChunk = 16;

// Decoded pictures kept for the next epoch. A picture is kept if all pictures would fit if they were of its size, so
// that either (nearly) all of a data set is kept or nothing of it.
class PictureCache {
 public:
  PictureCache(const Dataset& dataset, std::size_t memory)
      : dataset_(dataset),
        largest_(memory / static_cast<std::size_t>(std::max(dataset.size(), std::int64_t{1}))),
        slots_(largest_ > 0 ? static_cast<std::size_t>(dataset.size()) : 0) {}
  ~PictureCache() {
    for (std::atomic<const io::Image*>& slot : slots_) {
      delete slot.load();
    }
  }
  PictureCache(const PictureCache&) = delete;
  PictureCache& operator=(const PictureCache&) = delete;

  // Calls use(image) with picture `index`, decoded now or earlier.
  template <class Use>
  void with(std::int64_t index, Use use) {
    std::atomic<const io::Image*>* slot = slots_.empty() ? nullptr : &slots_[static_cast<std::size_t>(index)];
    if (const io::Image* kept = slot != nullptr ? slot->load(std::memory_order_acquire) : nullptr) {
      return use(*kept);
    }
    io::Image image = dataset_.image(index);
    use(std::as_const(image));
    if (slot != nullptr && sizeof(io::Image) + image.pixels.size() <= largest_) {
      auto kept = std::make_unique<const io::Image>(std::move(image));
      const io::Image* empty = nullptr;
      if (slot->compare_exchange_strong(empty, kept.get(), std::memory_order_release, std::memory_order_relaxed)) {
        kept.release();
      }
    }
  }

 private:
  const Dataset& dataset_;
  std::size_t largest_;
  std::vector<std::atomic<const io::Image*>> slots_;
};

// A batch being made: workers take its samples chunk by chunk, and who finishes the last one finishes the batch.
struct Pending {
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // in the epoch
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> repeats;  // how often the picture has come before in this epoch
  Tensor x;
  std::atomic<bool> out_of_memory = false;
  std::vector<std::string> failures;  // [samples]: what is wrong with a broken picture, else empty

  // Guarded by the loader's mutex.
  std::int64_t taken = 0;
  std::int64_t missing = 0;
  bool ready = false;

  Batch batch;  // written by who finishes it
  std::vector<std::pair<std::int64_t, std::string>> broken;
  std::exception_ptr error;
};

}  // namespace

struct Loader::State {
  State(const Dataset& data, const Shape& s, Make m, const LoaderOptions& o)
      : dataset(data), shape(s), make(std::move(m)), options(o) {}
  ~State();

  std::int64_t samples_per_epoch() const;
  void make_order(std::int64_t epoch);
  std::int64_t place_of(std::int64_t position) const;
  std::shared_ptr<Pending> begin_batch();
  void enqueue();
  void make_samples(Pending& pending, std::int64_t begin, std::int64_t end);
  void finish(Pending& pending) noexcept;
  void drop_broken(Pending& pending);
  void mix_batch(Pending& pending) const;
  void work();
  std::shared_ptr<Pending> take_ready();

  const Dataset& dataset;
  const Shape shape;  // of a sample
  const Make make;
  const LoaderOptions options;
  std::int64_t most_ahead = 1;  // batches waiting or in work

  // The caller's side alone.
  std::vector<std::int64_t> order;
  std::int64_t epoch = -1;
  std::int64_t next_batch = 0;
  double seconds_waited = 0;
  std::vector<std::string> broken;
  std::set<std::int64_t> broken_indices;

  // Shared with the workers.
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable has_batch;
  std::deque<std::shared_ptr<Pending>> queue;  // in order
  bool stop = false;
  std::vector<std::thread> workers;
};

Loader::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  has_work.notify_all();
  for (std::thread& worker : workers) {
    worker.join();
  }
}

std::int64_t Loader::State::samples_per_epoch() const {
  std::int64_t size = dataset.size();
  if (options.aug_repeats > 0 && size >= 256) {
    size = size / 256 * 256;  // RepeatAugSampler's
  }
  return options.drop_last ? size / options.batch_size * options.batch_size : size;
}

void Loader::State::make_order(std::int64_t new_epoch) {
  epoch = new_epoch;
  order.resize(static_cast<std::size_t>(dataset.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (options.shuffle) {
    Draws draws(Philox(mix(options.seed, hash("order")), static_cast<std::uint64_t>(epoch)));
    for (std::int64_t i = dataset.size() - 1; i > 0; --i) {
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(draws.integer(0, i + 1))]);
    }
  }
}

// Which of the epoch's pictures comes at a position of the epoch: with repeats 0, 0, 0, 1, 1, 1, 2 …
std::int64_t Loader::State::place_of(std::int64_t position) const {
  const double repeats = options.aug_repeats;
  if (repeats == 0) {
    return position;
  }
  const auto at = static_cast<double>(position);
  return std::llround((at - std::fmod(at, repeats)) / repeats);
}

std::shared_ptr<Pending> Loader::State::begin_batch() {
  const std::int64_t begin = next_batch * options.batch_size;
  const std::int64_t count = std::min(options.batch_size, samples_per_epoch() - begin);
  if (count <= 0) {
    return nullptr;
  }
  auto pending = std::make_shared<Pending>();
  pending->epoch = epoch;
  pending->number = next_batch++;
  std::vector<std::pair<std::int64_t, std::int64_t>> takes;  // pictures, and how often each has come before
  for (std::int64_t position = begin; position < begin + count; ++position) {
    const std::int64_t place = place_of(position);
    std::int64_t repeat = 0;
    while (repeat < position && place_of(position - repeat - 1) == place) {
      ++repeat;
    }
    takes.emplace_back(order[static_cast<std::size_t>(place)], repeat);
  }
  std::stable_partition(takes.begin(), takes.end(),
                        [&](const auto& take) { return dataset.label(take.first) != unlabeled; });
  for (const auto& [index, repeat] : takes) {
    pending->indices.push_back(index);
    pending->repeats.push_back(repeat);
  }
  pending->x = Tensor::empty(shape.inserted(0, count));
  pending->failures.resize(static_cast<std::size_t>(count));
  pending->missing = count;
  return pending;
}

// Fills the queue up to what may wait.
void Loader::State::enqueue() {
  while (static_cast<std::int64_t>(queue.size()) < most_ahead) {
    std::shared_ptr<Pending> pending = begin_batch();
    if (pending == nullptr) {
      break;
    }
    queue.push_back(std::move(pending));
  }
  has_work.notify_all();
}

void Loader::State::make_samples(Pending& pending, std::int64_t begin, std::int64_t end) {
  const std::int64_t sample = shape.numel();
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t index = pending.indices[static_cast<std::size_t>(i)];
    // A picture that comes again is another sample.
    const std::int64_t draw = index + pending.repeats[static_cast<std::size_t>(i)] * dataset.size();
    const bool erase = !options.resplit || i >= pending.x.size(0) / 2;
    float* out = pending.x.data<float>() + i * sample;
    try {
      make({pending.epoch, index, draw, erase}, out);
    } catch (const std::bad_alloc&) {
      pending.out_of_memory = true;  // no fault of the picture
    } catch (const std::exception& error) {
      std::string& failure = pending.failures[static_cast<std::size_t>(i)];
      failure = error.what();
      if (failure.find(dataset.name(index)) == std::string::npos) {
        failure = dataset.name(index) + ": " + failure;
      }
    }
  }
}

// Closes the gaps that broken pictures leave.
void Loader::State::drop_broken(Pending& pending) {
  const std::int64_t sample = shape.numel();
  float* data = pending.x.data<float>();
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < pending.indices.size(); ++i) {
    if (!pending.failures[i].empty()) {
      pending.broken.emplace_back(pending.indices[i], std::move(pending.failures[i]));
      continue;
    }
    const auto from = static_cast<std::int64_t>(i);
    if (kept != from) {
      std::copy_n(data + from * sample, sample, data + kept * sample);
      pending.indices[static_cast<std::size_t>(kept)] = pending.indices[i];
    }
    ++kept;
  }
  pending.indices.resize(static_cast<std::size_t>(kept));
  pending.x = pending.x.narrow(0, 0, kept);
}

void Loader::State::mix_batch(Pending& pending) const {
  Batch& batch = pending.batch;
  const std::int64_t labeled = batch.labels.size(0);
  std::vector<Mixture> mixtures(static_cast<std::size_t>(labeled));
  std::vector<Mixture> others(pending.indices.size() - mixtures.size());
  if (options.mix.mixup_off_epoch == 0 || pending.epoch < options.mix.mixup_off_epoch) {
    const std::uint64_t seed = mix(mix(options.seed, hash("mix")), static_cast<std::uint64_t>(pending.epoch));
    Draws draws(Philox(seed, static_cast<std::uint64_t>(pending.number)));
    mixtures = draw_mixtures(options.mix, labeled, pending.x.size(2), pending.x.size(3), draws);
    others = draw_mixtures(options.mix, std::ssize(others), pending.x.size(2), pending.x.size(3), draws);
  }
  // Pictures with labels are mixed among themselves, and the others likewise.
  mix_pictures(pending.x.narrow(0, 0, labeled), mixtures);
  mix_pictures(pending.x.narrow(0, labeled, std::ssize(others)), others);
  batch.targets = mix_labels(batch.labels.span<std::int64_t>(), options.num_classes, mixtures, options.label_smoothing);
  if (options.mix.mode == MixMode::half) {
    const std::int64_t kept = (pending.x.size(0) + 1) / 2;
    pending.x = pending.x.narrow(0, 0, kept);
    batch.labels = batch.labels.narrow(0, 0, kept);
    batch.targets = batch.targets.narrow(0, 0, kept);
    pending.indices.resize(static_cast<std::size_t>(kept));
  }
}

void Loader::State::finish(Pending& pending) noexcept {
  try {
    check(!pending.out_of_memory, "out of memory while pictures were prepared");
    const auto failure =
        std::find_if(pending.failures.begin(), pending.failures.end(), [](const std::string& f) { return !f.empty(); });
    if (failure != pending.failures.end()) {
      check(options.skip_broken, "{} (broken pictures can be skipped: --skip-broken)", *failure);
      drop_broken(pending);
    }
    const auto end = std::find_if(pending.indices.begin(), pending.indices.end(),
                                  [&](std::int64_t index) { return dataset.label(index) == unlabeled; });
    pending.batch.labels = Tensor::empty({end - pending.indices.begin()}, DType::i64);
    std::transform(pending.indices.begin(), end, pending.batch.labels.data<std::int64_t>(),
                   [&](std::int64_t index) { return dataset.label(index); });
    if (options.mix.enabled() && !pending.indices.empty()) {
      mix_batch(pending);
    }
    pending.batch.x = std::move(pending.x);
    pending.batch.indices = std::move(pending.indices);
    pending.batch.number = pending.number;
  } catch (...) {
    pending.error = std::current_exception();
  }
}

void Loader::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    const auto unfinished = [](const std::shared_ptr<Pending>& p) {
      return p->taken < static_cast<std::int64_t>(p->failures.size());
    };
    auto at = queue.end();
    has_work.wait(lock, [&] {
      at = std::find_if(queue.begin(), queue.end(), unfinished);
      return stop || at != queue.end();
    });
    if (stop) {
      return;
    }
    const std::shared_ptr<Pending> pending = *at;  // ours too: start_epoch() may drop it from the queue meanwhile
    const std::int64_t begin = pending->taken;
    const std::int64_t end = std::min(begin + kChunk, static_cast<std::int64_t>(pending->failures.size()));
    pending->taken = end;
    lock.unlock();
    make_samples(*pending, begin, end);
    lock.lock();
    pending->missing -= end - begin;
    if (pending->missing == 0) {
      lock.unlock();
      finish(*pending);
      lock.lock();
      pending->ready = true;
      has_batch.notify_all();
    }
  }
}

// The first batch of the queue, waited for; none at the end of the epoch.
std::shared_ptr<Pending> Loader::State::take_ready() {
  std::unique_lock lock(mutex);
  enqueue();
  if (queue.empty()) {
    return nullptr;
  }
  const std::shared_ptr<Pending> first = queue.front();
  if (!first->ready) {
    const Clock::time_point start = Clock::now();
    if (workers.empty()) {
      make_samples(*first, 0, first->missing);
      finish(*first);
    } else {
      has_batch.wait(lock, [&] { return first->ready; });
    }
    seconds_waited += std::chrono::duration<double>(Clock::now() - start).count();
  }
  queue.pop_front();
  if (!workers.empty()) {
    enqueue();
  }
  return first;
}

namespace {

// Pictures decoded, now or earlier, and transformed.
Loader::Make from_pictures(const Dataset& dataset, const Transform& transform, const LoaderOptions& options) {
  const auto cache = std::make_shared<PictureCache>(dataset, options.cache);
  return [cache, transform, seed = options.seed](const Loader::Take& take, float* out) {
    cache->with(take.index,
                [&](const io::Image& image) { transform.apply(image, seed, take.epoch, take.draw, out, take.erase); });
  };
}

}  // namespace

Loader::Loader(const Dataset& dataset, const Transform& transform, const LoaderOptions& options)
    : Loader(dataset, transform.shape(), from_pictures(dataset, transform, options), options) {}

Loader::Loader(const Dataset& dataset, const Shape& shape, Make make, const LoaderOptions& options)
    : state_(std::make_unique<State>(dataset, shape, std::move(make), options)) {
  check(options.batch_size > 0, "the batch size must be positive, but is {}", options.batch_size);
  check(options.workers >= 0, "the number of workers must not be negative, but is {}", options.workers);
  check(options.aug_repeats == 0 || (options.aug_repeats >= 1 && options.aug_repeats <= 1e6),
        "each picture can be repeated once or more an epoch (0: off), not {} times", options.aug_repeats);
  check(!options.mix.enabled() || options.num_classes > 0, "MixUp and CutMix need the number of classes");
  check(!options.mix.enabled() || shape.rank() == 3, "MixUp and CutMix are for pictures, not for samples {}", shape);
  const auto batch_bytes = static_cast<std::int64_t>(sizeof(float)) * shape.numel() * options.batch_size;
  // Farther ahead than this smooths nothing, it only takes memory.
  const std::int64_t useful = options.workers == 0 ? 1 : 2 * std::int64_t{options.workers} + 2;
  state_->most_ahead = std::clamp(static_cast<std::int64_t>(options.memory) / std::max(batch_bytes, std::int64_t{1}),
                                  std::int64_t{1}, useful);
  state_->make_order(0);
  for (int i = 0; i < options.workers; ++i) {
    state_->workers.emplace_back([state = state_.get()] { state->work(); });
  }
}

Loader::~Loader() = default;

void Loader::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  check(epoch >= 0 && first_batch >= 0, "there is no batch {} of epoch {}", first_batch, epoch);
  const std::lock_guard lock(state_->mutex);
  state_->queue.clear();
  if (epoch != state_->epoch) {
    state_->make_order(epoch);
  }
  state_->next_batch = first_batch;
  if (!state_->workers.empty()) {
    state_->enqueue();
  }
}

bool Loader::next(Batch& batch) {
  for (;;) {
    const std::shared_ptr<Pending> pending = state_->take_ready();
    if (pending == nullptr) {
      return false;
    }
    if (pending->error != nullptr) {
      std::rethrow_exception(pending->error);
    }
    for (auto& [index, reason] : pending->broken) {
      if (state_->broken_indices.insert(index).second) {
        state_->broken.push_back(std::move(reason));
      }
    }
    if (!pending->batch.indices.empty()) {  // all of its pictures may have been broken
      batch = std::move(pending->batch);
      return true;
    }
  }
}

std::int64_t Loader::batches_per_epoch() const {
  return (state_->samples_per_epoch() + state_->options.batch_size - 1) / state_->options.batch_size;
}

double Loader::seconds_waited() const { return state_->seconds_waited; }
const std::vector<std::string>& Loader::broken() const { return state_->broken; }

}  // namespace vitrail::data
