// What an Error says.
#pragma once

#include <string>

#include "vitrail/tensor/error.h"

namespace vitrail::test {

// The sentence of the Error that `function()` throws, or "no error".
template <class Function>
std::string error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace vitrail::test
