#include "tests/unit/capture/cupti/cupti_double.hpp"

#include <cstring>

namespace bubblesim::capture {
namespace {

using cupti::Result;

CuptiDouble* self = nullptr;

Result subscribe(cupti::Subscriber* subscriber, cupti::Callback callback, void*) {
  if (!self->holder.empty()) return Result::kMultipleSubscribers;
  const Result result = self->note("subscribe");
  self->subscribed = result == Result::kSuccess;
  self->callback = callback;
  *subscriber = reinterpret_cast<cupti::Subscriber>(self);
  return result;
}

Result subscribe_v2(cupti::Subscriber* subscriber, cupti::Callback callback, void* user,
                    cupti::SubscriberParams* params) {
  if (!self->holder.empty())
    std::strncpy(params->holder, self->holder.c_str(), params->holder_size);
  return subscribe(subscriber, callback, user);
}

Result unsubscribe(cupti::Subscriber) {
  self->subscribed = false;
  return self->note("unsubscribe");
}

Result result_string(Result result, const char** text) {
  *text = result == Result::kMultipleSubscribers ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"
                                                 : "CUPTI_ERROR_SOME";
  return Result::kSuccess;
}

Result enable_callback(std::uint32_t on, cupti::Subscriber, std::uint32_t domain,
                       std::uint32_t id) {
  return self->set("callback " + std::to_string(domain) + ":" + std::to_string(id), on != 0);
}

Result register_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed) {
  self->requested = requested;
  self->completed = completed;
  return self->note("register");
}

Result set_attribute(std::uint32_t attribute, std::size_t*, void* value) {
  const int number = *static_cast<std::uint8_t*>(value);
  return self->note("attribute " + std::to_string(attribute) + " = " + std::to_string(number));
}

Result flush_all(std::uint32_t flag) {
  const Result result = self->note("flush " + std::to_string(flag));
  const bool kept = self->keeps_incomplete && flag != cupti::kFlushForced;
  if (!self->keeps_buffers && !kept) self->return_buffers(8);
  return result;
}

Result dropped_records(void*, std::uint32_t, std::size_t* count) {
  *count = self->dropped.exchange(0);
  return Result::kSuccess;
}

}  // namespace

CuptiDouble::CuptiDouble() {
  self = this;
  api.path = "double";
  api.version = 130000;
  api.get_result_string = result_string;
  api.subscribe = subscribe;
  api.subscribe_v2 = subscribe_v2;
  api.unsubscribe = unsubscribe;
  api.enable_callback = enable_callback;
  api.set_thread_id_type = [](std::uint32_t type) {
    return self->note("thread ids " + std::to_string(type));
  };
  api.register_callbacks = register_callbacks;
  api.set_attribute = set_attribute;
  api.enable = [](std::uint32_t kind) {
    self->left_out.erase(kind);
    return self->set("kind " + std::to_string(kind), true);
  };
  api.enable_and_dump = [](std::uint32_t kind) {
    return self->set("kind " + std::to_string(kind), true);
  };
  api.disable = [](std::uint32_t kind) { return self->set("kind " + std::to_string(kind), false); };
  api.enable_driver_api = [](std::uint32_t id, std::uint8_t on) {
    return self->set_call(cupti::kKindDriver, "driver ", id, on != 0);
  };
  api.enable_runtime_api = [](std::uint32_t id, std::uint8_t on) {
    return self->set_call(cupti::kKindRuntime, "runtime ", id, on != 0);
  };
  api.enable_all_sync_records = [](std::uint8_t on) {
    return self->note("all syncs " + std::to_string(on));
  };
  api.flush_all = flush_all;
  api.get_dropped_records = dropped_records;
}

CuptiDouble::~CuptiDouble() { self = nullptr; }

}  // namespace bubblesim::capture
