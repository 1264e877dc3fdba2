#include "sim/policy/gate_terms.hpp"

#include <algorithm>
#include <string_view>

namespace bubblesim::policy {
namespace {

/// Null: the policy has no such parameter.
const Value* value_of(const ParameterSet& given, std::string_view name) {
  const auto found =
      std::ranges::find_if(given, [name](const auto& each) { return each.first == name; });
  return found == given.end() ? nullptr : &found->second;
}

}  // namespace

bool holds_training(const ParameterSet& given, std::span<const ClientInfo> clients) {
  const Value* barrier = value_of(given, "barrier");
  if (barrier == nullptr) return false;
  const std::string word = value_text(*barrier);
  if (word != "requests") return word == "both";
  return std::ranges::find(clients, Role::kOnline, &ClientInfo::role) != clients.end();
}

Duration launch_delay(const ParameterSet& given, std::span<const ClientInfo> clients,
                      ClientId client) {
  const bool asks = client != ClientId{0} || holds_training(given, clients);
  const Value* delay = value_of(given, asks ? "ask" : "tell");
  const Duration* span = delay == nullptr ? nullptr : std::get_if<Duration>(delay);
  return span == nullptr ? Duration{} : *span;
}

}  // namespace bubblesim::policy
