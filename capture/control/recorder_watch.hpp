// Watches the recorders of a job that runs: for a line of progress, and, when the job left no
// recording, for the reason.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "capture/control/recorder_client.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

class RecorderWatch {
 public:
  /// Watches the recorders of `job`, of its descendants and of all that write below `output`.
  RecorderWatch(pid_t job, std::string output, std::string socket_folder);

  /// Asks every recorder; costs it one answer. Call about once a second.
  void look();
  /// The last word of every recorder seen, by pid.
  [[nodiscard]] const std::map<std::int64_t, RecorderStatus>& seen() const { return seen_; }
  /// "2 recording, 120000 records, 3 MB"; empty: none seen.
  [[nodiscard]] std::string progress() const;

 private:
  pid_t job_;
  std::string output_;
  ClientOptions options_;
  std::map<std::int64_t, RecorderStatus> seen_;
};

struct JobFacts {
  Duration ran{};          ///< how long the job ran
  Duration delay{};        ///< that the recording was to wait for
  bool at_a_time = false;  ///< it was to wait for a wall-clock second
};

/// Whether this process could load the NVIDIA driver's library.
enum class DriverState { kFound, kMissing };
[[nodiscard]] DriverState driver_state();

/// One sentence: why a job left no recording, as far as can be told.
[[nodiscard]] std::string why_nothing(const std::map<std::int64_t, RecorderStatus>& seen,
                                      DriverState driver, const JobFacts& facts);

}  // namespace bubblesim::capture
