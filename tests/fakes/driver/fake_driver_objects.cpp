// Memory, copies and memsets; streams, events and green contexts; capture of streams, and graphs.
// Small allocations are real; large ones are addresses that nobody looks behind.
#include <algorithm>
#include <cstring>

#include "tests/fakes/driver/fake_driver_state.hpp"

using namespace fake_driver;
using abi::DevicePointer, abi::Status;

namespace {

constexpr std::uint64_t kReal = 1 << 20;

/// The real memory behind an address; null: there is none.
bool is_real(const State& all, DevicePointer memory) {
  auto after = all.memory.upper_bound(memory);
  if (after == all.memory.begin()) return false;
  const auto& [address, one] = *std::prev(after);
  return one.second != nullptr && memory < address + one.first;
}

Status copy(State& all, std::size_t bytes, abi::StreamHandle stream, const char* name) {
  Work work;
  work.shown.name = name;
  work.shown.bytes = bytes;
  const auto lasts = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes) / kBytesPerNs);
  work.duration = [lasts] { return lasts; };
  put(all, stream_of(all, stream), std::move(work));
  return Status::kSuccess;
}

}  // namespace

FAKE_CALL cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  FAKE_ENTER("cuMemGetInfo_v2");
  *total = kMemory;
  *free = kMemory - all.bytes_held();
  return Status::kSuccess;
}
FAKE_CALL cuMemAlloc_v2(DevicePointer* memory, std::size_t bytes) {
  FAKE_ENTER("cuMemAlloc_v2");
  if (all.bytes_held() + bytes > kMemory) return Status::kOutOfMemory;
  std::unique_ptr<char[]> real;
  if (bytes <= kReal) real = std::make_unique<char[]>(bytes + 16);
  *memory = real ? reinterpret_cast<DevicePointer>(real.get()) : all.next_address;
  if (!real) all.next_address += bytes;
  all.memory[*memory] = {bytes, std::move(real)};
  return Status::kSuccess;
}
FAKE_CALL cuMemFree_v2(DevicePointer memory) {
  FAKE_ENTER("cuMemFree_v2");
  return all.memory.erase(memory) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  FAKE_ENTER("cuMemHostAlloc");
  auto real = std::make_unique<char[]>(std::min<std::size_t>(bytes, 8 * kReal));
  *memory = real.get();
  all.host_memory[*memory] = std::move(real);
  return Status::kSuccess;
}
FAKE_CALL cuMemFreeHost(void* memory) {
  FAKE_ENTER("cuMemFreeHost");
  return all.host_memory.erase(memory) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* memory, unsigned) {
  FAKE_ENTER("cuMemHostGetDevicePointer_v2");
  *pointer = reinterpret_cast<DevicePointer>(memory);
  return Status::kSuccess;
}
FAKE_CALL cuMemsetD8Async(DevicePointer memory, unsigned char value, std::size_t bytes,
                          abi::StreamHandle stream) {
  FAKE_ENTER("cuMemsetD8Async");
  if (is_real(all, memory)) std::memset(reinterpret_cast<void*>(memory), value, bytes);
  return copy(all, bytes, stream, "memset");
}
/// What is put on a stream later reads the words when it is put there, so they may be set at once.
FAKE_CALL cuMemsetD32Async(DevicePointer memory, unsigned value, std::size_t words,
                           abi::StreamHandle) {
  FAKE_ENTER("cuMemsetD32Async");
  for (std::size_t i = 0; i < words; ++i)
    std::memcpy(reinterpret_cast<char*>(memory) + 4 * i, &value, 4);
  return Status::kSuccess;
}
FAKE_CALL cuMemcpyHtoDAsync_v2(DevicePointer, const void*, std::size_t bytes,
                               abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyHtoDAsync_v2");
  return copy(all, bytes, stream, "copy to device");
}
FAKE_CALL cuMemcpyDtoHAsync_v2(void*, DevicePointer, std::size_t bytes, abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyDtoHAsync_v2");
  return copy(all, bytes, stream, "copy to host");
}
FAKE_CALL cuMemcpyDtoDAsync_v2(DevicePointer, DevicePointer, std::size_t bytes,
                               abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyDtoDAsync_v2");
  return copy(all, bytes, stream, "copy on device");
}

namespace {

constexpr std::uint32_t kGroup = 8;  ///< SMs are given in groups, as Hopper does

Status add_stream(State& all, abi::StreamHandle* stream, int priority, const FakeGreen& green) {
  auto made = std::make_unique<FakeStream>();
  all.shown_streams.push_back({priority, green.first_sm, green.sms, true});
  made->number = static_cast<std::uint32_t>(all.shown_streams.size());
  *stream = reinterpret_cast<abi::StreamHandle>(made.get());
  all.streams[*stream] = std::move(made);
  return Status::kSuccess;
}

}  // namespace

FAKE_CALL cuStreamCreateWithPriority(abi::StreamHandle* stream, unsigned, int priority) {
  FAKE_ENTER("cuStreamCreateWithPriority");
  return add_stream(all, stream, priority, {});
}
FAKE_CALL cuStreamDestroy_v2(abi::StreamHandle stream) {
  FAKE_ENTER("cuStreamDestroy_v2");
  all.shown_streams[stream_of(all, stream).number - 1].alive = false;
  all.streams.erase(stream);
  return Status::kSuccess;
}
FAKE_CALL cuStreamQuery(abi::StreamHandle handle) {
  FAKE_ENTER("cuStreamQuery");
  if (all.broken != Status::kSuccess) return all.broken;
  FakeStream& stream = stream_of(all, handle);
  if (handle == nullptr) return Status::kSuccess;
  return stream.ready > all.now || all.hung ? Status::kNotReady : Status::kSuccess;
}
FAKE_CALL cuEventCreate(abi::EventHandle* event, unsigned) {
  FAKE_ENTER("cuEventCreate");
  auto made = std::make_unique<FakeEvent>();
  *event = reinterpret_cast<abi::EventHandle>(made.get());
  all.events[*event] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuEventDestroy_v2(abi::EventHandle event) {
  FAKE_ENTER("cuEventDestroy_v2");
  return all.events.erase(event) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuEventRecord(abi::EventHandle handle, abi::StreamHandle stream_handle) {
  FAKE_ENTER("cuEventRecord");
  const FakeStream& stream = stream_of(all, stream_handle);
  FakeEvent& event = *all.events.at(handle);
  event = {stream.ready, stream.capture, stream.after};
  return Status::kSuccess;
}
FAKE_CALL cuEventQuery(abi::EventHandle handle) {
  FAKE_ENTER("cuEventQuery");
  if (all.broken != Status::kSuccess) return all.broken;
  return all.events.at(handle)->when > all.now || all.hung ? Status::kNotReady : Status::kSuccess;
}
FAKE_CALL cuStreamWaitEvent(abi::StreamHandle stream_handle, abi::EventHandle handle, unsigned) {
  FAKE_ENTER("cuStreamWaitEvent");
  FakeStream& stream = stream_of(all, stream_handle);
  const FakeEvent& event = *all.events.at(handle);
  if (event.capture != nullptr) {
    stream.capture = event.capture;
    stream.after.insert(event.after.begin(), event.after.end());
  } else {
    stream.ready = std::max(stream.ready, event.when);
  }
  return Status::kSuccess;
}

FAKE_CALL cuDeviceGetDevResource(int, abi::DeviceResource* resource, int) {
  FAKE_ENTER("cuDeviceGetDevResource");
  resource->type = abi::kResourceSm;
  resource->sm_count = kSms;
  resource->inside[0] = 0;
  resource->inside[1] = 0;
  return all.green_broken ? Status::kInvalidValue : Status::kSuccess;
}
FAKE_CALL cuDevSmResourceSplitByCount(abi::DeviceResource* part, unsigned* groups,
                                      const abi::DeviceResource* input, abi::DeviceResource* rest,
                                      unsigned, unsigned sms) {
  FAKE_ENTER("cuDevSmResourceSplitByCount");
  // What comes out of a split is not split again (CUDA driver API, cuDevSmResourceSplitByCount).
  if (input->inside[1] != 0) return Status::kInvalidValue;
  const std::uint32_t given = (sms + kGroup - 1) / kGroup * kGroup;
  *groups = given <= input->sm_count ? 1 : 0;
  if (*groups == 0) return Status::kSuccess;
  *part = *rest = *input;
  part->sm_count = given;
  part->inside[1] = rest->inside[1] = 1;
  rest->sm_count = input->sm_count - given;
  rest->inside[0] = static_cast<std::uint8_t>(input->inside[0] + given);
  return Status::kSuccess;
}
FAKE_CALL cuDevResourceGenerateDesc(abi::ResourceDesc* desc, abi::DeviceResource* part, unsigned) {
  FAKE_ENTER("cuDevResourceGenerateDesc");
  *desc = reinterpret_cast<abi::ResourceDesc>(all.descs.size() + 1);
  all.descs[*desc] = {part->inside[0], part->sm_count};
  return Status::kSuccess;
}
FAKE_CALL cuGreenCtxCreate(abi::GreenHandle* green, abi::ResourceDesc desc, int, unsigned) {
  FAKE_ENTER("cuGreenCtxCreate");
  auto made = std::make_unique<FakeGreen>(all.descs.at(desc));
  *green = reinterpret_cast<abi::GreenHandle>(made.get());
  all.greens[*green] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuGreenCtxDestroy(abi::GreenHandle green) {
  FAKE_ENTER("cuGreenCtxDestroy");
  return all.greens.erase(green) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuGreenCtxGetDevResource(abi::GreenHandle green, abi::DeviceResource* resource, int) {
  FAKE_ENTER("cuGreenCtxGetDevResource");
  const FakeGreen& context = *all.greens.at(green);
  resource->type = abi::kResourceSm;
  resource->sm_count = context.sms;
  resource->inside[0] = static_cast<std::uint8_t>(context.first_sm);
  resource->inside[1] = 0;
  return Status::kSuccess;
}
FAKE_CALL cuGreenCtxStreamCreate(abi::StreamHandle* stream, abi::GreenHandle green, unsigned,
                                 int priority) {
  FAKE_ENTER("cuGreenCtxStreamCreate");
  return add_stream(all, stream, priority, *all.greens.at(green));
}

namespace {

/// Nodes come in an order in which each comes after those that it waits for.
std::int64_t run_graph(State& all, const FakeGraph& graph, std::int64_t start) {
  std::vector<std::int64_t> ends;
  std::int64_t last = start;
  for (const FakeNode& node : graph.nodes) {
    std::int64_t from = start;
    for (const std::size_t before : node.after) from = std::max(from, ends[before]);
    ends.push_back(run_at(all, node.work, from));
    last = std::max(last, ends.back());
  }
  return last;
}

}  // namespace

FAKE_CALL cuStreamBeginCapture_v2(abi::StreamHandle handle, int) {
  FAKE_ENTER("cuStreamBeginCapture_v2");
  auto made = std::make_unique<FakeGraph>();
  FakeStream& stream = stream_of(all, handle);
  stream.capture = made.get();
  stream.after.clear();
  all.graphs[made.get()] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuStreamEndCapture(abi::StreamHandle handle, abi::GraphHandle* graph) {
  FAKE_ENTER("cuStreamEndCapture");
  FakeGraph* const captured = stream_of(all, handle).capture;
  *graph = reinterpret_cast<abi::GraphHandle>(captured);
  const std::set<std::size_t> joined = stream_of(all, handle).after;
  bool all_joined = true;
  for (auto& [key, stream] : all.streams) {
    if (stream->capture != captured) continue;
    for (const std::size_t node : stream->after) all_joined &= joined.contains(node);
    stream->capture = nullptr;
    stream->after.clear();
  }
  return all_joined ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuGraphDestroy(abi::GraphHandle graph) {
  FAKE_ENTER("cuGraphDestroy");
  return all.graphs.erase(graph) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuGraphInstantiateWithFlags(abi::GraphExecHandle* exec, abi::GraphHandle graph,
                                      unsigned long long) {
  FAKE_ENTER("cuGraphInstantiateWithFlags");
  auto made = std::make_unique<FakeExec>(FakeExec{*all.graphs.at(graph), 0});
  *exec = reinterpret_cast<abi::GraphExecHandle>(made.get());
  all.execs[*exec] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuGraphLaunch(abi::GraphExecHandle handle, abi::StreamHandle stream_handle) {
  FAKE_ENTER("cuGraphLaunch");
  FakeExec& exec = *all.execs.at(handle);
  FakeStream& stream = stream_of(all, stream_handle);
  const std::int64_t start = std::max({stream.ready, exec.ready, all.now + kLaunchNs});
  stream.ready = exec.ready = run_graph(all, exec.graph, start);
  return Status::kSuccess;
}
FAKE_CALL cuGraphExecDestroy(abi::GraphExecHandle exec) {
  FAKE_ENTER("cuGraphExecDestroy");
  return all.execs.erase(exec) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
