// One process of a rig from its arguments to its records: the program bubblesim_replay without
// its command line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// One job of the process.
struct WorkerJob {
  std::string plan;    ///< path
  std::string record;  ///< path; written when the job has ended
  std::string device;  ///< open_device()
  std::string gate;    ///< GateClient::open(); empty: none
};

struct WorkerSetup {
  std::string clock;    ///< open_clock()
  std::string control;  ///< ControlBoard::name()
  std::vector<WorkerJob> jobs;
};

/// How the process ends.
enum class WorkerExit : int {
  kWell = 0,
  kInput = 2,   ///< plans, gate, control memory
  kDevice = 3,  ///< also records that cannot be written
};

struct WorkerEnd {
  WorkerExit exit = WorkerExit::kWell;
  std::string text;  ///< the fault's text, for stderr
};

/// open_device(), or a test's own.
using OpenDevice = std::function<Result<std::unique_ptr<Device>>(
    const std::string& address, HostClock& clock, ClientId client)>;

/// Reads plans, opens gates and devices, prepares, says "ready", waits for the common start, runs
/// all jobs side by side, and writes each one's record when it has ended. The calling thread takes
/// part in the clock (Turn::kControl) all the time. If one job cannot get ready, no job of the
/// process starts.
[[nodiscard]] WorkerEnd run_worker(const WorkerSetup& setup, const OpenDevice& open_device);

}  // namespace bubblesim::capture
