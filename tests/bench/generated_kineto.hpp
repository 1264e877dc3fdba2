// A generated trace in the JSON of PyTorch's profiler (Kineto), for the benchmarks of import. Its
// events have the mix of a training trace: mostly operators and Python frames, some calls and
// kernels.
#pragma once

#include <fmt/format.h>
#include <string>

namespace bubblesim::bench {

inline constexpr const char* kOperator = R"json(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 81, "tid": 137,
    "ts": {0}.390, "dur": 89.600,
    "args": {{
      "External id": {0},"Record function id": 0, "Sequence number": 11445, )json"
    R"json("Fwd thread id": 1, "Input type": ["c10::BFloat16", "long int"], )json"
    R"json("Input Dims": [[8, 1024, 768], []], "Ev Idx": {0}
    }}
  }},
)json";
inline constexpr const char* kFrame = R"json(  {{
    "ph": "X", "cat": "python_function", )json"
    R"json("name": "torch/nn/modules/module.py(1747): _call_impl", "pid": 81, "tid": 81,
    "ts": {0}.390, "dur": 890.600,
    "args": {{
      "Python parent id": {0}, "Python id": {0}, "Ev Idx": {0}
    }}
  }},
)json";
inline constexpr const char* kLaunch = R"json(  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 81, "tid": 81,
    "ts": {0}.401, "dur": 4.123,
    "args": {{
      "External id": {0}, "cbid": 211, "correlation": {0}
    }}
  }},
  {{
    "ph": "s", "id": {0}, "pid": 81, "tid": 81, "ts": {0}.401,
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": )json"
    R"json("void at::native::vectorized_elementwise_kernel<4, )json"
    R"json(at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, )json"
    R"json(at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)", )json"
    R"json("pid": 0, "tid": 7,
    "ts": {0}.912, "dur": 10.464,
    "args": {{
      "External id": {0}, "queued": 0, "device": 0, "context": 1, )json"
    R"json("stream": 7, "correlation": {0}, "registers per thread": 32, )json"
    R"json("shared memory": 2112, "blocks per SM": 47.515152, )json"
    R"json("warps per SM": 380.121216, "grid": [1568, 1, 4], "block": [256, 1, 1], )json"
    R"json("est. achieved occupancy %": 100
    }}
  }},
)json";

/// About 1.7 kB a step: four operators, four frames, one launch with its kernel.
inline std::string generated_kineto(int steps) {
  std::string out = R"({"schemaVersion": 1, "traceEvents": [)";
  for (int step = 0; step < steps; ++step) {
    const long at = 6322354273271L + 20L * step;
    for (int i = 0; i < 4; ++i) {
      out += fmt::format(fmt::runtime(kOperator), at + i);
      out += fmt::format(fmt::runtime(kFrame), at + i);
    }
    out += fmt::format(fmt::runtime(kLaunch), at);
  }
  out += R"({"ph": "i", "name": "Record Window End", "ts": 0}], "baseTimeNanoseconds": 0})";
  return out;
}

}  // namespace bubblesim::bench
