// NVTX itself finds, loads and calls the tool.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "capture/record/nvtx/nvtx_abi.hpp"
#include "tests/unit/capture/nvtx/nvtx_tool.hpp"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#define BUBBLESIM_HAS_NVTX 1
#else
#define BUBBLESIM_HAS_NVTX 0
#endif

namespace bubblesim::capture {
namespace {

#if BUBBLESIM_HAS_NVTX

// The declarations of our own are the header's.
static_assert(sizeof(nvtx_abi::EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(nvtx_abi::EventAttributes, payload) ==
              offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(nvtx_abi::EventAttributes, message) ==
              offsetof(nvtxEventAttributes_t, message));
static_assert(nvtx_abi::kPayloadExtended == NVTX_PAYLOAD_TYPE_EXT);
static_assert(nvtx_abi::kModuleCore == NVTX_CB_MODULE_CORE);
static_assert(nvtx_abi::kModuleCore2 == NVTX_CB_MODULE_CORE2);
static_assert(nvtx_abi::kExportCallbacks == NVTX_ETID_CALLBACKS);
static_assert(nvtx_abi::kExportVersion == NVTX_ETID_VERSIONINFO);
static_assert(static_cast<int>(nvtx_abi::Core::kRangePop) == NVTX_CBID_CORE_RangePop);
static_assert(static_cast<int>(nvtx_abi::Core::kRangeEnd) == NVTX_CBID_CORE_RangeEnd);
static_assert(static_cast<int>(nvtx_abi::Core2::kCreateW) == NVTX_CBID_CORE2_DomainCreateW);
static_assert(static_cast<int>(nvtx_abi::Core2::kRegisterStringA) ==
              NVTX_CBID_CORE2_DomainRegisterStringA);
static_assert(static_cast<int>(nvtx_abi::Payload::kRangePop) == NVTX3EXT_CBID_nvtxRangePopPayload);
static_assert(nvtx_abi::kPayloadModule == NVTX_EXT_PAYLOAD_MODULEID);
static_assert(sizeof(nvtx_abi::SchemaEntry) == sizeof(nvtxPayloadSchemaEntry_t));
static_assert(offsetof(nvtx_abi::SchemaEntry, offset) ==
              offsetof(nvtxPayloadSchemaEntry_t, offset));
static_assert(sizeof(nvtx_abi::SchemaAttributes) == sizeof(nvtxPayloadSchemaAttr_t));
static_assert(offsetof(nvtx_abi::SchemaAttributes, schema) ==
              offsetof(nvtxPayloadSchemaAttr_t, schemaId));
static_assert(sizeof(nvtx_abi::PayloadData) == sizeof(nvtxPayloadData_t));
static_assert(sizeof(nvtx_abi::ExtensionModule) == sizeof(nvtxExtModuleInfo_t));

nvtxEventAttributes_t attributes(const char* name) {
  nvtxEventAttributes_t given{};
  given.version = NVTX_VERSION;
  given.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  given.messageType = NVTX_MESSAGE_TYPE_ASCII;
  given.message.ascii = name;
  return given;
}

#endif

class RealNvtx : public ::testing::Test {
 protected:
  void SetUp() override {
#if !BUBBLESIM_HAS_NVTX
    GTEST_SKIP() << "NVTX 3's header nvtx3/nvToolsExtPayload.h is not present";
#else
    ASSERT_EQ(::setenv("NVTX_INJECTION64_PATH", BUBBLESIM_NVTX_TOOL, 1), 0);
    nvtxInitialize(nullptr);
    void* library = ::dlopen(BUBBLESIM_NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr) << "NVTX did not load the tool: " << ::dlerror();
    const auto get = reinterpret_cast<GetNvtxTool>(::dlsym(library, kNvtxToolSymbol));
    ASSERT_NE(get, nullptr);
    tool_ = get();
    tool_->set_recording(true);
    (void)tool_->take();
#endif
  }

  template <class Event>
  std::vector<Event> events() const {
    std::vector<Event> out;
    for (const HostEvent& event : tool_->take()) {
      if (const auto* wanted = std::get_if<Event>(&event)) out.push_back(*wanted);
    }
    return out;
  }

  const NvtxTool* tool_ = nullptr;
};

#if BUBBLESIM_HAS_NVTX

TEST_F(RealNvtx, RangesOfSeveralThreadsArrive) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      nvtxRangePushA(("thread " + std::to_string(t)).c_str());
      nvtxRangePushW(L"inner");
      nvtxRangePop();
      nvtxRangePop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(events<RangeEvent>().size(), 6U);
}

TEST_F(RealNvtx, DomainsStringsMarksAndStartedRangesArrive) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("real");
  ASSERT_NE(domain, nullptr);
  nvtxEventAttributes_t given = attributes(nullptr);
  given.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  given.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  EXPECT_EQ(nvtxDomainRangePushEx(domain, &given), 0);
  EXPECT_EQ(nvtxDomainRangePop(domain), 0);
  nvtxRangeEnd(nvtxRangeStartA("started"));
  nvtxMarkA("marked");
  const std::vector<HostEvent> all = tool_->take();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(std::get<RangeEvent>(all[0]).name, "registered");
  EXPECT_EQ(std::get<RangeEvent>(all[0]).domain, "real");
  EXPECT_EQ(std::get<RangeEvent>(all[1]).name, "started");
  EXPECT_EQ(std::get<MarkEvent>(all[2]).name, "marked");
}

TEST_F(RealNvtx, NcclsPayloadsAreRead) {
  nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
  struct Made { std::uint64_t communicator; int ranks; };
  struct Reduced { std::uint64_t communicator; std::size_t bytes; int op; };
  constexpr std::uint64_t kMade = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 0;
  constexpr std::uint64_t kReduced = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 7;
  const nvtxPayloadSchemaEntry_t made_entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", nullptr, 0, 8, nullptr, nullptr}};
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.entries = made_entries;
  schema.numEntries = 2;
  schema.schemaId = kMade;
  EXPECT_EQ(nvtxPayloadSchemaRegister(nccl, &schema), kMade);

  const nvtxEventAttributes_t making = attributes("ncclCommInitRank");
  nvtxDomainRangePushEx(nccl, &making);
  const Made made{0xF00D, 4};
  const nvtxPayloadData_t at_end{kMade, sizeof made, &made};
  EXPECT_EQ(nvtxRangePopPayload(nccl, &at_end, 1), 0);

  const Reduced reduced{0xF00D, 1'000, 0};
  nvtxPayloadData_t data{kReduced, sizeof reduced, &reduced};
  nvtxEventAttributes_t given = attributes("ncclReduceScatter");
  NVTX_PAYLOAD_EVTATTR_SET_DATA(given, &data, kReduced, &reduced, sizeof reduced)
  nvtxDomainRangePushEx(nccl, &given);
  nvtxDomainRangePop(nccl);

  const auto collectives = events<CollectiveEvent>();
  ASSERT_EQ(collectives.size(), 1U);
  EXPECT_EQ(collectives[0].group, "nccl:000000000000f00d");
  EXPECT_EQ(collectives[0].group_size, 4U);
  EXPECT_EQ(collectives[0].bytes, 4'000U);
}

TEST_F(RealNvtx, NothingIsKeptWhileNothingRecords) {
  tool_->set_recording(false);
  EXPECT_EQ(nvtxRangePushA("unseen"), NVTX_NO_PUSH_POP_TRACKING);
  tool_->set_recording(true);
  nvtxRangePop();
  EXPECT_TRUE(tool_->take().empty());
}

#else

TEST_F(RealNvtx, RangesOfSeveralThreadsArrive) {}
TEST_F(RealNvtx, DomainsStringsMarksAndStartedRangesArrive) {}
TEST_F(RealNvtx, NcclsPayloadsAreRead) {}
TEST_F(RealNvtx, NothingIsKeptWhileNothingRecords) {}

#endif

}  // namespace
}  // namespace bubblesim::capture
