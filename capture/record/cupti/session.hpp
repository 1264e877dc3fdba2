// One recording session with CUPTI: subscribes, enables the recorded kinds, and undoes all of it.
//
// On an error, start() undoes its steps, in reverse order, and returns the error; the job goes on
// unchanged (research: XLA's error manager). Order of calls: session.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capture/record/cupti/api.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

enum class GraphDetail : std::uint8_t { kNode, kGraph };

struct SessionSettings {
  GraphDetail graphs = GraphDetail::kNode;
  bool memory = true;  ///< record allocations
  /// Kernels and the calls by which NCCL launches, and nothing else.
  bool light = false;
  /// The owner's buffers hold zeros when they are handed out: CUPTI need not clear them on the
  /// job's thread.
  bool zeroed_buffers = false;
};

struct StreamValue {
  std::uint32_t correlation = 0;  ///< of the call
  std::uint32_t context = 0, stream = 0;  ///< CUPTI's numbers
  std::uint64_t address = 0, value = 0;
  bool waits = false;
};

/// Its methods run on CUPTI's and the job's threads. They must not throw or block, and may call
/// CUPTI only where their comment says so.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  /// A buffer of `size` bytes, 8-byte aligned. Never nullptr: old CUPTIs crash on it, so an
  /// exhausted owner gives a buffer whose content it will discard and count.
  virtual std::uint8_t* buffer_wanted(std::size_t& size) noexcept = 0;
  /// Called once for each buffer that CUPTI returns. If a buffer is not returned by the end of
  /// stop(), the owner must never free it: CUPTI may still write into it.
  virtual void buffer_done(std::uint8_t* buffer, std::size_t valid) noexcept = 0;
  /// CUPTI dropped `count` records.
  virtual void records_dropped(std::uint64_t count) noexcept = 0;
  /// CUPTI reported an error from within; the session is of no more use and must be stopped.
  virtual void session_broken(const char* what) noexcept = 0;
  /// The job is about to destroy a context or reset its device: flush now or lose records.
  /// flush() of the session may be called here; stop() may not.
  virtual void context_ending() noexcept = 0;
  /// The calling thread has put a kernel into a graph (`copy_of` 0), or a graph's node was copied
  /// by instantiation. Both are CUPTI's numbers; kernel records have the copy's.
  virtual void graph_node(std::uint64_t node, std::uint64_t copy_of) noexcept = 0;
  /// The calling thread makes a stream wait for a value in memory, or write one.
  virtual void stream_value(const StreamValue& value) noexcept = 0;
};

class CuptiSession {
 public:
  /// `owner` outlives the session. One session a process at a time. An error names the failing
  /// call, CUPTI's word for it, and, where CUPTI knows, which other profiler holds it.
  [[nodiscard]] static Result<std::unique_ptr<CuptiSession>> start(const CuptiApi& api,
                                                              const SessionSettings& settings,
                                                              BufferOwner& owner);
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;
  /// Stops if stop() was not called.
  ~CuptiSession();

  /// Asks CUPTI for buffers whose records are complete. May call `owner`. False: CUPTI refused.
  bool flush() noexcept;
  /// CUPTI has buffers that it has not returned: the GPU may still run launched work. Before stop()
  /// an owner flushes until CUPTI has none, for disabling a kind loses its pending records. The
  /// owner must empty its buffers meanwhile: in a running job each flush takes one buffer of every
  /// thread, however little it holds. This count costs the job nothing, unlike a fence in its
  /// streams, and work that runs at the stop is half recorded either way.
  [[nodiscard]] bool holds_buffers() const noexcept;
  /// Flushes, disables everything, flushes until CUPTI holds no buffer (at most 1 s), then takes
  /// incomplete records too, unsubscribes. `exiting`: takes incomplete records at once, for they
  /// will never be complete. Idempotent; not from a callback. False: some step failed; the rest was
  /// done nevertheless.
  bool stop(bool exiting) noexcept;
  /// Settings that this CUPTI or driver refused, a sentence each.
  [[nodiscard]] const std::vector<std::string>& reduced() const;

 private:
  class State;
  explicit CuptiSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bubblesim::capture
