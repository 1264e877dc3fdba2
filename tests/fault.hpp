// What is wrong, as tests ask a result for it: a test fails where nothing is.
#pragma once

#include <gtest/gtest.h>

#include "sim/base/result.hpp"

namespace bubblesim {

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result) << "expected a fault";
  return result ? Error{} : result.error();
}
template <class T>
Errors error_of(const CheckedResult<T>& result) {
  EXPECT_FALSE(result) << "expected a fault";
  return result ? Errors{Error{}} : result.error();
}

}  // namespace bubblesim
