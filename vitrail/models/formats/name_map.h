/// \file
/// Maps the names of the tensors of one model to those of another implementation, by tables of patterns with one line
/// for each kind of tensor.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// How a model's tensor is made of theirs, the tensors of the other implementation.
enum class Joining {
  rows,              ///< concatenated along the first dimension: a single tensor, or query, key and value
  plus_position,     ///< the sum of the class token [1, 1, D] and the first of the positions [1, 1 + N, D]
  without_position,  ///< the positions [1, 1 + N, D] without the first one
  first_third,       ///< the first third of the rows: the queries of torch.nn.MultiheadAttention's in_proj_weight
  last_thirds,       ///< the other two: its keys and values
  squeezed           ///< a tensor of at most three dimensions, [1, 1, D] of [D] or [1, N, D] of [N, D]
};

/// One line of a table. In both names '#' stands for a number, which is the same on both sides ("#+1" is the next
/// number), and ``'@'`` at the end for the rest of the name ("weight", "bias"). In `theirs`, '~' at the beginning
/// stands for the prefix of the bare model, which checkpoints of the bare model itself do not have, '^' for the name of
/// the decoder's stack of blocks (NameMap), and {query,key,value} for several tensors. With an empty `own`, their
/// tensor has no place in the model and is ignored.
///
/// ```text
/// {"blocks.#.attn.qkv.@", "~encoder.layer.#.attention.attention.{query,key,value}.@"}
/// ```
struct NameRule {
  std::string_view own;
  std::string_view theirs;
  Joining joining = Joining::rows;
  bool optional = false;  ///< a buffer that older files lack: it then stays as it starts
};

/// The translation between the names of the tensors of a model (own) and of another implementation (theirs).
class NameMap {
 public:
  /// A map without rules: the names are the same on both sides.
  NameMap() = default;
  /// `prefix` replaces '~', and `stack` replaces '^'. The rules must outlive this object.
  NameMap(std::span<const NameRule> rules, std::string prefix, std::string stack = "")
      : rules_(rules), prefix_(std::move(prefix)), stack_(std::move(stack)) {}

  /// Whether files may lack the model's tensor `own`.
  bool optional(std::string_view own) const {
    const NameRule* const rule = find(own);
    return rule != nullptr && rule->optional;
  }
  /// Whether theirs_of(own) has an answer.
  bool knows(std::string_view own) const { return rules_.empty() || find(own) != nullptr; }
  /// The names of their tensors that the model's tensor `own` is made of, in order. Throws Error if no line of the
  /// table matches.
  std::vector<std::string> theirs_of(std::string_view own) const;
  /// The name of the model's tensor that `theirs` is, or is a part of; "" if it has no place in the model, none if no
  /// line of the table matches.
  std::optional<std::string> own_of(std::string_view theirs) const;
  /// Makes the model's tensor of `parts`, which are in the order of theirs_of(own).
  Tensor join(std::string_view own, const std::vector<Tensor>& parts) const;
  /// Their names and tensors for the model's tensor: the inverse of join(). A position that was added to the class
  /// token stays in it, and its own place is filled with zeros. Of a tensor that is several of the model's, these are
  /// its parts, in the order of the parameters (join_parts()).
  std::vector<std::pair<std::string, Tensor>> split(std::string_view own, const Tensor& value) const;

 private:
  const NameRule* find(std::string_view own) const;  ///< null if no line matches
  const NameRule& rule_of(std::string_view own) const;
  std::vector<std::string> alternatives(std::string_view pattern) const;

  std::span<const NameRule> rules_;
  std::string prefix_;
  std::string stack_;
};

/// Puts the parts that have one name together, row by row.
std::vector<std::pair<std::string, Tensor>> join_parts(std::vector<std::pair<std::string, Tensor>> parts);

}  // namespace vitrail::models
