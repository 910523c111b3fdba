/// \file
/// The tape on which differentiable ops are recorded, and which backward() plays in reverse.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "vitrail/kernels/layout.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

/// The autograd state of one tensor, above all its accumulated gradient. It is shared by all handles on that tensor.
struct Slot {
  Tensor grad;         ///< undefined until the first contribution
  bool keep = false;   ///< true for a leaf (a parameter): its gradient outlives backward() and adds up over calls
  bool wanted = true;  ///< false for a frozen leaf
  std::function<Tensor()> rebuild = {};    ///< recomputes the tensor; set where that is cheaper than keeping it
  int uses = 0;                            ///< how many nodes on tapes use this leaf; at 0 its gradient is complete
  kernels::Order order = {};               ///< the memory order of the tensor, which its gradient shares
  std::function<Tensor(DType)> room = {};  ///< memory for write(): a part of the gradient of a larger tensor
};
/// A new slot for a tensor that an op has made, with its memory order.
std::shared_ptr<Slot> slot_for(const Tensor& output);

/// Counts the use of a leaf by a node (in Slot::uses) for as long as the node exists.
class LeafUse {
 public:
  explicit LeafUse(std::shared_ptr<Slot> leaf) : leaf_(std::move(leaf)) { ++leaf_->uses; }
  ~LeafUse() {
    if (leaf_ != nullptr) {
      --leaf_->uses;
    }
  }
  LeafUse(LeafUse&&) noexcept = default;
  LeafUse& operator=(LeafUse&&) = delete;
  const std::shared_ptr<Slot>& leaf() const { return leaf_; }

 private:
  std::shared_ptr<Slot> leaf_;
};
/// The uses of those inputs that are leaves.
std::vector<LeafUse> uses_of_leaves(std::initializer_list<const Tensor*> inputs);

/// The gradient of a tensor, as a backward function captures it: a Gradient holds the slot and the shape but not the
/// elements, so that tensors which backward does not need are freed early.
class Gradient {
 public:
  Gradient() = default;
  explicit Gradient(const Tensor& tensor) : slot_(tensor.slot()), shape_(tensor.shape()) {}
  bool wanted() const { return slot_ != nullptr && slot_->wanted; }
  const Shape& shape() const { return shape_; }
  /// Adds `contribution`, of the tensor's shape, to the gradient. A first contribution in the tensor's memory order
  /// becomes the gradient without a copy, even if it is shared (an op may pass its dy on to several inputs): a shared
  /// tensor is never written to. A leaf, which keeps its gradient, does copy a shared one: move a contribution that you
  /// made for a parameter into add().
  void add(Tensor contribution) const;
  /// Adds a contribution that write(to, sum) computes and adds in one pass over memory: it sets all elements of `to` to
  /// the contribution plus `sum`. `sum` is the gradient so far and may be `to` itself; if there is none yet in this
  /// dtype and order, it is undefined, and `to` is set to the contribution alone. Both tensors are of `dtype` and
  /// dense, with their dimensions in `order` in memory.
  template <class Write>
  void accumulate(DType dtype, const kernels::Order& order, Write&& write) const;
  /// Adds `contribution` to the elements [start, start + contribution.size(dim)) of the gradient along `dim`; the other
  /// elements stay as they are (0 at first).
  void add_part(int dim, std::int64_t start, const Tensor& contribution) const;
  /// An uninitialized tensor for a contribution, in the tensor's memory order, so that add() need not copy it.
  Tensor empty(DType dtype) const;
  /// Adds a contribution that write(to) computes: it sets all elements of `to`, which is contiguous or a slice, along
  /// one dimension, of a contiguous tensor.
  template <class Write>
  void write(DType dtype, Write&& write) const;

 private:
  std::shared_ptr<Slot> slot_;
  Shape shape_;
};

/// A tensor that a backward function needs: saved itself, or as the function that recomputes it if its op has given one
/// to set_rebuild().
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& tensor);
  Tensor get() const { return rebuild_ ? rebuild_() : tensor_; }

 private:
  Tensor tensor_;
  std::function<Tensor()> rebuild_;
};

/// Sets the function that recomputes `output`, which has just been recorded, from tensors that its op keeps anyway.
void set_rebuild(const Tensor& output, std::function<Tensor()> rebuild);

/// Makes `tensor` a leaf (a parameter) whose gradient is wanted or, if not `required`, no longer wanted; handles copied
/// from it follow. Its gradient is read by grad() and dropped by zero_grad(). Error unless its dtype is f32 or bf16.
void require_grad(Tensor& tensor, bool required = true);
bool requires_grad(const Tensor& tensor);
Tensor grad(const Tensor& tensor);  ///< undefined if there is none yet
void zero_grad(const Tensor& tensor);

/// While a Tape is alive on a thread, the ops called on that thread are recorded on it:
///
/// ```cpp
/// Tape tape;
/// Tensor loss = cross_entropy(model(x, pass), labels);
/// tape.backward(loss);
/// ```
///
/// Without a tape nothing is recorded and nothing is kept for backward, which is what inference needs. Tapes nest: the
/// innermost one records.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The innermost tape of this thread, or null.
  static Tape* current();

  /// Called by backward() with each leaf as soon as no node is left that would add to its gradient or use its elements:
  /// whoever updates the leaf there and drops its gradient never holds all gradients at once. (Uses inside checkpoint()
  /// are not counted, so this may be called before them, or not at all.)
  using Complete = std::function<void(Slot& leaf)>;
  /// Runs the backward functions of the tape in reverse order, beginning with `seed` as the gradient of `output`, and
  /// so adds d(output)/d(leaf) to the gradient of every leaf that `output` depends on. An undefined `seed` stands for
  /// 1, and `output` must then be a single number. Each node is freed, with all that it kept, as soon as it has run;
  /// the tape is empty afterwards, and a second backward() from the same output is an Error.
  void backward(const Tensor& output, Tensor seed = {}, const Complete& complete = {});

  struct Node {
    const char* op;
    std::vector<std::shared_ptr<Slot>> outputs;
    std::function<void(const std::vector<Tensor>&)> backward;  ///< takes the gradients of the outputs (may be
                                                               ///< undefined)
    std::vector<LeafUse> leaves = {};
  };
  void push(Node node) { nodes_.push_back(std::move(node)); }

 private:
  std::vector<std::shared_ptr<Slot>> play_last();  ///< runs and removes the last node; returns the leaves that it used

  std::vector<Node> nodes_;
  Tape* outer_;
};

/// While a NoGrad is alive on a thread, the ops called on that thread are not recorded, even if a tape is alive.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape* outer_;
};

/// Whether an op with these inputs has to be recorded: a tape is alive on this thread, and the gradient of at least one
/// input is wanted.
bool recording(std::initializer_list<const Tensor*> inputs);

/// The last statement of every differentiable op: returns `output` after the check for NaN and Inf (see
/// set_check_finite()) and, if recording(inputs), puts a node on the tape that calls `backward(dy)` once the gradient
/// dy of `output` is known. `backward` captures a Gradient(x) of each input x, and only those tensors that it needs.
template <class Backward>
Tensor record(const char* op, Tensor output, std::initializer_list<const Tensor*> inputs, Backward backward);

/// record() for an op with several outputs: `backward` takes a `std::vector<Tensor>` with the gradient of each output,
/// undefined for outputs that have none.
template <class Backward>
std::vector<Tensor> record(const char* op, std::vector<Tensor> outputs, std::initializer_list<const Tensor*> inputs,
                           Backward backward);

/// Activation checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): runs `function`
/// without keeping its intermediate results, and runs it again during backward. `function` maps `input` to one tensor,
/// uses no other tensors with gradients than parameters, and must give the same result both times.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input);

/// Switches the check for NaN and Inf on or off, which looks at the output of every op and at every gradient. It is on
/// from the start in debug builds.
void set_check_finite(bool on);
/// Whether the check for NaN and Inf is on.
bool check_finite();
/// Error, naming `op`, `what` the tensor is to it ("output") and the element, if the check is on and `tensor` holds NaN
/// or Inf.
void require_finite(const char* op, const char* what, const Tensor& tensor);

// ---------------------------------------------------------------------------------------------------------------------

template <class Write>
void Gradient::accumulate(DType dtype, const kernels::Order& order, Write&& write) const {
  if (!wanted()) {
    return;
  }
  Tensor& sum = slot_->grad;
  if (!sum.defined() || !kernels::along(order, sum).is_contiguous() || sum.dtype() != dtype) {
    Tensor contribution = kernels::empty_in(order, shape_, dtype);
    write(contribution, Tensor());
    return add(std::move(contribution));
  }
  const Tensor to = sum.is_shared() ? kernels::empty_in(order, shape_, dtype) : sum;
  write(to, sum);
  sum = to;
}

template <class Write>
void Gradient::write(DType dtype, Write&& write) const {
  if (!wanted()) {
    return;
  }
  const bool in_place = slot_->room && !slot_->grad.defined();
  Tensor to = in_place ? slot_->room(dtype) : Tensor::empty(shape_, dtype);
  write(to);
  if (in_place) {
    slot_->grad = std::move(to);
  } else {
    add(std::move(to));
  }
}

template <class Backward>
Tensor record(const char* op, Tensor output, std::initializer_list<const Tensor*> inputs, Backward backward) {
  Profile::mark(op);
  require_finite(op, "output", output);
  if (!recording(inputs)) {
    return output;
  }
  output.set_slot(slot_for(output));
  Tape::current()->push(
      {op,
       {output.slot()},
       [backward = std::move(backward)](const std::vector<Tensor>& grads) { backward(grads.front()); },
       uses_of_leaves(inputs)});
  return output;
}

template <class Backward>
std::vector<Tensor> record(const char* op, std::vector<Tensor> outputs, std::initializer_list<const Tensor*> inputs,
                           Backward backward) {
  Profile::mark(op);
  for (const Tensor& output : outputs) {
    require_finite(op, "output", output);
  }
  if (!recording(inputs)) {
    return outputs;
  }
  Tape::Node node{op, {}, std::move(backward), uses_of_leaves(inputs)};
  for (Tensor& output : outputs) {
    output.set_slot(slot_for(output));
    node.outputs.push_back(output.slot());
  }
  Tape::current()->push(std::move(node));
  return outputs;
}

}  // namespace vitrail::autograd
