#include "vitrail/generate/search.h"

#include <algorithm>
#include <cmath>

#include "vitrail/generate/processors.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/kernels/softmax.h"
#include "vitrail/tensor/random.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

bool ends(const GenerationConfig& config, std::int64_t token) {
  return std::ranges::find(config.eos_token_id, token) != config.eos_token_id.end();
}

Ids with_prompt(const SearchTask& task, const Ids& added) {
  Ids ids(task.prompt.begin(), task.prompt.end());
  ids.insert(ids.end(), added.begin(), added.end());
  return ids;
}

// Greedy search, or sampling: each sequence takes its own way. Those that have ended are read on with a filler, which
// nobody sees, so that all have one length.
class EachSearch final : public Search {
 public:
  explicit EachSearch(const SearchTask& task)
      : task_(task),
        sequences_(static_cast<std::size_t>(task.config.num_return_sequences)),
        ended_(sequences_.size(), false),
        next_(sequences_.size()) {}

  void advance(std::span<float> scores, std::int64_t vocabulary) override {
    constexpr std::int64_t filler = 0;
    const GenerationConfig& config = task_.config;
    const auto count = std::ssize(sequences_);
    const bool first = std::ssize(scores) == vocabulary;
    std::vector<float> copy;  // of a row that several sequences begin with
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      next_[at] = {first ? 0 : i, filler};
      if (ended_[at]) {
        continue;
      }
      Ids& added = sequences_[at].ids;
      std::span<float> own =
          scores.subspan(static_cast<std::size_t>(next_[at].origin * vocabulary), static_cast<std::size_t>(vocabulary));
      if (first && count > 1) {
        copy.assign(own.begin(), own.end());
        own = copy;
      }
      process_scores(config, with_prompt(task_, added), std::ssize(task_.prompt), task_.most_new, 1, own);
      const Philox draws(task_.options.seed, static_cast<std::uint64_t>(task_.number * count + i));
      const std::int64_t token =
          config.do_sample ? draw(own, draws.uniform(added.size())) : kernels::largest(own, 1).front();
      next_[at].token = token;
      added.push_back(token);
      ended_[at] = ends(config, token) || std::ssize(added) == task_.most_new ||
                   (task_.options.stop && task_.options.stop(task_.number * count + i, added));
    }
  }
  bool done() const override {
    return std::ranges::all_of(ended_, [](bool end) { return end; });
  }
  const std::vector<Next>& next() const override { return next_; }
  std::vector<Sequence> sequences() const override { return sequences_; }

 private:
  SearchTask task_;
  std::vector<Sequence> sequences_;
  std::vector<bool> ended_;
  std::vector<Next> next_;
};

// A sequence of a beam search.
struct Beam {
  Ids ids = {};  // the new tokens
  float score = 0;
  bool finished = false;
  std::int64_t origin = 0;  // the running beam that it continues
};

constexpr float out_of_the_race = -1e9F;

// Beam search as transformers' _beam_search(), in its order and precision.
class BeamSearch final : public Search {
 public:
  explicit BeamSearch(const SearchTask& task)
      : task_(task),
        beams_(task.config.num_beams),
        // So many that enough go on even if each of the best ends in another way.
        kept_(std::max<std::int64_t>(2, 1 + std::ssize(task.config.eos_token_id)) * beams_) {
    running_.resize(static_cast<std::size_t>(beams_));
    finished_.resize(static_cast<std::size_t>(beams_), Beam{.score = out_of_the_race});
    for (std::size_t i = 1; i < running_.size(); ++i) {
      running_[i].score = out_of_the_race;  // all begin alike: only the first goes on
    }
  }

  void advance(std::span<float> scores, std::int64_t vocabulary) override {
    ++length_;
    const std::vector<Beam> best = continuations(scores, vocabulary);
    keep_finished(best);
    keep_running(best);
    update_hope();
    const bool full = task_.config.early_stopping == EarlyStopping::at_once && all_finished(finished_);
    done_ = !hope_ || full || all_finished(best);
    next_.clear();
    for (const Beam& beam : running_) {
      next_.push_back({length_ == 1 ? 0 : beam.origin, beam.ids.back()});
    }
  }
  bool done() const override { return done_; }
  const std::vector<Next>& next() const override { return next_; }
  std::vector<Sequence> sequences() const override {
    std::vector<Sequence> result;
    for (std::int64_t i = 0; i < task_.config.num_return_sequences; ++i) {
      const Beam& beam = finished_[static_cast<std::size_t>(i)];
      result.push_back({beam.ids, beam.score});
    }
    return result;
  }

 private:
  static bool all_finished(const std::vector<Beam>& beams) {
    return std::ranges::all_of(beams, [](const Beam& beam) { return beam.finished; });
  }

  // What the score of a sequence of this many new tokens is divided by.
  float norm(std::int64_t length) const {
    const auto tokens = static_cast<double>(length);
    const double base = task_.options.penalty == LengthPenalty::wu ? (5 + tokens) / 6 : tokens;
    return static_cast<float>(std::pow(base, task_.config.length_penalty));
  }

  // The best continuations of all running beams by one token, or, with do_sample, draws without replacement; the best
  // first.
  std::vector<Beam> continuations(std::span<float> scores, std::int64_t vocabulary) const {
    const std::int64_t least = std::max<std::int64_t>(1, std::ssize(task_.config.eos_token_id)) + 1;
    const auto width = static_cast<std::size_t>(vocabulary);
    std::vector<float> copies;  // of the prompt's row, with which all beams begin
    if (length_ == 1) {
      for (std::size_t i = 0; i < running_.size(); ++i) {
        copies.insert(copies.end(), scores.begin(), scores.begin() + vocabulary);
      }
      scores = copies;
    }
    // Row by row, which stays in the cache meanwhile: of each, the tokens that may be among the best of all.
    std::vector<std::int64_t> likely;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const std::span<float> own = scores.subspan(i * width, width);
      kernels::softmax_forward({1, vocabulary, DType::f32, true}, own.data(), own.data());
      process_scores(task_.config, with_prompt(task_, running_[i].ids), std::ssize(task_.prompt), task_.most_new, least,
                     own);
      if (task_.config.do_sample) {
        std::ranges::for_each(own, [&](float& score) { score += running_[i].score; });
        continue;
      }
      for (const std::int64_t token : kernels::largest(own, kept_)) {
        own[static_cast<std::size_t>(token)] += running_[i].score;
        likely.push_back(static_cast<std::int64_t>(i) * vocabulary + token);
      }
    }
    const auto score_of = [&](std::int64_t index) { return scores[static_cast<std::size_t>(index)]; };
    if (task_.config.do_sample) {
      likely = drawn(scores);
    }
    std::ranges::sort(likely, [&](std::int64_t a, std::int64_t b) {
      return score_of(a) > score_of(b) || (score_of(a) == score_of(b) && a < b);
    });
    likely.resize(std::min(likely.size(), static_cast<std::size_t>(kept_)));
    std::vector<Beam> result;
    for (const std::int64_t index : likely) {
      Beam beam = running_[static_cast<std::size_t>(index / vocabulary)];
      beam.origin = index / vocabulary;
      beam.ids.push_back(index % vocabulary);
      beam.score = score_of(index);
      beam.finished =
          ends(task_.config, beam.ids.back()) || length_ == task_.most_new ||
          (task_.options.stop && task_.options.stop(task_.number * task_.config.num_return_sequences, beam.ids));
      result.push_back(std::move(beam));
    }
    return result;
  }

  // Draws kept_ without replacement, in proportion to e^score: the largest of the scores with Gumbel noise (Kool et al.
  // 2019).
  std::vector<std::int64_t> drawn(std::span<const float> given) const {
    std::vector<float> scores(given.begin(), given.end());
    const std::uint64_t step = static_cast<std::uint64_t>(task_.number) << 32U | static_cast<std::uint64_t>(length_);
    const Philox draws(task_.options.seed, step);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double uniform = (draws.uniform(i) + 0x1p-25) / (1 + 0x1p-24);  // neither 0 nor 1
      scores[i] -= static_cast<float>(std::log(-std::log(uniform)));
    }
    return kernels::largest(scores, kept_);
  }

  // Of those among the first beams_ that end here and the ones that have ended before, keeps the best.
  void keep_finished(const std::vector<Beam>& best) {
    const bool full = task_.config.early_stopping == EarlyStopping::at_once && all_finished(finished_);
    std::vector<Beam> all = finished_;
    for (std::int64_t i = 0; i < std::ssize(best); ++i) {
      Beam beam = best[static_cast<std::size_t>(i)];
      beam.finished = beam.finished && i < beams_;
      beam.score = beam.score / norm(length_) + (full ? out_of_the_race : 0) + (hope_ ? 0 : out_of_the_race) +
                   (beam.finished ? 0 : out_of_the_race);
      all.push_back(std::move(beam));
    }
    std::ranges::stable_sort(all, [](const Beam& a, const Beam& b) { return a.score > b.score; });
    all.resize(static_cast<std::size_t>(beams_));
    finished_ = std::move(all);
  }

  void keep_running(std::vector<Beam> best) {
    for (Beam& beam : best) {
      beam.score += beam.finished ? out_of_the_race : 0;
    }
    std::ranges::stable_sort(best, [](const Beam& a, const Beam& b) { return a.score > b.score; });
    best.resize(static_cast<std::size_t>(beams_));
    running_ = std::move(best);
  }

  // Whether a running beam may still become better than the worst that has finished.
  void update_hope() {
    const bool longest = task_.config.early_stopping == EarlyStopping::never && task_.config.length_penalty > 0;
    const float possible = running_.front().score / norm(longest ? task_.most_new : length_);
    float worst = finished_.front().score;
    for (const Beam& beam : finished_) {
      worst = std::min(worst, beam.score);
    }
    const bool beaten = std::ranges::any_of(
        finished_, [&](const Beam& beam) { return possible > (beam.finished ? worst : out_of_the_race); });
    hope_ = hope_ && beaten;
  }

  SearchTask task_;
  std::int64_t beams_;
  std::int64_t kept_;
  std::int64_t length_ = 0;  // new tokens so far
  std::vector<Beam> running_;
  std::vector<Beam> finished_;
  std::vector<Next> next_;
  bool hope_ = true;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Search> begin_search(const SearchTask& task) {
  if (task.config.num_beams > 1) {
    return std::make_unique<BeamSearch>(task);
  }
  return std::make_unique<EachSearch>(task);
}

}  // namespace vitrail::generate
