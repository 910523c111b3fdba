#include "vitrail/train/run_rules.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// Calls use(option) if the list has an option of this name.
template <class Use>
void with_option(OptionList& list, std::string_view name, Use use) {
  if (Option* option = list.find(name)) {
    use(*option);
  }
}

// The optimizer's state depends on the algorithm, on what is trained, and on whether there is momentum; an average that
// has not been kept from the beginning is none.
void add_settled(OptionList& list, RunOptions& o) {
  with_option(list, "freeze", [](Option& freeze) { freeze.settled(); });
  with_option(list, "opt", [](Option& opt) {
    opt.settled_unless([](const OptionValue& before, const OptionValue& after) {
      const auto moments = [](const OptionValue& name) {
        optim::OptimizerOptions options;
        options.opt = std::get<std::string>(name);
        const std::vector<const char*> names = optim::moment_names(options);
        return std::vector<std::string>(names.begin(), names.end());
      };
      return moments(before) == moments(after);
    });
  });
  with_option(list, "momentum", [&o](Option& momentum) {
    momentum.settled_unless([&o](const OptionValue& before, const OptionValue& after) {
      const std::string& opt = o.optimizer.opt;
      return (opt != "sgd" && opt != "momentum") || (std::get<double>(before) == 0) == (std::get<double>(after) == 0);
    });
  });
  with_option(list, "model_ema", [](Option& average) {
    average.settled_unless([](const OptionValue&, const OptionValue& after) { return !std::get<bool>(after); });
  });
}

void add_partners(OptionList& list, RunOptions& o) {
  const auto needs = [&](std::string_view name, const char* partner, const std::function<bool()>& is_given) {
    with_option(list, name, [&](Option& option) { option.needs(partner, is_given); });
  };
  needs("clip_mode", "--clip-grad", [&o] { return o.clip_grad.has_value(); });
  needs("layer_decay_min_scale", "--layer-decay", [&o] { return o.layer_decay.has_value(); });
  needs("model_ema_decay", "--model-ema", [&o] { return o.model_ema; });
  needs("model_ema_warmup", "--model-ema", [&o] { return o.model_ema; });
  const auto only_for = [&](std::string_view name, std::initializer_list<std::string_view> schedules) {
    with_option(list, name, [&](Option& option) {
      option.idle_if([&o, schedules = std::vector<std::string_view>(schedules)]() -> std::string {
        return std::ranges::find(schedules, o.schedule.sched) != schedules.end() ? ""
                                                                                 : "with --sched " + o.schedule.sched;
      });
    });
  };
  only_for("decay_rate", {"step", "multistep", "poly"});
  only_for("decay_epochs", {"step"});
  only_for("decay_milestones", {"multistep"});
  only_for("lr_k_decay", {"cosine", "poly"});
}

void add_limits(OptionList& list, RunOptions& o) {
  with_option(list, "opt_eps", [](Option& eps) { eps.at_least(0); });
  for (const char* name : {"lr_k_decay", "lr_cycle_mul", "lr_cycle_limit"}) {
    with_option(list, name, [](Option& option) { option.positive(); });
  }
  with_option(list, "decay_rate", [](Option& rate) { rate.at_least(0); });
  with_option(list, "decay_milestones", [&o](Option& milestones) {
    milestones.check_that([&o](const Option& self) {
      check(std::ranges::is_sorted(o.schedule.decay_milestones), "{} must ascend, but are {}", self.flag(),
            option_text(o.schedule.decay_milestones));
    });
  });
  with_option(list, "min_lr", [&o](Option& rate) {
    rate.check_that([&o](const Option& self) {
      const std::string& sched = o.schedule.sched;
      const bool ends_there = sched == "cosine" || sched == "tanh" || sched == "poly";
      check(!ends_there || o.schedule.min_lr <= learning_rate(o),
            "{} {} is above the learning rate {}, from which the schedule falls", self.flag(), o.schedule.min_lr,
            learning_rate(o));
    });
  });
  with_option(list, "workers", [&o](Option& workers) {
    workers.check_that([&o](const Option& self) {
      check(o.workers <= most_workers, "{} must be at most {}, but is {}", self.flag(), most_workers, o.workers);
    });
  });
  with_option(list, "experiment", [&o](Option& experiment) {
    experiment.check_that([&o](const Option& self) {
      check(o.experiment != "." && o.experiment != "..", "{} is the name of a folder inside --output, not '{}'",
            self.flag(), o.experiment);
    });
  });
}

}  // namespace

void add_run_rules(OptionList& list, RunOptions& options) {
  add_settled(list, options);
  add_partners(list, options);
  add_limits(list, options);
}

}  // namespace vitrail::train
