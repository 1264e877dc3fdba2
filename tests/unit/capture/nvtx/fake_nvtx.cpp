#include "tests/unit/capture/nvtx/fake_nvtx.hpp"

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

FakeNvtx* current = nullptr;
std::array<Function*, FakeNvtx::kSlots> core_places{}, core2_places{};

int module_table(int module, FunctionTable* table, unsigned* size) {
  if (module != kModuleCore && module != kModuleCore2) return 0;
  *table = module == kModuleCore ? core_places.data() : core2_places.data();
  *size = current->slots;
  return 1;
}

const ExportCallbacks callbacks{sizeof(ExportCallbacks), &module_table};
const ExportVersion version{sizeof(ExportVersion), 3, 0,
                            [](std::uint32_t tool) { current->tool_version = tool; }};

}  // namespace

FakeNvtx::FakeNvtx(unsigned slot_count) : slots(slot_count) {
  current = this;
  core_places.fill(nullptr);
  core2_places.fill(nullptr);
  for (unsigned i = 1; i < slots; ++i) {  // the first is no function, in NVTX neither
    core_places[i] = &core[i];
    core2_places[i] = &core2[i];
  }
}

FakeNvtx::~FakeNvtx() { current = nullptr; }

const void* FakeNvtx::export_table(std::uint32_t id) {
  if (id == kExportCallbacks) return &callbacks;
  return id == kExportVersion ? &version : nullptr;
}

int FakeNvtx::attach() { return InitializeInjectionNvtx2(&FakeNvtx::export_table); }

int FakeNvtx::attach_payloads(std::uint16_t module) {
  ExtensionSegment segment{0, payload.size(), payload.data()};
  ExtensionModule info{3, sizeof(ExtensionModule), module, 0x0103, 1, &segment, nullptr, nullptr};
  return InitializeInjectionNvtxExtension(&info);
}

int FakeNvtx::push_a(const char* name) const {
  return at<int(const char*)>(Core::kRangePushA)(name);
}
int FakeNvtx::push_w(const wchar_t* name) const {
  return at<int(const wchar_t*)>(Core::kRangePushW)(name);
}
int FakeNvtx::push_ex(const EventAttributes* given) const {
  return at<int(const EventAttributes*)>(Core::kRangePushEx)(given);
}
int FakeNvtx::pop() const { return at<int()>(Core::kRangePop)(); }
std::uint64_t FakeNvtx::start_a(const char* name) const {
  return at<std::uint64_t(const char*)>(Core::kRangeStartA)(name);
}
void FakeNvtx::end(std::uint64_t id) const { at<void(std::uint64_t)>(Core::kRangeEnd)(id); }
void FakeNvtx::mark_a(const char* name) const { at<void(const char*)>(Core::kMarkA)(name); }
void* FakeNvtx::create(const char* name) const {
  return at<void*(const char*)>(Core2::kCreateA)(name);
}
void* FakeNvtx::register_string(void* domain, const char* text) const {
  return at<void*(void*, const char*)>(Core2::kRegisterStringA)(domain, text);
}
int FakeNvtx::push(void* domain, const EventAttributes* given) const {
  return at<int(void*, const EventAttributes*)>(Core2::kRangePushEx)(domain, given);
}
int FakeNvtx::push(void* domain, const char* name) const {
  const EventAttributes given = named(name);
  return push(domain, &given);
}
int FakeNvtx::pop(void* domain) const { return at<int(void*)>(Core2::kRangePop)(domain); }
std::uint64_t FakeNvtx::register_schema(void* domain, const SchemaAttributes* schema) const {
  return at<std::uint64_t(void*, const SchemaAttributes*)>(Payload::kSchemaRegister)(domain,
                                                                                     schema);
}
int FakeNvtx::pop_payload(void* domain, const PayloadData* data, std::size_t count) const {
  return at<int(void*, const PayloadData*, std::size_t)>(Payload::kRangePop)(domain, data, count);
}

EventAttributes named(const char* name) {
  EventAttributes given{};
  given.version = 3;
  given.size = sizeof given;
  given.message_type = kMessageAscii;
  given.message = name;
  return given;
}

EventAttributes with_payload(EventAttributes given, const PayloadData& data) {
  given.payload_type = kPayloadExtended;
  given.reserved = 1;
  given.payload = reinterpret_cast<std::uint64_t>(&data);
  return given;
}

}  // namespace bubblesim::capture
