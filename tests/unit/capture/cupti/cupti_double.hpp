// A CUPTI of the test's: notes every call, fails where it is told to, keeps and returns buffers.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/session.hpp"

namespace bubblesim::capture {

/// One at a time: functions of a C interface need a place to find it.
class CuptiDouble {
 public:
  CuptiDouble();
  CuptiDouble(const CuptiDouble&) = delete;
  CuptiDouble& operator=(const CuptiDouble&) = delete;
  ~CuptiDouble();

  CuptiApi api;

  // What the test sets.
  std::map<std::string, cupti::Result> refuses;  ///< by call, as `calls` has it
  std::size_t fail_at = 0;            ///< the call of this number, from 1, fails
  std::string holder;                 ///< not empty: another subscriber has CUPTI
  std::atomic<std::size_t> dropped{0};  ///< answered once
  bool keeps_buffers = false;         ///< flushes return nothing
  bool keeps_incomplete = false;      ///< only forced flushes return buffers

  // What the test looks at.
  std::vector<std::string> calls;
  std::set<std::string> enabled;  ///< calls of what is on, without "+"
  std::map<std::uint32_t, std::set<std::uint32_t>> left_out;  ///< numbers of calls, by kind
  bool subscribed = false;
  cupti::BufferRequested requested = nullptr;
  cupti::BufferCompleted completed = nullptr;
  cupti::Callback callback = nullptr;
  std::vector<std::uint8_t*> held;  ///< buffers

  /// CUPTI needs a buffer, as it does at a first record.
  std::uint8_t* ask_for_buffer();
  void return_buffers(std::size_t valid);
  cupti::Result note(const std::string& call);
  cupti::Result set(const std::string& what, bool on);
  cupti::Result set_call(std::uint32_t kind, const std::string& library, std::uint32_t id, bool on);
  /// As NVIDIA's does in a process whose context was made before: calls are recorded while their
  /// kind is on, save for those that were switched off since.
  [[nodiscard]] bool records_call(std::uint32_t kind, std::uint32_t id) const;
};

/// An owner that counts; its buffers are of 64 bytes.
class OwnerDouble : public BufferOwner {
 public:
  std::uint8_t* buffer_wanted(std::size_t& size) noexcept override {
    ++wanted;
    size = sizeof(memory);
    return memory;
  }
  void buffer_done(std::uint8_t*, std::size_t valid) noexcept override {
    ++done;
    last_valid = valid;
  }
  void records_dropped(std::uint64_t count) noexcept override { dropped += count; }
  void session_broken(const char* what) noexcept override { broken = what; }
  void context_ending() noexcept override {
    ++endings;
    if (session != nullptr) session->flush();
  }

  void graph_node(std::uint64_t, std::uint64_t) noexcept override {}
  void stream_value(const StreamValue& value) noexcept override { values.push_back(value); }
  std::vector<StreamValue> values;

  alignas(8) std::uint8_t memory[64] = {};
  std::atomic<int> wanted{0};
  std::atomic<int> done{0};
  std::atomic<int> endings{0};
  std::atomic<std::size_t> last_valid{0};
  std::uint64_t dropped = 0;
  std::string broken;
  CuptiSession* session = nullptr;
};

}  // namespace bubblesim::capture
