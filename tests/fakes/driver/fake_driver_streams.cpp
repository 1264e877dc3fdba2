// Streams, events and green contexts.
#include <algorithm>

#include "tests/fakes/driver/fake_driver_state.hpp"

namespace {

using namespace fake_driver;
using abi::Status;

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
