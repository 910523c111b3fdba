// What must hold of every input.
#pragma once

#include <cstdlib>

inline void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}
