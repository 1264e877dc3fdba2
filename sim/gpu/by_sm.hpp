// A value of each SM of a GPU, kept as runs: neighbours that have the same value stand together.
// Few kernels are resident at a time, and each covers its SMs evenly, so runs are few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bubblesim::gpu {

/// T: comparable, T{} is the value of an SM that nothing has been said of.
template <class T>
class BySm {
 public:
  /// SMs from the end of the run before it to `end`.
  struct Run {
    std::uint32_t end;
    T each;
  };

  explicit BySm(std::uint32_t sms = 0) : runs_{{sms, T{}}} {}

  /// All SMs have T{}.
  void clear() { runs_.assign(1, {runs_.back().end, T{}}); }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  [[nodiscard]] bool uniform() const { return runs_.size() == 1; }

  /// Runs are given anew by append(), from the first SM to the last.
  void restart() { runs_.clear(); }
  /// SMs from where the last call ended to `end` have `each`; there may be none.
  void append(std::uint32_t end, const T& each) {
    if (end == (runs_.empty() ? 0 : runs_.back().end)) return;
    if (!runs_.empty() && runs_.back().each == each) {
      runs_.back().end = end;
    } else {
      runs_.push_back({end, each});
    }
  }

  /// Calls change(T&, value) for SMs whose value of `parts` is not Part{}; all SMs may be one call.
  /// Precondition: `parts` is of as many SMs.
  template <class Part, class Change>
  void change_each(const BySm<Part>& parts, Change change) {
    if (uniform() && parts.uniform()) return change(runs_[0].each, parts.runs()[0].each);
    before_.swap(runs_);
    restart();
    auto run = before_.begin();
    for (const auto& part : parts.runs()) {
      for (std::uint32_t end = 0; end < part.end;) {
        end = run->end < part.end ? run->end : part.end;
        T each = run->each;
        if (part.each != Part{}) change(each, part.each);
        append(end, each);
        if (run->end == end) ++run;
      }
    }
  }

 private:
  std::vector<Run> runs_;    ///< by SM; empty only between restart() and append()
  std::vector<Run> before_;  ///< kept for its memory
};

}  // namespace bubblesim::gpu
