// Fits of stand-ins, kept in a file between processes: a worker that has only a part of the GPU
// (MPS percentages) cannot measure how long a kernel lasts on all of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "capture/replay/cuda/stand_in_fit.hpp"
#include "capture/replay/cuda/stand_in_mix.hpp"
#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture::cuda {

/// What makes stand-ins equal.
struct FitKey {
  KernelForm form;
  Duration solo{};
  friend auto operator<=>(const FitKey&, const FitKey&) = default;
};

/// What was found for one.
struct CachedFit {
  DurationLine line;
  Mix mix;
  double error = 0;       ///< Fit::error: |measured - solo| / solo at the last check
  bool at_floor = false;  ///< Fit::at_floor
};

class FitCache {
 public:
  /// `path` empty: nothing is read or written. A file that is not there, or is of another GPU or
  /// driver, or damaged, is an empty cache: measuring again costs time and nothing else.
  FitCache(std::string path, const DeviceFacts& facts);

  [[nodiscard]] const CachedFit* find(const FitKey& key) const;
  void put(const FitKey& key, const CachedFit& fit) { fits_.insert_or_assign(key, fit); }
  /// Writes beside the file and renames. False: it could not be written.
  [[nodiscard]] bool save() const;

 private:
  void read();

  std::string path_;
  std::string head_;  ///< GPU, driver, version of this format
  std::map<FitKey, CachedFit> fits_;
};

}  // namespace bubblesim::capture::cuda
