#include "tests/fakes/job/fake_ranges.hpp"

#include <array>
#include <cstdlib>
#include <dlfcn.h>

#include "capture/record/nvtx/nvtx_abi.hpp"

namespace fake {
namespace {

namespace abi = bubblesim::capture::nvtx_abi;

constexpr std::size_t kSlots = 16;
std::array<abi::Function, kSlots> functions{};
std::array<abi::Function*, kSlots> places{};

int module_table(int module, abi::FunctionTable* table, unsigned* size) {
  if (module != abi::kModuleCore && module != abi::kModuleCore2) return 0;
  static std::array<abi::Function, kSlots> others{};
  static std::array<abi::Function*, kSlots> other_places{};
  for (std::size_t i = 1; i < kSlots; ++i) other_places[i] = &others[i];
  *table = module == abi::kModuleCore ? places.data() : other_places.data();
  *size = kSlots;
  return 1;
}

const abi::ExportCallbacks callbacks{sizeof(abi::ExportCallbacks), &module_table};
const abi::ExportVersion version{sizeof(abi::ExportVersion), 3, 0, [](std::uint32_t) {}};

const void* export_table(std::uint32_t id) {
  if (id == abi::kExportCallbacks) return &callbacks;
  return id == abi::kExportVersion ? &version : nullptr;
}

void attach() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using Initialise = int (*)(abi::GetExportTable);
  auto* entry = reinterpret_cast<Initialise>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (entry != nullptr) entry(&export_table);
}

template <class Callee>
Callee* at(abi::Core place) {
  return reinterpret_cast<Callee*>(functions[static_cast<std::size_t>(place)]);
}

}  // namespace

Ranges::Ranges() {
  static const bool attached = [] {
    for (std::size_t i = 1; i < kSlots; ++i) places[i] = &functions[i];
    attach();
    return true;
  }();
  if (!attached) return;
  push_ = at<int(const char*)>(abi::Core::kRangePushA);
  pop_ = at<int()>(abi::Core::kRangePop);
}

void Ranges::push(const std::string& name) const {
  if (push_ != nullptr) push_(name.c_str());
}

void Ranges::pop() const {
  if (pop_ != nullptr) pop_();
}

}  // namespace fake
