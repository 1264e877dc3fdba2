// libcupti.so.13 without a GPU: subscribes to the fake driver and writes its calls into activity
// buffers. The interface is NVIDIA's as far as the recorder uses it; FAKE_CUPTI says what goes
// wrong (fake_options.hpp). Without a driver in the process it answers 999, as NVIDIA's does.
#include <atomic>
#include <cstring>
#include <ctime>
#include <dlfcn.h>

#include "capture/record/cupti/abi.hpp"
#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/cupti/fake_activity.hpp"
#include "tests/fakes/cupti/fake_options.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {
namespace {

using cupti::Result;

/// Never destroyed: the recorder may flush at the very end of the process.
struct Cupti {
  Buffers buffers;
  Activity activity{buffers};
  std::atomic<cupti::Callback> callback{nullptr};
  std::atomic<bool> subscribed{false};
  std::atomic<bool> fatal_told{false};
};

Cupti& state() {
  static Cupti* const happening = new Cupti;
  return *happening;
}

cupti::Subscriber handle() { return reinterpret_cast<cupti::Subscriber>(&state()); }

void sleep_ms(std::uint64_t ms) {
  timespec left{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  while (ms > 0 && ::nanosleep(&left, &left) != 0) continue;
}

void tell_fatal() {
  const cupti::StateData data{Result::kUnknown, "the fake device fell off the bus"};
  if (const cupti::Callback callback = state().callback.load()) {
    callback(nullptr, cupti::kDomainState, cupti::kStateFatalError, &data);
  }
}

void tell_node(const Happening& happening) {
  cupti::GraphData graph{};
  graph.node = reinterpret_cast<void*>(happening.node);
  graph.original_node = reinterpret_cast<void*>(happening.copy_of);
  const cupti::ResourceData data{nullptr, nullptr, &graph};
  const bool copied = happening.what == What::kNodeCopied;
  if (const cupti::Callback callback = state().callback.load()) {
    callback(nullptr, cupti::kDomainResource,
             copied ? cupti::kResourceGraphNodeCloned : cupti::kResourceGraphNodeCreated, &data);
  }
}

void tell_value(const Happening& happening, std::uint32_t id) {
  cupti::StreamValueParameters parameters{};
  parameters.stream = reinterpret_cast<void*>(std::uint64_t{happening.stream});
  parameters.address = happening.address;
  parameters.value = static_cast<std::uint32_t>(happening.bytes);
  cupti::CallbackData data{};
  data.site = cupti::kSiteEnter;
  data.parameters = &parameters;
  data.context_id = 1;
  data.correlation = happening.correlation;
  if (const cupti::Callback callback = state().callback.load()) {
    callback(nullptr, cupti::kDomainDriver, id, &data);
  }
}

void on_happening(const Happening& happening) {
  if (happening.what == What::kWaitValue) tell_value(happening, kWaitValue32);
  if (happening.what == What::kWriteValue) tell_value(happening, kWriteValue32);
  if (happening.what == What::kNodeCreated || happening.what == What::kNodeCopied) {
    return tell_node(happening);
  }
  if (happening.what == What::kContextEnds) {
    if (const cupti::Callback callback = state().callback.load()) {
      callback(nullptr, cupti::kDomainResource, cupti::kResourceContextDestroyStarting, nullptr);
    }
    return;
  }
  state().activity.take(happening);
  const std::uint64_t fatal = options().number("fatal_after");
  if (fatal > 0 && state().activity.kernels() >= fatal && !state().fatal_told.exchange(true)) {
    tell_fatal();
  }
}

/// Asks the driver, which the process may not have.
bool trace(Tracer tracer) {
  using SetTracer = int (*)(Tracer);
  auto* set = reinterpret_cast<SetTracer>(::dlsym(RTLD_DEFAULT, "fake_cuda_set_tracer"));
  return set != nullptr && set(tracer) == 1;
}

Result subscribe(cupti::Subscriber* subscriber, cupti::Callback callback) {
  sleep_ms(options().number("subscribe_ms"));
  if (const auto code = options().number("subscribe"); code != 0) return static_cast<Result>(code);
  if (state().subscribed.exchange(true)) return Result::kMultipleSubscribers;
  if (!trace(nullptr)) {  // no driver, or not initialised
    state().subscribed.store(false);
    return Result::kUnknown;
  }
  state().callback.store(callback);
  *subscriber = handle();
  return Result::kSuccess;
}

Result set_kind(std::uint32_t kind, bool on) {
  if (!state().subscribed.load()) return Result::kNotInitialized;
  if (!on && options().has("stop_fails")) return Result::kInvalidOperation;
  if (on && options().has("fail_kind") && options().number("fail_kind") == kind) {
    return static_cast<Result>(options().number("fail_with", 14));
  }
  state().activity.enable(kind, on);
  // Kernels are what recorders enable last: who waits for a tracer misses nothing.
  if (kind == cupti::kKindConcurrentKernel) trace(on ? &on_happening : nullptr);
  return Result::kSuccess;
}

}  // namespace
}  // namespace fake

using fake::options, fake::state;
using fake::cupti::Result;
namespace cupti = bubblesim::capture::cupti;

FAKE_EXPORT Result cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiGetTimestamp(std::uint64_t* timestamp) {
  static const std::uint64_t began = fake::now_ns();
  *timestamp = fake::now_ns();
  if (*timestamp - began > 300'000'000) *timestamp += options().number("step_ms") * 1'000'000;
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiGetResultString(Result result, const char** text) {
  *text = result == Result::kMultipleSubscribers ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
          : result == Result::kUnknown           ? "CUPTI_ERROR_UNKNOWN"
                                                 : "CUPTI_ERROR_OF_THE_FAKE";
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiSubscribe(cupti::Subscriber* subscriber, cupti::Callback callback, void*) {
  return fake::subscribe(subscriber, callback);
}

FAKE_EXPORT Result cuptiSubscribe_v2(cupti::Subscriber* subscriber, cupti::Callback callback,
                                     void*, cupti::SubscriberParams* params) {
  const Result result = fake::subscribe(subscriber, callback);
  if (result == Result::kMultipleSubscribers && params->holder_size > 0) {
    const std::string holder = options().text("holder");
    std::strncpy(params->holder, holder.c_str(), params->holder_size - 1);
  }
  return result;
}

FAKE_EXPORT Result cuptiUnsubscribe(cupti::Subscriber subscriber) {
  if (subscriber != fake::handle()) return Result::kInvalidParameter;
  fake::trace(nullptr);
  state().callback.store(nullptr);
  for (std::uint32_t kind = 0; kind < fake::kKinds; ++kind) state().activity.enable(kind, false);
  state().subscribed.store(false);
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiEnableCallback(std::uint32_t, cupti::Subscriber, std::uint32_t,
                                       std::uint32_t) {
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiSetThreadIdType(std::uint32_t) { return Result::kSuccess; }

FAKE_EXPORT Result cuptiActivityRegisterCallbacks(cupti::BufferRequested requested,
                                                  cupti::BufferCompleted completed) {
  state().buffers.set_callbacks(requested, completed);
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiActivitySetAttribute(std::uint32_t, std::size_t*, void*) {
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiActivityEnable(std::uint32_t kind) { return fake::set_kind(kind, true); }

FAKE_EXPORT Result cuptiActivityEnableAndDump(std::uint32_t kind) {
  const Result result = fake::set_kind(kind, true);
  if (result == Result::kSuccess) state().activity.dump(kind);
  return result;
}

FAKE_EXPORT Result cuptiActivityDisable(std::uint32_t kind) { return fake::set_kind(kind, false); }

FAKE_EXPORT Result cuptiActivityEnableDriverApi(std::uint32_t, std::uint8_t) {
  return Result::kSuccess;
}

// Like NVIDIA's in a process that has a context: a call of a kind that is off stays unrecorded.
FAKE_EXPORT Result cuptiActivityEnableRuntimeApi(std::uint32_t id, std::uint8_t on) {
  return state().activity.enable_runtime_call(id, on != 0) ? Result::kSuccess
                                                           : Result::kInvalidParameter;
}

FAKE_EXPORT Result cuptiActivityEnableAllSyncRecords(std::uint8_t) { return Result::kSuccess; }

FAKE_EXPORT Result cuptiActivityFlushAll(std::uint32_t flag) {
  fake::sleep_ms(options().number("flush_ms"));
  state().buffers.flush(flag == cupti::kFlushForced);
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                              void** record) {
  using bubblesim::capture::kVersion13, bubblesim::capture::next_record;
  return next_record<kVersion13>(buffer, valid, record);
}

// A node's handle is its number.
FAKE_EXPORT Result cuptiGetGraphNodeId(void* node, std::uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return Result::kSuccess;
}

// A stream's handle is its number.
FAKE_EXPORT Result cuptiGetStreamIdEx(void*, void* stream, std::uint8_t, std::uint32_t* id) {
  *id = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(stream));
  return Result::kSuccess;
}

FAKE_EXPORT Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  *dropped = state().buffers.take_dropped();
  return Result::kSuccess;
}
