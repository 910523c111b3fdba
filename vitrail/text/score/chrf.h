/// \file
/// chrF (Popović 2015) and chrF++ (2017), as sacrebleu 2.6 computes them.
#pragma once

#include <string>
#include <vector>

#include "vitrail/text/score/segments.h"

namespace vitrail::text {

struct ChrfOptions {
  int char_order = 6;  ///< the longest n-grams of characters
  int word_order = 0;  ///< the longest n-grams of words; 2 is chrF++
  int beta = 2;        ///< how many times as much recall weighs as precision
  bool lowercase = false;
  bool whitespace = false;     ///< count white space as characters
  bool eps_smoothing = false;  ///< orders without matches count as nearly 0 (chrF++.py), instead of being left out
};

/// The score of a corpus, from 0 to 100: of several references, each segment takes the one that scores best. Throws
/// Error unless all have the same number of segments, and at least one.
double chrf(const Segments& hypotheses, const std::vector<Segments>& references, const ChrfOptions& options = {});

/// "chrF2", and with n-grams of words "chrF2++".
std::string chrf_name(const ChrfOptions& options);

/// sacrebleu's signature: "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0".
std::string chrf_signature(const ChrfOptions& options, std::size_t references);

}  // namespace vitrail::text
