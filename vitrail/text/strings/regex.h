/// \file
/// Regular expressions as Hugging Face's tokenizers have them, which are those of Oniguruma.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/strings/normalized_string.h"

namespace vitrail::text {

/// A compiled pattern. It is written in Ruby's syntax, as Oniguruma reads it; PCRE2 finds it, with its just-in-time
/// compiler where there is one. May be used by several threads.
class Regex {
 public:
  /// Throws Error, naming `pattern` and the place, if it is not one, or has something in which the two syntaxes differ
  /// and which is not translated.
  explicit Regex(std::string_view pattern);
  /// A pattern that matches `text` and nothing else.
  static Regex literal(std::string_view text);

  /// The places in `text`, which must be UTF-8, where the pattern is found, and the ranges between, as `find_matches`
  /// of tokenizers: matches do not overlap, and an empty one does not follow another at its end. Throws Error if the
  /// search takes too many steps.
  std::vector<Match> find(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled);
  std::shared_ptr<const Compiled> compiled_;
};

/// A pattern in Ruby's syntax in that of PCRE2, for matching with Unicode properties and `^` and `$` at lines. Throws
/// Error naming what cannot be translated.
std::string to_pcre2(std::string_view pattern);

}  // namespace vitrail::text
