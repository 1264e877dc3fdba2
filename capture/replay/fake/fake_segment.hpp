// The shared memory between a fake GPU and the jobs on it: launches, ends and waits.
//
// Each job has a part. All users take turns (TurnClock), so none sees half a change; cursors are
// atomic and moved last, so that a process that dies during a change leaves the old state. Counts
// start at 0; times are nanoseconds of the rig's clock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/process_mark.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_client.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// A launch call: `count` operations from `op` on.
struct FakeLaunch {
  std::uint32_t op = 0;
  std::uint32_t count = 0;
  std::uint64_t pass = 0;
  std::uint64_t launch = 0;
  std::int64_t at = 0;       ///< the call's start; JobPlan::device_lags: its end
  double factor = 1;
  bool takes_place = false;  ///< in the launch queue of the first operation's stream
};

/// An operation has started or ended, and the host knows from `due` on.
struct FakeNotice {
  std::uint32_t op = 0;
  std::uint64_t pass = 0;
  std::uint64_t launch = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t due = 0;
};

/// A queue from one side to the other, first in, first out.
template <class T, std::size_t Size>
class FakeRing {
 public:
  [[nodiscard]] bool full() const { return pushed_.load() - taken_.load() == Size; }
  [[nodiscard]] bool empty() const { return pushed_.load() == taken_.load(); }
  /// Precondition: not full.
  void push(const T& item) {
    const std::uint64_t next = pushed_.load();
    items_[next % Size] = item;
    pushed_.store(next + 1);
  }
  /// Precondition: not empty.
  [[nodiscard]] const T& front() const { return items_[taken_.load() % Size]; }
  void pop() { taken_.store(taken_.load() + 1); }

 private:
  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::array<T, Size> items_;
};

struct FakeStream {
  std::atomic<std::uint64_t> launched{0};  ///< operations
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint32_t> queued{0};    ///< launch calls that have a place in its queue
};

struct FakeOp {
  std::atomic<std::uint64_t> ended{0};  ///< how often
  std::uint64_t resident = 0;           ///< blocks that the GPU holds at once; 0: not known
};

struct FakeJobPart {
  ClientId client;
  std::uint32_t op_count = 0;
  std::uint32_t stream_count = 0;
  std::atomic<std::uint32_t> taken{0};     ///< a process has opened it
  std::atomic<std::uint32_t> watched{0};   ///< notices are wanted
  std::atomic<std::uint32_t> no_more{0};   ///< launches will not come
  std::atomic<std::uint32_t> quiet{0};     ///< also, launched operations have ended or never will
  std::atomic<std::uint64_t> notices_lost{0};
  std::int64_t sync = 0;                   ///< from an awaited end to the wait's return, ns
  FakeRing<FakeLaunch, 4096> launches;
  Bell room;                               ///< launches were taken
  FakeRing<FakeNotice, 16384> starts;
  FakeRing<FakeNotice, 16384> ends;
  Bell news;                               ///< a start or an end was put into its ring
  std::atomic<std::uint32_t> waiting{0};   ///< host threads that wait for an end
  Bell end;                                ///< an operation has ended, or the GPU is quiet
  std::size_t streams_at = 0;              ///< offset in bytes from here
  std::size_t ops_at = 0;

  [[nodiscard]] std::span<FakeStream> streams();
  [[nodiscard]] std::span<FakeOp> ops();
};

struct FakeHeader {
  std::uint64_t magic = 0;
  std::size_t bytes = 0;                   ///< of the whole memory
  ProcessMark device;                      ///< the GPU's process; if it ends, the GPU has gone
  std::uint32_t job_count = 0;
  std::array<std::size_t, kMostGateClients> job_at{};  ///< offset in bytes from here
  Bell to_device;
  std::uint64_t memory = 0;                ///< bytes; 0: without limit
  std::atomic<std::uint64_t> memory_used{0};
};

/// The sizes of a job's part.
struct FakeJobSize {
  ClientId client;
  std::uint32_t ops = 0;
  std::uint32_t streams = 0;
};

class FakeSegment {
 public:
  /// Makes the segment; the object removes its name. At most kMostGateClients jobs.
  [[nodiscard]] static Result<std::unique_ptr<FakeSegment>> create(
      HostClock& clock, const std::vector<FakeJobSize>& jobs);
  /// Fault: there is no fake GPU of this name, or one of another version.
  [[nodiscard]] static Result<std::unique_ptr<FakeSegment>> open(const std::string& name);

  [[nodiscard]] const std::string& name() const { return memory_->name(); }
  [[nodiscard]] FakeHeader& header() const;
  /// The job at `index`, in the order of create().
  [[nodiscard]] FakeJobPart& job(std::size_t index) const;
  /// Null: the client has no job here.
  [[nodiscard]] FakeJobPart* find(ClientId client) const;

 private:
  explicit FakeSegment(std::unique_ptr<SharedSegment> memory) : memory_(std::move(memory)) {}

  std::unique_ptr<SharedSegment> memory_;
};

}  // namespace bubblesim::capture
