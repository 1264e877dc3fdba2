// Turns exceptions of a policy's code into faults. bubblesim's code does not throw, but a policy
// from outside the tree may; its exception ends the run, as an illegal decision does.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policy {

/// Returns the Result of `work`, which calls the policy's code. An exception is a fault with the
/// policy's name; std::bad_alloc names none, since its cause is unknown.
template <class Work>
auto catch_thrown(const PolicySpec& spec, const Work& work) -> decltype(work()) {
  const std::string place = "policy " + spec.name;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail({}, {}, "out of memory while policy " + spec.name + " ran; expected more memory, "
                        "fewer --threads or a shorter run");
  } catch (const std::exception& fault) {
    return fail({}, place, std::string("threw an exception: ") + fault.what());
  } catch (...) {
    return fail({}, place, "threw something that is no std::exception");
  }
}

}  // namespace bubblesim::policy
