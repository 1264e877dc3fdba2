#include "capture/record/nccl/profiler_plugin.hpp"

#include <new>

#include "capture/record/nccl/communicator.hpp"

namespace bubblesim::capture {
namespace {

using namespace nccl_abi;

// The handle of a launch's report; every other handle is an instant and needs no stop.
char launch_handle;

void make_communicator(void** context, int* mask, std::uint64_t events, std::uint64_t hash,
                       int ranks, int rank) noexcept {
  if (context == nullptr || mask == nullptr) return;
  *context = new (std::nothrow) NcclCommunicator(hash, ranks, rank);
  *mask = *context == nullptr ? 0 : static_cast<int>(events);
}

Result init_v4(void** context, int* mask, const char*, std::uint64_t hash, int, int ranks, int rank,
               Logger) noexcept {
  make_communicator(context, mask, kColl | kP2p, hash, ranks, rank);
  return kSuccess;
}

Result init_v5(void** context, std::uint64_t hash, int* mask, const char*, int, int ranks, int rank,
               Logger) noexcept {
  make_communicator(context, mask, kCollApi | kP2pApi | kP2p, hash, ranks, rank);
  return kSuccess;
}

NcclMessage message_of(const Coll& coll) noexcept {
  return {coll.function, coll.datatype, coll.count, -1};
}
NcclMessage message_of(const P2p& p2p) noexcept {
  return {p2p.function, p2p.datatype, p2p.count, p2p.peer};
}

GraphCapture captured(bool yes) noexcept { return yes ? GraphCapture::kYes : GraphCapture::kNo; }

Result start_v4(void* context, void** handle, DescriptorV4* event) noexcept {
  if (handle != nullptr) *handle = nullptr;
  if (context == nullptr || handle == nullptr || event == nullptr) return kSuccess;
  auto& communicator = *static_cast<NcclCommunicator*>(context);
  switch (event->type) {
    case kGroup:
      // NCCL 2.27 reports the operations of a launch only if the launch has a handle.
      NcclCommunicator::launch_report_begins();
      *handle = &launch_handle;
      break;
    case kColl:
      communicator.collective_launched(message_of(event->coll), event->coll.sequence);
      break;
    case kP2p:
      communicator.exchange_launched_v4(message_of(event->p2p));
      break;
    default:
      break;
  }
  return kSuccess;
}

Result start_v5(void* context, void** handle, DescriptorV5* event) noexcept {
  if (handle != nullptr) *handle = nullptr;
  if (context == nullptr || handle == nullptr || event == nullptr) return kSuccess;
  auto& communicator = *static_cast<NcclCommunicator*>(context);
  switch (event->type) {
    case kCollApi:
      communicator.collective_called(
          {event->coll_api.function, event->coll_api.datatype, event->coll_api.count, -1},
          captured(event->coll_api.graph_captured));
      break;
    case kP2pApi:
      *handle = NcclCommunicator::exchange_called(
          {event->p2p_api.function, event->p2p_api.datatype, event->p2p_api.count, -1},
          captured(event->p2p_api.graph_captured));
      break;
    case kGroup:
      NcclCommunicator::launch_report_begins();
      *handle = &launch_handle;
      break;
    case kP2p:
      communicator.exchange_launched(message_of(event->p2p), event->parent);
      break;
    default:
      break;
  }
  return kSuccess;
}

Result stop_event(void* handle) noexcept {
  if (handle == &launch_handle) NcclCommunicator::launch_report_ends();
  return kSuccess;
}

Result record_event_state(void*, int, void*) noexcept { return kSuccess; }

Result finalize(void* context) noexcept {
  delete static_cast<NcclCommunicator*>(context);
  return kSuccess;
}

constexpr ProfilerV4 kVersion4{"bubblesim", init_v4, start_v4, stop_event, record_event_state,
                               finalize};
constexpr ProfilerV5 kVersion5{"bubblesim", init_v5, start_v5, stop_event, record_event_state,
                               finalize};

}  // namespace
}  // namespace bubblesim::capture

extern "C" {
const bubblesim::capture::nccl_abi::ProfilerV4 ncclProfiler_v4 = bubblesim::capture::kVersion4;
const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v5 = bubblesim::capture::kVersion5;
const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v6 = bubblesim::capture::kVersion5;
}
