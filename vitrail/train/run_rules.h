/// \file
/// What the options of a run say about each other: which a run that goes on keeps, which do nothing without another.
#pragma once

#include <cstdint>

#include "vitrail/train/option_list.h"
#include "vitrail/train/run_options.h"

namespace vitrail::train {

constexpr std::int64_t most_workers = 1024;  ///< largest value of --workers

/// Adds rules to the options of every run in `list`, which refers to `options` and has those of
/// add_parameter_options(), add_optimizer_options(), add_schedule_options(), add_average_options() and
/// add_run_options() (not all of them need be there). What shapes the state of a run cannot change when it goes on;
/// what has no effect beside other options is stated by Option::idle_if(); values that make no sense together are
/// refused.
void add_run_rules(OptionList& list, RunOptions& options);

}  // namespace vitrail::train
