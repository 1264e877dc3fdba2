// Stand-ins for kernels of a trace: the same grid, block, shared memory and registers, and work
// that keeps the SM's issue slots, tensor cores and DRAM as busy as an estimate says.
//
// Work is fixed: a block does its loops however long they take, so that a stand-in that shares an
// SM or is switched out takes longer, as the kernel that it stands for would. Only collectives wait
// for time, for their time is the network's.

#include "capture/replay/cuda/stand_in_arguments.hpp"

namespace {

using namespace bubblesim::capture::cuda;

__device__ __forceinline__ std::uint64_t global_time() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ __forceinline__ RecordSlot volatile* slot_of(std::uint64_t slots, std::uint32_t count,
                                                        std::uint64_t executions) {
  auto* first = reinterpret_cast<RecordSlot volatile*>(slots);
  return first + (executions & (count - 1));
}

/// A time and its number, in one store: the host never sees one without the other, and the kernel
/// does not wait for the host's memory.
__device__ __forceinline__ void write_pair(std::uint64_t volatile* pair, std::uint64_t ns,
                                           std::uint64_t n) {
  asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(pair), "l"(ns), "l"(n) : "memory");
}

/// Executions that ended before this one. By their numbers records are known, so that an old value
/// from the L1 cache would lose one: the host would wait for it without end.
__device__ __forceinline__ std::uint64_t executions_before(std::uint64_t state_at) {
  auto* state = reinterpret_cast<OperationState*>(state_at);
  return __ldcg(reinterpret_cast<unsigned long long*>(&state->progress)) >> 32;
}

/// The same by way of the L1 cache, where an older number does no harm.
__device__ __forceinline__ std::uint64_t executions_seen(std::uint64_t state_at) {
  auto* state = reinterpret_cast<OperationState*>(state_at);
  return __ldca(reinterpret_cast<unsigned long long*>(&state->progress)) >> 32;
}

/// One thread of the first block: GPUs start blocks in the order of their ranks. It waits for
/// nothing but the number, since a block that starts its work late ends it late.
__device__ __forceinline__ void begin(std::uint64_t slots, std::uint32_t slot_count,
                                      std::uint64_t now, std::uint64_t executions) {
  write_pair(&slot_of(slots, slot_count, executions)->start_ns, now, executions + 1);
}

/// One thread of every block of a collective; returns the first block's start.
__device__ __forceinline__ std::uint64_t begin_together(std::uint64_t state_at, std::uint64_t slots,
                                                        std::uint32_t slot_count) {
  auto* state = reinterpret_cast<OperationState*>(state_at);
  const std::uint64_t now = global_time();
  const std::uint64_t executions = executions_before(state_at);
  const std::uint64_t first = atomicCAS(
      reinterpret_cast<unsigned long long*>(&state->start_ns), 0ULL,
      static_cast<unsigned long long>(now));
  if (first != 0) return first;
  begin(slots, slot_count, now, executions);
  return now;
}

/// One thread of each of `blocks` blocks, after its block's work. The operation's next execution
/// starts after this kernel's end, so plain stores reset the state. No fence: a block publishes
/// nothing but its count.
__device__ __forceinline__ void end(std::uint64_t state_at, std::uint64_t slots,
                                    std::uint32_t slot_count, std::uint32_t blocks) {
  auto* state = reinterpret_cast<OperationState*>(state_at);
  const std::uint64_t before =
      atomicAdd(reinterpret_cast<unsigned long long*>(&state->progress), 1ULL);
  if (static_cast<std::uint32_t>(before) != blocks - 1) return;
  const std::uint64_t n = before >> 32;
  write_pair(&slot_of(slots, slot_count, n)->end_ns, global_time(), n + 1);
  state->start_ns = 0;
  state->progress = (n + 1) << 32;
}

__device__ __forceinline__ bool is_first_thread() {
  return threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
}
__device__ __forceinline__ std::uint32_t thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ __forceinline__ std::uint64_t block_rank() {
  const std::uint64_t row = blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z;
  return blockIdx.x + std::uint64_t{gridDim.x} * row;
}
__device__ __forceinline__ std::uint32_t grid_blocks() {
  return gridDim.x * gridDim.y * gridDim.z;
}

/// Loops of a block; of a collective, nanoseconds.
__device__ __forceinline__ float amount_of(const StandInArguments& arguments) {
  const float scale =
      arguments.scale == 0 ? 1.0F : __ldca(reinterpret_cast<float*>(arguments.scale));
  return fmaxf(fmaf(arguments.slope, scale, arguments.base), 0.0F);
}

// Parts of 2^32 that spread evenly over the ranks of blocks, each by itself and both together.
constexpr std::uint32_t kLoopSpread = 3242174889U;
constexpr std::uint32_t kStepSpread = 2447445414U;

/// Units of the last loop. What is left of a loop lies between two numbers of units: as large a
/// share of the blocks does the larger one. A kernel of many blocks lasts what it should, where the
/// rounding of whole loops would be a wave's time for each; lone blocks round.
__device__ __forceinline__ std::uint32_t units_of(float part, std::uint32_t units) {
  const std::uint32_t at = static_cast<std::uint32_t>(block_rank()) * kLoopSpread + 0x80000000U;
  return static_cast<std::uint32_t>(part * static_cast<float>(units) +
                                    static_cast<float>(at >> 8) * 0x1p-24F);
}

__device__ __forceinline__ std::uint32_t take(std::uint32_t& left, std::uint32_t most) {
  const std::uint32_t taken = left < most ? left : most;
  left -= taken;
  return taken;
}

/// Registers that are held for their number alone: a chain through all of them, which runs as
/// rarely as the arguments say, keeps each of them live from the first loop to the last.
template <int kCount>
struct Held {
  float value[kCount > 0 ? kCount : 1];
  __device__ __forceinline__ void fill(float seed) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = seed + static_cast<float>(i);
  }
  __device__ __forceinline__ void use(float seed) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      value[i] = fmaf(value[(i + 1) % (kCount > 0 ? kCount : 1)], seed, value[i]);
  }
  __device__ __forceinline__ float sum() const {
    float total = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) total = fmaf(total, 0.5F, value[i]);
    return total;
  }
};

/// Memory steps of a thread: those done, and the part of one that has come due. Where the next one
/// reads is worked out when it is due: of a kernel of many short blocks few blocks do any, and what
/// each of them does before its work is what such a kernel lasts at least.
struct Streamed {
  std::uint32_t steps;
  std::uint32_t due;
};

/// Blocks begin at different parts of their first step: where a block's loops come to less than
/// one, that share of the blocks does it, and not none.
__device__ __forceinline__ Streamed stream_from_rank() {
  static_assert(kRateUnit == 1U << 20);
  return {0, static_cast<std::uint32_t>(block_rank()) * kStepSpread >> 12};
}

/// Threads of a block read neighbouring lines; blocks of a grid follow each other through the
/// buffer, which is larger than the L2 cache.
__device__ __forceinline__ float memory_step(const StandInArguments& arguments, Streamed& stream) {
  auto* lines = reinterpret_cast<float4*>(arguments.buffer);
  const std::uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
  const std::uint32_t stride = threads * grid_blocks();
  const auto executions = static_cast<std::uint32_t>(executions_seen(arguments.state));
  // Modulo 2^32, of which the buffer's lines are a part.
  std::uint32_t at = static_cast<std::uint32_t>(arguments.first_line) +
                     executions * static_cast<std::uint32_t>(arguments.advance) +
                     static_cast<std::uint32_t>(block_rank()) * threads + thread_rank() +
                     stream.steps * (kLinesPerStep * stride);
  ++stream.steps;
  float4 line[kLinesPerStep];
  std::uint32_t last = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kLinesPerStep; ++i) {
    last = at & static_cast<std::uint32_t>(arguments.buffer_lines - 1);
    line[i] = __ldcs(lines + last);
    at += stride;
  }
  float sum = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kLinesPerStep; ++i) sum += line[i].x + line[i].w;
  __stcs(lines + last, make_float4(sum, line[0].y, line[1].z, 0.0F));
  return sum;
}

__device__ __forceinline__ void sparse_units(std::uint32_t units, float& x, std::uint32_t warp) {
  for (std::uint32_t i = 0; i < units; ++i) x = __shfl_xor_sync(warp, x, 1);
}
__device__ __forceinline__ void dense_units(std::uint32_t units, float& x, float seed) {
  for (std::uint32_t i = 0; i < units; ++i) {
#pragma unroll
    for (std::uint32_t k = 0; k < kChain; ++k) x = fmaf(x, seed, seed);
  }
}
__device__ __forceinline__ void wide_units(std::uint32_t units, float (&x)[kWideChains],
                                           float seed) {
#pragma unroll 1
  for (std::uint32_t i = 0; i < units; ++i) {
#pragma unroll
    for (std::uint32_t k = 0; k < kChain; ++k) {
#pragma unroll
      for (std::uint32_t c = 0; c < kWideChains; ++c) x[c] = fmaf(x[c], seed, seed);
    }
  }
}

/// Two chains of dependent products of 16 x 8 x 16 in bfloat16, a warp's each.
struct Products {
  float sum[2][4];
  __device__ __forceinline__ void fill(float seed) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[0][i] = sum[1][i] = seed;
  }
  __device__ __forceinline__ void units(std::uint32_t count, std::uint32_t bits) {
    for (std::uint32_t i = 0; i < count; ++i) {
#pragma unroll
      for (int c = 0; c < 2; ++c)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
            "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
            : "+f"(sum[c][0]), "+f"(sum[c][1]), "+f"(sum[c][2]), "+f"(sum[c][3])
            : "r"(bits));
    }
  }
  __device__ __forceinline__ float total() const {
    return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3] + sum[1][0] + sum[1][1] + sum[1][2] +
           sum[1][3];
  }
};

/// Results go where no argument of the host's ever lets them: the compiler cannot know.
__device__ __forceinline__ void keep(const StandInArguments& arguments, float result) {
  if (arguments.slot_count == 0) *reinterpret_cast<float*>(arguments.buffer) = result;
}

template <bool kTensor, int kHeld>
__device__ __forceinline__ void work(const StandInArguments& arguments) {
  // Before lanes part. Blocks of tensor kernels are whole warps.
  const std::uint32_t warp = kTensor ? 0xFFFFFFFFU : __activemask();
  if (is_first_thread() && block_rank() == 0) {
    const std::uint64_t now = global_time();
    begin(arguments.slots, arguments.slot_count, now, executions_before(arguments.state));
  }
  __syncwarp(warp);
  const float seed = static_cast<float>(arguments.slot_count) * 1e-3F;
  const float amount = amount_of(arguments);
  const std::uint32_t loops = __float2uint_rz(amount);
  std::uint32_t left = units_of(amount - floorf(amount), arguments.units);
  Held<kHeld> held;
  held.fill(seed);
  Streamed stream = stream_from_rank();
  float x[kWideChains] = {seed, seed, seed, seed};
  Products products;
  if constexpr (kTensor) products.fill(seed);
  std::uint32_t until_use = arguments.refresh;
  for (std::uint32_t loop = 0; loop < loops; ++loop) {
    for (stream.due += arguments.memory_rate; stream.due >= kRateUnit; stream.due -= kRateUnit)
      x[1] += memory_step(arguments, stream);
    if constexpr (kTensor) products.units(arguments.tensor, __float_as_uint(seed));
    sparse_units(arguments.sparse, x[0], warp);
    dense_units(arguments.dense, x[0], seed);
    if constexpr (!kTensor) wide_units(arguments.wide, x, seed);
    if (--until_use == 0) {
      held.use(seed);
      until_use = arguments.refresh;
    }
  }
  if (left != 0) {
    for (stream.due += left * arguments.unit_rate; stream.due >= kRateUnit;
         stream.due -= kRateUnit)
      x[1] += memory_step(arguments, stream);
    if constexpr (kTensor) products.units(take(left, arguments.tensor), __float_as_uint(seed));
    sparse_units(take(left, arguments.sparse), x[0], warp);
    dense_units(take(left, arguments.dense), x[0], seed);
    if constexpr (!kTensor) wide_units(left, x, seed);
  }
  float result = x[0] + x[1] + x[2] + x[3] + held.sum();
  if constexpr (kTensor) result += products.total();
  keep(arguments, result);
  if (block_rank() < arguments.uncounted) return;
  __syncthreads();
  if (is_first_thread())
    end(arguments.state, arguments.slots, arguments.slot_count,
        grid_blocks() - arguments.uncounted);
}

/// Every block stays until the operation's time is over, counted from its first block's start.
template <int kHeld>
__device__ __forceinline__ void wait(const StandInArguments& arguments) {
  // No shared memory of its own: a traced kernel may take all that a block can have.
  auto* state = reinterpret_cast<OperationState volatile*>(arguments.state);
  if (is_first_thread())
    begin_together(arguments.state, arguments.slots, arguments.slot_count);
  const float seed = static_cast<float>(arguments.slot_count) * 1e-3F;
  Held<kHeld> held;
  held.fill(seed);
  __syncthreads();
  const auto lasts = static_cast<std::uint64_t>(amount_of(arguments));
  const std::uint64_t until = lasts + state->start_ns;
  std::uint32_t until_use = arguments.refresh;
  while (global_time() < until) {
    if (--until_use == 0) {
      held.use(seed);
      until_use = arguments.refresh;
    }
  }
  keep(arguments, held.sum());
  __syncthreads();
  if (is_first_thread())
    end(arguments.state, arguments.slots, arguments.slot_count, grid_blocks());
}

}  // namespace

// One kernel a class and number of registers a thread. `threads` * `blocks` * `registers` are a
// register file of 65,536, so that the compiler may use as many and no more; `held` fills up to
// them.
#define STAND_IN(registers, threads, blocks, mix_held, tensor_held, wait_held)                  \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                                 \
      mix_##registers(const StandInArguments arguments) {                                       \
    work<false, mix_held>(arguments);                                                           \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                                 \
      tensor_##registers(const StandInArguments arguments) {                                    \
    work<true, tensor_held>(arguments);                                                         \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                                 \
      collective_##registers(const StandInArguments arguments) {                                \
    wait<wait_held>(arguments);                                                                 \
  }

STAND_IN(32, 1024, 2, 0, 0, 16)
STAND_IN(40, 768, 2, 0, 0, 24)
STAND_IN(48, 640, 2, 2, 4, 36)
STAND_IN(64, 1024, 1, 19, 16, 52)
STAND_IN(96, 640, 1, 50, 48, 82)
STAND_IN(128, 512, 1, 82, 82, 114)
STAND_IN(168, 384, 1, 126, 122, 156)
STAND_IN(255, 256, 1, 212, 206, 244)

extern "C" __global__ void ping_device(const PingArguments arguments) {
  auto* slot = reinterpret_cast<RecordSlot volatile*>(arguments.slot);
  const std::uint64_t now = global_time();
  std::uint64_t next = global_time();
  while (next == now) next = global_time();
  slot->start_ns = now;
  slot->end_ns = next;
  __threadfence_system();
  slot->ended = arguments.number;
}

extern "C" __global__ void begin_copy(const StampArguments arguments) {
  const std::uint64_t now = global_time();
  begin(arguments.slots, arguments.slot_count, now, executions_before(arguments.state));
}

extern "C" __global__ void end_copy(const StampArguments arguments) {
  end(arguments.state, arguments.slots, arguments.slot_count, 1);
}
