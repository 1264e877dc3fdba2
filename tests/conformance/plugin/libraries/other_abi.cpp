// Built with another standard library: must be refused before its function is called.
#include <cstdlib>

#include "sim/plugin/policy_library.hpp"

extern "C" {
__attribute__((visibility("default"))) extern const bubblesim::plugin::PolicyLibrary
    bubblesim_policy_library;
const bubblesim::plugin::PolicyLibrary bubblesim_policy_library = {
    bubblesim::plugin::kLibraryMark, bubblesim::policy::kContractVersion, "another library 64-bit",
    [](std::vector<bubblesim::policy::PolicySpec>&) { std::abort(); }};
}
