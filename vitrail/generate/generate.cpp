#include "vitrail/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/generate/processors.h"
#include "vitrail/tensor/random.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A model that reads tokens of several sequences of one length, and gives the scores of those that could follow.
class Reader {
 public:
  Reader(const models::LanguageBody& model, DType dtype) : model_(model) { pass_.dtype = dtype; }

  // Reads a prompt that `count` sequences share. Returns the logits [V] of the token after it.
  Tensor prompt(const Ids& ids, std::int64_t count) {
    const Tensor logits = anew({ids});
    if (count > 1) {
      state_->select(std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
    }
    return logits.reshape({-1});
  }
  // Reads one more token of each sequence. Returns the logits [count, V] of the tokens after them.
  Tensor next(const Ids& ids) { return model_.forward_last(Tensor::from(ids, {std::ssize(ids), 1}), pass_, *state_); }
  // Forgets what it has read, and reads these texts of one length. Returns the logits [count, V] of the tokens after
  // them.
  Tensor anew(const std::vector<Ids>& texts) {
    state_ = model_.begin();
    Ids all;
    for (const Ids& text : texts) {
      all.insert(all.end(), text.begin(), text.end());
    }
    const auto count = static_cast<std::int64_t>(texts.size());
    return model_.forward_last(Tensor::from(all, {count, std::ssize(all) / count}), pass_, *state_);
  }
  bool is_full() const { return state_->length() == model_.max_positions(); }
  std::int64_t positions() const { return model_.max_positions(); }
  // Goes on with these of the sequences, in this order.
  void select(const std::vector<std::int64_t>& sequences) { state_->select(sequences); }
  std::size_t cache_bytes() const { return state_->bytes(); }

 private:
  const models::LanguageBody& model_;
  std::unique_ptr<models::TextState> state_;
  nn::Pass pass_;
};

bool ends(const GenerationConfig& config, std::int64_t token) {
  return std::ranges::find(config.eos_token_id, token) != config.eos_token_id.end();
}

std::span<float> row_of(const Tensor& logits, std::int64_t index, std::int64_t vocabulary) {
  return logits.span<float>().subspan(static_cast<std::size_t>(index * vocabulary),
                                      static_cast<std::size_t>(vocabulary));
}

// What a search is about.
struct Search {
  Reader& reader;
  const Ids& prompt;
  const GenerationConfig& config;
  const GenerateOptions& options;
  std::int64_t most_new = 0;
};

// The last `count` tokens of each text, whose new ones are filled up to `added`.
std::vector<Ids> ends_of(const Search& s, const std::vector<Sequence>& sequences, std::int64_t added,
                         std::int64_t filler, std::int64_t count) {
  std::vector<Ids> result;
  for (const Sequence& sequence : sequences) {
    Ids text = s.prompt;
    text.insert(text.end(), sequence.ids.begin(), sequence.ids.end());
    text.resize(static_cast<std::size_t>(std::ssize(s.prompt) + added), filler);
    text.erase(text.begin(), text.end() - count);
    result.push_back(std::move(text));
  }
  return result;
}

// Greedy search, or sampling: each sequence takes its own way. Those that have ended are read on with fillers, so that
// all have one length.
std::vector<Sequence> search_each(const Search& s, Tensor logits) {
  const std::int64_t count = s.config.num_return_sequences;
  const std::int64_t vocabulary = logits.numel();
  const std::int64_t filler =
      s.config.pad_token_id.value_or(s.config.eos_token_id.empty() ? 0 : s.config.eos_token_id[0]);
  std::vector<Sequence> sequences(static_cast<std::size_t>(count));
  std::vector<bool> ended(sequences.size(), false);
  for (std::int64_t step = 0; step < s.most_new; ++step) {
    Ids chosen;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (ended[at]) {
        chosen.push_back(filler);
        continue;
      }
      Ids ids = s.prompt;
      ids.insert(ids.end(), sequences[at].ids.begin(), sequences[at].ids.end());
      const std::span<float> all = row_of(logits, step == 0 ? 0 : i, vocabulary);
      std::vector<float> scores(all.begin(), all.end());  // the sequences share those of the prompt
      process_scores(s.config, ids, std::ssize(s.prompt), 1, scores);
      const Philox draws(s.options.seed, static_cast<std::uint64_t>(i));
      chosen.push_back(s.config.do_sample ? draw(scores, draws.uniform(static_cast<std::uint64_t>(step)))
                                          : largest(scores, 1).front());
      sequences[at].ids.push_back(chosen.back());
      ended[at] = ends(s.config, chosen.back()) || (s.options.stop && s.options.stop(i, sequences[at].ids));
    }
    const bool all_ended = std::ranges::all_of(ended, [](bool end) { return end; });
    if (all_ended || step + 1 == s.most_new || (s.options.interrupted && s.options.interrupted())) {
      break;
    }
    const std::int64_t kept = std::max<std::int64_t>(1, s.reader.positions() / 2);
    logits = s.reader.is_full() ? s.reader.anew(ends_of(s, sequences, step + 1, filler, kept)) : s.reader.next(chosen);
  }
  return sequences;
}

// A sequence of a beam search.
struct Beam {
  Ids ids = {};  // the new tokens
  float score = 0;
  bool finished = false;
  std::int64_t origin = 0;  // the running beam that it continues
};

constexpr float out_of_the_race = -1e9F;

// Beam search as transformers' _beam_search(), in its order and precision.
class BeamSearch {
 public:
  explicit BeamSearch(const Search& search)
      : s_(search),
        beams_(search.config.num_beams),
        // So many that enough go on even if each of the best ends in another way.
        kept_(std::max<std::int64_t>(2, 1 + std::ssize(search.config.eos_token_id)) * beams_) {
    running_.resize(static_cast<std::size_t>(beams_));
    finished_.resize(static_cast<std::size_t>(beams_), Beam{.score = out_of_the_race});
    for (std::size_t i = 1; i < running_.size(); ++i) {
      running_[i].score = out_of_the_race;  // all begin alike: only the first goes on
    }
  }

  std::vector<Sequence> run(Tensor logits) {
    const std::int64_t vocabulary = logits.numel();
    logits = logits.reshape({1, vocabulary}).expand({beams_, vocabulary}).clone();
    for (std::int64_t length = 1;; ++length) {  // of the sequences after this step
      const std::vector<Beam> best = continuations(logits, vocabulary, length);
      keep_finished(best, length);
      keep_running(best);
      update_hope(length);
      const bool full = s_.config.early_stopping == EarlyStopping::at_once && all_finished(finished_);
      if (!hope_ || full || all_finished(best) || (s_.options.interrupted && s_.options.interrupted())) {
        break;
      }
      std::vector<std::int64_t> origins;
      Ids last;
      for (const Beam& beam : running_) {
        origins.push_back(beam.origin);
        last.push_back(beam.ids.back());
      }
      s_.reader.select(origins);
      logits = s_.reader.next(last);
    }
    std::vector<Sequence> result;
    for (std::int64_t i = 0; i < s_.config.num_return_sequences; ++i) {
      const Beam& beam = finished_[static_cast<std::size_t>(i)];
      result.push_back({beam.ids, beam.score});
    }
    return result;
  }

 private:
  static bool all_finished(const std::vector<Beam>& beams) {
    return std::ranges::all_of(beams, [](const Beam& beam) { return beam.finished; });
  }

  // The best continuations of all running beams by one token, or, with do_sample, draws without replacement.
  std::vector<Beam> continuations(const Tensor& logits, std::int64_t vocabulary, std::int64_t length) {
    for (std::int64_t i = 0; i < beams_; ++i) {
      Ids ids = s_.prompt;
      const Beam& beam = running_[static_cast<std::size_t>(i)];
      ids.insert(ids.end(), beam.ids.begin(), beam.ids.end());
      const std::span<float> scores = row_of(logits, i, vocabulary);
      log_softmax(scores);
      const std::int64_t least = std::max<std::int64_t>(1, std::ssize(s_.config.eos_token_id)) + 1;
      process_scores(s_.config, ids, std::ssize(s_.prompt), least, scores);
      for (float& score : scores) {
        score += beam.score;
      }
    }
    const std::span<const float> scores = logits.span<float>();
    std::vector<Beam> result;
    for (const std::int64_t index : s_.config.do_sample ? drawn(scores, length) : largest(scores, kept_)) {
      Beam beam = running_[static_cast<std::size_t>(index / vocabulary)];
      beam.origin = index / vocabulary;
      beam.ids.push_back(index % vocabulary);
      beam.score = scores[static_cast<std::size_t>(index)];
      beam.finished = ends(s_.config, beam.ids.back()) || length == s_.most_new;
      result.push_back(std::move(beam));
    }
    return result;
  }

  // Draws without replacement, in proportion to e^score: the largest of the scores with Gumbel noise (Kool et al.
  // 2019).
  std::vector<std::int64_t> drawn(std::span<const float> scores, std::int64_t length) const {
    const Philox draws(s_.options.seed, static_cast<std::uint64_t>(length));
    std::vector<float> noisy(scores.begin(), scores.end());
    for (std::size_t i = 0; i < noisy.size(); ++i) {
      const double uniform = (draws.uniform(i) + 0x1p-25) / (1 + 0x1p-24);  // neither 0 nor 1
      noisy[i] -= static_cast<float>(std::log(-std::log(uniform)));
    }
    return largest(noisy, kept_);
  }

  // Of those among the first beams_ that end here and the ones that have ended before, keeps the best.
  void keep_finished(const std::vector<Beam>& best, std::int64_t length) {
    const bool full = s_.config.early_stopping == EarlyStopping::at_once && all_finished(finished_);
    const auto norm = static_cast<float>(std::pow(static_cast<double>(length), s_.config.length_penalty));
    std::vector<Beam> all = finished_;
    for (std::int64_t i = 0; i < std::ssize(best); ++i) {
      Beam beam = best[static_cast<std::size_t>(i)];
      beam.finished = beam.finished && i < beams_;
      beam.score = beam.score / norm + (full ? out_of_the_race : 0) + (hope_ ? 0 : out_of_the_race) +
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
  void update_hope(std::int64_t length) {
    const bool longest = s_.config.early_stopping == EarlyStopping::never && s_.config.length_penalty > 0;
    const auto norm =
        static_cast<float>(std::pow(static_cast<double>(longest ? s_.most_new : length), s_.config.length_penalty));
    const float possible = running_.front().score / norm;
    float worst = finished_.front().score;
    for (const Beam& beam : finished_) {
      worst = std::min(worst, beam.score);
    }
    const bool beaten = std::ranges::any_of(
        finished_, [&](const Beam& beam) { return possible > (beam.finished ? worst : out_of_the_race); });
    hope_ = hope_ && beaten;
  }

  const Search& s_;
  std::int64_t beams_;
  std::int64_t kept_;
  std::vector<Beam> running_;
  std::vector<Beam> finished_;
  bool hope_ = true;
};

// Throws Error if the config names a token that the model does not know.
void check_tokens(const GenerationConfig& config, std::int64_t vocabulary) {
  const auto known = [&](const char* field, const Ids& ids) {
    for (const std::int64_t id : ids) {
      check(id >= 0 && id < vocabulary, "{} names the token {}, but the vocabulary has the ids 0 … {}", field, id,
            vocabulary - 1);
    }
  };
  const auto one = [](const std::optional<std::int64_t>& id) { return id ? Ids{*id} : Ids(); };
  known("eos_token_id", config.eos_token_id);
  known("pad_token_id", one(config.pad_token_id));
  known("forced_bos_token_id", one(config.forced_bos_token_id));
  known("forced_eos_token_id", config.forced_eos_token_id);
  known("suppress_tokens", config.suppress_tokens);
  known("begin_suppress_tokens", config.begin_suppress_tokens);
  for (const Ids& word : config.bad_words_ids) {
    known("bad_words_ids", word);
  }
}

}  // namespace

std::vector<Sequence> generate(const models::LanguageBody& model, const Ids& prompt, const GenerationConfig& config,
                               const GenerateOptions& options, Statistics* statistics) {
  validate(config);
  check(!prompt.empty(), "there is nothing to continue: the prompt has no token");
  const std::int64_t most_new = config.most_new_tokens(std::ssize(prompt));
  check(most_new > 0, "the prompt has {} tokens, and max_length {} leaves no room for new ones", prompt.size(),
        config.max_length);
  const std::int64_t positions = model.max_positions();
  const bool slides = options.slides && config.num_beams == 1 && std::ssize(prompt) <= positions;
  check(slides || std::ssize(prompt) + most_new <= positions,
        "a prompt of {} tokens and {} new ones are {} in all, but the model is made for at most {}", prompt.size(),
        most_new, std::ssize(prompt) + most_new, positions);
  check_tokens(config, model.vocab_size());
  const autograd::NoGrad no_grad;
  Reader reader(model, options.dtype);
  const bool beams = config.num_beams > 1;
  const auto begin = std::chrono::steady_clock::now();
  const Tensor logits = reader.prompt(prompt, beams ? config.num_beams : config.num_return_sequences);
  const double prompt_seconds = seconds_since(begin);
  const auto after = std::chrono::steady_clock::now();
  const Search search{reader, prompt, config, options, most_new};
  std::vector<Sequence> result = beams ? BeamSearch(search).run(logits) : search_each(search, logits);
  if (statistics != nullptr) {
    *statistics = {.prompt_seconds = prompt_seconds,
                   .new_seconds = seconds_since(after),
                   .new_tokens = 0,
                   .cache_bytes = reader.cache_bytes()};
    for (const Sequence& sequence : result) {
      statistics->new_tokens = std::max(statistics->new_tokens, std::ssize(sequence.ids));
    }
  }
  return result;
}

}  // namespace vitrail::generate
