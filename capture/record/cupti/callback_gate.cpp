#include "capture/record/cupti/callback_gate.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace bubblesim::capture {
namespace {

constexpr std::size_t kWasteBytes = std::size_t{64} * 1024;
constexpr std::chrono::milliseconds kShutLimit{2000};

std::atomic<CallbackTarget*> gate{nullptr};
std::atomic<std::int64_t> inside{0};

/// Counts its holder as inside, then checks that the gate is open. shut_gate() does the same two
/// steps in reverse order; both need the total order of seq_cst. A callback that finds the gate
/// shut leaves at once, so that late callbacks do not delay shut_gate().
class CallbackPassage {
 public:
  CallbackPassage() noexcept {
    inside.fetch_add(1);
    target_ = gate.load();
    if (target_ == nullptr) inside.fetch_sub(1);
  }
  CallbackPassage(const CallbackPassage&) = delete;
  CallbackPassage& operator=(const CallbackPassage&) = delete;
  ~CallbackPassage() {
    if (target_ != nullptr) inside.fetch_sub(1);
  }
  [[nodiscard]] CallbackTarget* target() const { return target_; }

 private:
  CallbackTarget* target_;
};

/// A buffer whose records are not read. A few are kept and reused: CUPTI requests one when it is
/// late after a session, so the first such request is rare.
struct WasteBuffer {
  std::atomic<bool> taken{false};
  std::atomic<std::uint8_t*> memory{nullptr};
};
std::array<WasteBuffer, 8> waste;

std::uint8_t* take_waste() noexcept {
  for (WasteBuffer& buffer : waste) {
    if (buffer.taken.exchange(true)) continue;
    if (buffer.memory.load() == nullptr)
      buffer.memory.store(static_cast<std::uint8_t*>(std::calloc(1, kWasteBytes)));
    return buffer.memory.load();
  }
  return static_cast<std::uint8_t*>(std::calloc(1, kWasteBytes));  // lost: see give_back_waste
}

/// True: the buffer was one. An unknown buffer may belong to an owner whose session is over, so it
/// is never freed.
bool give_back_waste(const std::uint8_t* memory) noexcept {
  for (WasteBuffer& buffer : waste) {
    if (memory == nullptr || buffer.memory.load() != memory) continue;
    buffer.taken.store(false);
    return true;
  }
  return false;
}

void report_dropped(CallbackTarget& target, void* context, std::uint32_t stream) noexcept {
  if (target.api.get_dropped_records == nullptr) return;
  std::size_t dropped = 0;
  const auto result = target.api.get_dropped_records(context, stream, &dropped);
  if (result == cupti::Result::kSuccess && dropped > 0) target.owner.records_dropped(dropped);
}

bool ends_context(std::uint32_t domain, std::uint32_t id, const void* data) noexcept {
  if (domain == cupti::kDomainResource) return id == cupti::kResourceContextDestroyStarting;
  const bool reset = (domain == cupti::kDomainRuntime && id == cupti::kRuntimeDeviceReset) ||
                     (domain == cupti::kDomainDriver &&
                      (id == cupti::kDriverPrimaryContextReset ||
                       id == cupti::kDriverPrimaryContextResetV2));
  return reset && data != nullptr &&
         static_cast<const cupti::CallbackData*>(data)->site == cupti::kSiteEnter;
}

void tell_graph_node(CallbackTarget& target, std::uint32_t id, const void* data) noexcept {
  const auto* const resource = static_cast<const cupti::ResourceData*>(data);
  const auto number = target.api.get_graph_node_id;
  if (resource == nullptr || resource->descriptor == nullptr || number == nullptr) return;
  const auto& graph = *static_cast<const cupti::GraphData*>(resource->descriptor);
  const bool copied = id == cupti::kResourceGraphNodeCloned;
  if (!copied && graph.node_type != cupti::kGraphNodeKernel) return;
  std::uint64_t node = 0, original = 0;
  bool good = number(graph.node, &node) == cupti::Result::kSuccess;
  if (copied) good = good && number(graph.original_node, &original) == cupti::Result::kSuccess;
  if (good && copied == (original != 0)) target.owner.graph_node(node, original);
}

void tell_stream_values(CallbackTarget& target, const cupti::StreamValueCall& call,
                        bool per_thread, const cupti::CallbackData& data) noexcept {
  const auto& one = *static_cast<const cupti::StreamValueParameters*>(data.parameters);
  const auto& batch = *static_cast<const cupti::BatchParameters*>(data.parameters);
  StreamValue value{data.correlation, data.context_id};
  const auto number = target.api.get_stream_id;
  if (number == nullptr || number(data.context, one.stream, per_thread ? 1 : 0, &value.stream) !=
                               cupti::Result::kSuccess)
    return;
  const auto tell = [&](std::uint64_t address, std::uint64_t held, bool waits) {
    value.address = address, value.value = held, value.waits = waits;
    target.owner.stream_value(value);
  };
  const bool one_waits = call.does == cupti::ValueCall::kWait;
  if (call.does != cupti::ValueCall::kBatch) return tell(one.address, one.value, one_waits);
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const cupti::BatchOperation& it = batch.operations[i];
    const bool waits = it.operation == 1 || it.operation == 4;
    if (waits || it.operation == 2 || it.operation == 5) tell(it.address, it.value, waits);
  }
}

/// False: the callback is for another call.
bool is_stream_value(CallbackTarget& target, std::uint32_t domain, std::uint32_t id,
                     const void* data) noexcept {
  if (domain != cupti::kDomainDriver || data == nullptr) return false;
  for (const cupti::StreamValueCall& call : cupti::kStreamValueCalls) {
    if (id != call.id && id != call.id + 1) continue;
    const auto& made = *static_cast<const cupti::CallbackData*>(data);
    if (made.site == cupti::kSiteEnter) tell_stream_values(target, call, id != call.id, made);
    return true;
  }
  return false;
}

bool is_graph_node(std::uint32_t domain, std::uint32_t id) noexcept {
  return domain == cupti::kDomainResource && (id == cupti::kResourceGraphNodeCreated ||
                                              id == cupti::kResourceGraphNodeCloned);
}

}  // namespace

bool open_gate(CallbackTarget& target) noexcept {
  CallbackTarget* shut = nullptr;
  return gate.compare_exchange_strong(shut, &target);
}

bool shut_gate(CallbackTarget& target) noexcept {
  CallbackTarget* open = &target;
  if (!gate.compare_exchange_strong(open, nullptr)) return true;
  const auto limit = std::chrono::steady_clock::now() + kShutLimit;
  while (inside.load() != 0) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  return true;
}

void on_buffer_requested(std::uint8_t** buffer, std::size_t* size,
                         std::size_t* max_records) noexcept {
  const CallbackPassage passage;
  *max_records = 0;  // as many as fit
  if (CallbackTarget* const target = passage.target()) {
    target->buffers_out.fetch_add(1);
    *buffer = target->owner.buffer_wanted(*size);
    return;
  }
  *buffer = take_waste();
  *size = *buffer == nullptr ? 0 : kWasteBytes;
}

void on_buffer_completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                         std::size_t /*size*/, std::size_t valid) noexcept {
  const CallbackPassage passage;
  CallbackTarget* const target = passage.target();
  if (give_back_waste(buffer) || target == nullptr) return;
  target->buffers_out.fetch_sub(1);
  target->owner.buffer_done(buffer, valid);
  // After the buffer was passed on, and under no lock of ours: CUPTI takes its own.
  report_dropped(*target, context, stream);
}

void on_callback(void* /*user*/, std::uint32_t domain, std::uint32_t id,
                 const void* data) noexcept {
  const CallbackPassage passage;
  CallbackTarget* const target = passage.target();
  if (target == nullptr) return;
  if (domain == cupti::kDomainState && id == cupti::kStateFatalError) {
    const auto* const state = static_cast<const cupti::StateData*>(data);
    const bool says = state != nullptr && state->message != nullptr;
    target->owner.session_broken(says ? state->message : "CUPTI reports a fatal error");
  } else if (is_graph_node(domain, id)) {
    tell_graph_node(*target, id, data);
  } else if (!is_stream_value(*target, domain, id, data) && ends_context(domain, id, data)) {
    target->owner.context_ending();
  }
}

}  // namespace bubblesim::capture
