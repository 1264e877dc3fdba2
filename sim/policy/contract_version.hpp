// The version of the policy contract. Loading checks that a policy from outside the tree was
// compiled for this version (sim/plugin).
//
// Raise it by one with every change after which a policy that was compiled before must not run:
// - a virtual function of Policy, Actions or Placer added, removed, moved or changed;
// - a member of any type of sim/policy, or of a type of sim/base or sim/program that appears in it,
//   added, removed, moved or changed in type;
// - an enumerator moved, or a meaning changed: when a call comes, what is true then, a unit.
// New functions outside of classes, new headers and comments do not raise it.
#pragma once

#include <cstdint>

namespace bubblesim::policy {

inline constexpr std::uint32_t kContractVersion = 10;

}  // namespace bubblesim::policy
