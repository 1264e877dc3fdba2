#include "tests/fakes/cupti/fake_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/cupti/fake_options.hpp"

namespace fake {

namespace cupti = bubblesim::capture::cupti;

std::size_t stride_of(std::uint32_t kind) {
  switch (kind) {
    case cupti::kKindConcurrentKernel: return 216;
    case cupti::kKindMemcpy: return 96;
    case cupti::kKindMemset: return 88;
    case cupti::kKindDriver:
    case cupti::kKindRuntime: return 40;
    case cupti::kKindSynchronization:
    case cupti::kKindCudaEvent:
    case cupti::kKindOverhead:
    case cupti::kKindGraphTrace: return 56;
    case cupti::kKindDevice: return 184;
    case cupti::kKindContext: return 32;
    case cupti::kKindStream: return 24;
    case cupti::kKindMemory2: return 128;
    case kUnknownKind: return 48;
    default: return 0;
  }
}

void Buffers::set_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed) {
  requested_.store(requested);
  completed_.store(completed);
}

void Buffers::write(std::uint32_t thread, std::span<const std::uint8_t> record, std::uint64_t end) {
  std::vector<Buffer> full;
  {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = buffers_[options().has("shared") ? 0 : thread];
    if (buffer.data != nullptr && buffer.used + record.size() > buffer.size) {
      full.push_back(buffer);
      buffer = {};
    }
    if (buffer.data == nullptr) {
      std::size_t most = 0;
      if (const auto requested = requested_.load()) requested(&buffer.data, &buffer.size, &most);
    }
    if (buffer.data == nullptr || buffer.used + record.size() > buffer.size) {
      dropped_.fetch_add(1);
    } else {
      std::memcpy(buffer.data + buffer.used, record.data(), record.size());
      buffer.used += record.size();
      buffer.complete_at = std::max(buffer.complete_at, end);
    }
  }
  give_back(full);
}

void Buffers::flush(bool forced) {
  std::vector<Buffer> ready;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = now_ns();
    for (auto& [thread, buffer] : buffers_) {
      if (buffer.data == nullptr || (!forced && buffer.complete_at > now)) continue;
      ready.push_back(buffer);
      buffer = {};
    }
    if (options().has("keep_large")) {
      const auto large = std::partition(ready.begin(), ready.end(), [](const Buffer& buffer) {
        return buffer.size <= 64U << 10U;
      });
      kept_.insert(kept_.end(), large, ready.end());
      ready.erase(large, ready.end());
    }
    while (kept_.size() < options().number("keep") && !ready.empty()) {
      kept_.push_back(ready.back());
      ready.pop_back();
    }
  }
  if (options().has("shuffle")) std::reverse(ready.begin(), ready.end());
  give_back(ready);
}

void Buffers::give_back(const std::vector<Buffer>& buffers) {
  const auto completed = completed_.load();
  for (const Buffer& buffer : buffers) {
    if (completed != nullptr) completed(nullptr, 0, buffer.data, buffer.size, buffer.used);
  }
}

std::size_t Buffers::take_dropped() {
  const std::size_t told = dropped_told_.exchange(true) ? 0 : options().number("drops");
  return told + dropped_.exchange(0);
}

}  // namespace fake
