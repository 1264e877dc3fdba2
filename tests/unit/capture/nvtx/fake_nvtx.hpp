// NVTX's side of its tables, without NVTX's header: the calls that a library of a job makes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "capture/record/nvtx/nvtx_injection.hpp"

namespace bubblesim::capture {

struct FakeNvtx {
  static constexpr unsigned kSlots = 16;
  static constexpr std::size_t kPayloadSlots = 63;

  /// Makes empty tables of this size; attach() lets the code under test fill them.
  explicit FakeNvtx(unsigned slots = kSlots);
  ~FakeNvtx();
  FakeNvtx(const FakeNvtx&) = delete;
  FakeNvtx& operator=(const FakeNvtx&) = delete;

  [[nodiscard]] int attach();
  [[nodiscard]] int attach_payloads(std::uint16_t module = nvtx_abi::kPayloadModule);
  static const void* export_table(std::uint32_t id);

  int push_a(const char* name) const;
  int push_w(const wchar_t* name) const;
  int push_ex(const nvtx_abi::EventAttributes* given) const;
  int pop() const;
  std::uint64_t start_a(const char* name) const;
  void end(std::uint64_t id) const;
  void mark_a(const char* name) const;
  void* create(const char* name) const;
  void* register_string(void* domain, const char* text) const;
  int push(void* domain, const nvtx_abi::EventAttributes* given) const;
  int push(void* domain, const char* name) const;
  int pop(void* domain) const;
  std::uint64_t register_schema(void* domain, const nvtx_abi::SchemaAttributes* schema) const;
  int pop_payload(void* domain, const nvtx_abi::PayloadData* data, std::size_t count) const;

  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Core place) const {
    return reinterpret_cast<Callee*>(core[static_cast<unsigned>(place)]);
  }
  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Core2 place) const {
    return reinterpret_cast<Callee*>(core2[static_cast<unsigned>(place)]);
  }
  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Payload place) const {
    return reinterpret_cast<Callee*>(payload[static_cast<std::size_t>(place)]);
  }

  std::array<nvtx_abi::Function, kSlots> core{}, core2{};
  std::array<std::intptr_t, kPayloadSlots> payload{};
  std::uint32_t tool_version = 0;
  unsigned slots;
};

/// Attributes with a plain name.
[[nodiscard]] nvtx_abi::EventAttributes named(const char* name);
/// The same with one payload; `data` must outlive the result.
[[nodiscard]] nvtx_abi::EventAttributes with_payload(nvtx_abi::EventAttributes given,
                                                     const nvtx_abi::PayloadData& data);

}  // namespace bubblesim::capture
