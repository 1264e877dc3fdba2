// Built for the contract's next version: must be refused before its function is called.
#include <cstdlib>

#include "sim/plugin/policy_library.hpp"

extern "C" {
__attribute__((visibility("default"))) extern const bubblesim::plugin::PolicyLibrary
    bubblesim_policy_library;
const bubblesim::plugin::PolicyLibrary bubblesim_policy_library = {
    bubblesim::plugin::kLibraryMark, bubblesim::policy::kContractVersion + 1,
    bubblesim::plugin::kAbiTag, [](std::vector<bubblesim::policy::PolicySpec>&) { std::abort(); }};
}
