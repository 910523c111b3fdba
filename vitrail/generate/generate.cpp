#include "vitrail/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/generate/search.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A model that reads tokens of several texts of one length, and gives the scores of those that could follow.
class Reader {
 public:
  Reader(const models::LanguageBody& model, DType dtype) : model_(model) { pass_.dtype = dtype; }

  // Reads one more token of each text. Returns the logits [count, V] of the tokens after them.
  Tensor next(const Ids& ids) { return model_.forward_last(Tensor::from(ids, {std::ssize(ids), 1}), pass_, *state_); }
  // Forgets what it has read, and reads these texts of one length. Returns the logits [count, V] of the tokens after
  // them.
  Tensor anew(const std::vector<Ids>& texts) {
    // Weights that are packed for many tokens serve no step of one token: they are not kept.
    const kernels::TransientPacking transient;
    state_ = model_.begin();
    Ids all;
    for (const Ids& text : texts) {
      all.insert(all.end(), text.begin(), text.end());
    }
    const auto count = static_cast<std::int64_t>(texts.size());
    return model_.forward_last(Tensor::from(all, {count, std::ssize(all) / count}), pass_, *state_);
  }
  bool is_full() const { return state_->length() == model_.max_positions(); }
  // Goes on with these of `count` texts, in this order.
  void select(const std::vector<std::int64_t>& texts, std::int64_t count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    if (texts != all) {
      state_->select(texts);
    }
  }
  std::size_t cache_bytes() const { return state_->bytes(); }

 private:
  const models::LanguageBody& model_;
  std::unique_ptr<models::TextState> state_;
  nn::Pass pass_;
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

// Checks prompts of one length, and returns the most tokens to be added.
std::int64_t check_prompts(const models::LanguageBody& model, const std::vector<Ids>& prompts,
                           const GenerationConfig& config, const GenerateOptions& options) {
  validate(config);
  const std::int64_t length = std::ssize(prompts.front());
  check(length > 0, "there is nothing to continue: the prompt has no token");
  for (const Ids& prompt : prompts) {
    check(std::ssize(prompt) == length, "prompts of {} and {} tokens cannot be continued together", length,
          prompt.size());
  }
  const std::int64_t most_new = config.most_new_tokens(length);
  check(most_new > 0, "the prompt has {} tokens, and max_length {} leaves no room for new ones", length,
        config.max_length);
  const std::int64_t positions = model.max_positions();
  const bool slides = options.slides && config.num_beams == 1 && length <= positions;
  // The last of them is never read.
  check(slides || length + most_new - 1 <= positions,
        "a prompt of {} tokens and {} new ones are {} in all, but the model is made for at most {} and the one behind "
        "them",
        length, most_new, length + most_new, positions);
  check_tokens(config, model.vocab_size());
  return most_new;
}

// Takes a step of each search, whose texts have adjacent rows of `logits`.
void advance_all(const std::vector<Search*>& searches, const GenerationConfig& config, bool side_by_side,
                 const Tensor& logits) {
  const Tensor scores = (config.num_beams > 1 ? ops::log_softmax(logits, -1) : logits).contiguous();
  const std::int64_t vocabulary = scores.size(1);
  const auto each = static_cast<std::size_t>(scores.numel()) / searches.size();
  const auto count = std::ssize(searches);
  kernels::parallel_for(count, side_by_side ? 1 : count, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      searches[i]->advance(scores.span<float>().subspan(i * each, each), vocabulary);
    }
  });
}

// What is to be read next: the texts that it continues, and their tokens.
struct Step {
  std::vector<std::int64_t> origins;
  Ids tokens;
};

// The next step of the searches that go on, of which those that are done are taken out. Each has had `rows` texts.
Step next_step(std::vector<Search*>& searches, std::int64_t rows) {
  Step step;
  std::vector<Search*> left;
  for (std::int64_t i = 0; i < std::ssize(searches); ++i) {
    Search* const search = searches[static_cast<std::size_t>(i)];
    if (search->done()) {
      continue;
    }
    left.push_back(search);
    for (const Search::Next& next : search->next()) {
      step.origins.push_back(i * rows + next.origin);
      step.tokens.push_back(next.token);
    }
  }
  searches = std::move(left);
  return step;
}

// The texts that the reader has read, for a model whose positions are full: the second half of them.
class Window {
 public:
  Window(const std::vector<Ids>& prompts, std::int64_t positions)
      : texts_(prompts), kept_(std::max<std::int64_t>(1, positions / 2)) {}
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

 private:
  std::vector<Ids> texts_;
  std::int64_t kept_;
};

}  // namespace

std::vector<std::vector<Sequence>> generate_batch(const models::LanguageBody& model, const std::vector<Ids>& prompts,
                                                  const GenerationConfig& config, const GenerateOptions& options,
                                                  Statistics* statistics) {
  if (prompts.empty()) {
    return {};
  }
  const std::int64_t most_new = check_prompts(model, prompts, config, options);
  std::vector<std::unique_ptr<Search>> searches;
  std::vector<Search*> running;
  for (const Ids& prompt : prompts) {
    const std::int64_t most =
        options.limits.empty() ? most_new : std::min(most_new, options.limits.at(searches.size()));
    searches.push_back(begin_search({prompt, config, options, std::ssize(searches), most}));
    running.push_back(searches.back().get());
  }
  const autograd::NoGrad no_grad;
  Reader reader(model, options.dtype);
  Window window(prompts, model.max_positions());
  const Clock::time_point begin = Clock::now();
  Tensor logits = reader.anew(prompts);
  const double prompt_seconds = seconds_since(begin);
  const Clock::time_point after = Clock::now();
  for (std::int64_t rows = 1;; rows = logits.size(0) / std::ssize(running)) {
    advance_all(running, config, !options.stop, logits);
    const Step step = next_step(running, rows);
    if (running.empty() || (options.interrupted && options.interrupted())) {
      break;
    }
    if (options.slides) {
      window.add(step);
    }
    if (reader.is_full()) {
      logits = reader.anew(window.ends());
    } else {
      reader.select(step.origins, logits.size(0));
      logits = reader.next(step.tokens);
    }
  }
  std::vector<std::vector<Sequence>> result;
  Statistics counted{.prompt_seconds = prompt_seconds, .new_seconds = seconds_since(after)};
  counted.cache_bytes = reader.cache_bytes();
  for (const std::unique_ptr<Search>& search : searches) {
    result.push_back(search->sequences());
    for (const Sequence& sequence : result.back()) {
      counted.new_tokens = std::max(counted.new_tokens, std::ssize(sequence.ids));
    }
  }
  if (statistics != nullptr) {
    *statistics = counted;
  }
  return result;
}

std::vector<Sequence> generate(const models::LanguageBody& model, const Ids& prompt, const GenerationConfig& config,
                               const GenerateOptions& options, Statistics* statistics) {
  return generate_batch(model, {prompt}, config, options, statistics).front();
}

}  // namespace vitrail::generate
