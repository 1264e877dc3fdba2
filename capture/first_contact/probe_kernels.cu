// Kernels of the probes of sharing. probe_kernels.ptx is made from this file, and is in the tree
// since the machine may have no compiler:
//
//   nvcc -ptx -O3 -arch=compute_75 probe_kernels.cu -o probe_kernels.ptx
//   sed -i -e 's/^\.version.*/.version 7.0/' -e 's/^\.target.*/.target sm_70/' probe_kernels.ptx
//
// Nothing in it is newer than PTX 7.0, so that drivers from CUDA 11.0 on assemble it.
using U64 = unsigned long long;

__device__ U64 device_ns() {
  U64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Fixed work, four chains of dependent FMAs a thread. Of each block three words: start, end, SM.
extern "C" __global__ void blocks(U64* out, unsigned loops) {
  const U64 start = device_ns();
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  for (unsigned i = 0; i < loops; ++i) {
    a = fmaf(a, 1.0001f, 0.5f);
    b = fmaf(b, 1.0001f, 0.5f);
    c = fmaf(c, 1.0001f, 0.5f);
    d = fmaf(d, 1.0001f, 0.5f);
  }
  __syncthreads();
  const U64 end = device_ns();
  if (threadIdx.x != 0) return;
  U64* const row = out + 3ull * blockIdx.x;
  row[0] = start;
  row[1] = end;
  row[2] = sm;
  if (a + b + c + d == 12345.0f) row[2] = ~0ull;  // never; keeps the chains
}

/// Looks at the device's clock for `length` ns. The first thread writes down where it stood still
/// for more than `gap`: the process was switched out. Words: first, last, gaps found; then each
/// gap's two ends. The others only hold their room.
extern "C" __global__ void watch(U64* out, U64 length, U64 gap, unsigned room) {
  const bool writes = threadIdx.x == 0 && blockIdx.x == 0;
  const U64 first = device_ns();
  U64 before = first, now = first;
  unsigned found = 0;
  do {
    now = device_ns();
    if (writes && now - before > gap && found < room) {
      out[3 + 2ull * found] = before;
      out[4 + 2ull * found] = now;
      ++found;
    }
    before = now;
  } while (now - first < length);
  if (!writes) return;
  out[0] = first;
  out[1] = now;
  out[2] = found;
}

/// Reads `count` times 16 bytes.
extern "C" __global__ void stream(const float4* source, U64 count, float* out) {
  float sum = 0;
  const U64 step = static_cast<U64>(gridDim.x) * blockDim.x;
  for (U64 i = static_cast<U64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const float4 value = source[i];
    sum += value.x + value.y + value.z + value.w;
  }
  if (sum == 12345.0f) *out = sum;  // never; keeps the reads
}
