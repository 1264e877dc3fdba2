// Asks the recorder of a process: one connection, one command, one answer. A recorder that is slow,
// silent or unreadable gives a fault; no call waits longer than its timeout.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

// Which recorders listen on this machine: from /proc/net/unix (abstract sockets of this network
// namespace) and from a folder of path sockets.

struct ListedRecorder {
  uid_t user = 0;  ///< as the socket's name says
  pid_t pid = 0;   ///< as the socket's name says: in a container, the container's
  ControlAddress address;
};

/// Lists recorders by pid, abstract sockets first. `folder` holds path sockets; empty: none. A
/// socket file without a listener is listed too: only a connection would tell.
[[nodiscard]] std::vector<ListedRecorder> list_recorders(const std::string& folder);

/// The recorders named in this text of /proc/net/unix; used by list_recorders().
[[nodiscard]] std::vector<ListedRecorder> listed_in(std::string_view proc_net_unix);

struct ClientOptions {
  Duration timeout = std::chrono::seconds(5);  ///< of connecting and the answer together
  std::string socket_folder;                   ///< of path sockets; empty: abstract ones only
};

class RecorderClient {
 public:
  /// Finds the recorder of a process: `pid` as this namespace or, with path sockets, its container
  /// counts. Faults: no such process, another user's process, no recorder in it (and how to get
  /// one), a socket of that name that is not its recorder's.
  [[nodiscard]] static Result<RecorderClient> find(pid_t pid, const ClientOptions& options = {});
  /// A recorder that list_recorders() gave.
  RecorderClient(ListedRecorder recorder, const ClientOptions& options);

  /// Faults: the recorder is gone, no answer in time, an answer that is no status.
  [[nodiscard]] Result<RecorderStatus> ask(const ControlCommand& command) const;
  [[nodiscard]] pid_t pid() const { return recorder_.pid; }
  /// The recorder's user: after find() as the system says, else as the socket's name says.
  [[nodiscard]] uid_t user() const { return recorder_.user; }

 private:
  ListedRecorder recorder_;
  ClientOptions options_;
};

/// The recorders that answer, with their statuses. Without root, only the caller's own. A recorder
/// that listens at two addresses is asked once; a recorder that does not answer gives a fault.
struct RecorderSurvey {
  std::vector<RecorderStatus> recorders;  ///< by pid
  Errors faults;
};
[[nodiscard]] RecorderSurvey survey_recorders(const ClientOptions& options = {});

[[nodiscard]] inline ControlCommand status_command() { return {}; }

// Watches the recorders of a running job: for a line of progress, and for the reason if the job
// leaves no recording.

class RecorderWatch {
 public:
  /// Watches the recorders of `job`, of its descendants and of all that write files below `output`.
  RecorderWatch(pid_t job, std::string output, std::string socket_folder);

  /// Asks every recorder for one answer. Call about once a second.
  void look();
  /// The last status of every recorder seen, by pid.
  [[nodiscard]] const std::map<std::int64_t, RecorderStatus>& seen() const { return seen_; }
  /// "2 recording, 120000 records, 3 MB"; empty: no recorder seen.
  [[nodiscard]] std::string progress() const;

 private:
  pid_t job_;
  std::string output_;
  ClientOptions options_;
  std::map<std::int64_t, RecorderStatus> seen_;
};

struct JobFacts {
  Duration ran{};          ///< how long the job ran
  Duration delay{};        ///< the delay asked for before the recording
  bool at_a_time = false;  ///< the recording was to wait for a wall-clock second
};

/// Whether this process could load the NVIDIA driver's library.
enum class DriverState { kFound, kMissing };
[[nodiscard]] DriverState driver_state();

/// One sentence: the likeliest reason why a job left no recording.
[[nodiscard]] std::string why_nothing(const std::map<std::int64_t, RecorderStatus>& seen,
                                      DriverState driver, const JobFacts& facts);

}  // namespace bubblesim::capture
