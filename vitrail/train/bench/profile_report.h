/// \file
/// Reports of a Profile: a table by op, and a timeline for a browser.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/tensor/profile.h"

namespace vitrail::train {

/// The sum of all events of one op in one phase, over `steps` steps.
struct ProfileRow {
  std::string op;
  Profile::Phase phase = Profile::Phase::forward;
  double calls = 0;  ///< per step, as are seconds, flops and bytes
  double seconds = 0;
  double share = 0;  ///< of the time of all rows
  double flops = 0;
  double bytes = 0;
};

/// The rows of `events`, sorted by time, the longest first.
std::vector<ProfileRow> profile_rows(std::span<const Profile::Event> events, std::int64_t steps);

/// The rows as a text table. GF/s have their share of `peak_gflops` beside them, GB/s their share of `bandwidth`
/// (GB/s).
std::string profile_table(const std::vector<ProfileRow>& rows, double peak_gflops, double bandwidth);

/// The events in Chrome's trace format (chrome://tracing, ui.perfetto.dev): a JSON object with "traceEvents".
std::string chrome_trace(std::span<const Profile::Event> events);

}  // namespace vitrail::train
