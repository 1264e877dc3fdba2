// A CUPTI test double: it logs every call, fails where the test says, keeps and returns buffers.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/session.hpp"

namespace bubblesim::capture {

/// At most one exists at a time: the functions of the C interface find it through a global.
class CuptiDouble {
 public:
  CuptiDouble();
  CuptiDouble(const CuptiDouble&) = delete;
  CuptiDouble& operator=(const CuptiDouble&) = delete;
  ~CuptiDouble();

  CuptiApi api;

  // Settings, written by the test.
  std::map<std::string, cupti::Result> refuses;  ///< by call, spelled as in `calls`
  std::size_t fail_at = 0;            ///< the call of this number, from 1, fails
  std::string holder;                 ///< not empty: another subscriber has CUPTI
  std::atomic<std::size_t> dropped{0};  ///< dropped records; the first query resets it
  bool keeps_buffers = false;         ///< flushes return nothing
  bool keeps_incomplete = false;      ///< only forced flushes return buffers

  // Observations, read by the test.
  std::vector<std::string> calls;
  std::set<std::string> enabled;  ///< the calls that switched on what is on, without "+"
  std::map<std::uint32_t, std::set<std::uint32_t>> left_out;  ///< ids switched off, by kind
  bool subscribed = false;
  cupti::BufferRequested requested = nullptr;
  cupti::BufferCompleted completed = nullptr;
  cupti::Callback callback = nullptr;
  std::vector<std::uint8_t*> held;  ///< buffers

  /// Requests a buffer, as CUPTI does at a thread's first record.
  std::uint8_t* ask_for_buffer() {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t records = 1;
    requested(&buffer, &size, &records);
    if (buffer != nullptr) held.push_back(buffer);
    return buffer;
  }
  void return_buffers(std::size_t valid) {
    for (std::uint8_t* const buffer : std::exchange(held, {}))
      completed(nullptr, 0, buffer, 64, valid);
  }
  cupti::Result note(const std::string& call) {
    calls.push_back(call);
    if (const auto found = refuses.find(call); found != refuses.end()) return found->second;
    return calls.size() == fail_at ? cupti::Result::kUnknown : cupti::Result::kSuccess;
  }
  cupti::Result set(const std::string& what, bool on) {
    const cupti::Result result = note((on ? "+" : "-") + what);
    if (result != cupti::Result::kSuccess) return result;
    if (on)
      enabled.insert(what);
    else
      enabled.erase(what);
    return result;
  }
  cupti::Result set_call(std::uint32_t kind, const std::string& library, std::uint32_t id,
                         bool on) {
    const cupti::Result result = note((on ? "+" : "-") + library + std::to_string(id));
    if (result != cupti::Result::kSuccess) return result;
    if (on)
      left_out[kind].erase(id);
    else
      left_out[kind].insert(id);
    return result;
  }
  /// As NVIDIA's CUPTI in a process whose context is older than the subscription: calls are
  /// recorded while their kind is on, except for ids that were switched off since.
  [[nodiscard]] bool records_call(std::uint32_t kind, std::uint32_t id) const {
    if (!enabled.contains("kind " + std::to_string(kind))) return false;
    const auto found = left_out.find(kind);
    return found == left_out.end() || !found->second.contains(id);
  }
};

/// An owner that counts requests and hands out a buffer of 64 bytes.
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
