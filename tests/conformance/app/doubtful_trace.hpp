// A PyTorch trace most of whose time no recorded dependency explains: kernels of 200 us on an idle
// stream, each 300 to 448 us after its launch, a latency that no hardware has.
#pragma once

#include <string>

#include "sim/base/json.hpp"

namespace bubblesim::app_test {

inline std::string doubtful_trace() {
  Json events = Json::array();
  const auto add = [&](const char* category, const std::string& name, int pid, int begin,
                       int length, Json args) {
    events.push_back({{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", pid}, {"tid", 7},
                      {"ts", begin}, {"dur", length}, {"args", std::move(args)}});
  };
  int now = 0;
  for (int step = 0, correlation = 1; step < 6; ++step) {
    const int begin = now;
    for (int i = 0; i < 10; ++i, correlation += 2) {
      const int late = 300 + 37 * ((7 * i + 3 * step) % 5);
      add("cuda_runtime", "cudaLaunchKernel", 1, now, 5, {{"correlation", correlation}});
      add("kernel", "gemm", 0, now + late, 200,
          {{"device", 0}, {"stream", 7}, {"correlation", correlation}, {"grid", {108, 1, 1}},
           {"block", {256, 1, 1}}, {"registers per thread", 32}, {"shared memory", 0}});
      add("cuda_runtime", "cudaStreamSynchronize", 1, now + 10, late + 195,
          {{"correlation", correlation + 1}});
      now += late + 215;
    }
    add("user_annotation", "ProfilerStep#" + std::to_string(step), 1, begin, now - begin - 1,
        Json::object());
  }
  return Json{{"deviceProperties",
               {{{"id", 0}, {"name", "NVIDIA A100-SXM4-40GB"}, {"numSms", 108}}}},
              {"traceEvents", events}}
      .dump();
}

}  // namespace bubblesim::app_test
