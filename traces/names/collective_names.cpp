#include "traces/names/collective_names.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <span>

namespace bubblesim::traces {
namespace {

/// Lower case without underscores: "_reduce_scatter_base" and "ReduceScatter" become alike.
std::string squeezed(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_') out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

struct NamePart {
  std::string_view part;
  CollectiveKind kind;
};

/// The first part that occurs decides, so longer names come before what they contain.
constexpr std::array kParts{
    NamePart{"reducescatter", CollectiveKind::kReduceScatter},
    NamePart{"allreduce", CollectiveKind::kAllReduce},
    NamePart{"crossdevicereduce", CollectiveKind::kAllReduce},
    NamePart{"allgather", CollectiveKind::kAllGather},
    NamePart{"alltoall", CollectiveKind::kAllToAll},
    NamePart{"all2all", CollectiveKind::kAllToAll},
    NamePart{"broadcast", CollectiveKind::kBroadcast},
    NamePart{"sendrecv", CollectiveKind::kSendRecv},
    NamePart{"barrier", CollectiveKind::kBarrier},
    NamePart{"reduce", CollectiveKind::kReduce},
    NamePart{"send", CollectiveKind::kSend},
    NamePart{"recv", CollectiveKind::kRecv},
    // userbuffers_fp16_sum_inplace_gpu_{rw,rr,mc}[_ag|_rs...] of Transformer Engine.
    NamePart{"gpurwag", CollectiveKind::kAllGather},
    NamePart{"gpurrag", CollectiveKind::kAllGather},
    NamePart{"gpumcag", CollectiveKind::kAllGather},
    NamePart{"gpurrrs", CollectiveKind::kReduceScatter},
    NamePart{"gpumcrs", CollectiveKind::kReduceScatter},
    NamePart{"suminplacegpu", CollectiveKind::kAllReduce},
};

CollectiveKind kind_in(std::string_view squeezed_name) {
  for (const NamePart& entry : kParts) {
    if (squeezed_name.find(entry.part) != std::string_view::npos) return entry.kind;
  }
  return CollectiveKind::kUnknown;
}

/// The kernel's name up to its template arguments and parameters, which name types, not what the
/// kernel does. A nameless namespace before it is in brackets too: "(anonymous namespace)::" in
/// Kineto's files, "<unnamed>::" in exports of Nsight Systems.
std::string_view before_arguments(std::string_view kernel_name) {
  static constexpr std::array<std::string_view, 2> kNameless{"(anonymous namespace)::",
                                                             "<unnamed>::"};
  std::size_t end = kernel_name.find_first_of("(<");
  while (end != std::string_view::npos) {
    const std::string_view rest = kernel_name.substr(end);
    const auto nameless = std::ranges::find_if(
        kNameless, [rest](std::string_view text) { return rest.starts_with(text); });
    if (nameless == kNameless.end()) break;
    end = kernel_name.find_first_of("(<", end + nameless->size());
  }
  return kernel_name.substr(0, end);
}

bool is_nccl(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("msccl");
}

bool has_any(std::string_view name, std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// NVSHMEM and DeepEP (deepseek-ai/DeepEP csrc/kernels: deep_ep::internode, internode_ll, intranode;
// dpsk::ep:: in DeepSeek's own build, deepseek-ai/profile-data).
bool exchanges_tokens(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kExchanges{"nvshmem", "ep::internode",
                                                              "ep::intranode"};
  return has_any(name, kExchanges);
}

}  // namespace

bool is_communication_kernel(std::string_view kernel_name) {
  // In the last rows: NVIDIA/TensorRT-LLM cpp/tensorrt_llm/kernels/customAllReduceKernels.cu (one
  // and two shots; others took the names over), NVIDIA/TransformerEngine
  // transformer_engine/common/comm_gemm_overlap/userbuffers/userbuffers.cu, vllm-project/vllm
  // csrc/quickreduce/quick_reduce.h, ROCm/aiter csrc/include/custom_all_reduce.cuh.
  static constexpr std::array<std::string_view, 15> kPartsOfNames{
      "cross_device_reduce", "multimem_all_reduce", "multimem_all_gather",
      "multimem_one_shot_all_reduce", "one_shot_all_reduce", "two_shot_all_reduce",
      "mscclpp::", "allreduce_fusion_kernel", "bubblesim_standin_",
      "ShotAllReduceKernel", "userbuffers_fp16_sum_inplace_gpu", "userbuffers_push",
      "userbuffers_pull", "allreduce_prototype", "reduce_scatter_cross_device_store"};
  return is_nccl(kernel_name) || exchanges_tokens(kernel_name) ||
         has_any(kernel_name, kPartsOfNames);
}

CollectiveKind kind_of_kernel(std::string_view kernel_name) {
  if (exchanges_tokens(kernel_name)) return CollectiveKind::kUnknown;
  return kind_in(squeezed(before_arguments(kernel_name)));
}

CollectiveKind kind_of_collective(std::string_view collective_name) {
  return kind_in(squeezed(collective_name));
}

std::optional<std::uint32_t> dtype_bytes(std::string_view dtype) {
  struct Size {
    std::string_view name;
    std::uint32_t bytes;
  };
  static constexpr std::array kSizes{
      Size{"float", 4},  Size{"half", 2},  Size{"bfloat16", 2}, Size{"double", 8},
      Size{"int", 4},    Size{"long", 8},  Size{"byte", 1},     Size{"char", 1},
      Size{"bool", 1},   Size{"short", 2}, Size{"float16", 2},  Size{"float32", 4},
      Size{"float64", 8}, Size{"int8", 1}, Size{"uint8", 1},    Size{"int32", 4},
      Size{"int64", 8},  Size{"complexhalf", 4}, Size{"complexfloat", 8},
      Size{"complexdouble", 16}};
  const std::string name = squeezed(dtype);
  for (const Size& size : kSizes) {
    if (name == size.name) return size.bytes;
  }
  if (name.starts_with("float8")) return 1;
  return std::nullopt;
}

namespace {

constexpr std::array<std::string_view, 6> kIterationWords{
    "profilerstep#", "bubblesim.iteration", "iteration", "iter", "training_step", "step"};
constexpr std::array<std::string_view, 3> kMicroBatchWords{"micro-batch", "micro_batch",
                                                           "microbatch"};
constexpr std::array<std::string_view, 5> kPhases{"forward", "backward", "optimizer", "prefill",
                                                  "decode"};

std::string lowered(std::string_view name) {
  std::string text(name.substr(0, 256));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The number that is all of `text` after blanks and separators.
std::optional<std::int64_t> number_in(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" :#_=");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  std::int64_t number = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

template <std::size_t N>
std::optional<std::int64_t> numbered(std::string_view name,
                                     const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    if (!name.starts_with(word)) continue;
    if (const auto number = number_in(name.substr(word.size()))) return number;
  }
  return std::nullopt;
}

}  // namespace

MarkerClass classify_marker(std::string_view name) {
  const std::string text = lowered(name);
  if (const auto number = numbered(text, kIterationWords)) return {MarkerKind::kIteration, *number};
  if (const auto number = numbered(text, kMicroBatchWords)) {
    return {MarkerKind::kMicroBatch, *number};
  }
  const bool phase = text.starts_with("phase:") ||
                     std::find(kPhases.begin(), kPhases.end(), text) != kPhases.end();
  return {phase ? MarkerKind::kPhase : MarkerKind::kUser, -1};
}

namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

std::string demangled(const char* name) {
  int status = -1;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  // It also takes names of types: a C function "f" would be "float".
  const bool function = std::string_view(name).starts_with("_Z");
  return function && status == 0 && text ? text.get() : name;
}

}  // namespace bubblesim::traces
