#include "capture/record/nccl/nccl_calls.hpp"

#include <array>
#include <limits>

namespace bubblesim::capture {
namespace {

using traces::CollectiveKind;

struct NamedCall {
  std::string_view name;
  NcclCall call;
};

constexpr std::array<NamedCall, 13> kCalls{{
    {"AllReduce", {CollectiveKind::kAllReduce, NcclInput::kMessage}},
    {"AllGather", {CollectiveKind::kAllGather, NcclInput::kMessage}},
    {"AllGatherV", {CollectiveKind::kAllGather, NcclInput::kMessage}},
    {"ReduceScatter", {CollectiveKind::kReduceScatter, NcclInput::kMessageEachRank}},
    {"Broadcast", {CollectiveKind::kBroadcast, NcclInput::kMessage}},
    {"Bcast", {CollectiveKind::kBroadcast, NcclInput::kMessage}},
    {"Reduce", {CollectiveKind::kReduce, NcclInput::kMessage}},
    {"AlltoAll", {CollectiveKind::kAllToAll, NcclInput::kMessageEachRank}},
    {"Send", {CollectiveKind::kSend, NcclInput::kMessage}},
    {"Recv", {CollectiveKind::kRecv, NcclInput::kMessage}},
    {"SendRecv", {CollectiveKind::kSendRecv, NcclInput::kMessage}},
    {"Gather", {CollectiveKind::kUnknown, NcclInput::kMessage}},
    {"Scatter", {CollectiveKind::kUnknown, NcclInput::kMessageEachRank}},
}};

struct NamedType {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<NamedType, 17> kTypes{{
    {"Int8", 1},        {"Uint8", 1},       {"Char", 1},        {"Float8e4m3", 1},
    {"Float8e5m2", 1},  {"Fp8E4M3", 1},     {"Fp8E5M2", 1},     {"Float16", 2},
    {"Half", 2},        {"Bfloat16", 2},    {"Int32", 4},       {"Int", 4},
    {"Uint32", 4},      {"Float32", 4},     {"Int64", 8},       {"Uint64", 8},
    {"Float64", 8},
}};

constexpr std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "nccl";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return name;
}

}  // namespace

std::optional<NcclCall> nccl_call(const char* name) {
  if (name == nullptr) return std::nullopt;
  const std::string_view wanted = without_prefix(name);
  for (const NamedCall& known : kCalls) {
    if (known.name == wanted) return known.call;
  }
  return std::nullopt;
}

std::uint64_t nccl_type_bytes(const char* name) {
  if (name == nullptr) return 0;
  const std::string_view wanted = without_prefix(name);
  for (const NamedType& known : kTypes) {
    if (known.name == wanted) return known.bytes;
  }
  return 0;
}

std::uint64_t nccl_input_bytes(const NcclCall& call, std::uint64_t message_bytes,
                               std::uint32_t ranks) {
  if (call.input == NcclInput::kMessage || message_bytes == 0) return message_bytes;
  if (message_bytes > std::numeric_limits<std::uint64_t>::max() / (ranks == 0 ? 1 : ranks)) {
    return 0;
  }
  return message_bytes * ranks;
}

std::string nccl_group_name(std::uint64_t communicator_hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "nccl:";
  for (int shift = 60; shift >= 0; shift -= 4) name += kDigits[(communicator_hash >> shift) & 0xF];
  return name;
}

}  // namespace bubblesim::capture
