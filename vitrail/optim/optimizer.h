/// \file
/// Optimizers over a parameter store, parameter groups, and gradient clipping.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vitrail/io/safetensors.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::autograd {
struct Slot;
}

namespace vitrail::optim {

/// Parameters that are updated with the same settings.
struct ParameterGroup {
  std::vector<std::string> names;
  double weight_decay = 0;
  double lr_scale = 1;  ///< their learning rate is the schedule's times this
};

using NamePredicate = std::function<bool(const std::string&)>;

/// Puts all trainable parameters into two groups, without and with weight decay. Not decayed are those with at most one
/// dimension, those whose names end in ".bias" and those for which `no_weight_decay` holds (timm's
/// param_groups_weight_decay). Empty groups are left out.
std::vector<ParameterGroup> groups_by_weight_decay(const nn::ParameterStore& store, double weight_decay,
                                                   const NamePredicate& no_weight_decay);
/// Puts all trainable parameters into one group with this weight decay, as torch.optim.AdamW(model.parameters()) does.
std::vector<ParameterGroup> one_group(const nn::ParameterStore& store, double weight_decay);

/// Layer-wise learning rate decay, as in BEiT and timm's param_groups_layer_decay: the parameters of layer i =
/// layer_of(name), 0 <= i < layers, have lr_scale = max(min_scale, rate^(layers - 1 - i)).
struct LayerDecay {
  std::function<std::int64_t(const std::string&)> layer_of;
  std::int64_t layers = 0;
  double rate = 0.75;
  double min_scale = 0;
};
/// Groups all trainable parameters by their layer and by whether they have weight decay; those with at most one
/// dimension and those for which `no_weight_decay` holds have none. Throws Error if a layer is out of range.
std::vector<ParameterGroup> groups_by_layer(const nn::ParameterStore& store, double weight_decay,
                                            const NamePredicate& no_weight_decay, const LayerDecay& decay);

/// Multiplies the learning rate of the parameters for which `whose` holds by `rate`, and their weight decay, which is
/// multiplied by the learning rate too, by `decay`. Returns whether there are any.
bool scale_rates(std::vector<ParameterGroup>& groups, const NamePredicate& whose, double rate, double decay = 1);
/// Multiplies the learning rate of the biases of batch norms by `scaler`, and divides their weight decay by it, so that
/// they decay as before (Jordan 2024, section 3.4). They are the biases beside which a `running_mean` stands. Returns
/// whether there are any.
bool scale_norm_biases(std::vector<ParameterGroup>& groups, const nn::ParameterStore& store, double scaler);

struct OptimizerOptions {
  /// timm's `--opt`: "adamw"; "adam" (weight decay is added to the gradient); "nadamw" (with Nesterov momentum);
  /// "lion"; "lamb" and "lambc" (trust ratio at most 1); "sgd" (Nesterov momentum); "momentum" (classical momentum);
  /// "lars" and "larc" (with classical momentum; step at most the learning rate), "nlars" and "nlarc" (Nesterov).
  std::string opt = "sgd";
  std::optional<double> eps = std::nullopt;                   ///< `--opt-eps`; default 1e-8, LAMB's 1e-6
  std::optional<std::array<double, 2>> betas = std::nullopt;  ///< `--opt-betas`; default 0.9 0.999, Lion's 0.9 0.99
  double momentum = 0.9;                                      ///< `--momentum`
  double max_grad_norm = 1;  ///< LAMB only: all gradients together are first clipped to this norm; 0: they are not
};

/// The values that OptimizerOptions::opt may have.
std::vector<std::string_view> optimizer_names();
/// Whether an optimizer has a trust ratio, for which it needs the norms of whole parameters: LAMB's and LARS's names.
bool has_trust_ratio(std::string_view opt);
/// What an optimizer keeps of each parameter (Optimizer::state()): "exp_avg" and "exp_avg_sq" for Adam and LAMB,
/// "exp_avg" for Lion, "momentum_buffer" for SGD and LARS with momentum.
std::vector<std::string_view> moment_names(const OptimizerOptions& options);
/// The optimizers that keep `moment`, one of these names, of each parameter.
std::vector<std::string> optimizers_that_keep(std::string_view moment);

/// How several ranks share an update: each updates the elements that it owns, and keeps moments of these alone (ZeRO,
/// Rajbhandari et al. 2020). The gradient of a parameter may then be the flat one of these elements alone.
struct Sharding {
  /// The elements [begin, end) of the flat parameter that this rank owns.
  std::function<std::pair<std::int64_t, std::int64_t>(const nn::Parameter&)> owned;
  /// Called by all ranks together at the end of each update: gives each the elements that the others have updated.
  std::function<void()> gather_weights;
  /// Called by all ranks together: a tensor of the parameter's shape out of the flat parts that the ranks have, on the
  /// rank that saves; an undefined tensor on the others.
  std::function<Tensor(const nn::Parameter&, const Tensor& part)> whole;
};

/// An optimizer with the algorithms of torch.optim and timm.optim, each fused into one pass over memory (LAMB and LARS:
/// two).
/// The formulas are in vitrail/kernels/optimizer.h. The store must outlive the optimizer.
class Optimizer {
 public:
  /// Throws Error for an unknown algorithm, for a group's parameter that is not in the store, is named twice or is
  /// not f32, and for LAMB and LARS with `sharding`, since their trust ratio needs whole parameters.
  Optimizer(nn::ParameterStore& store, const OptimizerOptions& options, const std::vector<ParameterGroup>& groups,
            std::optional<Sharding> sharding = {});

  /// Changes the weight decay of all groups that have one, for schedules of it.
  void set_weight_decay(double weight_decay);

  /// Updates every parameter that has a gradient, and leaves the others, their moments and their numbers of updates
  /// alone, with gradient_scale · gradient (the scale is 1 / k after k accumulated
  /// batches, or Clipping::factor). The gradients stay as they are: ParameterStore::zero_grad() drops them.
  void step(double lr, double gradient_scale = 1);
  /// Whether the gradients of all parameters must be known before any of them can be updated, as LAMB clips them
  /// together.
  bool needs_all_gradients() const;
  /// Updates only the parameter whose gradient accumulates in `leaf`, and drops that gradient: this is what
  /// Tape::backward() may call as `complete`. A leaf that does not belong to the optimizer is ignored. Throws Error if
  /// needs_all_gradients().
  void step_leaf(autograd::Slot& leaf, double lr, double gradient_scale = 1);

  /// All that is needed to resume training bit for bit: tensors "NAME.exp_avg" (Adam, Lion, LAMB), "NAME.exp_avg_sq"
  /// (Adam, LAMB), "NAME.momentum_buffer" (SGD, LARS) and "NAME.step" i64. They share memory with the optimizer, unless
  /// it is sharded: then all ranks must ask together, and Sharding::whole says what each gets.
  io::NamedTensors state() const;
  /// Copies such a state, of whole parameters, into the optimizer. Throws Error naming what is missing, unknown or of
  /// another shape or dtype.
  void load_state(const io::NamedTensors& state);

 private:
  struct Entry {
    std::size_t index;  ///< in the store
    double weight_decay;
    bool decays;
    double lr_scale;
    Tensor step;         ///< [] i64: number of updates so far
    std::int64_t begin;  ///< of the flat parameter's elements that are updated here
    std::int64_t end;
    std::vector<Tensor> moments;  ///< {exp_avg, exp_avg_sq}, {exp_avg}, {momentum_buffer} or {}; flat if sharded
  };
  void update(Entry& entry, double lr, double gradient_scale);
  template <class Visitor>
  void visit_state(Visitor&& visit) const;

  nn::ParameterStore* store_;
  OptimizerOptions options_;
  std::optional<Sharding> sharding_;
  std::vector<std::string_view> moment_names_;
  std::vector<Entry> entries_;
  std::unordered_map<const autograd::Slot*, std::size_t> by_leaf_;  ///< indices into entries_
};

/// What timm's `--clip-grad` limits: the norm of all gradients together (norm), each element of a gradient (value), the
/// norm of each unit's gradient relative to that of its weights (agc, adaptive gradient clipping: Brock et al. 2021);
/// and DINO's, the norm of each parameter's gradient by itself (parameter).
enum class ClipMode { norm, value, agc, parameter };
const std::vector<std::string>& clip_mode_names();  ///< "norm", "value", "agc", "parameter"
ClipMode clip_mode_named(std::string_view name);    ///< Error if it is none of these

/// What clip_gradients() has done.
struct Clipping {
  double norm = 0;    ///< of all gradients together before clipping; 0 unless the mode is norm
  double factor = 1;  ///< Optimizer::step() must multiply the gradients by this
};

/// Clips gradient_scale times the gradients of the store, as timm's dispatch_clip_grad. The mode norm writes nothing:
/// limit / (norm + 1e-6), if below 1, becomes part of the factor. The other modes change the gradients in place. The
/// factor always includes gradient_scale. The mode agc leaves alone what
/// `is_last` names, the last layer, as timm's train.py does and Brock et al. 2021 advise. Throws Error unless `limit`
/// and `gradient_scale` are positive.
Clipping clip_gradients(const nn::ParameterStore& store, double limit, ClipMode mode, double gradient_scale = 1,
                        const std::function<bool(const std::string&)>& is_last = {});
/// What the mode norm does if all gradients together have this norm.
Clipping clip_by_norm(double norm, double limit, double gradient_scale = 1);

/// The Euclidean norm of all gradients of the store together.
double gradient_norm(const nn::ParameterStore& store);

}  // namespace vitrail::optim
