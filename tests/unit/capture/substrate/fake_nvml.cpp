// A libnvidia-ml of two cards; the second says little. What the first says is in the environment.
#include <cstdio>
#include <cstdlib>

#define CALL extern "C" __attribute__((visibility("default"))) int

namespace {

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
int say(char* into, unsigned bytes, const char* text) {
  std::snprintf(into, bytes, "%s", text);
  return 0;
}
int first_only(void* device, unsigned* into, unsigned value) {
  if (device != reinterpret_cast<void*>(1)) return 3;
  *into = value;
  return 0;
}

}  // namespace

CALL nvmlInit_v2() { return from_environment("FAKE_NVML_INIT", 0); }
CALL nvmlShutdown() { return 0; }
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int) {
  return "Driver Not Loaded";
}
CALL nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
CALL nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return 0;
}
CALL nvmlDeviceGetName(void*, char* into, unsigned bytes) { return say(into, bytes, "H100"); }
CALL nvmlDeviceGetUUID(void* device, char* into, unsigned bytes) {
  return say(into, bytes, device == reinterpret_cast<void*>(1) ? "GPU-a" : "GPU-b");
}
CALL nvmlSystemGetDriverVersion(char* into, unsigned bytes) {
  return say(into, bytes, "580.65.06");
}
// An H100 SXM's; a device of compute capability 99 is not known.
CALL nvmlDeviceGetNumGpuCores(void*, unsigned* cores) {
  *cores = 16'896;
  return 0;
}
CALL nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = device == reinterpret_cast<void*>(1) ? 9 : 99;
  *minor = 0;
  return 0;
}
CALL nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  if (device != reinterpret_cast<void*>(1)) return 3;
  memory[0] = 85'520'809'984ULL;
  memory[1] = 80'000'000'000ULL;
  memory[2] = memory[0] - memory[1];
  return 0;
}
CALL nvmlDeviceGetClockInfo(void* device, unsigned clock, unsigned* mhz) {
  return first_only(device, mhz, clock == 1 ? 1980 : 2619);
}
CALL nvmlDeviceGetComputeMode(void* device, unsigned* mode) {
  return first_only(device, mode, unsigned(from_environment("FAKE_NVML_MODE", 0)));
}
CALL nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return first_only(device, current, 0);
}
