// The record of one process of a rig: written by the process when it ends, read by the program that
// started it (job_files.hpp). Instants are since the start that all processes of the rig share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/gate/gate_client.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

struct RequestRecord {
  Duration arrival{};  ///< offline: its pass's start
  Duration start{};
  Duration end{};
};

struct OperationRecord {
  std::uint32_t op = 0;
  std::uint64_t pass = 0;
  Duration called{};  ///< start of the launch call, after the gate
  Duration start{};
  Duration end{};
  Duration returned{};  ///< end of the launch call
  Duration noticed{};   ///< when DeviceListener told the process of the end
};

struct JobRecord {
  std::string name;
  std::uint32_t rank = 0;
  Duration ended{};
  std::vector<Duration> iterations;   ///< ends, ascending: when the host marks them
  std::vector<Duration> passes;       ///< ends
  std::vector<std::uint64_t> pass_requests;  ///< served by each pass
  std::vector<RequestRecord> requests;       ///< online, served, in order of their ends
  std::vector<Duration> unfinished;          ///< arrivals of requests not served
  std::uint64_t launches = 0;
  Duration gate_time{};               ///< of the job's threads at the gate, without holds
  Duration held_time{};
  GateClientCounts gate;
  std::vector<OperationRecord> operations;   ///< if asked for
  CounterSet counters;
};

}  // namespace bubblesim::capture
