// NVTX's side of its tables, without NVTX's header: a tool fills them, a library of a job calls.
#pragma once

#include <array>
#include <cstdint>

#include "capture/record/nvtx/nvtx_abi.hpp"

namespace bubblesim::capture {

struct NvtxTables {
  static constexpr unsigned kSlots = 16;

  /// Makes empty tables of this size, which export_table() has from now on.
  explicit NvtxTables(unsigned slot_count = kSlots) : slots(slot_count) {
    current = this;
    for (unsigned i = 1; i < slots; ++i) {  // the first is no function, in NVTX neither
      core_places[i] = &core[i];
      core2_places[i] = &core2[i];
    }
  }
  NvtxTables(const NvtxTables&) = delete;
  NvtxTables& operator=(const NvtxTables&) = delete;

  static int module_table(int module, nvtx_abi::FunctionTable* table, unsigned* size) {
    if (module != nvtx_abi::kModuleCore && module != nvtx_abi::kModuleCore2) return 0;
    const bool first = module == nvtx_abi::kModuleCore;
    *table = (first ? current->core_places : current->core2_places).data();
    *size = current->slots;
    return 1;
  }
  static const void* export_table(std::uint32_t id) {
    static const nvtx_abi::ExportCallbacks callbacks{sizeof callbacks, &module_table};
    static const nvtx_abi::ExportVersion version{
        sizeof version, 3, 0, [](std::uint32_t tool) { current->tool_version = tool; }};
    if (id == nvtx_abi::kExportCallbacks) return &callbacks;
    return id == nvtx_abi::kExportVersion ? &version : nullptr;
  }

  /// What the tool has put there; null: nothing.
  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Core place) const {
    return reinterpret_cast<Callee*>(core[static_cast<unsigned>(place)]);
  }
  template <class Callee>
  [[nodiscard]] Callee* at(nvtx_abi::Core2 place) const {
    return reinterpret_cast<Callee*>(core2[static_cast<unsigned>(place)]);
  }

  static inline NvtxTables* current = nullptr;
  std::array<nvtx_abi::Function, kSlots> core{}, core2{};
  std::array<nvtx_abi::Function*, kSlots> core_places{}, core2_places{};
  std::uint32_t tool_version = 0;
  unsigned slots;
};

}  // namespace bubblesim::capture
