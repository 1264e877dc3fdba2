// A policy without a function that makes it.
#include "sim/plugin/policy_library.hpp"

namespace {

bubblesim::policy::PolicySpec unfinished_spec() {
  bubblesim::policy::PolicySpec spec;
  spec.name = "unfinished";
  spec.summary = "Cannot be made";
  return spec;
}

}  // namespace

BUBBLESIM_POLICY_LIBRARY(unfinished_spec)
