// The driver of sim/policy/testing for the policies that come with bubblesim, by name; the GPU, the
// filler and the kernels of the golden scenarios.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/check.hpp"
#include "sim/policy/testing/fake_driver.hpp"
#include "tests/bytes.hpp"

namespace bubblesim::testing {

/// Makes the policy of this name, with its defaults except for `given` ("name=value"), and runs it.
inline Outcome drive(std::string_view name, const std::vector<std::string>& given,
                     const Scenario& scenario) {
  const policy::Registry registry = policies::judged_policies();
  const auto spec = registry.find(name);
  BUBBLESIM_CHECK(spec.has_value(), "no such policy");
  return drive(**spec, given, scenario);
}

/// A GPU of 100 SMs and 80 GiB; training in 40 GiB; one filler of 10 GiB that launches as fast as
/// the policy lets it.
inline Scenario scenario(Duration horizon, std::vector<Call> kernels, std::uint64_t launches) {
  using namespace std::chrono_literals;
  Scenario result;
  result.gpu = {"GPU", 100, 2, gib(80), 1ms, 50us};
  result.training_memory = gib(40);
  result.fillers = {{policy::Role::kOffline, std::move(kernels), launches, 0ns, gib(10), true}};
  result.horizon = horizon;
  return result;
}

/// A kernel of which an SM holds one block.
inline Call kernel(std::uint64_t blocks, Duration length,
                   program::KernelClass bound = program::KernelClass::kUnknown) {
  return {{}, program::WorkKind::kKernel, blocks, length, 100, bound};
}

/// A kernel whose number of blocks an SM is not known.
inline Call opaque_kernel(std::uint64_t blocks, Duration length) {
  return {{}, program::WorkKind::kKernel, blocks, length};
}

}  // namespace bubblesim::testing
