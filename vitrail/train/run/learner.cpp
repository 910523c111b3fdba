#include "vitrail/train/run/learner.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/wording.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/lookahead.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/zero.h"

namespace vitrail::train {
namespace {

constexpr std::string_view optimizer_prefix = "optimizer.";
constexpr std::string_view average_prefix = "ema.";
constexpr std::string_view lookahead_prefix = "lookahead.";

std::vector<optim::ParameterGroup> unscaled_groups(const RunOptions& options, const nn::Network& net) {
  const auto no_decay = [&net](const std::string& name) { return net.no_weight_decay(name); };
  const double weight_decay = options.decoupled ? options.weight_decay / *options.lr : options.weight_decay;
  if (options.weight_decay_all) {
    return optim::one_group(net.parameters, weight_decay);
  }
  if (!options.layer_decay) {
    return optim::groups_by_weight_decay(net.parameters, weight_decay, no_decay);
  }
  optim::LayerDecay decay;
  decay.layer_of = [&net](const std::string& name) { return net.layer_of(name); };
  decay.layers = net.depth() + 2;
  decay.rate = *options.layer_decay;
  decay.min_scale = options.layer_decay_min_scale;
  return optim::groups_by_layer(net.parameters, weight_decay, no_decay, decay);
}

std::vector<optim::ParameterGroup> parameter_groups(const RunOptions& options, const nn::Network& net) {
  std::vector<optim::ParameterGroup> groups = unscaled_groups(options, net);
  if (options.bias_scaler) {
    check(optim::scale_norm_biases(groups, net.parameters, *options.bias_scaler),
          "--bias-scaler has no effect: no batch norm's bias is trained");
  }
  if (options.lr_backbone) {
    const auto whose = [&net](const std::string& name) { return net.is_backbone(name); };
    check(optim::scale_rates(groups, whose, *options.lr_backbone / learning_rate(options)),
          "--lr-backbone has no effect: the backbone is frozen");
  }
  return groups;
}

// What several ranks share of the optimizer, if they do.
std::optional<optim::Sharding> sharding_of(const RunOptions& options, const nn::Network& net,
                                           dist::Communicator* ranks) {
  if (options.zero == 0 || ranks == nullptr || ranks->size() == 1) {
    return std::nullopt;
  }
  return zero_sharding(net.parameters, *ranks, options.bucket_mb << 20);
}

// A note if --warmup-steps do not end within the training; "" otherwise.
std::string remark_on_warmup(const RunOptions& options, std::int64_t updates_per_epoch) {
  const std::vector<std::string> warm_up = optim::schedule_names(&optim::ScheduleKind::warms_up);
  const bool warms_up = std::ranges::find(warm_up, options.schedule.sched) != warm_up.end();
  const std::int64_t updates = options.epochs * updates_per_epoch;
  return options.warmup_steps && !options.warmup_epochs && warms_up && *options.warmup_steps > updates
             ? fmt::format("note: the warm-up of {} {} the {} of the training",
                           io::counted(*options.warmup_steps, "updates"),
                           options.schedule.warmup_prefix ? "comes before" : "does not end within", updates)
             : "";
}

}  // namespace

struct Learner::Parts {
  nn::Network& net;
  DType dtype;
  std::uint64_t seed;
  std::int64_t updates_per_epoch;
  bool checkpointing;
  std::optional<double> clip_limit;
  optim::ClipMode clip_mode;
  optim::Schedule schedule;
  optim::Optimizer optimizer;
  std::optional<optim::Lookahead> lookahead;
  std::optional<optim::Ema> average;
  double weight_decay;
  std::optional<double> weight_decay_end;
  std::string warmup_remark;
  bool syncs_alone = false;               // --sync-bn without other ranks
  bool average_warms_up = false;          // --model-ema-warmup
  std::set<std::string> last_layer = {};  // which adaptive clipping leaves alone

  double backward(const Loss& loss, std::uint64_t number, float share, const autograd::Tape::Complete& complete,
                  const kernels::BatchSum* batch = nullptr);
  void schedule_decay(std::int64_t update);
};

// The weight and the bias of the layer that comes last.
static std::set<std::string> last_layer_of(const nn::Network& network) {
  std::set<std::string> names;
  const std::vector<nn::Parameter>& all = network.parameters.all();
  for (auto one = all.rbegin(); one != all.rend() && names.size() < 2; ++one) {
    if (!one->buffer && network.is_head(one->name)) {
      names.insert(one->name);
    }
  }
  return names;
}

Learner::Learner(const RunOptions& options, nn::Network& network, std::int64_t updates_per_epoch, DType dtype,
                 dist::Communicator* ranks)
    : parts_(new Parts{
          network, dtype, mix(static_cast<std::uint64_t>(options.seed), hash("forward")), updates_per_epoch,
          options.grad_checkpointing, options.clip_grad.value_or(0) > 0 ? options.clip_grad : std::nullopt,
          optim::clip_mode_named(options.clip_mode), optim::Schedule(schedule_of(options, updates_per_epoch)),
          optim::Optimizer(network.parameters, options.optimizer, parameter_groups(options, network),
                           sharding_of(options, network, ranks)),
          std::nullopt, std::nullopt, options.weight_decay, options.weight_decay_end,
          remark_on_warmup(options, updates_per_epoch), options.sync_bn && (ranks == nullptr || ranks->size() == 1)}) {
  check(std::ranges::none_of(network.parameters.all(), [](const nn::Parameter& one) { return one.held.has_value(); }),
        "the weights are held for inference and cannot be trained: train the model that they were quantized from");
  parts_->last_layer = last_layer_of(network);
  if (options.lookahead > 0) {
    parts_->lookahead.emplace(network.parameters, optim::LookaheadOptions{options.lookahead, options.lookahead_decay,
                                                                          epochs() * updates_per_epoch});
  }
  if (options.model_ema) {
    parts_->average.emplace(network.parameters, options.ema);
    parts_->average_warms_up = options.ema.warmup;
  }
}

Learner::~Learner() = default;

std::int64_t Learner::epochs() const { return parts_->schedule.epochs(); }

std::vector<std::string> Learner::remarks() const {
  std::vector<std::string> remarks;
  if (!parts_->warmup_remark.empty()) {
    remarks.push_back(parts_->warmup_remark);
  }
  if (parts_->syncs_alone) {
    remarks.emplace_back("note: --sync-bn changes nothing: one process has each batch whole");
  }
  const std::int64_t updates = epochs() * parts_->updates_per_epoch;
  const double first = parts_->average ? parts_->average->share_of_first(updates) : 0;
  if (first >= 0.1) {
    remarks.push_back(fmt::format(
        "note: after all {}, the average of --model-ema is still to {:.0f} % the weights that it began with: take {}a "
        "smaller --model-ema-decay",
        io::counted(updates, "updates"), 100 * first, parts_->average_warms_up ? "" : "--model-ema-warmup, or "));
  }
  return remarks;
}

double Learner::lr(std::int64_t update) const {
  return parts_->schedule.lr(update / parts_->updates_per_epoch, update);
}

double Learner::Parts::backward(const Loss& loss, std::uint64_t number, float share,
                                const autograd::Tape::Complete& complete, const kernels::BatchSum* batch) {
  nn::Pass pass;
  pass.training = true;
  pass.dtype = dtype;
  pass.checkpoint = checkpointing;
  pass.random = RandomStream(mix(seed, number));
  pass.batch_sum = batch;
  autograd::Tape tape;
  const Tensor mean_loss = loss(pass);
  const double value = mean_loss.item();
  if (std::isfinite(value) || batch != nullptr) {
    tape.backward(mean_loss, Tensor::scalar(share), complete);
  }
  return value;
}

double Learner::accumulate(const Loss& loss, std::uint64_t number, float share,
                           const autograd::Tape::Complete& complete, const kernels::BatchSum* batch) {
  return parts_->backward(loss, number, share, complete, batch);
}

// Sets the weight decay of an update, if it follows a schedule.
void Learner::Parts::schedule_decay(std::int64_t update) {
  if (weight_decay_end) {
    const auto updates = static_cast<double>(schedule.epochs() * updates_per_epoch);
    optimizer.set_weight_decay(
        optim::cosine_between(weight_decay, *weight_decay_end, std::min(static_cast<double>(update) / updates, 1.0)));
  }
}

Learner::Step Learner::step(const Loss& loss, std::uint64_t number, std::int64_t update) {
  Step result;
  if (parts_->clip_limit || parts_->checkpointing || parts_->optimizer.needs_all_gradients()) {
    result.loss = accumulate(loss, number);
  } else {
    const kernels::TransientPacking sparing;
    const double rate = lr(update);
    parts_->schedule_decay(update);
    result.loss = parts_->backward(loss, number, 1, [&](autograd::Slot& leaf) {
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

bool Learner::clips_by_norm() const { return parts_->clip_limit && parts_->clip_mode == optim::ClipMode::norm; }

std::optional<double> Learner::update(std::int64_t update, double scale, std::optional<double> norm) {
  const Profile::Within within(Profile::Phase::update);
  nn::ParameterStore& parameters = parts_->net.parameters;
  optim::Clipping clipping{0, scale};
  if (parts_->clip_limit) {
    clipping =
        clips_by_norm() && norm
            ? optim::clip_by_norm(*norm, *parts_->clip_limit, scale)
            : optim::clip_gradients(parameters, *parts_->clip_limit, parts_->clip_mode, scale,
                                    [this](const std::string& name) { return parts_->last_layer.contains(name); });
    Profile::mark("clip gradients");
  }
  parts_->schedule_decay(update);
  parts_->optimizer.step(lr(update), clipping.factor);
  parameters.zero_grad();
  Profile::mark("optimizer");
  if (parts_->lookahead) {
    parts_->lookahead->update(parameters, update + 1);
    Profile::mark("lookahead");
  }
  if (parts_->average) {
    parts_->average->update(parameters, update + 1);
    Profile::mark("average");
  }
  return clips_by_norm() ? std::optional(clipping.norm) : std::nullopt;
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
  if (parts_->lookahead) {
    for (const auto& [name, tensor] : parts_->lookahead->state()) {
      result.emplace_back(std::string(lookahead_prefix) + name, tensor);
    }
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
  if (parts_->lookahead) {
    parts_->lookahead->load_state(with_prefix(state, lookahead_prefix));
  }
  if (parts_->average) {
    parts_->average->load_state(with_prefix(state, average_prefix));
  }
}

void check_finite_weights(const nn::Network& network, std::int64_t step) {
  for (const nn::Parameter& parameter : network.parameters.all()) {
    if (parameter.value.dtype() != DType::f32) {
      continue;
    }
    const std::span<const float> values = parameter.value.span<float>();
    // The sum of the differences value - value is 0 unless a value is NaN or infinite.
    float sum = 0;
    for (const float value : values) {
      sum += value - value;
    }
    dist::check_agreed(
        sum == 0,  // and no NaN
        "'{}' holds NaN or infinity after step {}: try a smaller --lr, more --warmup-epochs or --clip-grad 1",
        parameter.name, step);
  }
}

}  // namespace vitrail::train
