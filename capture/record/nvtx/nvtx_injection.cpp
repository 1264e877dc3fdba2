#include "capture/record/nvtx/nvtx_injection.hpp"

#include <algorithm>
#include <atomic>
#include <span>

#include "capture/record/nvtx/nccl_payload.hpp"
#include "capture/record/nvtx/nvtx_events.hpp"
#include "capture/record/nvtx/nvtx_text.hpp"
#include "capture/record/nvtx/thread_ranges.hpp"

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

/// Runs `body`; if it throws (no memory), the call is given up and `otherwise` returned.
template <class Result, class Body>
Result guarded(Result otherwise, const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

template <class Given>
int push(Domain domain, Given given) noexcept {
  if (!tracks_ranges()) return kNotTracked;
  return guarded(kNotTracked, [&] {
    // A range that will only be counted needs no name.
    return push_range(host_recording() ? call_of(domain, given) : NvtxCall{domain, {}, {}});
  });
}

template <class Given>
RangeId start(Domain domain, Given given) noexcept {
  if (!host_recording()) return 0;
  return guarded(RangeId{0}, [&] { return start_range(call_of(domain, given)); });
}

template <class Given>
void mark_now(Domain domain, Given given) noexcept {
  if (!host_recording()) return;
  guarded(0, [&] {
    mark(call_of(domain, given));
    return 0;
  });
}

std::span<const PayloadData> span_of(const PayloadData* payloads, std::size_t count) noexcept {
  if (payloads == nullptr) return {};
  return {payloads, std::min<std::size_t>(count, kMostPayloads)};
}

using Attributes = const EventAttributes*;

// Calls without a domain are the default domain's.
template <class Given>
void mark_default(Given given) noexcept {
  mark_now(nullptr, given);
}
template <class Given>
RangeId start_default(Given given) noexcept {
  return start(nullptr, given);
}
template <class Given>
int push_default(Given given) noexcept {
  return push(nullptr, given);
}
int pop_default() noexcept { return pop_range(nullptr); }
void domain_range_end(Domain, RangeId id) noexcept { end_range(id); }

// Names are kept also while nothing is recorded: programs request handles once, at their start.
template <class Char>
Domain domain_create(const Char* name) noexcept {
  return guarded(Domain{}, [&] { return create_domain(name_of(name)); });
}
template <class Char>
StringHandle string_register(Domain, const Char* text) noexcept {
  return guarded(StringHandle{}, [&] { return register_string(name_of(text)); });
}

// --- payloads -------------------------------------------------------------------------------
std::uint64_t schema_register(Domain domain, const SchemaAttributes* schema) noexcept {
  static std::atomic<std::uint64_t> next{kFirstDynamicSchema};
  if (schema == nullptr) return 0;
  if ((schema->fields & kSchemaId) == 0) return next.fetch_add(1);
  if (is_nccl(domain)) register_nccl_schema(*schema);
  return schema->schema;
}

// Ranges whose name is in their payload are tracked without a name, and give no events.
int range_push_payload(Domain domain, const PayloadData*, std::size_t) noexcept {
  return push(domain, Attributes{});
}

int range_pop_payload(Domain domain, const PayloadData* payloads, std::size_t count) noexcept {
  if (is_nccl(domain)) remember_communicator(read_nccl_payload(span_of(payloads, count)));
  return pop_range(domain);
}

RangeId range_start_payload(Domain, const PayloadData*, std::size_t) noexcept { return 0; }
void range_end_payload(Domain, RangeId id, const PayloadData*, std::size_t) noexcept {
  end_range(id);
}

// --- tables ---------------------------------------------------------------------------------
struct Places {
  FunctionTable table = nullptr;
  unsigned size = 0;

  template <class Place, class Callee>
  void put(Place place, Callee* function) const noexcept {
    const auto index = static_cast<unsigned>(place);
    if (index < size && table[index] != nullptr) {
      *table[index] = reinterpret_cast<Function>(function);
    }
  }
};

Places places_of(const ExportCallbacks& tables, int module) noexcept {
  Places places;
  if (tables.get_module_table(module, &places.table, &places.size) == 0) return {};
  return places.table == nullptr ? Places{} : places;
}

void fill_core(const Places& places) noexcept {
  places.put(Core::kMarkEx, &mark_default<Attributes>);
  places.put(Core::kMarkA, &mark_default<const char*>);
  places.put(Core::kMarkW, &mark_default<const wchar_t*>);
  places.put(Core::kRangeStartEx, &start_default<Attributes>);
  places.put(Core::kRangeStartA, &start_default<const char*>);
  places.put(Core::kRangeStartW, &start_default<const wchar_t*>);
  places.put(Core::kRangeEnd, &end_range);
  places.put(Core::kRangePushEx, &push_default<Attributes>);
  places.put(Core::kRangePushA, &push_default<const char*>);
  places.put(Core::kRangePushW, &push_default<const wchar_t*>);
  places.put(Core::kRangePop, &pop_default);
}

void fill_core2(const Places& places) noexcept {
  places.put(Core2::kMarkEx, &mark_now<Attributes>);
  places.put(Core2::kRangeStartEx, &start<Attributes>);
  places.put(Core2::kRangeEnd, &domain_range_end);
  places.put(Core2::kRangePushEx, &push<Attributes>);
  places.put(Core2::kRangePop, &pop_range);
  places.put(Core2::kRegisterStringA, &string_register<char>);
  places.put(Core2::kRegisterStringW, &string_register<wchar_t>);
  places.put(Core2::kCreateA, &domain_create<char>);
  places.put(Core2::kCreateW, &domain_create<wchar_t>);
}

template <class Callee>
void put(const ExtensionSegment& segment, Payload place, Callee* function) noexcept {
  const auto index = static_cast<std::size_t>(place);
  if (index < segment.slot_count) segment.slots[index] = reinterpret_cast<std::intptr_t>(function);
}

}  // namespace
}  // namespace bubblesim::capture

extern "C" int InitializeInjectionNvtx2(
    bubblesim::capture::nvtx_abi::GetExportTable get_table) noexcept {
  using namespace bubblesim::capture;
  if (get_table == nullptr) return 0;
  const auto* tables = static_cast<const ExportCallbacks*>(get_table(kExportCallbacks));
  if (tables == nullptr || tables->struct_size < sizeof(ExportCallbacks)) return 0;
  if (tables->get_module_table == nullptr) return 0;
  fill_core(places_of(*tables, kModuleCore));
  fill_core2(places_of(*tables, kModuleCore2));
  const auto* version = static_cast<const ExportVersion*>(get_table(kExportVersion));
  if (version != nullptr && version->struct_size >= sizeof(ExportVersion) &&
      version->set_tool_version != nullptr) {
    version->set_tool_version(3);
  }
  return 1;
}

extern "C" int InitializeInjectionNvtxExtension(
    bubblesim::capture::nvtx_abi::ExtensionModule* module) noexcept {
  using namespace bubblesim::capture;
  if (module == nullptr || module->struct_size < sizeof(ExtensionModule)) return 0;
  // The other entries stay empty, which NVTX reads as "not handled".
  if (module->module != kPayloadModule || module->segments == nullptr) return 1;
  if (module->segment_count == 0 || module->segments[0].slots == nullptr) return 1;
  const ExtensionSegment& segment = module->segments[0];
  put(segment, Payload::kSchemaRegister, &schema_register);
  put(segment, Payload::kRangePush, &range_push_payload);
  put(segment, Payload::kRangePop, &range_pop_payload);
  put(segment, Payload::kRangeStart, &range_start_payload);
  put(segment, Payload::kRangeEnd, &range_end_payload);
  return 1;
}
