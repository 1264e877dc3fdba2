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

  /// Calls visit(begin, end, value) for each run that differs from T{}.
  template <class Visit>
  void each_set(Visit visit) const {
    std::uint32_t begin = 0;
    for (const Run& run : runs_) {
      if (run.each != T{}) visit(begin, run.end, run.each);
      begin = run.end;
    }
  }

  /// Calls change(T&) for SMs [begin, end). Precondition: begin < end <= their number.
  template <class Change>
  void change(std::uint32_t begin, std::uint32_t end, Change change) {
    if (uniform() && begin == 0 && end == runs_[0].end) return change(runs_[0].each);
    change_part(begin, end, change);
  }

 private:
  template <class Change>
  void change_part(std::uint32_t begin, std::uint32_t end, Change change) {
    std::size_t first = 0;
    while (runs_[first].end <= begin) ++first;
    if (const std::uint32_t start = first > 0 ? runs_[first - 1].end : 0; start < begin) {
      split(first++, begin);
    }
    std::size_t last = first;
    while (runs_[last].end < end) change(runs_[last++].each);
    if (runs_[last].end > end) split(last, end);
    change(runs_[last].each);
    join(first, last);
  }
  void split(std::size_t run, std::uint32_t at) {
    const Run head{at, runs_[run].each};
    runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(run), head);
  }
  /// Joins equal neighbours, of which one is in [first, last].
  void join(std::size_t first, std::size_t last) {
    std::size_t run = last + 1 < runs_.size() ? last + 1 : last;
    for (const std::size_t from = first > 0 ? first : 1; run >= from; --run) {
      if (runs_[run - 1].each != runs_[run].each) continue;
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(run - 1));
    }
  }

  std::vector<Run> runs_;  ///< by SM; never empty
};

}  // namespace bubblesim::gpu
