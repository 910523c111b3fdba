// The tensors of one model under the names of another implementation: tables of patterns, one line a kind of tensor.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

// How a model's tensor is made of theirs.
enum class Joining {
  rows,             // one after the other along the first dimension: one tensor as it is, or query, key and value
  plus_position,    // the class token [1, 1, D] and the first of the positions [1, 1 + N, D] in one: their sum
  without_position  // the positions [1, 1 + N, D] without the first
};

// One line of a table. In both names '#' stands for a number, the same one on both sides ("#+1": the next one), and '@'
// at the end for the rest of the name ("weight", "bias"). In `theirs`, '~' is the prefix of the bare model, which its
// own checkpoints do not have, and {query,key,value} stands for several tensors. An empty `own`: theirs has no place in
// the model and is passed over.
//
//   {"blocks.#.attn.qkv.@", "~encoder.layer.#.attention.attention.{query,key,value}.@"}
struct NameRule {
  std::string_view own;
  std::string_view theirs;
  Joining joining = Joining::rows;
};

class NameMap {
 public:
  // `prefix` replaces '~', and `stack` a '^'. The rules must outlive this; none: the names are the same.
  NameMap() = default;
  NameMap(std::span<const NameRule> rules, std::string prefix, std::string stack = "")
      : rules_(rules), prefix_(std::move(prefix)), stack_(std::move(stack)) {}

  // Whether theirs_of(own) has an answer.
  bool knows(std::string_view own) const { return rules_.empty() || find(own) != nullptr; }
  // Their tensors that the model's tensor `own` is made of, in order. Error if no line is about it.
  std::vector<std::string> theirs_of(std::string_view own) const;
  // The model's tensor that theirs is (a part of), or "" if it has no place there; none if no line is about it.
  std::optional<std::string> own_of(std::string_view theirs) const;
  // The model's tensor, of `parts` in the order of theirs_of(own).
  Tensor join(std::string_view own, const std::vector<Tensor>& parts) const;
  // Theirs, of the model's tensor: what join() undoes. A position that was summed into the class token stays there, and
  // its place is filled with zeros.
  std::vector<std::pair<std::string, Tensor>> split(std::string_view own, const Tensor& value) const;

 private:
  const NameRule* find(std::string_view own) const;  // null: no line is about it
  const NameRule& rule_of(std::string_view own) const;
  std::vector<std::string> alternatives(std::string_view pattern) const;

  std::span<const NameRule> rules_;
  std::string prefix_;
  std::string stack_;
};

}  // namespace vitrail::models
