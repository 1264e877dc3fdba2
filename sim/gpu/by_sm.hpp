// A value for each SM of a GPU, kept as runs of neighbours with equal values. Few kernels are
// resident at a time, and each covers its SMs evenly, so runs are few.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace bubblesim::gpu {

/// T is comparable; every SM begins with T{}.
template <class T>
class BySm {
 public:
  /// SMs from the end of the previous run to `end`.
  struct Run {
    std::uint32_t end;
    T value;
    friend bool operator==(const Run&, const Run&) = default;
  };

  explicit BySm(std::uint32_t sms = 0) : runs_{{sms, T{}}} {}

  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  [[nodiscard]] bool uniform() const { return runs_.size() == 1; }
  friend bool operator==(const BySm&, const BySm&) = default;
  /// Equal objects have equal hashes.
  [[nodiscard]] std::uint64_t hash() const;

  /// Removes all runs; append() then adds new ones, from the first SM to the last.
  void restart() { runs_.clear(); }
  /// Gives `value` to the SMs from the end of the last call to `end`; possibly none.
  [[gnu::always_inline]] void append(std::uint32_t end, const T& value) {
    if (end == (runs_.empty() ? 0 : runs_.back().end)) return;
    if (!runs_.empty() && runs_.back().value == value) {
      runs_.back().end = end;
    } else {
      runs_.push_back({end, value});
    }
  }

  /// Becomes a copy of `before`, with change(T&, part) applied on SMs whose value in `parts` is not
  /// Part{}. Precondition: `before` is another object, with as many SMs as `parts`.
  template <class Part, class Change>
  void become_changed(const BySm& before, const BySm<Part>& parts, Change change) {
    restart();
    auto run = before.runs_.begin();
    for (const auto& part : parts.runs()) {
      for (std::uint32_t end = 0; end < part.end;) {
        end = run->end < part.end ? run->end : part.end;
        T value = run->value;
        if (part.value != Part{}) change(value, part.value);
        append(end, value);
        if (run->end == end) ++run;
      }
    }
  }

 private:
  std::vector<Run> runs_;  ///< by SM; empty only between restart() and append()
};

// The products of one run do not depend on each other, so a CPU computes them in parallel.
template <class T>
std::uint64_t BySm<T>::hash() const {
  using Words = std::array<std::uint32_t, sizeof(Run) / sizeof(std::uint32_t)>;
  static_assert(std::has_unique_object_representations_v<Run>, "bytes that mean nothing");
  std::uint64_t hash = 0;
  for (const Run& run : runs_) {
    std::uint64_t factor = 0x9e3779b97f4a7c15;
    for (const std::uint32_t word : std::bit_cast<Words>(run)) {
      hash += word * factor;
      factor *= 0xd1342543de82ef95;
    }
    hash = (hash ^ hash >> 32U) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

}  // namespace bubblesim::gpu
