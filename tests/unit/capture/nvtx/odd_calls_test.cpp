// Entry points with what no sound program passes: nothing may fault, nothing may be recorded that
// is not so, and the tool stays usable.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "capture/record/nvtx/nccl_payload.hpp"
#include "capture/record/nvtx/nvtx_injection.hpp"
#include "tests/unit/capture/nvtx/fake_nvtx.hpp"

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

class OddNvtxCalls : public NvtxTest {};

TEST(OddNvtxTables, MissingTablesAreRefused) {
  EXPECT_EQ(InitializeInjectionNvtx2(nullptr), 0);
  EXPECT_EQ(InitializeInjectionNvtx2([](std::uint32_t) -> const void* { return nullptr; }), 0);
  EXPECT_EQ(InitializeInjectionNvtx2([](std::uint32_t) -> const void* {
              static const ExportCallbacks small{8, nullptr};
              return &small;
            }),
            0);
  EXPECT_EQ(InitializeInjectionNvtx2([](std::uint32_t) -> const void* {
              static const ExportCallbacks empty{sizeof(ExportCallbacks), nullptr};
              return &empty;
            }),
            0);
  EXPECT_EQ(InitializeInjectionNvtxExtension(nullptr), 0);
  ExtensionModule small{};
  EXPECT_EQ(InitializeInjectionNvtxExtension(&small), 0);
}

TEST(OddNvtxTables, ShortTablesAreFilledAsFarAsTheyGo) {
  FakeNvtx old(6);
  EXPECT_EQ(old.attach(), 1);
  EXPECT_NE(old.core[5], nullptr);
  EXPECT_EQ(old.core[6], nullptr);
  EXPECT_EQ(old.core2[10], nullptr);
}

TEST(OddNvtxTables, UnknownExtensionsAreLeftAlone) {
  FakeNvtx nvtx;
  EXPECT_EQ(nvtx.attach_payloads(4), 1);
  for (const std::intptr_t slot : nvtx.payload) EXPECT_EQ(slot, 0);
  ExtensionModule bare{3, sizeof(ExtensionModule), kPayloadModule, 0, 0, nullptr, nullptr, nullptr};
  EXPECT_EQ(InitializeInjectionNvtxExtension(&bare), 1);
  ExtensionSegment none{0, 4, nullptr};
  bare.segment_count = 1;
  bare.segments = &none;
  EXPECT_EQ(InitializeInjectionNvtxExtension(&bare), 1);
  std::array<std::intptr_t, 4> few{};
  none.slots = few.data();
  EXPECT_EQ(InitializeInjectionNvtxExtension(&bare), 1);
  EXPECT_NE(few[0], 0);
  EXPECT_NE(few[3], 0);
}

TEST_F(OddNvtxCalls, NullsAreRangesWithoutAName) {
  EXPECT_EQ(nvtx_.push_a(nullptr), 0);
  EXPECT_EQ(nvtx_.push_w(nullptr), 1);
  EXPECT_EQ(nvtx_.push_ex(nullptr), 2);
  for (int level = 2; level >= 0; --level) EXPECT_EQ(nvtx_.pop(), level);
  EXPECT_EQ(nvtx_.start_a(nullptr), 0U);
  nvtx_.end(0);
  nvtx_.end(std::numeric_limits<std::uint64_t>::max());
  nvtx_.mark_a(nullptr);
  EXPECT_NE(nvtx_.create(nullptr), nullptr);
  EXPECT_NE(nvtx_.register_string(nullptr, nullptr), nullptr);
  EXPECT_EQ(nvtx_.register_schema(nullptr, nullptr), 0U);
  EXPECT_EQ(nvtx_.pop_payload(nullptr, nullptr, 1), kNotTracked);
  EXPECT_TRUE(host_double().take().empty());
}

TEST_F(OddNvtxCalls, AttributesOfOtherSizesAreNotLookedInto) {
  for (const std::uint16_t size : std::array<std::uint16_t, 5>{0, 1, 8, 40, 47}) {
    EventAttributes given = named("unseen");
    given.size = size;
    nvtx_.push_ex(&given);
    nvtx_.pop();
  }
  EXPECT_TRUE(host_double().take().empty());
  EventAttributes larger = named("of a later version");
  larger.version = 9;
  larger.size = 200;
  nvtx_.push_ex(&larger);
  nvtx_.pop();
  EXPECT_EQ(host_double().take().size(), 1U);
}

TEST_F(OddNvtxCalls, HandlesThatWereNeverMadeNameNothing) {
  EventAttributes given = named(nullptr);
  given.message_type = kMessageRegistered;
  for (const std::uintptr_t handle : {std::uintptr_t{16'384}, std::uintptr_t{16'385},
                                      std::uintptr_t{0xDEADBEEF}, ~std::uintptr_t{0}}) {
    given.message = reinterpret_cast<const void*>(handle);
    nvtx_.push_ex(&given);
    nvtx_.pop();
  }
  EXPECT_TRUE(host_double().take().empty());
  void* stray = reinterpret_cast<void*>(~std::uintptr_t{0});
  nvtx_.push(stray, "in a domain that is none");
  nvtx_.pop(stray);
  const auto ranges = host_double().take_all<RangeEvent>(1);
  EXPECT_EQ(ranges[0].domain, "");
}

TEST_F(OddNvtxCalls, PayloadsThatCannotBeAreNotRead) {
  void* nccl = nvtx_.create("NCCL");
  const PayloadData null{kFirstStaticSchema + 5, 24, nullptr};
  EventAttributes given = with_payload(named("ncclAllReduce"), null);
  for (const std::int32_t count : {-1, 0, 1, 17, std::numeric_limits<std::int32_t>::max()}) {
    given.reserved = count;
    nvtx_.push(nccl, &given);
    nvtx_.pop(nccl);
  }
  given.payload = 0;
  given.reserved = 1;
  nvtx_.push(nccl, &given);
  nvtx_.pop(nccl);
  given.payload_type = 1;   // a number, not a pointer
  given.payload = 0x1234;
  nvtx_.push(nccl, &given);
  nvtx_.pop(nccl);
  for (const CollectiveEvent& event : host_double().take_all<CollectiveEvent>()) {
    EXPECT_EQ(event.bytes, 0U);
    EXPECT_EQ(event.group, "");
  }
}

// Random attributes whose pointers, where they are followed, are good.
EventAttributes random_attributes(std::mt19937& random, const char* text, const wchar_t* wide,
                                  const PayloadData* payloads) {
  EventAttributes given{};
  std::array<std::uint32_t, sizeof given / 4> bits{};
  for (std::uint32_t& word : bits) word = static_cast<std::uint32_t>(random());
  std::memcpy(&given, bits.data(), sizeof given);
  if (random() % 4 != 0) given.size = sizeof given;
  given.message_type = static_cast<std::int32_t>(random() % 6) - 1;
  if (given.message_type == kMessageAscii) given.message = text;
  if (given.message_type == kMessageUnicode) given.message = wide;
  given.payload_type = random() % 2 == 0 ? kPayloadExtended : given.payload_type;
  given.payload = reinterpret_cast<std::uint64_t>(payloads);
  given.reserved = static_cast<std::int32_t>(random() % 4) - 1;
  return given;
}

TEST_F(OddNvtxCalls, AnyOrderOfAnyCallsIsSurvived) {
  std::mt19937 random(20);
  const std::array<const char*, 6> names{"",          "ncclAllReduce",
                                         "ncclSend",  "bubblesim.collective op=",
                                         "a\xFF\xFE", "ncclCommInitRank"};
  std::array<void*, 5> domains{nullptr, nvtx_.create("NCCL"), nvtx_.create("x"),
                               reinterpret_cast<void*>(std::uintptr_t{99'999}),
                               nvtx_.create(nullptr)};
  std::array<std::uint64_t, 8> bytes{};
  std::uint64_t id = 0;
  for (int i = 0; i < 50'000; ++i) {
    for (std::uint64_t& word : bytes) word = random();
    const std::array<PayloadData, 2> payloads{{
        {kFirstStaticSchema + random() % 140, random() % 65, bytes.data()},
        {random() % 3, 8, random() % 2 == 0 ? bytes.data() : nullptr},
    }};
    void* domain = domains[random() % domains.size()];
    const char* name = names[random() % names.size()];
    const EventAttributes given = random_attributes(random, name, L"wide \x1F600", payloads.data());
    host_double().recording = random() % 5 != 0;
    switch (random() % 9) {
      case 0: nvtx_.push(domain, &given); break;
      case 1: nvtx_.pop(domain); break;
      case 2: nvtx_.push_a(name); break;
      case 3: nvtx_.pop(); break;
      case 4: id = nvtx_.start_a(name); break;
      case 5: nvtx_.end(random() % 2 == 0 ? id : random()); break;
      case 6: nvtx_.mark_a(name); break;
      case 7: nvtx_.pop_payload(domain, payloads.data(), random() % 3); break;
      default: nvtx_.push(domain, name); break;
    }
  }
  host_double().recording = true;
  const std::uint64_t last = nvtx_.start_a("last");
  for (std::uint64_t open = 1; open <= last; ++open) nvtx_.end(open);
  for (void* domain : domains) {
    for (int i = 0; i < 50'000; ++i) nvtx_.pop(domain);  // no more were pushed
  }
  (void)host_double().take();
  void* fresh = nvtx_.create("after it all");
  EXPECT_EQ(nvtx_.push(fresh, "usable"), 0);
  EXPECT_EQ(nvtx_.pop(fresh), 0);
  EXPECT_EQ(host_double().take().size(), 1U);
}

// What is bounded, filled up. Tables are of the process and never emptied: these cases
// come last in the program.
class NvtxBounds : public NvtxTest {};

TEST_F(NvtxBounds, StartedRangesAreBounded) {
  std::vector<std::uint64_t> started;
  for (int i = 0; i < 5'000; ++i) started.push_back(nvtx_.start_a("r"));
  EXPECT_NE(started[4'095], 0U);
  EXPECT_EQ(started[4'096], 0U);
  for (const std::uint64_t id : started) nvtx_.end(id);
  EXPECT_EQ(host_double().take().size(), 4'096U);
}

TEST_F(NvtxBounds, DomainsAreBoundedAndNcclsIsAlwaysKnown) {
  std::vector<void*> made;
  for (int i = 0; i < 1'100; ++i) made.push_back(nvtx_.create(("d" + std::to_string(i)).c_str()));
  EXPECT_EQ(made.back(), nullptr);  // then it is the default domain
  for (int i = 0; i < 100; ++i) nvtx_.push(made[static_cast<std::size_t>(i)], "open");
  for (int i = 99; i >= 0; --i) nvtx_.pop(made[static_cast<std::size_t>(i)]);
  EXPECT_EQ(host_double().take().size(), 64U);  // domains with open ranges, a thread
  void* nccl = nvtx_.create("NCCL");
  nvtx_.push(nccl, "ncclSend");
  nvtx_.pop(nccl);
  EXPECT_EQ(host_double().take_all<CollectiveEvent>().size(), 1U);
}

TEST_F(NvtxBounds, CommunicatorsAreBounded) {
  constexpr std::uint64_t kFirst = 1U << 20U;
  for (std::uint64_t hash = kFirst; hash < kFirst + 9'000; ++hash) {
    remember_communicator({.communicator = hash, .bytes = 0, .ranks = 2});
  }
  EXPECT_EQ(known_communicator(kFirst).ranks, 2U);
  EXPECT_EQ(known_communicator(kFirst + 8'999).ranks, 0U);  // no place left
}

TEST_F(NvtxBounds, RegisteredStringsAreBounded) {
  void* first = nvtx_.register_string(nullptr, "s0");
  void* last = first;
  for (int i = 0; i < 20'000; ++i) {
    last = nvtx_.register_string(nullptr, ("s" + std::to_string(i)).c_str());
  }
  EXPECT_EQ(last, nullptr);
  EXPECT_EQ(nvtx_.register_string(nullptr, "s0"), first);
}

}  // namespace
}  // namespace bubblesim::capture
