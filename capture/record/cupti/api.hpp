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

// Name in the table; needed or wanted; name in libcupti; arguments. nullptr of a wanted one: this
// libcupti has no such function; the session does without and says so.
#define BUBBLESIM_CUPTI(CALL)                                                                     \
  CALL(get_version, needed, cuptiGetVersion, (std::uint32_t*))                                    \
  CALL(get_timestamp, needed, cuptiGetTimestamp, (std::uint64_t*))                                \
  CALL(get_result_string, wanted, cuptiGetResultString, (cupti::Result, const char**))            \
  CALL(subscribe, needed, cuptiSubscribe, (cupti::Subscriber*, cupti::Callback, void*))           \
  CALL(subscribe_v2, wanted, cuptiSubscribe_v2,                                                   \
       (cupti::Subscriber*, cupti::Callback, void*, cupti::SubscriberParams*))                    \
  CALL(unsubscribe, needed, cuptiUnsubscribe, (cupti::Subscriber))                                \
  CALL(enable_callback, wanted, cuptiEnableCallback,                                              \
       (std::uint32_t, cupti::Subscriber, std::uint32_t domain, std::uint32_t id))                \
  CALL(set_thread_id_type, wanted, cuptiSetThreadIdType, (std::uint32_t))                         \
  CALL(register_callbacks, needed, cuptiActivityRegisterCallbacks,                                \
       (cupti::BufferRequested, cupti::BufferCompleted))                                          \
  CALL(set_attribute, wanted, cuptiActivitySetAttribute,                                          \
       (std::uint32_t attribute, std::size_t* size, void* value))                                 \
  CALL(enable, needed, cuptiActivityEnable, (std::uint32_t kind))                                 \
  CALL(enable_and_dump, wanted, cuptiActivityEnableAndDump, (std::uint32_t kind))                 \
  CALL(disable, needed, cuptiActivityDisable, (std::uint32_t kind))                               \
  CALL(enable_driver_api, wanted, cuptiActivityEnableDriverApi,                                   \
       (std::uint32_t id, std::uint8_t enabled))                                                  \
  CALL(enable_runtime_api, wanted, cuptiActivityEnableRuntimeApi,                                 \
       (std::uint32_t id, std::uint8_t enabled))                                                  \
  CALL(enable_all_sync_records, wanted, cuptiActivityEnableAllSyncRecords,                        \
       (std::uint8_t enabled))                                                                    \
  CALL(flush_all, needed, cuptiActivityFlushAll, (std::uint32_t flag))                            \
  CALL(get_next_record, needed, cuptiActivityGetNextRecord,                                       \
       (std::uint8_t* buffer, std::size_t valid, void** record))                                  \
  CALL(get_graph_node_id, wanted, cuptiGetGraphNodeId, (void* node, std::uint64_t* id))           \
  CALL(get_stream_id, wanted, cuptiGetStreamIdEx,                                                 \
       (void* context, void* stream, std::uint8_t per_thread, std::uint32_t* id))                 \
  CALL(get_dropped_records, wanted, cuptiActivityGetNumDroppedRecords,                            \
       (void* context, std::uint32_t stream, std::size_t* dropped))

struct CuptiApi {
  std::string path;           ///< of the library; what dladdr says
  std::uint32_t version = 0;  ///< CUPTI_API_VERSION: 18 is CUDA 11, 2025xx/130001 later ones
#define BUBBLESIM_CUPTI_CALL(name, presence, symbol, args) cupti::Result(*name) args = nullptr;
  BUBBLESIM_CUPTI(BUBBLESIM_CUPTI_CALL)
#undef BUBBLESIM_CUPTI_CALL
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
