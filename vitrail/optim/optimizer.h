// Optimizers over a store of parameters, their groups, and gradient clipping.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vitrail/io/safetensors.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::autograd {
struct Slot;
}

namespace vitrail::optim {

// Parameters that are updated alike.
struct ParameterGroup {
  std::vector<std::string> names;
  double weight_decay = 0;
  double lr_scale = 1;  // their learning rate is the schedule's times this
};

using NamePredicate = std::function<bool(const std::string&)>;

// All trainable parameters in two groups: those with at most one dimension, those whose names end in ".bias" and those
// of `no_weight_decay` are not decayed (timm's param_groups_weight_decay). Groups without parameters are left out.
std::vector<ParameterGroup> groups_by_weight_decay(const nn::ParameterStore& store, double weight_decay,
                                                   const NamePredicate& no_weight_decay);

// Layer-wise learning rate decay, as BEiT's and timm's param_groups_layer_decay: parameters of layer i = layer_of(name)
// out of `layers` have lr_scale = max(min_scale, layer_decay^(layers - 1 - i)). No decay for those with at most one
// dimension and those of `no_weight_decay`.
struct LayerDecay {
  std::function<std::int64_t(const std::string&)> layer_of;
  std::int64_t layers = 0;
  double rate = 0.75;
  double min_scale = 0;
};
std::vector<ParameterGroup> groups_by_layer(const nn::ParameterStore& store, double weight_decay,
                                            const NamePredicate& no_weight_decay, const LayerDecay& decay);

struct OptimizerOptions {
  // timm's --opt: "adamw"; "adam" (decay added to the gradient); "nadamw" (with Nesterov momentum); "lion"; "lamb" and
  // "lambc" (trust ratio at most 1); "sgd" (Nesterov momentum); "momentum" (classical).
  std::string opt = "sgd";
  std::optional<double> eps = std::nullopt;                   // --opt-eps: 1e-8, LAMB's 1e-6
  std::optional<std::array<double, 2>> betas = std::nullopt;  // --opt-betas: 0.9 0.999, Lion's 0.9 0.99
  double momentum = 0.9;                                      // --momentum
  double max_grad_norm = 1;  // LAMB alone: the norm that all gradients together are clipped to first; 0: not at all
};

// What `opt` may be.
std::vector<std::string_view> optimizer_names();

// The algorithms of torch.optim and timm.optim, fused into one pass over memory (LAMB: two); formulas in
// vitrail/kernels/optimizer.h. The store must outlive it.
class Optimizer {
 public:
  // Error for an unknown algorithm, a name that the store does not have or that comes twice.
  Optimizer(nn::ParameterStore& store, const OptimizerOptions& options, const std::vector<ParameterGroup>& groups);

  // Updates every parameter that has a gradient, with gradient_scale times it (1 / k after k accumulated batches;
  // Clipping::factor). Gradients stay as they are: ParameterStore::zero_grad() drops them.
  void step(double lr, double gradient_scale = 1);
  // Whether no parameter can be updated before the gradients of all are known, as LAMB clips them together.
  bool needs_all_gradients() const;
  // The same for the parameter whose gradient gathers in `leaf` alone, and drops the gradient: for Tape::backward()'s
  // `complete`. Nothing for a leaf that is not this optimizer's; Error if needs_all_gradients().
  void step_leaf(autograd::Slot& leaf, double lr, double gradient_scale = 1);

  // All that is needed to go on to the same bits, as "NAME.exp_avg" (Adam, Lion, LAMB), "NAME.exp_avg_sq" (Adam, LAMB),
  // "NAME.momentum_buffer" (SGD) and "NAME.step" i64. The tensors share memory with the optimizer.
  io::NamedTensors state() const;
  // Takes over (copies) such a state; Error names what is missing, unknown or of another shape.
  void load_state(const io::NamedTensors& state);

 private:
  struct Entry {
    std::size_t index;  // in the store
    double weight_decay;
    double lr_scale;
    Tensor step;                  // [] i64: updates so far
    std::vector<Tensor> moments;  // {exp_avg, exp_avg_sq}, {exp_avg}, {momentum_buffer} or {}
  };
  void update(Entry& entry, double lr, double gradient_scale);

  nn::ParameterStore* store_;
  OptimizerOptions options_;
  std::vector<const char*> moment_names_;
  std::vector<Entry> entries_;
  std::unordered_map<const autograd::Slot*, std::size_t> by_leaf_;  // places in entries_
};

// What timm's --clip-grad limits: the norm of all gradients together, each number, or each unit's gradient against its
// weights (adaptive gradient clipping, Brock et al. 2021).
enum class ClipMode { norm, value, agc };
ClipMode clip_mode_named(std::string_view name);  // "norm", "value", "agc"; Error otherwise

struct Clipping {
  double norm = 0;    // of all gradients together before clipping; 0 if mode is not norm
  double factor = 1;  // what Optimizer::step() must multiply the gradients by
};

// Clips gradient_scale times the gradients of the store, as timm's dispatch_clip_grad. By norm nothing is written:
// limit / (norm + 1e-6), if below 1, goes into the factor; the other modes change the gradients in place. The factor
// contains gradient_scale.
Clipping clip_gradients(const nn::ParameterStore& store, double limit, ClipMode mode, double gradient_scale = 1);

// The Euclidean norm of all gradients together.
double gradient_norm(const nn::ParameterStore& store);

}  // namespace vitrail::optim
