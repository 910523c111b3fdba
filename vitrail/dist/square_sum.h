/// \file
/// The sum of squares of vectors that lie on several ranks, to the same bits whichever ranks hold them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

/// What a rank has of a vector of `count` numbers: all of them, or its part (part_of()). f32 and contiguous.
struct Held {
  Tensor numbers;
  std::int64_t count = 0;
};

/// The sum of the squares of all numbers of the vectors, of which all ranks hold everything or each its parts. The
/// squares are added line by line, the lines of a vector along the binary tree (Node) over them, in f64: as neither
/// depends on the ranks, the sum has the same bits for any number of them. `where` is for the Error of wait().
double sum_of_squares(Communicator& ranks, const std::vector<Held>& vectors, const std::string& where);

}  // namespace vitrail::dist
