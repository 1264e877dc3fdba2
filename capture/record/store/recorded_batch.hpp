// What decoders of one session hand to the store: records of one rank, in any order.
//
// Ids of names, shapes, threads and streams come from the session's tables
// (capture/record/store/record_tables.hpp).
#pragma once

#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::capture {

struct RecordedBatch {
  std::vector<traces::HostCall> calls;
  std::vector<traces::DeviceOp> ops;
  std::vector<traces::SyncRecord> syncs;
  std::vector<traces::Marker> markers;
  std::vector<traces::MemorySample> memory;
  std::vector<traces::HostStall> stalls;
  std::vector<traces::ClockPair> clocks;
  /// A note's `collective` is an index into `collectives` of this batch; the store makes it one
  /// into the rank's table.
  std::vector<traces::Collective> collectives;
  std::vector<traces::CollectiveNote> notes;

  void clear() {
    calls.clear(), ops.clear(), syncs.clear(), markers.clear(), memory.clear(), stalls.clear();
    clocks.clear(), collectives.clear(), notes.clear();
  }
};

}  // namespace bubblesim::capture
