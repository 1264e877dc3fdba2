// A shared library of policies exports one constant, `bubblesim_policy_library`, with the contract
// version and ABI that it was compiled for and the function that adds its policies. Authors write
// one line:
//
//   BUBBLESIM_POLICY_LIBRARY(my_policy_spec)
//
// with any number of functions that return a policy::PolicySpec. The constant is data, so the
// version is checked before any code of the library is called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/policy/contract_version.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::plugin {

/// Distinguishes the constant from a foreign symbol of the same name.
inline constexpr std::uint32_t kLibraryMark = 0x62736d70;

/// The C++ ABI of contract types: the standard library, its string's layout, its debug containers,
/// and the width of a pointer. GCC and Clang share the rest (Itanium C++ ABI).
#if defined(_LIBCPP_VERSION)
#define BUBBLESIM_ABI_LIBRARY_ "libc++"
#elif defined(_GLIBCXX_DEBUG)
#define BUBBLESIM_ABI_LIBRARY_ "libstdc++ debug"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define BUBBLESIM_ABI_LIBRARY_ "libstdc++ cxx11"
#else
#define BUBBLESIM_ABI_LIBRARY_ "libstdc++ before cxx11"
#endif
inline constexpr const char* kAbiTag =
    sizeof(void*) == 8 ? BUBBLESIM_ABI_LIBRARY_ " 64-bit" : BUBBLESIM_ABI_LIBRARY_ " 32-bit";

/// The first three members are the same in all versions of the contract.
struct PolicyLibrary {
  std::uint32_t mark = kLibraryMark;
  std::uint32_t contract_version = policy::kContractVersion;
  const char* abi = kAbiTag;
  void (*add_policies)(std::vector<policy::PolicySpec>& policies) = nullptr;
};

template <policy::PolicySpec (*... kMake)()>
void add_policies(std::vector<policy::PolicySpec>& policies) {
  (policies.push_back(kMake()), ...);
}

/// The name of the constant.
inline constexpr const char* kLibrarySymbol = "bubblesim_policy_library";

}  // namespace bubblesim::plugin

#define BUBBLESIM_POLICY_LIBRARY(...)                                                             \
  extern "C" {                                                                                    \
  __attribute__((visibility("default"))) extern const ::bubblesim::plugin::PolicyLibrary          \
      bubblesim_policy_library;                                                                   \
  const ::bubblesim::plugin::PolicyLibrary bubblesim_policy_library = {                           \
      ::bubblesim::plugin::kLibraryMark, ::bubblesim::policy::kContractVersion,                   \
      ::bubblesim::plugin::kAbiTag, &::bubblesim::plugin::add_policies<__VA_ARGS__>};             \
  }
