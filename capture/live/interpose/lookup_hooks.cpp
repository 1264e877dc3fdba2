// The ways by which programs find the driver's functions: dlsym and cuGetProcAddress. (The third,
// linking, needs nothing: the loader takes the symbols of a preloaded library first.)
#include <dlfcn.h>

#include "capture/live/interpose/calls.hpp"

namespace bubblesim::capture::interpose {
namespace {

/// The program's answer to a lookup of `hook` that found `found`.
void* answer(Hook& hook, void* found) noexcept {
  if (found == hook.ours) return real_of(hook) != nullptr ? found : nullptr;
  void* none = nullptr;
  if (hook.real.compare_exchange_strong(none, found)) keep_loaded(found);
  return hook.ours;
}

CuResult answer_request(CuResult result, const char* name, void** found, int version,
                        std::uint64_t flags) noexcept {
  if (result != kCuSuccess || name == nullptr || found == nullptr || *found == nullptr ||
      !gate_is_wanted()) {
    return result;
  }
  Hook* hook = hook_of_request(name, version, flags);
  if (hook == nullptr) hook = hook_of_symbol(name);
  if (hook != nullptr) *found = answer(*hook, *found);
  return result;
}

}  // namespace

BUBBLESIM_GATE_EXPORT CuResult cuGetProcAddress(const char* name, void** found, int version,
                                                std::uint64_t flags) noexcept {
  const CuResult result = CallOf<decltype(cuGetProcAddress)>::real(Slot::cuGetProcAddress, name,
                                                                   found, version, flags);
  return answer_request(result, name, found, version, flags);
}

// The driver fills in `status`: the gate only intercepts functions that the driver found.
BUBBLESIM_GATE_EXPORT CuResult cuGetProcAddress_v2(const char* name, void** found, int version,
                                                   std::uint64_t flags, int* status) noexcept {
  const CuResult result = CallOf<decltype(cuGetProcAddress_v2)>::real(
      Slot::cuGetProcAddress_v2, name, found, version, flags, status);
  return answer_request(result, name, found, version, flags);
}

/// In two registers, for the assembly below.
struct Decision {
  void* address;       ///< decided: what dlsym returns; else the C library's dlsym
  std::uint64_t decided;
};

extern "C" __attribute__((visibility("hidden"), used)) Decision bubblesim_gate_decide(
    void* handle, const char* name) noexcept {
  const Dlsym real = real_dlsym();
  const Decision pass_on{reinterpret_cast<void*>(real), 0};
  if (name == nullptr || name[0] != 'c' || name[1] != 'u' || !gate_is_wanted()) return pass_on;
  // Another interposer asks for the function after its own, not after the gate: the gate would
  // return the interposer itself, or the gate, which calls the interposer.
  if (handle == RTLD_NEXT) return pass_on;
  Hook* const hook = hook_of_symbol(name);
  if (hook == nullptr) return pass_on;
  void* const found = real(handle, name);
  if (found == nullptr) return {nullptr, 1};
  return {answer(*hook, found), 1};
}

// dlsym itself. Lookups that the gate does not decide must reach the C library's dlsym with the
// caller's return address, since RTLD_NEXT depends on the caller: so this is a jump, which no
// compiler promises to make of a call.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call bubblesim_gate_decide
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rdx, %rdx
  jne 1f
  jmp *%rax
1:
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  stp x29, x30, [sp, -32]!
  .cfi_adjust_cfa_offset 32
  stp x0, x1, [sp, 16]
  bl bubblesim_gate_decide
  mov x16, x0
  mov x17, x1
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  .cfi_adjust_cfa_offset -32
  cbnz x17, 1f
  br x16
1:
  mov x0, x16
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
#error "the gate's dlsym is written for x86-64 and aarch64"
#endif

}  // namespace bubblesim::capture::interpose
