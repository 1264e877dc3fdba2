#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "capture/record/nvtx/nccl_payload.hpp"
#include "capture/record/nvtx/nvtx_text.hpp"
#include "capture/record/nvtx/thread_ranges.hpp"

namespace bubblesim::capture {
namespace {

using Ranks = std::vector<std::uint32_t>;
using namespace nvtx_abi;
using namespace std::chrono_literals;
using traces::CollectiveKind;

TEST(NvtxText, PlainNamesAreKept) {
  EXPECT_EQ(name_of("forward"), "forward");
  EXPECT_EQ(name_of(L"forward"), "forward");
  EXPECT_EQ(name_of("gr\xC3\xB6\xC3\x9F" "e"), "gr\xC3\xB6\xC3\x9F" "e");
}

TEST(NvtxText, NullIsEmpty) {
  EXPECT_EQ(name_of(static_cast<const char*>(nullptr)), "");
  EXPECT_EQ(name_of(static_cast<const wchar_t*>(nullptr)), "");
}

TEST(NvtxText, WideCharactersBecomeUtf8) {
  const wchar_t text[] = {L'a', 0xE9, 0x20AC, 0x1F600, 0};
  EXPECT_EQ(name_of(text), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(NvtxText, WhatIsNoCharacterIsReplaced) {
  const wchar_t surrogate[] = {L'a', static_cast<wchar_t>(0xD800), L'b', 0};
  EXPECT_EQ(name_of(surrogate), "a\xEF\xBF\xBD" "b");
  const wchar_t beyond[] = {static_cast<wchar_t>(0x7FFFFFFF), 0};
  EXPECT_EQ(name_of(beyond), "\xEF\xBF\xBD");
  const wchar_t negative[] = {static_cast<wchar_t>(-1), 0};
  EXPECT_EQ(name_of(negative), "\xEF\xBF\xBD");
  EXPECT_EQ(name_of("a\xFF" "b"), "a\xEF\xBF\xBD" "b");
  EXPECT_EQ(name_of("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // an overlong null
  EXPECT_EQ(name_of("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // ends in the middle
}

TEST(NvtxText, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(name_of(std::string(300, 'x').c_str()).size(), 256U);
  EXPECT_EQ(name_of(std::wstring(300, L'x').c_str()).size(), 256U);
  // 255 bytes, then a character of two: it would end at 257.
  EXPECT_EQ(name_of((std::string(255, 'x') + "\xC3\xB6").c_str()), std::string(255, 'x'));
  EXPECT_EQ(name_of((std::wstring(255, L'x') + wchar_t{0xF6}).c_str()), std::string(255, 'x'));
  EXPECT_EQ(name_of((std::string(254, 'x') + "\xC3\xB6zz").c_str()),
            std::string(254, 'x') + "\xC3\xB6");
}

TEST(NvtxText, NothingIsReadBeyondTheLimit) {
  const char text[4] = {'a', 'b', 'c', 'd'};  // no end
  EXPECT_EQ(name_of(text, 4), "abcd");
}

TEST(NvtxText, AnyBytesGiveAtMostTheLimit) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> byte(1, 255), length(0, 600);
  for (int i = 0; i < 2'000; ++i) {
    std::string text(static_cast<std::size_t>(length(random)), ' ');
    for (char& c : text) c = static_cast<char>(byte(random));
    const std::string name = name_of(text.c_str());
    EXPECT_LE(name.size(), kLongestName);
    EXPECT_EQ(name_of(name.c_str()), name);  // what came out is good
  }
}

Ranks ranks(const std::string& text) {
  return read_announcement("bubblesim.collective ranks=" + text).peers;
}

TEST(StandInText, SaysEverythingOfACollective) {
  const CollectiveEvent event = read_announcement(
      "bubblesim.collective op=all_reduce bytes=26214400 dtype=bfloat16 group=dp size=8 rank=3 "
      "seq=12 async=1 ranks=0-7");
  EXPECT_EQ(event.source, traces::CollectiveSource::kStandIn);
  EXPECT_EQ(event.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(event.bytes, 26'214'400U);
  EXPECT_EQ(event.group, "dp");
  EXPECT_EQ(event.group_size, 8U);
  EXPECT_EQ(event.sequence, 12U);
  EXPECT_TRUE(event.sequence_recorded);
  EXPECT_EQ(event.peers, (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(StandInText, OnlyTheFirstWordMakesOne) {
  EXPECT_TRUE(announces_collective("bubblesim.collective"));
  EXPECT_TRUE(announces_collective("bubblesim.collective op=send"));
  EXPECT_FALSE(announces_collective("bubblesim.collectives op=send"));
  EXPECT_FALSE(announces_collective("bubblesim.fill op=send"));
  EXPECT_FALSE(announces_collective(""));
}

TEST(StandInText, WhatIsAbsentOrOddIsNotRecorded) {
  const CollectiveEvent empty = read_announcement("bubblesim.collective");
  EXPECT_EQ(empty.kind, CollectiveKind::kUnknown);
  EXPECT_FALSE(empty.sequence_recorded);
  const CollectiveEvent odd = read_announcement(
      "bubblesim.collective op=juggle bytes=12x seq=-1 size=99999999999999 new=1 word =x");
  EXPECT_EQ(odd.kind, CollectiveKind::kUnknown);
  EXPECT_EQ(odd.bytes, 0U);
  EXPECT_EQ(odd.group_size, 0U);
  EXPECT_FALSE(odd.sequence_recorded);
}

TEST(StandInText, RanksAreSpansStepsAndLists) {
  EXPECT_EQ(ranks("3-15/4"), (Ranks{3, 7, 11, 15}));
  EXPECT_EQ(ranks("0,3,5"), (Ranks{0, 3, 5}));
  EXPECT_EQ(ranks("6"), (Ranks{6}));
  EXPECT_TRUE(ranks("").empty());
  EXPECT_TRUE(ranks("7-3").empty());
  EXPECT_TRUE(ranks("0-7/0").empty());
  EXPECT_TRUE(ranks("a").empty());
  EXPECT_EQ(ranks("0-4294967295").size(), 65'536U);  // bounded
}

TEST(StandInText, AnyTextIsRead) {
  std::mt19937 random(11);
  const std::string letters = "=- /,0123456789opseqranksbytes\x80\xFF";
  std::uniform_int_distribution<std::size_t> letter(0, letters.size() - 1), length(0, 120);
  for (int i = 0; i < 5'000; ++i) {
    std::string text = "bubblesim.collective ";
    for (std::size_t n = length(random); n > 0; --n) text += letters[letter(random)];
    EXPECT_LE(read_announcement(text).peers.size(), 65'536U);
  }
}

SchemaAttributes schema_of(std::uint64_t number, std::span<const SchemaEntry> entries,
                           std::size_t size) {
  SchemaAttributes schema{};
  schema.fields = kSchemaEntries | kSchemaEntryCount | kSchemaSize | kSchemaId;
  schema.entries = entries.data();
  schema.entry_count = entries.size();
  schema.size = size;
  schema.schema = kFirstStaticSchema + number;
  return schema;
}

SchemaEntry entry(std::uint64_t type, const char* name, std::uint64_t offset = 0) {
  SchemaEntry out{};
  out.type = type;
  out.name = name;
  out.offset = offset;
  return out;
}

constexpr std::uint64_t kInt = 5, kUint64 = 18, kSize = 22;

template <class Payload>
NcclPayload read(std::uint64_t number, const Payload& payload, std::size_t size = sizeof(Payload)) {
  const PayloadData data{kFirstStaticSchema + number, size, &payload};
  return read_nccl_payload({&data, 1});
}

TEST(NcclPayload, OperationsAreReadByIdAndSizeWithoutRegistration) {
  struct { std::uint64_t communicator, bytes; std::int32_t op; } all_reduce{77, 4096, 0};
  EXPECT_EQ(read(5, all_reduce).communicator, 77U);
  EXPECT_EQ(read(5, all_reduce).bytes, 4096U);
  struct { std::uint64_t communicator, bytes; } all_gather{78, 512};
  EXPECT_EQ(read(4, all_gather).communicator, 78U);
  EXPECT_EQ(read(4, all_gather).bytes, 512U);
  // NCCL before 2.25 does not say the communicator.
  struct { std::uint64_t bytes; std::int32_t op; } old_all_reduce{4096, 0};
  EXPECT_EQ(read(5, old_all_reduce).bytes, 4096U);
  EXPECT_EQ(read(5, old_all_reduce).communicator, 0U);
  const std::uint64_t old_all_gather = 512;
  EXPECT_EQ(read(4, old_all_gather).bytes, 512U);
}

// Before 2.25, too. A peer is one more than NCCL's number; none: 0.
TEST(NcclPayload, SendsAndReceivesNameTheirPeer) {
  struct { std::uint64_t communicator, bytes; std::int32_t peer; } send{77, 4096, 0};
  EXPECT_EQ(read(9, send).peer, 1U);
  EXPECT_EQ(read(5, send).peer, 0U);  // an all-reduce's operation
  struct { std::uint64_t bytes; std::int32_t peer; } old_receive{4096, 6};
  EXPECT_EQ(read(10, old_receive).peer, 7U);
  EXPECT_EQ(read(10, old_receive, 8).peer, 0U);
  send.peer = -1;
  EXPECT_EQ(read(9, send).peer, 0U);
  const std::array entries{entry(kUint64, "NCCL communicator ID"),
                           entry(kSize, "Message size [bytes]"), entry(kInt, "Peer rank")};
  register_nccl_schema(schema_of(65, entries, 24));
  send.peer = 2;
  EXPECT_EQ(read(65, send).peer, 3U);
}

TEST(NcclPayload, OtherSizesAndIdsAreNotGuessed) {
  const std::array<std::uint64_t, 8> payload{9, 9, 9, 9, 9, 9, 9, 9};
  EXPECT_EQ(read(5, payload).bytes, 0U);
  EXPECT_EQ(read(0, payload, 24).bytes, 0U);
  EXPECT_EQ(read(127, payload, 24).bytes, 0U);
  EXPECT_EQ(read(1'000'000, payload, 24).bytes, 0U);
  EXPECT_EQ(read(5, payload, std::numeric_limits<std::size_t>::max()).bytes, 0U);
}

TEST(NcclPayload, FieldsAreFoundByTheNamesThatAreRegistered) {
  const std::array entries{entry(kInt, "Root"), entry(kSize, "Message size [bytes]"),
                           entry(kUint64, "NCCL communicator ID")};  // placed as in C: 0, 8, 16
  register_nccl_schema(schema_of(60, entries, 24));
  struct { std::int32_t root; std::uint64_t bytes, communicator; } payload{1, 2, 3};
  EXPECT_EQ(read(60, payload).bytes, 2U);
  EXPECT_EQ(read(60, payload).communicator, 3U);
  EXPECT_EQ(read(60, payload, std::numeric_limits<std::size_t>::max()).communicator, 3U);
  EXPECT_EQ(read(60, payload, 16).communicator, 0U);  // shorter than said: what is there
  EXPECT_EQ(read(60, payload, 16).bytes, 2U);
}

TEST(NcclPayload, CommunicatorsAreRememberedWithTheirRanks) {
  const std::array entries{entry(kUint64, "NCCL communicator ID"), entry(kInt, "No. of ranks", 8),
                           entry(kInt, "Rank", 12), entry(kInt, "CUDA device", 16)};
  register_nccl_schema(schema_of(61, entries, 24));
  struct { std::uint64_t communicator; std::int32_t ranks, rank, device; } made{500, 8, 3, 3};
  const NcclPayload payload = read(61, made);
  EXPECT_EQ(payload.ranks, 8U);
  EXPECT_EQ(payload.place, 4U);
  EXPECT_EQ(known_communicator(500).ranks, 0U);
  remember_communicator(payload);
  EXPECT_EQ(known_communicator(500).ranks, 8U);
  EXPECT_EQ(known_communicator(500).place, 4U);
  EXPECT_EQ(known_communicator(0).ranks, 0U);
  made.rank = 5;  // of another GPU of the process: which one calls, nothing says
  remember_communicator(read(61, made));
  EXPECT_EQ(known_communicator(500).place, 0U);
  remember_communicator(payload);
  EXPECT_EQ(known_communicator(500).place, 0U);
  made.ranks = -1;
  EXPECT_EQ(read(61, made).ranks, 0U);
}

TEST(NcclPayload, OddRegistrationsAreIgnored) {
  register_nccl_schema({});
  SchemaAttributes schema = schema_of(62, {}, 8);
  register_nccl_schema(schema);  // null entries
  const std::array odd{entry(0, nullptr), entry(kSize, "Message size [bytes]")};
  schema = schema_of(63, odd, 8);
  register_nccl_schema(schema);
  const std::array far{entry(kSize, "Message size [bytes]", 1ULL << 40U)};
  register_nccl_schema(schema_of(64, far, 8));
  schema.schema = 5;
  register_nccl_schema(schema);
  const std::uint64_t payload = 5;
  EXPECT_EQ(read(63, payload).bytes, 0U);
  EXPECT_EQ(read(64, payload).bytes, 0U);
  const PayloadData null{kFirstStaticSchema + 5, 24, nullptr};
  EXPECT_EQ(read_nccl_payload({&null, 1}).bytes, 0U);
}

// A holder that is preempted is waited for; one that never comes back is not, and once only.
TEST(BoundedLock, WaitsForAHolderThatIsPreempted) {
  BoundedLock lock;
  std::atomic<bool> is_held{false};
  std::thread holder([&] {
    const BoundedLock::Held held(lock);
    is_held = true;
    std::this_thread::sleep_for(10ms);
  });
  while (!is_held) std::this_thread::yield();
  EXPECT_TRUE(BoundedLock::Held(lock));
  holder.join();
}

TEST(BoundedLock, IsAbandonedUntilItsHolderLetsGo) {
  BoundedLock lock;
  std::optional<BoundedLock::Held> holder(std::in_place, lock);
  for (int i = 0; i < 10'000; ++i) {  // a sixth of an hour, if each of them waited
    ASSERT_FALSE(BoundedLock::Held(lock));
  }
  holder.reset();
  EXPECT_TRUE(BoundedLock::Held(lock));
}

}  // namespace
}  // namespace bubblesim::capture
