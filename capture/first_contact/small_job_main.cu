// A small program of CUDA's runtime with the options that campaigns give: --iterations N,
// --times FILE, --hold FOLDER. Two streams, an event between them, a copy, a graph, NVTX ranges:
// one of each thing that a recording is read for.
#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

// Not every toolkit has it; without ranges a recording ends with the job.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static void nvtxRangePushA(const char*) {}
static void nvtxRangePop() {}
#endif

__global__ void scale(float* data, int loops) {
  float value = data[blockIdx.x * blockDim.x + threadIdx.x];
  for (int i = 0; i < loops; ++i) value = fmaf(value, 1.0001f, 0.5f);
  data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "small job: %s: %s (%d)\n", call, cudaGetErrorString(code), code);
  std::exit(3);
}
#define CHECK(call) check(call, #call)

static bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

static void hold(const std::string& folder) {
  if (folder.empty()) return;
  if (std::system(("mkdir -p '" + folder + "'").c_str()) != 0) std::exit(3);
  std::ofstream(folder + "/ready.part") << getpid();
  if (std::rename((folder + "/ready.part").c_str(), (folder + "/ready").c_str()) != 0) std::exit(3);
  for (int i = 0; i < 24000 && !exists(folder + "/go"); ++i) usleep(5000);
}

int main(int argc, char** argv) {
  int iterations = 10;
  std::string times, held;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--iterations")) iterations = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--times")) times = argv[i + 1];
    if (!std::strcmp(argv[i], "--hold")) held = argv[i + 1];
  }
  constexpr int kBlocks = 512, kThreads = 256;
  constexpr std::size_t kBytes = sizeof(float) * kBlocks * kThreads;
  float *data = nullptr, *host = nullptr;
  cudaStream_t first, second;
  cudaEvent_t event;
  CHECK(cudaMalloc(&data, kBytes));
  CHECK(cudaMallocHost(&host, kBytes));
  CHECK(cudaMemset(data, 0, kBytes));
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 10; ++i) scale<<<kBlocks, kThreads, 0, first>>>(data, 500);
  CHECK(cudaStreamEndCapture(first, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  CHECK(cudaDeviceSynchronize());
  hold(held);
  std::vector<double> seconds;
  for (int number = 0; number < iterations; ++number) {
    const auto began = std::chrono::steady_clock::now();
    nvtxRangePushA(("iteration " + std::to_string(number)).c_str());
    float* scratch = nullptr;
    CHECK(cudaMalloc(&scratch, kBytes));
    for (int i = 0; i < 50; ++i) scale<<<kBlocks, kThreads, 0, first>>>(data, 2000);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    CHECK(cudaMemcpyAsync(host, data, kBytes, cudaMemcpyDeviceToHost, second));
    CHECK(cudaGraphLaunch(ready, first));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(scratch));
    nvtxRangePop();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  CHECK(cudaGetLastError());
  if (times.empty()) return 0;
  std::ofstream out(times);
  out << "{\"device\": \"cuda\", \"torch\": null, \"cuda\": null, \"iteration_s\": [";
  for (std::size_t i = 0; i < seconds.size(); ++i) out << (i ? ", " : "") << seconds[i];
  out << "]}\n";
  return 0;
}
