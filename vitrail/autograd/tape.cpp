#include "vitrail/autograd/tape.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::autograd {
namespace {

thread_local Tape* current_tape = nullptr;

#ifdef VITRAIL_CHECK_FINITE
bool finite_check = true;
#else
bool finite_check = false;
#endif

// out = a + b, for tensors of f32 or bf16. out is dense, with its dimensions in any order in memory, and may be a.
void add_to(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (const kernels::Order order = kernels::order_of(out); !order.empty()) {
    return add_to(kernels::along(order, a), kernels::along(order, b), kernels::along(order, out));
  }
  check(a.dtype() == b.dtype(), "gradients of one tensor come as {} and as {}", name_of(a.dtype()), name_of(b.dtype()));
  const std::array operands = {kernels::Operand{a.raw(), a.strides()}, kernels::Operand{b.raw(), b.strides()}};
  kernels::elementwise(kernels::Elementwise::add, operands, out.raw(), out.shape(), out.dtype());
}

}  // namespace

void Gradient::add(Tensor contribution) const {
  if (!wanted()) {
    return;
  }
  check(contribution.shape() == shape_, "the gradient of a tensor {} has the shape {}", shape_, contribution.shape());
  Tensor& sum = slot_->grad;
  if (!sum.defined()) {
    const bool fits = kernels::along(slot_->order, contribution).is_contiguous();
    if (fits && !(slot_->keep && contribution.is_shared())) {
      sum = contribution.detach();
    } else {
      sum = empty(contribution.dtype());
      slot_->order.empty() ? sum.copy_from(contribution) : kernels::copy_layout(contribution, sum);
    }
  } else if (sum.is_shared()) {
    const Tensor fresh = empty(sum.dtype());
    add_to(sum, contribution, fresh);
    sum = fresh;
  } else {
    add_to(sum, contribution, sum);
  }
}

Tensor Gradient::empty(DType dtype) const {
  return kernels::empty_in(slot_ == nullptr ? kernels::Order() : slot_->order, shape_, dtype);
}

void Gradient::add_part(int dim, std::int64_t start, const Tensor& contribution) const {
  if (!wanted()) {
    return;
  }
  check(contribution.shape() == shape_.with(dim, contribution.size(dim)),
        "the gradient of a part of a tensor {} along dimension {} has the shape {}", shape_, dim, contribution.shape());
  Tensor& sum = slot_->grad;
  if (!sum.defined()) {
    sum = Tensor::zeros(shape_, contribution.dtype());
    sum.narrow(dim, start, contribution.size(dim)).copy_from(contribution);
    return;
  }
  if (sum.is_shared()) {
    sum = sum.clone();
  }
  const Tensor part = sum.narrow(dim, start, contribution.size(dim));
  const Tensor added = Tensor::empty_like(part);
  add_to(part, contribution, added);
  part.copy_from(added);
}

SavedTensor::SavedTensor(const Tensor& tensor) {
  if (tensor.slot() != nullptr && tensor.slot()->rebuild) {
    rebuild_ = tensor.slot()->rebuild;
  } else {
    tensor_ = tensor.detach();
  }
}

std::shared_ptr<Slot> slot_for(const Tensor& output) {
  auto slot = std::make_shared<Slot>();
  slot->order = kernels::order_of(output);
  return slot;
}

void set_rebuild(const Tensor& output, std::function<Tensor()> rebuild) {
  if (output.slot() != nullptr) {
    output.slot()->rebuild = std::move(rebuild);
  }
}

void require_grad(Tensor& tensor, bool required) {
  check(is_floating(tensor.dtype()), "a tensor of {} can have no gradient", name_of(tensor.dtype()));
  if (tensor.slot() != nullptr && tensor.slot()->keep) {
    tensor.slot()->wanted = required;  // shared with the handles that layers hold
  } else {
    tensor.set_slot(required ? std::make_shared<Slot>(Slot{{}, true}) : nullptr);
  }
}

bool requires_grad(const Tensor& tensor) { return tensor.slot() != nullptr && tensor.slot()->wanted; }

Tensor grad(const Tensor& tensor) { return tensor.slot() == nullptr ? Tensor() : tensor.slot()->grad; }

void zero_grad(const Tensor& tensor) {
  if (tensor.slot() != nullptr) {
    tensor.slot()->grad = Tensor();
  }
}

Tape::Tape() : outer_(current_tape) { current_tape = this; }
Tape::~Tape() { current_tape = outer_; }
Tape* Tape::current() { return current_tape; }

NoGrad::NoGrad() : outer_(current_tape) { current_tape = nullptr; }
NoGrad::~NoGrad() { current_tape = outer_; }

bool recording(std::initializer_list<const Tensor*> inputs) {
  return current_tape != nullptr &&
         std::ranges::any_of(inputs, [](const Tensor* input) { return requires_grad(*input); });
}

std::vector<LeafUse> uses_of_leaves(std::initializer_list<const Tensor*> inputs) {
  std::vector<LeafUse> result;
  for (const Tensor* input : inputs) {
    if (input->slot() != nullptr && input->slot()->keep) {
      result.emplace_back(input->slot());
    }
  }
  return result;
}

void Tape::backward(const Tensor& output, Tensor seed, const Complete& complete) {
  check(requires_grad(output), "backward(): the output depends on nothing whose gradient is wanted");
  if (!seed.defined()) {
    check(output.numel() == 1, "backward() without a seed needs a single number, not the shape {}", output.shape());
    seed = Tensor::full(output.shape(), 1.0, output.dtype());
  }
  const bool here = output.slot()->keep || std::ranges::any_of(nodes_, [&](const Node& node) {
                      return std::ranges::find(node.outputs, output.slot()) != node.outputs.end();
                    });
  check(here, "backward(): the output was not recorded on this tape, or backward() has already played it");
  const NoGrad no_grad;  // backward functions may call ops; those are not recorded
  const Profile::Within within(Profile::Phase::backward);
  Gradient(output).add(std::move(seed));
  while (!nodes_.empty()) {
    for (const std::shared_ptr<Slot>& leaf : play_last()) {
      if (complete && leaf->uses == 0) {
        complete(*leaf);
      }
    }
  }
}

std::vector<std::shared_ptr<Slot>> Tape::play_last() {
  // The node is taken off the tape first, so that what it keeps is freed at the end of this function.
  const Node node = std::move(nodes_.back());
  nodes_.pop_back();
  std::vector<std::shared_ptr<Slot>> leaves;
  for (const LeafUse& use : node.leaves) {
    leaves.push_back(use.leaf());
  }
  std::vector<Tensor> grads;
  bool any = false;
  for (const auto& slot : node.outputs) {
    grads.push_back(slot->grad);
    any = any || slot->grad.defined();
    if (!slot->keep) {
      slot->grad = Tensor();
    }
    if (grads.back().defined()) {
      require_finite(node.op, "gradient", grads.back());
    }
  }
  if (any) {
    node.backward(grads);
    Profile::mark(node.op);
  }
  return leaves;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input) {
  if (Tape::current() == nullptr) {
    return function(input);
  }
  Tensor output;
  {
    const NoGrad no_grad;
    output = function(input.detach());
  }
  // The output is recorded in any case: parameters inside `function` want gradients even if the input does not.
  output = output.detach();
  output.set_slot(slot_for(output));
  Tape::current()->push(
      {"checkpoint", {output.slot()}, [function, input = input.detach(), dx = Gradient(input)](const auto& grads) {
         Tape tape;
         Tensor again = input;
         require_grad(again);
         const Tensor result = function(again);
         tape.backward(result, grads.front());
         if (grad(again).defined()) {
           dx.add(grad(again));
         }
       }});
  return output;
}

void set_check_finite(bool on) { finite_check = on; }
bool check_finite() { return finite_check; }

void require_finite(const char* op, const char* what, const Tensor& tensor) {
  if (!finite_check || !is_floating(tensor.dtype())) {
    return;
  }
  const std::vector<float> values = tensor.values();
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  check(bad == values.end(), "{}: the {} {} holds {} at element {}", op, what, tensor.shape(),
        bad == values.end() ? 0.0F : *bad, bad - values.begin());
}

}  // namespace vitrail::autograd
