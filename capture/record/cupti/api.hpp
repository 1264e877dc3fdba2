// The functions of libcupti that the recorder calls, found at run time, and where they were found.
//
// libcupti is never linked: the copy that the process has mapped already is used, for two copies
// in one process collide (research/capture notes, section 1.1). Types are our own mirror of the
// binary interface (capture/record/cupti/abi.hpp), checked against NVIDIA's header where that is
// present when the tests are built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/record/cupti/abi.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// nullptr: this libcupti has no such function; the session does without and says so.
struct CuptiApi {
  std::string path;           ///< of the library; what dladdr says
  std::uint32_t version = 0;  ///< CUPTI_API_VERSION: 18 is CUDA 11, 2025xx/130001 later ones

  cupti::Result (*get_version)(std::uint32_t*) = nullptr;
  cupti::Result (*get_timestamp)(std::uint64_t*) = nullptr;
  cupti::Result (*get_result_string)(cupti::Result, const char**) = nullptr;
  cupti::Result (*subscribe)(cupti::Subscriber*, cupti::Callback, void*) = nullptr;
  cupti::Result (*subscribe_v2)(cupti::Subscriber*, cupti::Callback, void*,
                                cupti::SubscriberParams*) = nullptr;
  cupti::Result (*unsubscribe)(cupti::Subscriber) = nullptr;
  cupti::Result (*enable_callback)(std::uint32_t, cupti::Subscriber, std::uint32_t domain,
                                   std::uint32_t id) = nullptr;
  cupti::Result (*set_thread_id_type)(std::uint32_t) = nullptr;
  cupti::Result (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
  cupti::Result (*set_attribute)(std::uint32_t attribute, std::size_t* size,
                                 void* value) = nullptr;
  cupti::Result (*enable)(std::uint32_t kind) = nullptr;
  cupti::Result (*enable_and_dump)(std::uint32_t kind) = nullptr;
  cupti::Result (*disable)(std::uint32_t kind) = nullptr;
  cupti::Result (*enable_driver_api)(std::uint32_t id, std::uint8_t enabled) = nullptr;
  cupti::Result (*enable_runtime_api)(std::uint32_t id, std::uint8_t enabled) = nullptr;
  cupti::Result (*enable_all_sync_records)(std::uint8_t enabled) = nullptr;
  cupti::Result (*flush_all)(std::uint32_t flag) = nullptr;
  cupti::Result (*get_next_record)(std::uint8_t* buffer, std::size_t valid,
                                   void** record) = nullptr;
  cupti::Result (*get_graph_node_id)(void* node, std::uint64_t* id) = nullptr;
  cupti::Result (*get_stream_id)(void* context, void* stream, std::uint8_t per_thread,
                                 std::uint32_t* id) = nullptr;
  cupti::Result (*get_dropped_records)(void* context, std::uint32_t stream,
                                       std::size_t* dropped) = nullptr;
};

/// Binds the functions of a library that dlopen() gave. Faults: one that no recording can do
/// without is missing; the message names it and the library.
[[nodiscard]] Result<CuptiApi> bind_cupti(void* library, const std::string& path);

/// `wanted`, if not empty, is the only path tried. Otherwise looks, in this order, for a copy that
/// the process has mapped (libcupti.so.13, .so.12, any other in /proc/self/maps); beside the
/// libcudart or torch that is mapped; in lib64 and extras/CUPTI/lib64 of `cuda_home` (the value of
/// $CUDA_HOME; may be empty) and of /usr/local/cuda; on the loader's own path. Faults: none was
/// found; the message lists where it looked.
[[nodiscard]] Result<CuptiApi> find_cupti(const std::string& wanted,
                                          const std::string& cuda_home = {});

struct CuptiPlace {
  std::string path;          ///< a path, or a name that the loader looks for
  bool mapped_only = false;  ///< only if the process has it already
  friend bool operator==(const CuptiPlace&, const CuptiPlace&) = default;
};

/// `maps`: the text of /proc/self/maps. `wanted`, if not empty, is the only place. `cuda_home` may
/// be empty.
[[nodiscard]] std::vector<CuptiPlace> cupti_places(const std::string& wanted,
                                                   const std::string& cuda_home,
                                                   std::string_view maps);

}  // namespace bubblesim::capture
