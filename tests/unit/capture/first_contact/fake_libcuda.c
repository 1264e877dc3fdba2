// A driver without a device for capture/first_contact: what cuda.py calls, on a timeline of the
// host's clock. FAKE_LIBCUDA says which calls fail and with what: "cuInit=100,cuLaunchKernel=719".
// A client of MPS with a percentage has so many of the SMs.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
enum { kSms = 4, kBlocksPerSm = 2, kFunctions = 3 };

static const char* const kNames[kFunctions] = {"blocks", "watch", "stream"};
static uint64_t busy_until;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fault(const char* call) {
  const char* const wanted = getenv("FAKE_LIBCUDA");
  const char* const found = wanted ? strstr(wanted, call) : NULL;
  return found && found[strlen(call)] == '=' ? atoi(found + strlen(call) + 1) : 0;
}
#define FAULT_OF(call) do { const int code_ = fault(call); if (code_ != 0) return code_; } while (0)

static int sms(void) {
  const char* const share = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  const int seen = share ? kSms * atoi(share) / 100 : kSms;
  return seen > 0 ? seen : 1;
}

static void wait_until(uint64_t end) {
  while (now_ns() < end) {
    const struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
  }
}

// Blocks in waves; each takes a nanosecond a loop.
static void run_blocks(uint64_t* out, unsigned grid, unsigned loops) {
  const uint64_t begun = now_ns() > busy_until ? now_ns() : busy_until;
  const unsigned wave = (unsigned)(sms() * kBlocksPerSm);
  for (unsigned i = 0; i < grid; ++i) {
    out[3 * i] = begun + (uint64_t)(i / wave) * loops;
    out[3 * i + 1] = out[3 * i] + loops;
    out[3 * i + 2] = i % (unsigned)sms();
    busy_until = out[3 * i + 1];
  }
}

// On the GPU for 2 ms of every 4.4 ms.
static void run_watch(uint64_t* out, uint64_t length, uint64_t gap, unsigned room) {
  const uint64_t first = now_ns();
  uint64_t at = first;
  unsigned found = 0;
  while (at + 4400000 < first + length && found < room && gap < 2400000) {
    out[3 + 2 * found] = at + 2000000;
    out[4 + 2 * found] = at + 4400000;
    at += 4400000;
    ++found;
  }
  out[0] = first;
  out[1] = busy_until = first + length;
  out[2] = found;
}

EXPORT int cuInit(unsigned flags) { FAULT_OF("cuInit"); return (int)flags; }
EXPORT int cuDriverGetVersion(int* version) {
  const char* const wanted = getenv("FAKE_DRIVER_VERSION");
  *version = wanted ? atoi(wanted) : 13000;
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) { *count = 1; return 0; }
EXPORT int cuDeviceGetName(char* name, int room, int device) {
  (void)device;
  snprintf(name, (size_t)room, "NVIDIA H100 of a test");
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  FAULT_OF("cuDeviceGetAttribute");
  *value = attribute == 16 ? sms() : attribute == 75 ? 9 : 0;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  FAULT_OF("cuDevicePrimaryCtxRetain");
  *context = &busy_until;
  return 0;
}
EXPORT int cuCtxSetCurrent(void* context) { return context == NULL; }
EXPORT int cuCtxGetCurrent(void** context) { *context = &busy_until; return 0; }
EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* keys,
                              void** values) {
  const int code = fault("cuModuleLoadDataEx");
  if (code != 0 && count == 2 && keys[0] == 5)
    snprintf(values[0], (size_t)values[1], "ptxas: this driver is too old");
  *module = (void*)image;
  return code;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  for (intptr_t i = 0; i < kFunctions; ++i) {
    if (strcmp(name, kNames[i]) != 0) continue;
    *function = (void*)(i + 1);
    return 0;
  }
  return 500;
}
EXPORT int cuMemAlloc_v2(uint64_t* pointer, size_t size) {
  FAULT_OF("cuMemAlloc_v2");
  const char* const limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  if (limit && size >> 20 > strtoul(limit + strlen("0="), NULL, 10)) return 2;
  *pointer = (uint64_t)(uintptr_t)calloc(1, size);
  return *pointer == 0 ? 2 : 0;
}
EXPORT int cuCtxSynchronize(void) {
  wait_until(busy_until);
  return fault("cuCtxSynchronize");
}
EXPORT int cuMemcpyDtoH_v2(void* host, uint64_t pointer, size_t size) {
  wait_until(busy_until);
  memcpy(host, (const void*)(uintptr_t)pointer, size);
  return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned grid, unsigned y, unsigned z, unsigned block,
                          unsigned by, unsigned bz, unsigned shared, void* stream, void** values,
                          void** extra) {
  FAULT_OF("cuLaunchKernel");
  (void)stream;
  if (y * z * by * bz != 1 || block == 0 || shared != 0 || extra != NULL) return 1;
  uint64_t* const out = *(uint64_t**)values[0];
  switch ((intptr_t)function) {
    case 1: run_blocks(out, grid, *(unsigned*)values[1]); return 0;
    case 2:
      run_watch(out, *(uint64_t*)values[1], *(uint64_t*)values[2], *(unsigned*)values[3]);
      return 0;
    case 3: busy_until = now_ns() + 100000u * kSms / (unsigned)sms(); return 0;
    default: return 400;
  }
}
// Streams are in order of their launches, as the default one: an event has nothing to wait for.
EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  *stream = calloc(1, 1);
  return flags != 1;
}
EXPORT int cuEventCreate(void** event, unsigned flags) {
  *event = calloc(1, 1);
  return flags != 2;
}
EXPORT int cuEventRecord(void* event, void* stream) { return event == NULL || stream == NULL; }
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return stream == NULL || event == NULL || flags != 0;
}
EXPORT int cuEventDestroy_v2(void* event) { free(event); return 0; }
EXPORT int cuGetErrorName(int code, const char** text) {
  *text = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : code == 46 ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : "CUDA_ERROR_OF_A_TEST";
  return 0;
}
