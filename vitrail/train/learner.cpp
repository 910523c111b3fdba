#include "vitrail/train/learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::train {
namespace {

constexpr std::string_view optimizer_prefix = "optimizer.";
constexpr std::string_view average_prefix = "ema.";

optim::OptimizerOptions optimizer_options(const TrainOptions& options) {
  optim::OptimizerOptions result;
  result.opt = options.opt;
  result.eps = options.opt_eps;
  if (!options.opt_betas.empty()) {
    result.betas = std::array{options.opt_betas[0], options.opt_betas[1]};
  }
  result.momentum = options.momentum;
  return result;
}

std::vector<optim::ParameterGroup> parameter_groups(const TrainOptions& options, const models::ImageModel& net) {
  const auto no_decay = [&net](const std::string& name) { return net.no_weight_decay(name); };
  if (!options.layer_decay) {
    return optim::groups_by_weight_decay(net.parameters, options.weight_decay, no_decay);
  }
  optim::LayerDecay decay;
  decay.layer_of = [&net](const std::string& name) { return net.layer_of(name); };
  decay.layers = net.depth() + 2;
  decay.rate = *options.layer_decay;
  decay.min_scale = options.layer_decay_min_scale;
  return optim::groups_by_layer(net.parameters, options.weight_decay, no_decay, decay);
}

optim::ScheduleOptions schedule_options(const TrainOptions& options, std::int64_t updates_per_epoch) {
  optim::ScheduleOptions result;
  result.sched = options.sched;
  result.lr = learning_rate(options);
  result.epochs = options.epochs;
  result.warmup_epochs = options.warmup_epochs.value_or(std::min(5.0, static_cast<double>(options.epochs) / 10));
  result.warmup_lr = options.warmup_lr;
  result.warmup_prefix = options.warmup_prefix;
  result.min_lr = options.min_lr;
  result.cooldown_epochs = options.cooldown_epochs;
  result.decay_rate = options.decay_rate;
  result.decay_epochs = options.decay_epochs;
  result.decay_milestones.assign(options.decay_milestones.begin(), options.decay_milestones.end());
  result.k_decay = options.lr_k_decay;
  result.cycle_mul = options.lr_cycle_mul;
  result.cycle_decay = options.lr_cycle_decay;
  result.cycle_limit = options.lr_cycle_limit;
  result.on_updates = options.sched_on_updates;
  result.updates_per_epoch = updates_per_epoch;
  return result;
}

// The tensors of `state` whose names begin with `prefix`, without it.
io::NamedTensors with_prefix(const io::Safetensors& state, std::string_view prefix) {
  io::NamedTensors result;
  for (const std::string& name : state.names()) {
    if (name.starts_with(prefix)) {
      result.emplace_back(name.substr(prefix.size()), state.get(name));
    }
  }
  return result;
}

}  // namespace

Objective classification(const TrainOptions& options, const models::ImageModel& net, const Teacher* teacher,
                         Forward forward) {
  if (!forward) {
    forward = [&net](const Tensor& x, nn::Pass& pass) { return net.forward_heads(x, pass); };
  }
  return [forward = std::move(forward), teacher,
          loss = LossOptions{options.smoothing, options.bce_loss, distillation_options(options)}](
             const data::Batch& batch, nn::Pass& pass) {
    const Tensor taught = teacher == nullptr ? Tensor() : (*teacher)(batch.x);
    return heads_loss(forward(batch.x, pass), batch, loss, taught);
  };
}

struct Learner::Parts {
  models::ImageModel& net;
  DType dtype;
  std::uint64_t seed;
  Objective objective;
  std::int64_t updates_per_epoch;
  bool checkpointing;
  std::optional<double> clip_limit;
  optim::ClipMode clip_mode;
  optim::Schedule schedule;
  optim::Optimizer optimizer;
  std::optional<optim::Ema> average;

  double backward(const data::Batch& batch, std::uint64_t number, float share,
                  const autograd::Tape::Complete& complete);
};

Learner::Learner(const TrainOptions& options, models::ImageModel& net, std::int64_t updates_per_epoch, DType dtype,
                 Objective objective)
    : parts_(new Parts{net, dtype, mix(static_cast<std::uint64_t>(options.seed), hash("forward")),
                       objective ? std::move(objective) : classification(options, net), updates_per_epoch,
                       options.grad_checkpointing, options.clip_grad, optim::clip_mode_named(options.clip_mode),
                       optim::Schedule(schedule_options(options, updates_per_epoch)),
                       optim::Optimizer(net.parameters, optimizer_options(options), parameter_groups(options, net)),
                       std::nullopt}) {
  if (options.model_ema) {
    optim::EmaOptions ema;
    ema.decay = options.model_ema_decay;
    ema.warmup = options.model_ema_warmup;
    parts_->average.emplace(net.parameters, ema);
  }
}

Learner::~Learner() = default;

std::int64_t Learner::epochs() const { return parts_->schedule.epochs(); }

double Learner::lr(std::int64_t update) const {
  return parts_->schedule.lr(update / parts_->updates_per_epoch, update);
}

double Learner::Parts::backward(const data::Batch& batch, std::uint64_t number, float share,
                                const autograd::Tape::Complete& complete) {
  nn::Pass pass;
  pass.training = true;
  pass.dtype = dtype;
  pass.checkpoint = checkpointing;
  pass.random = RandomStream(mix(seed, number));
  autograd::Tape tape;
  const Tensor mean_loss = objective(batch, pass);
  const double value = mean_loss.item();
  if (std::isfinite(value)) {
    tape.backward(mean_loss, Tensor::scalar(share), complete);
  }
  return value;
}

double Learner::gather(const data::Batch& batch, std::uint64_t number, float share) {
  return parts_->backward(batch, number, share, {});
}

Learner::Step Learner::step(const data::Batch& batch, std::uint64_t number, std::int64_t update) {
  Step result;
  if (parts_->clip_limit || parts_->checkpointing || parts_->optimizer.needs_all_gradients()) {
    result.loss = gather(batch, number);
  } else {
    const kernels::PackForOneUse sparing;
    const double rate = lr(update);
    result.loss = parts_->backward(batch, number, 1, [&](autograd::Slot& leaf) {
      const Profile::Within within(Profile::Phase::update);
      parts_->optimizer.step_leaf(leaf, rate);
      Profile::mark("optimizer");
    });
  }
  if (std::isfinite(result.loss)) {
    result.gradient_norm = this->update(update);
  }
  return result;
}

std::optional<double> Learner::update(std::int64_t update, double scale) {
  const Profile::Within within(Profile::Phase::update);
  nn::ParameterStore& parameters = parts_->net.parameters;
  optim::Clipping clipping{0, scale};
  if (parts_->clip_limit) {
    clipping = optim::clip_gradients(parameters, *parts_->clip_limit, parts_->clip_mode, scale);
    Profile::mark("clip gradients");
  }
  parts_->optimizer.step(lr(update), clipping.factor);
  parameters.zero_grad();
  Profile::mark("optimizer");
  if (parts_->average) {
    parts_->average->update(parameters, update + 1);
    Profile::mark("average");
  }
  const bool by_norm = parts_->clip_limit && parts_->clip_mode == optim::ClipMode::norm;
  return by_norm ? std::optional(clipping.norm) : std::nullopt;
}

bool Learner::has_average() const { return parts_->average.has_value(); }

Learner::Averaged::Averaged(Learner& learner) : learner_(learner) {
  check(learner.has_average(), "no moving average of the weights is kept");
  learner_.parts_->average->exchange(learner_.parts_->net.parameters);
}

Learner::Averaged::~Averaged() { learner_.parts_->average->exchange(learner_.parts_->net.parameters); }

io::NamedTensors Learner::state() const {
  io::NamedTensors result;
  for (const auto& [name, tensor] : parts_->optimizer.state()) {
    result.emplace_back(std::string(optimizer_prefix) + name, tensor);
  }
  if (parts_->average) {
    for (const auto& [name, tensor] : parts_->average->state()) {
      result.emplace_back(std::string(average_prefix) + name, tensor);
    }
  }
  return result;
}

void Learner::load_state(const io::Safetensors& state) {
  parts_->optimizer.load_state(with_prefix(state, optimizer_prefix));
  if (parts_->average) {
    parts_->average->load_state(with_prefix(state, average_prefix));
  }
}

std::string first_bad_parameter(const models::ImageModel& net) {
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (parameter.value.dtype() != DType::f32) {
      continue;
    }
    const std::span<const float> values = parameter.value.span<float>();
    // The sum of differences from themselves is 0 unless one is NaN or infinite.
    float sum = 0;
    for (const float value : values) {
      sum += value - value;
    }
    if (sum != 0) {  // NaN too
      return parameter.name;
    }
  }
  return "";
}

}  // namespace vitrail::train
