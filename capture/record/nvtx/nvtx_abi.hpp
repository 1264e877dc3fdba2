// NVTX 3 as a tool sees it: the tables that a tool fills with its functions, the structs that they
// are handed. Declared from NVTX's public headers (nvtxTypes.h, nvToolsExt.h, nvToolsExtPayload.h,
// nvtxExtTypes.h); unit tests compare them with the real headers where those are present.
//
// Every library of a process that uses NVTX has its own tables and asks this tool to fill them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblesim::capture::nvtx_abi {

using Function = void (*)();
/// An array of pointers to the places of functions; some may be null.
using FunctionTable = Function**;

inline constexpr std::uint32_t kExportCallbacks = 1;
inline constexpr std::uint32_t kExportVersion = 3;
using GetExportTable = const void* (*)(std::uint32_t table);

inline constexpr int kModuleCore = 1;
inline constexpr int kModuleCore2 = 5;

struct ExportCallbacks {
  std::size_t struct_size;
  int (*get_module_table)(int module, FunctionTable* table, unsigned* size);  ///< 0: no such module
};

struct ExportVersion {
  std::size_t struct_size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_tool_version)(std::uint32_t version);
};

/// Places in the table of kModuleCore.
enum class Core : unsigned {
  kMarkEx = 1, kMarkA = 2, kMarkW = 3, kRangeStartEx = 4, kRangeStartA = 5, kRangeStartW = 6,
  kRangeEnd = 7, kRangePushEx = 8, kRangePushA = 9, kRangePushW = 10, kRangePop = 11,
};

/// Places in the table of kModuleCore2.
enum class Core2 : unsigned {
  kMarkEx = 1, kRangeStartEx = 2, kRangeEnd = 3, kRangePushEx = 4, kRangePop = 5,
  kRegisterStringA = 10, kRegisterStringW = 11, kCreateA = 12, kCreateW = 13,
};

/// The level that a push or pop returns for a range that is not tracked.
inline constexpr int kNotTracked = -2;

using Domain = void*;        ///< nvtxDomainHandle_t: made by the tool; null: the default domain
using StringHandle = void*;  ///< nvtxStringHandle_t: made by the tool
using RangeId = std::uint64_t;

inline constexpr std::int32_t kMessageAscii = 1;
inline constexpr std::int32_t kMessageUnicode = 2;
inline constexpr std::int32_t kMessageRegistered = 3;

/// payload is a pointer to an array of PayloadData, reserved its length.
inline constexpr std::int32_t kPayloadExtended = static_cast<std::int32_t>(0xDFBD0009U);

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;  ///< const char*, const wchar_t* or StringHandle
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, payload) == 24);
static_assert(offsetof(EventAttributes, message_type) == 32);
static_assert(offsetof(EventAttributes, message) == 40);

/// The extension for payloads with a layout of their own ("schema").
inline constexpr std::uint16_t kPayloadModule = 2;
inline constexpr std::uint64_t kFirstStaticSchema = 1U << 24U;
inline constexpr std::uint64_t kFirstDynamicSchema = std::uint64_t{1} << 32U;

/// Places in the one segment of kPayloadModule.
enum class Payload : std::size_t {
  kSchemaRegister = 0, kRangePush = 3, kRangePop = 4, kRangeStart = 5, kRangeEnd = 6,
};

struct PayloadData {
  std::uint64_t schema;
  std::size_t size;  ///< SIZE_MAX: as the schema says
  const void* payload;
};

struct SchemaEntry {
  std::uint64_t flags;
  std::uint64_t type;
  const char* name;
  const char* description;
  std::uint64_t detail;
  std::uint64_t offset;  ///< 0 after the first entry: follows the last one, naturally aligned
  const void* semantics;
  const void* reserved;
};

/// Bits of SchemaAttributes::fields.
inline constexpr std::uint64_t kSchemaEntries = 1U << 4U;
inline constexpr std::uint64_t kSchemaEntryCount = 1U << 5U;
inline constexpr std::uint64_t kSchemaSize = 1U << 6U;
inline constexpr std::uint64_t kSchemaId = 1U << 8U;

struct SchemaAttributes {
  std::uint64_t fields;
  const char* name;
  std::uint64_t type;
  std::uint64_t flags;
  const SchemaEntry* entries;
  std::size_t entry_count;
  std::size_t size;
  std::size_t alignment;
  std::uint64_t schema;
  void* extension;
};
static_assert(sizeof(SchemaEntry) == 64 && sizeof(SchemaAttributes) == 80);

struct ExtensionSegment {
  std::size_t segment;
  std::size_t slot_count;
  std::intptr_t* slots;
};

struct ExtensionModule {
  std::uint16_t nvtx_version;
  std::uint16_t struct_size;
  std::uint16_t module;
  std::uint16_t compatibility;
  std::size_t segment_count;
  ExtensionSegment* segments;
  void* get_export_function;
  const void* info;
};
static_assert(sizeof(ExtensionModule) == 40 && offsetof(ExtensionModule, segments) == 16);

}  // namespace bubblesim::capture::nvtx_abi
