#include "capture/record/nvtx/nccl_payload.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

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

}  // namespace
}  // namespace bubblesim::capture
