#include "capture/record/process/buffer_pool.hpp"

#include <cstdlib>
#include <cstring>

namespace bubblesim::capture {
namespace {

constexpr std::size_t kAlignment = 64;

enum Tag : std::uint32_t { kLarge, kSmall, kDiscard, kLastResort };

/// Before every buffer, out of CUPTI's sight.
struct alignas(kAlignment) Header {
  std::uint32_t tag = kDiscard;
  std::size_t size = 0;
};

/// For the day when even 64 KiB are not to be had: all threads of CUPTI scribble on the same bytes,
/// which nobody reads.
struct LastResort {
  Header header{kLastResort, 64U << 10U};
  alignas(kAlignment) std::uint8_t bytes[64U << 10U]{};
};
LastResort last_resort;

Header* header_of(std::uint8_t* buffer) {
  return reinterpret_cast<Header*>(buffer - sizeof(Header));
}

std::uint8_t* allocate(std::size_t size, std::uint32_t tag) noexcept {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kAlignment, sizeof(Header) + size) != 0) return nullptr;
  *static_cast<Header*>(memory) = {tag, size};
  auto* buffer = static_cast<std::uint8_t*>(memory) + sizeof(Header);
  std::memset(buffer, 0, size);
  return buffer;
}

void release(std::uint8_t* buffer) noexcept { std::free(header_of(buffer)); }

}  // namespace

BufferPool::BufferPool(const PoolLimits& limits)
    : limits_(limits), large_(limits.large_count), small_(limits.small_count) {}

BufferPool::~BufferPool() { trim(); }

std::uint8_t* BufferPool::make(Shelf& shelf, std::size_t size, std::uint32_t tag) noexcept {
  std::size_t made = shelf.made.load();
  do {
    if (made >= shelf.most) return nullptr;
  } while (!shelf.made.compare_exchange_weak(made, made + 1));
  if (std::uint8_t* buffer = allocate(size, tag)) return buffer;
  shelf.made.fetch_sub(1);
  return nullptr;
}

std::uint8_t* BufferPool::take_from(Shelf& shelf, std::size_t size, std::uint32_t tag) noexcept {
  std::uint8_t* buffer = nullptr;
  if (!shelf.ready.pop(buffer)) buffer = make(shelf, size, tag);
  return buffer;
}

std::uint8_t* BufferPool::take(std::size_t& size) noexcept {
  size = limits_.large_bytes;
  std::uint8_t* buffer = take_from(large_, size, kLarge);
  if (buffer == nullptr) {
    size = limits_.small_bytes;
    buffer = take_from(small_, size, kSmall);
  }
  if (buffer == nullptr) return take_discard(size);
  out_.fetch_add(1, std::memory_order_relaxed);
  return buffer;
}

std::uint8_t* BufferPool::take_discard(std::size_t& size) noexcept {
  size = limits_.discard_bytes;
  if (std::uint8_t* buffer = allocate(size, kDiscard)) return buffer;
  size = sizeof(last_resort.bytes);
  return last_resort.bytes;
}

bool BufferPool::is_discard(const std::uint8_t* buffer) noexcept {
  const Header* header = header_of(const_cast<std::uint8_t*>(buffer));
  return header->tag == kDiscard || header->tag == kLastResort;
}

void BufferPool::give_back(std::uint8_t* buffer) noexcept {
  const Header header = *header_of(buffer);
  if (header.tag == kLastResort) return;
  if (header.tag == kDiscard) return release(buffer);
  // All of it, not only the valid bytes: CUPTI is told that buffers hold zeros.
  std::memset(buffer, 0, header.size);
  Shelf& shelf = header.tag == kLarge ? large_ : small_;
  out_.fetch_sub(1, std::memory_order_relaxed);
  if (shelf.ready.push(std::move(buffer))) return;
  shelf.made.fetch_sub(1);
  release(buffer);
}

void BufferPool::prepare(std::size_t count) noexcept {
  while (large_.ready.size() < count) {
    std::uint8_t* buffer = make(large_, limits_.large_bytes, kLarge);
    if (buffer == nullptr) return;
    if (!large_.ready.push(std::move(buffer))) {
      large_.made.fetch_sub(1);
      return release(buffer);
    }
  }
}

void BufferPool::trim(Shelf& shelf) noexcept {
  std::uint8_t* buffer = nullptr;
  while (shelf.ready.pop(buffer)) {
    shelf.made.fetch_sub(1);
    release(buffer);
  }
}

void BufferPool::trim() noexcept {
  trim(large_);
  trim(small_);
}

std::size_t BufferPool::bytes() const {
  return large_.made.load() * limits_.large_bytes + small_.made.load() * limits_.small_bytes;
}

}  // namespace bubblesim::capture
