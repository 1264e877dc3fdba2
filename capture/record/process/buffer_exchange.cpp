#include "capture/record/process/buffer_exchange.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include "sim/base/hash.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::size_t kAlignment = 64;
/// Ready before CUPTI requests them: one that is being filled, one for the next request.
constexpr std::size_t kSpareBuffers = 2;

/// Before every buffer, where CUPTI does not see it.
struct alignas(kAlignment) Header {
  BufferShelf* shelf = nullptr;  ///< null: the content is discarded
};

/// The fallback if even 64 KiB cannot be allocated: all threads of CUPTI write to the same bytes,
/// which are not read.
struct LastResort {
  Header header;
  alignas(kAlignment) std::uint8_t bytes[64U << 10U]{};
};
LastResort last_resort;

Header* header_of(std::uint8_t* buffer) {
  return reinterpret_cast<Header*>(buffer - sizeof(Header));
}

std::uint8_t* allocate(std::size_t size, BufferShelf* shelf) noexcept {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kAlignment, sizeof(Header) + size) != 0) return nullptr;
  *static_cast<Header*>(memory) = {shelf};
  auto* buffer = static_cast<std::uint8_t*>(memory) + sizeof(Header);
  std::memset(buffer, 0, size);
  return buffer;
}

void sleep_a_little() noexcept {
  const timespec pause{0, 100'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace

std::uint8_t* BufferShelf::take() noexcept {
  std::uint8_t* buffer = nullptr;
  return ready.pop(buffer) ? buffer : make();
}

std::uint8_t* BufferShelf::make() noexcept {
  std::size_t before = made.load();
  do {
    if (before >= most) return nullptr;
  } while (!made.compare_exchange_weak(before, before + 1));
  std::uint8_t* const buffer = allocate(size, this);
  if (buffer == nullptr) made.fetch_sub(1);
  return buffer;
}

// The queue is as long as there are buffers, but a thread may be taking one from the next place.
void BufferShelf::keep(std::uint8_t* buffer) noexcept {
  if (!ready.push(std::move(buffer))) drop(buffer);
}

void BufferShelf::drop(std::uint8_t* buffer) noexcept {
  made.fetch_sub(1);
  std::free(header_of(buffer));
}

Wake::Wake() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Wake::~Wake() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Wake::notify() noexcept {
  const std::uint64_t increment = 1;
  // Fails only if the counter is full: then the sleeper is awake already.
  if (::write(descriptor_, &increment, sizeof(increment)) < 0) return;
}

void Wake::wait(Duration longest) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(to_ns(longest), 0);
  const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                       static_cast<long>(ns % 1'000'000'000)};
  pollfd waiting{descriptor_, POLLIN, 0};
  if (::ppoll(&waiting, 1, &limit, nullptr) <= 0) return;
  std::uint64_t count = 0;
  if (::read(descriptor_, &count, sizeof(count)) < 0) return;
}

BufferExchange::BufferExchange(const BufferLimits& limits)
    : discard_bytes_(limits.discard_bytes),
      large_(limits.large_bytes, limits.large_count),
      small_(limits.small_bytes, limits.small_count),
      done_(limits.large_count + limits.small_count) {}

BufferExchange::~BufferExchange() { close(); }

void BufferExchange::open(NextRecord next_record) noexcept {
  // Buffers that came between two sessions were counted as late; they are not this session's.
  for (Done done; next(done);) recycle(done.buffer);
  word_.store(Word::kNone);
  next_record_.store(next_record);
  (void)take_losses();
  prepare();
  phase_.store(Phase::kOpen);
}

void BufferExchange::lend(CuptiSession& session) noexcept { lent_.store(&session); }

void BufferExchange::recall() noexcept {
  lent_.store(nullptr);
  // A thread that destroys its context may be flushing; it holds no lock of the recorder.
  while (users_.load() != 0) sleep_a_little();
}

void BufferExchange::close() noexcept {
  Phase open = Phase::kOpen;
  phase_.compare_exchange_strong(open, Phase::kClosed);
  for (BufferShelf* const shelf : {&large_, &small_})
    for (std::uint8_t* buffer = nullptr; shelf->ready.pop(buffer);) shelf->drop(buffer);
}

void BufferExchange::prepare() noexcept {
  for (std::size_t i = large_.ready.size(); i < kSpareBuffers; ++i)
    if (std::uint8_t* const buffer = large_.make()) large_.keep(buffer);
}

void BufferExchange::recycle(std::uint8_t* buffer) noexcept {
  if (buffer == last_resort.bytes) return;
  BufferShelf* const shelf = header_of(buffer)->shelf;
  if (shelf == nullptr) return std::free(header_of(buffer));
  // All bytes, not only the valid ones: CUPTI was told that buffers hold zeros.
  std::memset(buffer, 0, shelf->size);
  shelf->keep(buffer);
}

std::size_t BufferExchange::bytes() const {
  return large_.made.load() * large_.size + small_.made.load() * small_.size;
}

BufferExchange::Losses BufferExchange::take_losses() noexcept {
  return {dropped_.exchange(0), discarded_.exchange(0), late_.exchange(0)};
}

std::string BufferExchange::broken() const {
  return word_.load(std::memory_order_acquire) == Word::kThere ? std::string(broken_)
                                                               : std::string();
}

void BufferExchange::abandon() noexcept {
  phase_.store(Phase::kAbandoned);
  lent_.store(nullptr);
}

std::uint64_t BufferExchange::count_records(std::uint8_t* buffer,
                                            std::size_t valid) const noexcept {
  const NextRecord next_record = next_record_.load();
  if (next_record == nullptr) return 1;
  std::uint64_t count = 0;
  void* record = nullptr;
  while (next_record(buffer, valid, &record) == cupti::Result::kSuccess) ++count;
  return count;
}

std::uint8_t* BufferExchange::buffer_wanted(std::size_t& size) noexcept {
  if (phase_.load() == Phase::kOpen) {
    for (BufferShelf* const shelf : {&large_, &small_}) {
      size = shelf->size;
      if (std::uint8_t* const buffer = shelf->take()) return buffer;
    }
  }
  size = discard_bytes_;
  if (std::uint8_t* const buffer = allocate(size, nullptr)) return buffer;
  size = sizeof(last_resort.bytes);
  return last_resort.bytes;
}

void BufferExchange::buffer_done(std::uint8_t* buffer, std::size_t valid) noexcept {
  if (buffer == nullptr) return;
  const Phase phase = phase_.load();
  if (header_of(buffer)->shelf == nullptr) {
    if (valid > 0 && phase == Phase::kOpen) {
      discarded_.fetch_add(count_records(buffer, valid), std::memory_order_relaxed);
    }
    return recycle(buffer);
  }
  // In a forked child the buffers' memory is an unused copy.
  if (phase == Phase::kAbandoned) return;
  if (phase == Phase::kClosed && valid > 0) late_.fetch_add(1, std::memory_order_relaxed);
  Done done{buffer, phase == Phase::kOpen ? valid : 0};
  // The queue has room: it is as long as the greatest number of buffers.
  if (!done_.push(std::move(done))) return recycle(buffer);
  wake_.notify();
}

void BufferExchange::records_dropped(std::uint64_t count) noexcept {
  dropped_.fetch_add(count, std::memory_order_relaxed);
}

// Tells traces/join of an event's recording: the write of this value to this address.
void BufferExchange::stream_value(const StreamValue& value) noexcept {
  using traces::HostCallKind;
  StreamValueEvent event;
  event.sync.at = host_now();
  event.sync.correlation = value.correlation;
  event.sync.kind = value.waits ? HostCallKind::kStreamWaitEvent : HostCallKind::kEventRecord;
  const std::uint64_t hash = splitmix64(value.address ^ splitmix64(value.value));
  event.sync.event = traces::kMemoryValue | hash >> 2U;
  event.context = value.context, event.number = value.stream;
  emit_host_event(std::move(event));
}

void BufferExchange::session_broken(const char* what) noexcept {
  if (phase_.load() == Phase::kAbandoned) return;
  Word none = Word::kNone;
  if (!word_.compare_exchange_strong(none, Word::kWriting)) return;
  const char* const text = what == nullptr ? "CUPTI reported a fault without a text" : what;
  const std::size_t length = std::min(std::strlen(text), sizeof(broken_) - 1);
  std::memcpy(broken_, text, length);
  broken_[length] = '\0';
  word_.store(Word::kThere, std::memory_order_release);
  wake_.notify();
}

void BufferExchange::context_ending() noexcept {
  users_.fetch_add(1);
  if (CuptiSession* session = lent_.load()) session->flush();
  users_.fetch_sub(1);
}

}  // namespace bubblesim::capture
