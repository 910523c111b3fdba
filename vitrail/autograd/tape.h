// The tape that differentiable ops write and backward() plays in reverse.
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

// Where the gradient of one tensor gathers. Shared by all handles on that tensor.
struct Slot {
  Tensor grad;         // undefined until the first contribution
  bool keep = false;   // a leaf (a parameter): its gradient stays after backward and adds up over calls
  bool wanted = true;  // false for a frozen leaf
  std::function<Tensor()> rebuild = {};    // the tensor's elements once more, if that is cheaper than to keep them
  int uses = 0;                            // of a leaf, by nodes that wait on a tape: at 0 its gradient is complete
  kernels::Order order = {};               // as the tensor lies in memory, so does its gradient
  std::function<Tensor(DType)> room = {};  // where write() puts it at once: a part of a larger tensor's gradient
};
// The slot of a tensor that an op has made.
std::shared_ptr<Slot> slot_for(const Tensor& output);

// A node's use of a leaf, as long as the node exists.
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
std::vector<LeafUse> uses_of_leaves(std::initializer_list<const Tensor*> inputs);

// A tensor's gradient as a backward function sees it: it holds the slot, not the tensor's elements, so that what the
// backward does not need is released early.
class Gradient {
 public:
  Gradient() = default;
  explicit Gradient(const Tensor& tensor) : slot_(tensor.slot()), shape_(tensor.shape()) {}
  bool wanted() const { return slot_ != nullptr && slot_->wanted; }
  const Shape& shape() const { return shape_; }
  // Adds a contribution of the tensor's shape. The first is taken over without a copy, even if others hold it too (an
  // op may pass its dy on to several inputs): what is shared is never written to. A leaf keeps its gradient, so it
  // copies one that is shared: move into add() what you made for a parameter.
  void add(Tensor contribution) const;
  // The same by write(to, sum): all elements of `to` become a contribution plus those of `sum`, which is what has
  // arrived so far, undefined at first; it may be `to` itself. Both are of `dtype` and dense, with their dimensions in
  // `order` in memory. Spares a pass over memory.
  template <class Write>
  void accumulate(DType dtype, const kernels::Order& order, Write&& write) const;
  // The same for a contribution to the elements [start, start + contribution.size(dim)) along `dim` alone.
  void add_part(int dim, std::int64_t start, const Tensor& contribution) const;
  // Memory for a contribution that lies as the tensor does, so that add() need not copy it.
  Tensor empty(DType dtype) const;
  // Adds what write(to) computes: all elements of `to`, which is contiguous, or a part along one dimension of what is.
  template <class Write>
  void write(DType dtype, Write&& write) const;

 private:
  std::shared_ptr<Slot> slot_;
  Shape shape_;
};

// A tensor that a backward function needs, kept as it is, or as the way to compute it again where its op has told one.
class Kept {
 public:
  Kept() = default;
  explicit Kept(const Tensor& tensor);
  Tensor get() const { return rebuild_ ? rebuild_() : tensor_; }

 private:
  Tensor tensor_;
  std::function<Tensor()> rebuild_;
};

// Tells how the elements of `output`, just recorded, can be computed again from what its op keeps anyway.
void set_rebuild(const Tensor& output, std::function<Tensor()> rebuild);

// Marks a leaf whose gradient is wanted (a parameter), or no longer wanted: all handles copied from it follow. Its
// gradient is read by grad() and dropped by zero_grad().
void require_grad(Tensor& tensor, bool required = true);
bool requires_grad(const Tensor& tensor);
Tensor grad(const Tensor& tensor);  // undefined if nothing has arrived yet
void zero_grad(const Tensor& tensor);

// While a Tape is alive on a thread, the ops called on that thread write themselves onto it:
//
//   Tape tape;
//   Tensor loss = cross_entropy(model(x, pass), labels);
//   tape.backward(loss);
//
// Without one nothing is recorded and nothing kept, which is all that inference needs. Tapes nest: the innermost
// records.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // The innermost tape of this thread, or null.
  static Tape* current();

  // Adds d(output)/d(leaf) to the gradient of every leaf that `output` depends on, beginning from `seed` (ones if
  // undefined; output must then be a single number). Each node is released as soon as it has been played, with all that
  // it kept; the tape is empty afterwards, and a second backward() from the same output is an Error.
  //
  // `complete` is told of each leaf as soon as no node is left that would add to its gradient, nor use its elements:
  // whoever updates it there and drops the gradient never holds all gradients at once. (A leaf that is used inside
  // checkpoint() is complete there after each use.)
  using Complete = std::function<void(Slot& leaf)>;
  void backward(const Tensor& output, Tensor seed = {}, const Complete& complete = {});

  struct Node {
    const char* op;
    std::vector<std::shared_ptr<Slot>> outputs;
    std::function<void(const std::vector<Tensor>&)> backward;  // takes the gradients of the outputs (may be undefined)
    std::vector<LeafUse> leaves = {};
  };
  void push(Node node) { nodes_.push_back(std::move(node)); }

 private:
  std::vector<std::shared_ptr<Slot>> play_last();  // returns the leaves that the node used

  std::vector<Node> nodes_;
  Tape* outer_;
};

// Switches recording off on this thread while it lives, inside the life of a tape.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  Tape* outer_;
};

// Whether an op over these inputs has to be recorded: a tape is there and at least one input wants a gradient.
bool recording(std::initializer_list<const Tensor*> inputs);

// The last line of every differentiable op: returns `output`, checked for NaN/Inf where that is switched on, and, if
// recording(inputs), tied to the tape so that `backward(dy)` runs when the gradient dy of `output` is known. `backward`
// captures Gradient(x) of each input, and of the tensors themselves only what it needs.
template <class Backward>
Tensor record(const char* op, Tensor output, std::initializer_list<const Tensor*> inputs, Backward backward);

// The same for an op with several outputs; `backward` takes a std::vector<Tensor>, undefined where no gradient came.
template <class Backward>
std::vector<Tensor> record(const char* op, std::vector<Tensor> outputs, std::initializer_list<const Tensor*> inputs,
                           Backward backward);

// Runs `function` without keeping its intermediate results and again during backward: activation checkpointing
// (Chen et al. 2016). `function` maps `input` to one tensor, uses only parameters besides, and must give the same
// result both times.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input);

// NaN/Inf check after every op (and of every gradient): on from the start in debug builds.
void set_check_finite(bool on);
bool check_finite();
// Error, naming `op`, if `tensor` holds NaN or Inf and the check is on.
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
