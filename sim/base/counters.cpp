#include "sim/base/counters.hpp"

#include <algorithm>

namespace bubblesim {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kNotice: return "notice";
    case Severity::kLoss: return "loss";
    case Severity::kError: return "error";
  }
  return "unknown";
}

void CounterSet::add(const CounterSpec& spec, std::uint64_t count) {
  if (count == 0) return;
  if (const auto found = entries_.find(spec.name); found != entries_.end()) {
    found->second.count += count;  // the help, once held, is not copied again
  } else {
    entries_.emplace(std::string(spec.name),
                     Entry{spec.severity, std::string(spec.help), count});
  }
}

void CounterSet::add(std::string_view name, const Entry& entry) {
  if (entry.count == 0) return;
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    entries_.emplace(std::string(name), entry);
  } else {
    found->second.count += entry.count;
  }
}

void CounterSet::reset(const CounterSpec& spec, std::uint64_t count) {
  if (const auto found = entries_.find(spec.name); found != entries_.end()) entries_.erase(found);
  add(spec, count);
}

void CounterSet::merge(const CounterSet& other) {
  for (const auto& [name, entry] : other) add(name, entry);
}

std::uint64_t CounterSet::count(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? 0 : found->second.count;
}

bool CounterSet::has_error() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& item) {
    return item.second.severity == Severity::kError;
  });
}

}  // namespace bubblesim
