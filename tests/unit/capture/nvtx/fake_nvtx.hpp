// The calls of NVTX that a library of a job makes, without NVTX's header.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "capture/record/nvtx/nvtx_injection.hpp"
#include "tests/fakes/nvtx/nvtx_tables.hpp"
#include "tests/unit/capture/nccl/host_double.hpp"

namespace bubblesim::capture {

using namespace nvtx_abi;

/// Attributes with a plain name.
inline EventAttributes named(const char* name) {
  EventAttributes given{};
  given.version = 3;
  given.size = sizeof given;
  given.message_type = kMessageAscii;
  given.message = name;
  return given;
}

/// attach() lets the code under test fill the tables.
struct FakeNvtx : NvtxTables {
  static constexpr std::size_t kPayloadSlots = 63;

  using NvtxTables::NvtxTables;

  [[nodiscard]] int attach() { return InitializeInjectionNvtx2(&FakeNvtx::export_table); }
  [[nodiscard]] int attach_payloads(std::uint16_t module = nvtx_abi::kPayloadModule) {
    ExtensionSegment segment{0, payload.size(), payload.data()};
    ExtensionModule info{3, sizeof(ExtensionModule), module, 0x0103, 1, &segment, nullptr, nullptr};
    return InitializeInjectionNvtxExtension(&info);
  }

  int push_a(const char* name) const { return at<int(const char*)>(Core::kRangePushA)(name); }
  int push_w(const wchar_t* name) const { return at<int(const wchar_t*)>(Core::kRangePushW)(name); }
  int push_ex(const EventAttributes* given) const {
    return at<int(const EventAttributes*)>(Core::kRangePushEx)(given);
  }
  int pop() const { return at<int()>(Core::kRangePop)(); }
  std::uint64_t start_a(const char* name) const {
    return at<std::uint64_t(const char*)>(Core::kRangeStartA)(name);
  }
  void end(std::uint64_t id) const { at<void(std::uint64_t)>(Core::kRangeEnd)(id); }
  void mark_a(const char* name) const { at<void(const char*)>(Core::kMarkA)(name); }
  void* create(const char* name) const { return at<void*(const char*)>(Core2::kCreateA)(name); }
  void* register_string(void* domain, const char* text) const {
    return at<void*(void*, const char*)>(Core2::kRegisterStringA)(domain, text);
  }
  int push(void* domain, const EventAttributes* given) const {
    return at<int(void*, const EventAttributes*)>(Core2::kRangePushEx)(domain, given);
  }
  int push(void* domain, const char* name) const {
    const EventAttributes given = named(name);
    return push(domain, &given);
  }
  int pop(void* domain) const { return at<int(void*)>(Core2::kRangePop)(domain); }
  std::uint64_t register_schema(void* domain, const SchemaAttributes* schema) const {
    return at<std::uint64_t(void*, const SchemaAttributes*)>(Payload::kSchemaRegister)(domain,
                                                                                       schema);
  }
  int pop_payload(void* domain, const PayloadData* data, std::size_t count) const {
    return at<int(void*, const PayloadData*, std::size_t)>(Payload::kRangePop)(domain, data, count);
  }

  using NvtxTables::at;
  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Payload place) const {
    return reinterpret_cast<Callee*>(payload[static_cast<std::size_t>(place)]);
  }

  std::array<std::intptr_t, kPayloadSlots> payload{};
};

/// A host that records, and NVTX with its tables filled.
class NvtxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_double().reset();
    ASSERT_EQ(nvtx_.attach(), 1);
    ASSERT_EQ(nvtx_.attach_payloads(), 1);
  }
  FakeNvtx nvtx_;
};

/// The same with one payload; `data` must outlive the result.
inline EventAttributes with_payload(EventAttributes given, const PayloadData& data) {
  given.payload_type = kPayloadExtended;
  given.reserved = 1;
  given.payload = reinterpret_cast<std::uint64_t>(&data);
  return given;
}

}  // namespace bubblesim::capture
