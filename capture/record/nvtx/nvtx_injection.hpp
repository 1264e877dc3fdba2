// The two functions that NVTX looks for in the library that NVTX_INJECTION64_PATH names.
//
// Both fill NVTX's tables with functions that are noexcept, only check a flag while nothing
// records, and accept any argument: null, too small, of unknown kinds. They return 1, or 0 if the
// tables are not available: NVTX then goes on without a tool.
#pragma once

#include "capture/record/nvtx/nvtx_abi.hpp"

#define BUBBLESIM_NVTX_EXPORT __attribute__((visibility("default")))

extern "C" {
BUBBLESIM_NVTX_EXPORT int InitializeInjectionNvtx2(
    bubblesim::capture::nvtx_abi::GetExportTable get_table) noexcept;
/// Only the extension for payloads is filled: without its pops NCCL's ranges would stay open.
BUBBLESIM_NVTX_EXPORT int InitializeInjectionNvtxExtension(
    bubblesim::capture::nvtx_abi::ExtensionModule* module) noexcept;
}

#undef BUBBLESIM_NVTX_EXPORT
