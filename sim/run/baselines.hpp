// What the parts of a run do alone, against which its policies are measured, and where runs of one
// process share it: runs that differ only in policies have all of it in common.
//
// A baseline is a few numbers (bubbles: 32 bytes each), so a cache holds those of a whole sweep.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/run/shared_results.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {

/// The training job without fillers.
struct TrainingAlone {
  Duration simulated{};       ///< from the start to the end of the run
  Duration mean_iteration{};
  double iterations_per_s = 0;  ///< 0: no iteration finished in the measured window
  std::vector<Duration> pass{};  ///< observe::pass_of()
  bool whole_passes = true;      ///< every rank finished one in the measured window
  observe::UseAlone use{};
  std::optional<observe::PowerLimitCost> power_limit{};  ///< nothing: power is not limited
};

/// The bubble tables of a job, by rank.
using BubbleTables = std::vector<schedule::BubbleTable>;

/// Texts by which baselines of a run are known. Two that are equal promise that all is equal which
/// the baseline depends on: of training alone, everything of the config but its name, its fillers
/// and its policies; of a filler alone, that and the filler; of bubbles, programs and device.
struct BaselineKeys {
  std::string training;
  std::vector<std::string> fillers;  ///< by RunConfig::fillers
  std::string bubbles;
  friend bool operator==(const BaselineKeys&, const BaselineKeys&) = default;
};

/// Bytes kept of baselines (training and fillers, each) and of bubbles: enough for 10,000s of runs,
/// and for large jobs.
inline constexpr std::size_t kBaselineBytesKept = std::size_t{8} << 20;
inline constexpr std::size_t kBubbleBytesKept = std::size_t{32} << 20;

/// Thread-safe.
struct BaselineCache {
  SharedResults<TrainingAlone> training{kBaselineBytesKept, [](const TrainingAlone& alone) {
                                          return alone.pass.capacity() * sizeof(Duration);
                                        }};
  SharedResults<FillerProfile> fillers{kBaselineBytesKept};
  SharedResults<BubbleTables> bubbles{kBubbleBytesKept, [](const BubbleTables& tables) {
                                        std::size_t bytes = 0;
                                        for (const schedule::BubbleTable& table : tables) {
                                          bytes += sizeof table;
                                          bytes += table.capacity() * sizeof table.front();
                                        }
                                        return bytes;
                                      }};
};

/// A cache, and what the run's baselines are called there.
struct SharedBaselines {
  BaselineCache* cache = nullptr;  ///< null: the run measures its own
  BaselineKeys keys;
};

}  // namespace bubblesim::run
