#include "vitrail/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/generate/search.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/clock.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;
using Clock = std::chrono::steady_clock;

// Throws Error if the config asks for a token that the model does not know. One that ends a text, or is never
// to come, does no harm if it cannot come at all.
void check_tokens(const GenerationConfig& config, std::int64_t vocabulary) {
  const auto known = [&](const char* field, const Ids& ids) {
    for (const std::int64_t id : ids) {
      check(id >= 0 && id < vocabulary, "{} names the token {}, but the vocabulary has the ids 0 … {}", field, id,
            vocabulary - 1);
    }
  };
  const auto one = [](const std::optional<std::int64_t>& id) { return id ? Ids{*id} : Ids(); };
  known("forced_bos_token_id", one(config.forced_bos_token_id));
  known("forced_eos_token_id", config.forced_eos_token_id);
  for (const Ids& word : config.bad_words_ids) {
    known("bad_words_ids", word);
  }
}

// Checks prompts of one length, and returns the most tokens to be added.
std::int64_t check_prompts(const models::LanguageBody& model, const std::vector<Ids>& prompts,
                           const GenerationConfig& config, const GenerateOptions& options,
                           std::int64_t limit = std::numeric_limits<std::int64_t>::max()) {
  validate(config);
  const std::int64_t length = std::ssize(prompts.front());
  check(config.stop_strings.empty() || options.stop,
        "stop_strings end a text, but nobody looks for them here: remove them from generation_config.json");
  check(length > 0, "there is nothing to continue: the prompt has no token");
  for (const Ids& prompt : prompts) {
    check(std::ssize(prompt) == length, "prompts of {} and {} tokens cannot be continued together", length,
          prompt.size());
  }
  const std::int64_t most_new = std::min(config.most_new_tokens(length), limit);
  check(most_new > 0, "the prompt has {} tokens, and max_length {} leaves no room for new ones", length,
        config.max_length);
  const std::int64_t positions = model.max_positions();
  const bool slides = options.slides && config.num_beams == 1;
  // The last of them is never read.
  check(slides || length + most_new - 1 <= positions,
        "a prompt of {} tokens and {} new ones are {} in all, but the model reads at most {}, and the last new one is "
        "not read: at most {} can be new",
        length, most_new, length + most_new, positions, std::max<std::int64_t>(0, positions + 1 - length));
  check_tokens(config, model.vocab_size());
  check(options.prompt_lookup_num_tokens == 0 ||
            (prompts.size() == 1 && config.num_beams == 1 && config.num_return_sequences == 1),
        "prompt lookup is for one text at a time: without beams and further sequences");
  check(options.prompt_lookup_num_tokens == 0 || !options.slides, "with prompt lookup a text cannot slide");
  return most_new;
}

// A search whose texts are being continued.
struct Running {
  Search* search;
  const Ids* prompt;
  std::int64_t rows;  // its texts
};

// What is to be read next: the texts that it continues, and their tokens.
struct Step {
  std::vector<std::int64_t> origins;
  Ids tokens;
};

// Takes a step of each search, whose texts have adjacent rows of `logits`, and takes out those that are done then.
Step advance_all(std::vector<Running>& running, bool side_by_side, const Tensor& logits) {
  const Tensor scores = logits.contiguous();
  const std::int64_t vocabulary = scores.size(1);
  const auto count = std::ssize(running);
  std::vector<std::int64_t> first = {0};  // the row of each search
  for (const Running& one : running) {
    first.push_back(first.back() + one.rows);
  }
  kernels::parallel_for(count, side_by_side ? 1 : count, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      running[i].search->advance(scores.span<float>().subspan(static_cast<std::size_t>(first[i] * vocabulary),
                                                              static_cast<std::size_t>(running[i].rows * vocabulary)),
                                 vocabulary);
    }
  });
  Step step;
  std::vector<Running> left;
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Search& search = *running[i].search;
    if (search.done()) {
      continue;
    }
    left.push_back({running[i].search, running[i].prompt, std::ssize(search.next())});
    for (const Search::Next& next : search.next()) {
      step.origins.push_back(first[i] + next.origin);
      step.tokens.push_back(next.token);
    }
  }
  running = std::move(left);
  return step;
}

// Goes on with these of the `count` texts of a state, in this order.
void keep(models::TextState& state, const std::vector<std::int64_t>& texts, std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  if (texts != all) {
    state.select(texts);
  }
}

// At most `most` tokens that follow the earliest place of the longest of the text's last n-grams that has come before:
// transformers' PromptLookupCandidateGenerator.
Ids looked_up(const Ids& text, std::int64_t most, std::int64_t longest_ngram) {
  const auto length = std::ssize(text);
  for (std::int64_t n = std::min(longest_ngram, length - 1); n > 0; --n) {
    const auto found = std::search(text.begin(), text.end() - 1, text.end() - n, text.end());
    if (found != text.end() - 1) {
      const auto begin = found + n;
      return {begin, begin + std::min<std::int64_t>(most, text.end() - begin)};
    }
  }
  return {};
}

// The texts that the reader has read, for a model whose positions are full: the second half of them.
class Window {
 public:
  Window(const std::vector<Ids>& prompts, std::int64_t positions)
      : texts_(prompts), positions_(positions), kept_(std::max<std::int64_t>(1, positions / 2)) {}
  void add(const Step& step) {
    std::vector<Ids> longer;
    for (std::size_t i = 0; i < step.tokens.size(); ++i) {
      Ids text = texts_[static_cast<std::size_t>(step.origins[i])];
      text.push_back(step.tokens[i]);
      longer.push_back(std::move(text));
    }
    texts_ = std::move(longer);
  }
  std::vector<Ids> ends() const {
    std::vector<Ids> result;
    for (const Ids& text : texts_) {
      result.emplace_back(text.end() - kept_, text.end());
    }
    return result;
  }
  // What of the prompts is in view: of those that have no place, what would be if they had been generated.
  std::vector<Ids> in_view() const {
    std::vector<Ids> result;
    for (const Ids& text : texts_) {
      const std::int64_t beyond = std::ssize(text) - positions_ - 1;
      const std::int64_t seen = beyond < 0 ? std::ssize(text) : kept_ + beyond % (positions_ - kept_ + 1);
      result.emplace_back(text.end() - seen, text.end());
    }
    return result;
  }

 private:
  std::vector<Ids> texts_;
  std::int64_t positions_;
  std::int64_t kept_;
};

// The texts of one or more prompts, which are continued together.
class Batch {
 public:
  Batch(const models::LanguageBody& model, const GenerateOptions& options) : model_(model), options_(options) {
    pass_.dtype = options.dtype;
  }

  bool empty() const { return running_.empty(); }
  std::int64_t size() const { return std::ssize(running_); }  // prompts
  std::size_t cache_bytes() const { return cache_bytes_; }    // the most that were held
  double prompt_seconds() const { return prompt_seconds_; }

  // Reads these prompts of one length beside the texts that are there, and takes the first step of their searches.
  void begin(std::vector<Running> prompts) {
    std::vector<Ids> texts;
    texts.reserve(prompts.size());
    for (const Running& one : prompts) {
      texts.push_back(*one.prompt);
    }
    if (options_.slides) {
      window_.emplace(texts, model_.max_positions());
    }
    const Clock::time_point start = Clock::now();
    std::unique_ptr<models::TextState> state;
    const Tensor logits = read(window_ ? window_->in_view() : texts, state);
    prompt_seconds_ += seconds_since(start);
    const Step step = advance(prompts, logits);
    if (prompts.empty()) {
      return;
    }
    keep(*state, step.origins, logits.size(0));
    if (running_.empty()) {
      state_ = std::move(state);
    } else {
      state_->join(*state);
    }
    running_.insert(running_.end(), prompts.begin(), prompts.end());
    tokens_.insert(tokens_.end(), step.tokens.begin(), step.tokens.end());
  }

  // Reads the next token of each text, and takes a step of each search.
  void step() {
    if (options_.prompt_lookup_num_tokens > 0 && size() == 1 && look_up()) {
      return;
    }
    const bool full = state_->length() == model_.max_positions();
    const Tensor logits = full ? read(window_->ends(), state_)
                               : model_.forward_last(Tensor::from(tokens_, {std::ssize(tokens_), 1}), pass_, *state_);
    cache_bytes_ = std::max(cache_bytes_, state_->bytes());
    Step step = advance(running_, logits);
    keep(*state_, step.origins, logits.size(0));
    tokens_ = std::move(step.tokens);
  }

 private:
  // Reads texts of one length into a new state. Returns the logits [count, V] of the tokens after them.
  Tensor read(const std::vector<Ids>& texts, std::unique_ptr<models::TextState>& state) {
    // Weights that are packed for many tokens serve no step of one token: they are not kept.
    const kernels::TransientPacking transient;
    state = model_.begin(options_.cache_dtype);
    Ids all;
    for (const Ids& text : texts) {
      all.insert(all.end(), text.begin(), text.end());
    }
    const auto count = static_cast<std::int64_t>(texts.size());
    const Tensor logits = model_.forward_last(Tensor::from(all, {count, std::ssize(all) / count}), pass_, *state);
    cache_bytes_ = std::max(cache_bytes_, state->bytes());
    return logits;
  }

  Step advance(std::vector<Running>& running, const Tensor& logits) {
    Step step = advance_all(running, !options_.stop, logits);
    if (window_) {
      window_->add(step);
    }
    return step;
  }

  // A step of prompt lookup, if something is found: the tokens that may follow are read at once with the last one, and
  // forgotten from the first on that the search would not have chosen.
  bool look_up() {
    const Running& one = running_.front();
    Ids text = *one.prompt;
    const Ids added = one.search->sequences().front().ids;
    text.insert(text.end(), added.begin(), added.end());
    const std::int64_t room = model_.max_positions() - std::ssize(text);
    const Ids guess =
        looked_up(text, std::min(options_.prompt_lookup_num_tokens, room), options_.max_matching_ngram_size);
    if (guess.empty()) {
      return false;
    }
    Ids ids = tokens_;
    ids.insert(ids.end(), guess.begin(), guess.end());
    const auto count = std::ssize(ids);
    const Tensor logits = model_.forward(Tensor::from(ids, {1, count}), pass_, state_.get()).select(0, 0);
    cache_bytes_ = std::max(cache_bytes_, state_->bytes());
    for (std::int64_t i = 0; i < count; ++i) {
      tokens_ = advance(running_, logits.narrow(0, i, 1)).tokens;
      if (running_.empty() || i + 1 == count || tokens_.front() != ids[static_cast<std::size_t>(i + 1)]) {
        state_->drop_last(count - 1 - i);
        break;
      }
    }
    return true;
  }

  const models::LanguageBody& model_;
  const GenerateOptions& options_;
  nn::Pass pass_;
  std::unique_ptr<models::TextState> state_;
  std::vector<Running> running_;
  Ids tokens_;  // to be read next, one of each text
  std::optional<Window> window_;
  std::size_t cache_bytes_ = 0;
  double prompt_seconds_ = 0;
};

std::int64_t number_of(const GenerateOptions& options, std::size_t prompt) {
  return options.numbers.empty() ? static_cast<std::int64_t>(prompt) : options.numbers.at(prompt);
}

bool is_interrupted(const GenerateOptions& options) { return options.interrupted && options.interrupted(); }

// What has come of the searches of a batch that began at `begin`.
std::vector<std::vector<Sequence>> results_of(const std::vector<std::unique_ptr<Search>>& searches, const Batch& batch,
                                              Clock::time_point begin, Statistics* statistics) {
  Statistics counted{.prompt_seconds = batch.prompt_seconds(),
                     .new_seconds = seconds_since(begin) - batch.prompt_seconds(),
                     .cache_bytes = batch.cache_bytes()};
  std::vector<std::vector<Sequence>> result;
  for (const std::unique_ptr<Search>& search : searches) {
    result.push_back(search->sequences());
    for (const Sequence& sequence : result.back()) {
      counted.new_tokens = std::max(counted.new_tokens, std::ssize(sequence.ids));
      counted.all_new_tokens += std::ssize(sequence.ids);
      ++counted.texts;
    }
  }
  if (statistics != nullptr) {
    *statistics = counted;
  }
  return result;
}

}  // namespace

std::vector<std::vector<Sequence>> generate_batch(const models::LanguageBody& model, const std::vector<Ids>& prompts,
                                                  const GenerationConfig& config, const GenerateOptions& options,
                                                  Statistics* statistics) {
  if (prompts.empty()) {
    return {};
  }
  const std::int64_t most_new = check_prompts(model, prompts, config, options);
  std::vector<std::unique_ptr<Search>> searches;
  std::vector<Running> all;
  for (const Ids& prompt : prompts) {
    const std::int64_t most =
        options.limits.empty() ? most_new : std::min(most_new, options.limits.at(searches.size()));
    searches.push_back(begin_search({prompt, config, options, number_of(options, searches.size()), most}));
    all.push_back({searches.back().get(), &prompt, 1});
  }
  const autograd::NoGrad no_grad;
  const Clock::time_point begin = Clock::now();
  Batch batch(model, options);
  batch.begin(all);
  while (!batch.empty() && !is_interrupted(options)) {
    batch.step();
  }
  return results_of(searches, batch, begin, statistics);
}

std::vector<std::vector<Sequence>> generate_all(const models::LanguageBody& model, const std::vector<Ids>& prompts,
                                                const GenerationConfig& config, std::int64_t batch_size,
                                                const GenerateOptions& options, Statistics* statistics) {
  check(batch_size > 0, "a batch has at least one prompt, not {}", batch_size);
  const std::int64_t together = model.takes_unequal_texts() ? batch_size : 1;
  check(!options.slides, "texts that are continued side by side cannot slide beyond the positions");
  std::vector<std::unique_ptr<Search>> searches;
  for (const Ids& prompt : prompts) {
    const std::int64_t limit =
        options.limits.empty() ? std::numeric_limits<std::int64_t>::max() : options.limits.at(searches.size());
    const std::int64_t most = check_prompts(model, {prompt}, config, options, limit);
    searches.push_back(begin_search({prompt, config, options, number_of(options, searches.size()), most}));
  }
  const autograd::NoGrad no_grad;
  const Clock::time_point begin = Clock::now();
  Batch batch(model, options);
  for (std::size_t next = 0; next < prompts.size() || !batch.empty();) {
    for (; next < prompts.size() && batch.size() < together; ++next) {
      batch.begin({{searches[next].get(), &prompts[next], 1}});
    }
    if (is_interrupted(options)) {
      break;
    }
    if (!batch.empty()) {
      batch.step();
    }
  }
  return results_of(searches, batch, begin, statistics);
}

std::vector<Sequence> generate(const models::LanguageBody& model, const Ids& prompt, const GenerationConfig& config,
                               const GenerateOptions& options, Statistics* statistics) {
  return generate_batch(model, {prompt}, config, options, statistics).front();
}

}  // namespace vitrail::generate
