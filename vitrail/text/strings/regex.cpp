#include "vitrail/text/strings/regex.h"

#include <array>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

constexpr std::size_t longest_pattern = 1 << 16;
constexpr std::uint32_t most_steps = 10'000'000;  // for one match, as Oniguruma's own limit of retries
constexpr std::uint32_t most_memory = 64 << 10;   // KiB for one match
constexpr std::size_t jit_stack = std::size_t{1} << 20;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// What a thread needs to search: a place for the result, limits, and a stack for compiled patterns.
struct Searcher {
  Owned<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  Owned<pcre2_jit_stack> stack{pcre2_jit_stack_create(32 << 10, jit_stack, nullptr)};
  Searcher() {
    pcre2_set_match_limit(context.get(), most_steps);
    pcre2_set_heap_limit(context.get(), most_memory);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

struct Regex::Compiled {
  std::string pattern;
  Owned<pcre2_code> code;
};

Regex::Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

Regex::Regex(std::string_view pattern) {
  check(pattern.size() <= longest_pattern, "a regular expression of {} bytes is too long: {} are allowed",
        pattern.size(), longest_pattern);
  const std::string translated = to_pcre2(pattern);
  const Owned<pcre2_compile_context> context{pcre2_compile_context_create(nullptr)};
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t at = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern = pattern;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                     context.get()));
  check(compiled->code != nullptr, "the regular expression '{}' is not valid: {}", pattern, message_of(error));
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);
  compiled_ = std::move(compiled);
}

Regex Regex::literal(std::string_view text) {
  int error = 0;
  std::size_t at = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern = text;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_LITERAL,
                                     &error, &at, nullptr));
  check(compiled->code != nullptr, "the pattern '{}' is not valid: {}", text, message_of(error));
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::move(compiled));
}

std::vector<Match> Regex::find(std::string_view text) const {
  thread_local Searcher searcher;
  std::vector<Match> matches;
  std::uint32_t last = 0;  // the end of the last range
  bool has_match = false;  // whether that was a match
  for (std::size_t from = 0; from <= text.size();) {
    const int count = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK, searcher.data.get(), searcher.context.get());
    if (count == PCRE2_ERROR_NOMATCH) {
      break;
    }
    check(count >= 0, "the regular expression '{}' fails at byte {} of a text: {}", compiled_->pattern, from,
          message_of(count));
    const std::size_t* ends = pcre2_get_ovector_pointer(searcher.data.get());
    const Span found{static_cast<std::uint32_t>(ends[0]), static_cast<std::uint32_t>(ends[1])};
    check(found.begin >= from && found.end >= found.begin, "the regular expression '{}' matches backwards",
          compiled_->pattern);
    if (found.begin == found.end && has_match && found.end == last) {
      from += from < text.size() ? utf8_length(text[from]) : 1;
      continue;
    }
    if (last < found.begin) {
      matches.push_back({{last, found.begin}, false});
    }
    matches.push_back({found, true});
    last = found.end;
    has_match = true;
    from = found.end;
  }
  if (last < text.size()) {
    matches.push_back({{last, static_cast<std::uint32_t>(text.size())}, false});
  }
  return matches;
}

}  // namespace vitrail::text
