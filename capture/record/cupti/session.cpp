#include "capture/record/cupti/session.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/callback_gate.hpp"
#include "capture/record/cupti/traced_calls.hpp"

namespace bubblesim::capture {
namespace {

// ---- The meaning of a refusal by CUPTI, in words for the user who asked for the recording.

std::string held_text(std::string_view holder) {
  if (holder.empty()) {
    return "another profiler (Nsight Systems, torch.profiler, a debugger) has CUPTI in this "
           "process; it was left alone";
  }
  return fmt::format("{} has CUPTI in this process; it was left alone", holder);
}

/// Empty: CUPTI's own word is enough.
std::string advice(cupti::Result result, std::string_view holder) {
  switch (result) {
    case cupti::Result::kMultipleSubscribers:
      return held_text(holder);
    case cupti::Result::kInsufficientPrivileges:
    case cupti::Result::kVirtualizedDevicePrivileges:
      return "the driver does not allow this user to profile; its administrator can "
             "(NVreg_RestrictProfilingToAdminUsers=0)";
    case cupti::Result::kVirtualizedDevice:
      return "this virtual GPU does not support profiling";
    case cupti::Result::kNotInitialized:
    case cupti::Result::kUnknown:
      return "CUPTI could not start; is there a driver, and does it know this CUPTI?";
    default:
      return {};
  }
}

// CUPTI's name of the result with its number, and advice. `holder`: the tool that has CUPTI, as far
// as CUPTI tells; empty: unknown.
std::string failure_text(const CuptiApi& api, cupti::Result result, std::string_view holder = {}) {
  const char* name = nullptr;
  if (api.get_result_string != nullptr) api.get_result_string(result, &name);
  const std::string word = fmt::format("{} ({})", name != nullptr ? name : "failed",
                                       static_cast<std::uint32_t>(result));
  const std::string more = advice(result, holder);
  return more.empty() ? word : word + ": " + more;
}

// Whether the result means that this CUPTI or driver lacks a feature. Others are faults.
bool is_refusal(cupti::Result result) {
  switch (result) {
    case cupti::Result::kInvalidParameter:
    case cupti::Result::kInvalidOperation:
    case cupti::Result::kNotImplemented:
    case cupti::Result::kNotCompatible:
    case cupti::Result::kInvalidKind:
    case cupti::Result::kNotSupported:
      return true;
    default:
      return false;
  }
}

/// How long CUPTI may keep buffers after all kinds are disabled.
constexpr std::chrono::milliseconds kBuffersLimit{1000};
constexpr std::chrono::milliseconds kBetweenFlushes{5};

/// A kind that is enabled, and what a recording lacks without it; nullptr: nothing.
struct WantedKind {
  std::uint32_t kind;
  const char* name;
  const char* lacks;
};

/// Kinds whose present state CUPTI records at once, for recordings that begin late.
constexpr std::array kDumped{
    WantedKind{cupti::kKindDevice, "DEVICE", "the GPU is not described"},
    WantedKind{cupti::kKindContext, "CONTEXT", "streams may be said to be of the wrong GPU"},
    WantedKind{cupti::kKindStream, "STREAM", "priorities of streams are not known"},
};

constexpr std::array kKinds{
    WantedKind{cupti::kKindMemcpy, "MEMCPY", nullptr},
    WantedKind{cupti::kKindMemcpyPeer, "MEMCPY2", "copies between GPUs are not recorded"},
    WantedKind{cupti::kKindMemset, "MEMSET", nullptr},
    WantedKind{cupti::kKindSynchronization, "SYNCHRONIZATION",
               "waits of streams for one another are not known"},
    WantedKind{cupti::kKindCudaEvent, "CUDA_EVENT",
               "waits of streams for one another are not known"},
    WantedKind{cupti::kKindOverhead, "OVERHEAD",
               "neither a full launch queue nor the profiler's own time is recorded"},
};
constexpr WantedKind kMemory{cupti::kKindMemory2, "MEMORY2", "allocations are not recorded"};
constexpr WantedKind kGraphs{cupti::kKindGraphTrace, "GRAPH_TRACE",
                             "CUDA graphs are recorded node by node"};
/// Last: from here on the job's kernels are instrumented.
constexpr WantedKind kKernels{cupti::kKindConcurrentKernel, "CONCURRENT_KERNEL", nullptr};

}  // namespace

/// The kinds and callbacks that a session has enabled in CUPTI, to be disabled in reverse order.
class EnabledSet {
 public:
  explicit EnabledSet(const CuptiApi& api) : api_(api) {}
  EnabledSet(const EnabledSet&) = delete;
  EnabledSet& operator=(const EnabledSet&) = delete;

  [[nodiscard]] cupti::Result callback(cupti::Subscriber subscriber, std::uint32_t domain,
                                       std::uint32_t id) {
    if (api_.enable_callback == nullptr) return cupti::Result::kNotImplemented;
    return keep(api_.enable_callback(1, subscriber, domain, id), {id, domain, subscriber});
  }
  [[nodiscard]] cupti::Result kind(std::uint32_t wanted) {
    return keep(api_.enable(wanted), {wanted});
  }
  /// Enables like kind(), and CUPTI writes records of what exists already. Without such a
  /// function: kind().
  [[nodiscard]] cupti::Result kind_and_dump(std::uint32_t wanted) {
    if (api_.enable_and_dump == nullptr) return kind(wanted);
    return keep(api_.enable_and_dump(wanted), {wanted});
  }
  [[nodiscard]] bool records_anything() const { return records_; }

  /// False: CUPTI refused some of it; the rest is disabled.
  bool switch_off() noexcept {
    bool all = true;
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
      all &= off(*entry) == cupti::Result::kSuccess;
    entries_.clear();
    records_ = false;
    return all;
  }

 private:
  struct Entry {
    std::uint32_t id = 0;
    std::uint32_t domain = 0;
    cupti::Subscriber subscriber = nullptr;  ///< of a callback; null: the entry is a kind
  };
  cupti::Result keep(cupti::Result result, const Entry& entry) {
    if (result != cupti::Result::kSuccess) return result;
    entries_.push_back(entry);
    records_ |= entry.subscriber == nullptr;
    return result;
  }
  [[nodiscard]] cupti::Result off(const Entry& entry) const noexcept {
    if (entry.subscriber == nullptr) return api_.disable(entry.id);
    return api_.enable_callback(0, entry.subscriber, entry.domain, entry.id);
  }

  const CuptiApi& api_;
  std::vector<Entry> entries_;
  bool records_ = false;
};

class CuptiSession::State {
 public:
  State(const CuptiApi& api, const SessionSettings& settings, BufferOwner& owner)
      : api_(api), settings_(settings), target_{api, owner}, enabled_(api) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> start() {
    if (!open_gate(target_)) return fail("a recording of this process is under way already");
    gate_shut_ = false;
    Result<void> result = subscribe();
    if (result) result = enable_all();
    if (!result) undo();
    return result;
  }
  bool flush(std::uint32_t flag) noexcept {
    return !stopped_.load() && api_.flush_all(flag) == cupti::Result::kSuccess;
  }
  bool stop(bool exiting) noexcept {
    if (stopped_.exchange(true)) return true;
    if (!enabled_.records_anything()) {
      undo();
      return gate_shut_;
    }
    bool good = api_.flush_all(cupti::kFlushComplete) == cupti::Result::kSuccess;
    good &= enabled_.switch_off();
    good &= exiting ? api_.flush_all(cupti::kFlushForced) == cupti::Result::kSuccess
                    : take_buffers();
    good &= restore_settings();
    good &= api_.unsubscribe(subscriber_) == cupti::Result::kSuccess;
    gate_shut_ = shut_gate(target_);
    return good && gate_shut_;
  }
  [[nodiscard]] bool holds_buffers() const noexcept { return target_.buffers_out.load() > 0; }
  /// Whether memory that callbacks use may be freed.
  [[nodiscard]] bool gate_is_shut() const { return gate_shut_; }
  [[nodiscard]] const std::vector<std::string>& reduced() const { return reduced_; }

 private:
  Result<void> subscribe() {
    if (api_.subscribe_v2 == nullptr) {
      const auto result = api_.subscribe(&subscriber_, on_callback, nullptr);
      if (result == cupti::Result::kSuccess) return {};
      subscriber_ = nullptr;
      return failed("cuptiSubscribe", result);
    }
    std::array<char, cupti::kHolderBytes + 1> holder{};
    cupti::SubscriberParams params{sizeof(cupti::SubscriberParams), "bubblesim", holder.data(),
                                   cupti::kHolderBytes};
    const auto result = api_.subscribe_v2(&subscriber_, on_callback, nullptr, &params);
    if (result == cupti::Result::kSuccess) return {};
    subscriber_ = nullptr;
    return failed("cuptiSubscribe_v2", result, holder.data());
  }
  Result<void> enable_all() {
    BUBBLESIM_RETURN_IF_ERROR(listen());
    BUBBLESIM_RETURN_IF_ERROR(set_up());
    for (const WantedKind& wanted : kDumped)
      BUBBLESIM_RETURN_IF_ERROR(enable(wanted, enabled_.kind_and_dump(wanted.kind)));
    BUBBLESIM_RETURN_IF_ERROR(enable_calls());
    if (!settings_.light) BUBBLESIM_RETURN_IF_ERROR(enable_rest());
    if (settings_.graphs == GraphDetail::kGraph)
      BUBBLESIM_RETURN_IF_ERROR(enable(kGraphs, enabled_.kind(kGraphs.kind)));
    return enable(kKernels, enabled_.kind(kKernels.kind));
  }
  /// Enables all kinds except kernels and calls.
  Result<void> enable_rest() {
    for (const WantedKind& wanted : kKinds)
      BUBBLESIM_RETURN_IF_ERROR(enable(wanted, enabled_.kind(wanted.kind)));
    return settings_.memory ? enable(kMemory, enabled_.kind(kMemory.kind)) : Result<void>{};
  }
  /// The settings that must precede all kinds.
  Result<void> set_up() {
    const auto threads = api_.set_thread_id_type != nullptr
                             ? api_.set_thread_id_type(cupti::kThreadIdSystem)
                             : cupti::Result::kNotImplemented;
    BUBBLESIM_RETURN_IF_ERROR(optional("cuptiSetThreadIdType", threads,
                                       "threads of calls and of ranges have different numbers"));
    const auto callbacks = api_.register_callbacks(on_buffer_requested, on_buffer_completed);
    if (callbacks != cupti::Result::kSuccess)
      return failed("cuptiActivityRegisterCallbacks", callbacks);
    if (settings_.zeroed_buffers)
      BUBBLESIM_RETURN_IF_ERROR(optional("cuptiActivitySetAttribute", set_zeroed(1), nullptr));
    if (api_.enable_all_sync_records == nullptr) return {};
    // PyTorch queries again and again whether an event is reached: those records are of no use.
    return optional("cuptiActivityEnableAllSyncRecords", api_.enable_all_sync_records(0), nullptr);
  }
  /// Enables callbacks for the ends of contexts and for CUPTI's own failures.
  Result<void> listen() {
    struct Heard {
      std::uint32_t domain, id;
      const char* call;
      const char* lacks;
    };
    constexpr const char* kOfGraphs = "collectives in CUDA graphs are known by their kernels alone";
    constexpr const char* kAtReset = "what is pending at cudaDeviceReset may be lost";
    static constexpr std::array kHeard{
        Heard{cupti::kDomainState, cupti::kStateFatalError, "cuptiEnableCallback(STATE)",
              "failures of CUPTI itself go unnoticed"},
        Heard{cupti::kDomainResource, cupti::kResourceContextDestroyStarting,
              "cuptiEnableCallback(RESOURCE)", "what is pending when a context ends may be lost"},
        Heard{cupti::kDomainResource, cupti::kResourceGraphNodeCreated,
              "cuptiEnableCallback(GRAPHNODE_CREATED)", kOfGraphs},
        Heard{cupti::kDomainResource, cupti::kResourceGraphNodeCloned,
              "cuptiEnableCallback(GRAPHNODE_CLONED)", kOfGraphs},
        Heard{cupti::kDomainRuntime, cupti::kRuntimeDeviceReset, "cuptiEnableCallback(RUNTIME_API)",
              kAtReset},
        Heard{cupti::kDomainDriver, cupti::kDriverPrimaryContextReset,
              "cuptiEnableCallback(DRIVER_API)", nullptr},
        Heard{cupti::kDomainDriver, cupti::kDriverPrimaryContextResetV2,
              "cuptiEnableCallback(DRIVER_API)", nullptr},
    };
    for (const Heard& heard : kHeard) {
      const auto result = enabled_.callback(subscriber_, heard.domain, heard.id);
      BUBBLESIM_RETURN_IF_ERROR(optional(heard.call, result, heard.lacks));
    }
    for (const cupti::StreamValueCall& call : cupti::kStreamValueCalls) {
      if (settings_.light) break;
      for (const std::uint32_t id : {call.id, call.id + 1})
        BUBBLESIM_RETURN_IF_ERROR(
            optional("cuptiEnableCallback(DRIVER_API)",
                     enabled_.callback(subscriber_, cupti::kDomainDriver, id), nullptr));
    }
    return {};
  }
  Result<void> enable_calls() {
    if (settings_.light) {
      reduced_.push_back(
          "light: kernels and the launches of NCCL alone; other calls, copies, waits and memory "
          "are not recorded, so a replay knows no host");
      return enable_calls({cupti::kKindDriver, "DRIVER", nullptr}, traced_nccl_launches(),
                          api_.enable_driver_api);
    }
    BUBBLESIM_RETURN_IF_ERROR(enable_calls({cupti::kKindRuntime, "RUNTIME", nullptr},
                                           traced_runtime_calls(), api_.enable_runtime_api));
    return enable_calls({cupti::kKindDriver, "DRIVER", nullptr}, traced_driver_calls(),
                        api_.enable_driver_api);
  }
  using EnableCall = decltype(CuptiApi::enable_runtime_api);
  /// The whole kind first, then without the calls that nothing needs. The other way, with only the
  /// wanted calls switched on, CUPTI (CUDA 13.0) records nothing at all in a process whose context
  /// was made before. A number that CUPTI refuses costs a few more records, which decoding counts;
  /// it is no fault.
  Result<void> enable_calls(const WantedKind& whole, std::span<const TracedCall> wanted,
                            EnableCall enable_call) {
    BUBBLESIM_RETURN_IF_ERROR(enable(whole, enabled_.kind(whole.kind)));
    bool left_out = false;
    auto next = wanted.begin();
    for (std::uint32_t id = 1; enable_call != nullptr && id < kCallNumbers; ++id) {
      if (next != wanted.end() && next->id == id) ++next;
      else left_out |= enable_call(id, 0) == cupti::Result::kSuccess;
    }
    if (!left_out) {
      reduced_.push_back(fmt::format(
          "{}: this CUPTI cannot leave single calls out; all of them are recorded, which costs "
          "more",
          whole.name));
    }
    return {};
  }
  Result<void> enable(const WantedKind& wanted, cupti::Result result) {
    const std::string call = fmt::format("cuptiActivityEnable({})", wanted.name);
    if (wanted.lacks != nullptr) return optional(call.c_str(), result, wanted.lacks);
    if (result != cupti::Result::kSuccess) return failed(call, result);
    return {};
  }
  /// An option of the session: a feature that CUPTI lacks is left out; other errors end the
  /// session.
  Result<void> optional(const char* call, cupti::Result result, const char* lacks) {
    if (result == cupti::Result::kSuccess) return {};
    if (!is_refusal(result)) return failed(call, result);
    if (lacks != nullptr) {
      const std::string word = result == cupti::Result::kNotImplemented
                                   ? "this CUPTI cannot do it"
                                   : failure_text(api_, result);
      reduced_.push_back(fmt::format("{}: {}; {}", call, word, lacks));
    }
    return {};
  }
  tl::unexpected<Error> failed(const std::string& call, cupti::Result result,
                               std::string_view holder = {}) const {
    return fail(api_.path, call, failure_text(api_, result, holder));
  }
  cupti::Result set_zeroed(std::uint8_t enabled) const noexcept {
    if (api_.set_attribute == nullptr) return cupti::Result::kNotImplemented;
    std::size_t size = sizeof(enabled);
    return api_.set_attribute(cupti::kAttributeZeroedBuffers, &size, &enabled);
  }
  /// After a failed start. CUPTI is only flushed if it records: a flush of a CUPTI that never
  /// began can hang.
  void undo() noexcept {
    stopped_.store(true);
    const bool recorded = enabled_.records_anything();
    enabled_.switch_off();
    if (recorded) take_buffers();
    if (subscriber_ != nullptr) {
      restore_settings();
      api_.unsubscribe(subscriber_);
    }
    gate_shut_ = shut_gate(target_);
  }
  /// Waits until CUPTI has returned every buffer, at most to the limit. False: CUPTI refused.
  bool await_buffers() noexcept {
    const auto limit = std::chrono::steady_clock::now() + kBuffersLimit;
    bool flushed = api_.flush_all(cupti::kFlushComplete) == cupti::Result::kSuccess;
    while (flushed && holds_buffers()) {
      if (std::chrono::steady_clock::now() > limit) break;
      std::this_thread::sleep_for(kBetweenFlushes);
      flushed = api_.flush_all(cupti::kFlushComplete) == cupti::Result::kSuccess;
    }
    return flushed;
  }
  /// After this CUPTI writes to no buffer. One record without an end keeps back its whole buffer,
  /// which may hold all of a short recording: buffers left at the limit are taken as they are.
  bool take_buffers() noexcept {
    if (!await_buffers()) return false;
    if (!holds_buffers()) return true;
    return api_.flush_all(cupti::kFlushForced) == cupti::Result::kSuccess;
  }
  /// Restores CUPTI's first settings: the next profiler of the process relies on them, and would
  /// read garbage from buffers that are declared to be zeroed.
  bool restore_settings() const noexcept {
    bool good = true;
    const auto needs = [&good](cupti::Result result) {
      good &= result == cupti::Result::kSuccess || is_refusal(result);
    };
    if (api_.enable_all_sync_records != nullptr) needs(api_.enable_all_sync_records(1));
    if (settings_.zeroed_buffers) needs(set_zeroed(0));
    if (api_.set_thread_id_type != nullptr) needs(api_.set_thread_id_type(cupti::kThreadIdDefault));
    return good;
  }

  const CuptiApi& api_;
  const SessionSettings settings_;
  CallbackTarget target_;
  EnabledSet enabled_;
  cupti::Subscriber subscriber_ = nullptr;
  std::vector<std::string> reduced_;
  std::atomic<bool> stopped_{false};
  bool gate_shut_ = true;
};

CuptiSession::CuptiSession(std::unique_ptr<State> state) : state_(std::move(state)) {}

CuptiSession::~CuptiSession() {
  stop(false);
  // A callback that never returned still uses the state: it is leaked, not freed.
  if (!state_->gate_is_shut()) static_cast<void>(state_.release());
}

Result<std::unique_ptr<CuptiSession>> CuptiSession::start(const CuptiApi& api,
                                                const SessionSettings& settings,
                                                BufferOwner& owner) {
  std::unique_ptr<CuptiSession> session(
      new CuptiSession(std::make_unique<State>(api, settings, owner)));
  BUBBLESIM_RETURN_IF_ERROR(session->state_->start());
  return session;
}

bool CuptiSession::flush() noexcept { return state_->flush(cupti::kFlushComplete); }
bool CuptiSession::holds_buffers() const noexcept { return state_->holds_buffers(); }
bool CuptiSession::stop(bool exiting) noexcept { return state_->stop(exiting); }
const std::vector<std::string>& CuptiSession::reduced() const { return state_->reduced(); }

}  // namespace bubblesim::capture
