// NCCL's profiler plug-in interface, versions 4 to 6, declared from its specification (NCCL's
// ext-profiler README and the headers it refers to): only what a plug-in of collectives reads.
//
// NCCL fills all members of the variant for an event's type; other bytes of a descriptor are
// undefined. Handles are opaque to NCCL: it never looks into one. v4: NCCL 2.27; v5: from 2.28; v6:
// from 2.29, v5 with more event types. NCCL takes the newest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblesim::capture::nccl_abi {

using Result = int;                 ///< ncclResult_t; 0 is success
inline constexpr Result kSuccess = 0;
using Logger = void (*)();          ///< never called here

/// Event types: bits of the activation mask.
inline constexpr std::uint64_t kGroup = 1U << 0U;
inline constexpr std::uint64_t kColl = 1U << 1U;
inline constexpr std::uint64_t kP2p = 1U << 2U;
inline constexpr std::uint64_t kCollApi = 1U << 9U;
inline constexpr std::uint64_t kP2pApi = 1U << 10U;

/// A collective that is part of a kernel that was launched.
struct Coll {
  std::uint64_t sequence;  ///< of its function in the communicator
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

/// A send or a receive that is part of a kernel that was launched.
struct P2p {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;  ///< rank in the communicator
  std::uint8_t channels;
};

/// A collective as the program calls it, before anything is launched.
struct CollApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graph_captured;
};

/// A send or a receive as the program calls it.
struct P2pApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};

struct DescriptorV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
  };
};

struct DescriptorV5 {
  std::uint64_t type;
  void* parent;  ///< kColl and kP2p: the handle of the call (kCollApi, kP2pApi)
  int rank;
  union {
    Coll coll;
    P2p p2p;
    CollApi coll_api;
    P2pApi p2p_api;
  };
};

// 64-bit Linux: 8-byte pointers, natural alignment.
static_assert(offsetof(DescriptorV4, parent) == 8 && offsetof(DescriptorV4, rank) == 16);
static_assert(offsetof(DescriptorV4, coll) == 24 && offsetof(DescriptorV4, p2p) == 24);
static_assert(offsetof(DescriptorV5, parent) == 8 && offsetof(DescriptorV5, rank) == 16);
static_assert(offsetof(DescriptorV5, coll) == 24 && offsetof(DescriptorV5, coll_api) == 24);
static_assert(offsetof(Coll, function) == 8 && offsetof(Coll, count) == 32);
static_assert(offsetof(Coll, root) == 40 && offsetof(Coll, datatype) == 48);
static_assert(offsetof(Coll, channels) == 56 && offsetof(Coll, algorithm) == 64);
static_assert(offsetof(P2p, datatype) == 16 && offsetof(P2p, count) == 24);
static_assert(offsetof(P2p, peer) == 32 && offsetof(P2p, channels) == 36);
static_assert(offsetof(CollApi, datatype) == 16 && offsetof(CollApi, root) == 24);
static_assert(offsetof(CollApi, stream) == 32 && offsetof(CollApi, graph_captured) == 40);
static_assert(offsetof(P2pApi, datatype) == 16 && offsetof(P2pApi, stream) == 24);
static_assert(offsetof(P2pApi, graph_captured) == 32);

struct ProfilerV4 {
  const char* name;
  Result (*init)(void** context, int* activation_mask, const char* communicator_name,
                 std::uint64_t communicator_hash, int nodes, int ranks, int rank, Logger logger);
  Result (*start_event)(void* context, void** handle, DescriptorV4* descriptor);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, void* arguments);
  Result (*finalize)(void* context);
};

/// Version 6 has the same functions and, for the event types above, the same descriptors.
struct ProfilerV5 {
  const char* name;
  Result (*init)(void** context, std::uint64_t communicator_hash, int* activation_mask,
                 const char* communicator_name, int nodes, int ranks, int rank, Logger logger);
  Result (*start_event)(void* context, void** handle, DescriptorV5* descriptor);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, void* arguments);
  Result (*finalize)(void* context);
};

static_assert(sizeof(ProfilerV4) == 48 && sizeof(ProfilerV5) == 48);

}  // namespace bubblesim::capture::nccl_abi
