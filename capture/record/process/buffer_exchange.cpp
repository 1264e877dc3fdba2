#include "capture/record/process/buffer_exchange.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace bubblesim::capture {

Wake::Wake() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Wake::~Wake() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Wake::notify() noexcept {
  const std::uint64_t increment = 1;
  // Fails only when the counter is full: then the sleeper is awake already.
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

namespace {

/// Ready before CUPTI asks: one that is being filled, one for the next.
constexpr std::size_t kSpareBuffers = 2;

void sleep_a_little() noexcept {
  const timespec pause{0, 100'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace

BufferExchange::BufferExchange(const PoolLimits& limits)
    : pool_(limits), done_(pool_.most_out()) {}

void BufferExchange::open(NextRecord next_record) noexcept {
  // What came in between two sessions was counted as late; it is none of this one.
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
  // A thread that destroys its context may be flushing; it holds nothing that we hold.
  while (users_.load() != 0) sleep_a_little();
}

void BufferExchange::close() noexcept {
  Phase open = Phase::kOpen;
  phase_.compare_exchange_strong(open, Phase::kClosed);
  pool_.trim();
}

void BufferExchange::prepare() noexcept { pool_.prepare(kSpareBuffers); }

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
  if (phase_.load() == Phase::kOpen) return pool_.take(size);
  return pool_.take_discard(size);
}

void BufferExchange::buffer_done(std::uint8_t* buffer, std::size_t valid) noexcept {
  if (buffer == nullptr) return;
  const Phase phase = phase_.load();
  if (BufferPool::is_discard(buffer)) {
    if (valid > 0 && phase == Phase::kOpen) {
      discarded_.fetch_add(count_records(buffer, valid), std::memory_order_relaxed);
    }
    return pool_.give_back(buffer);
  }
  // In a child of a fork the pool's memory is a copy that nobody will need.
  if (phase == Phase::kAbandoned) return;
  if (phase == Phase::kClosed && valid > 0) late_.fetch_add(1, std::memory_order_relaxed);
  Done done{buffer, phase == Phase::kOpen ? valid : 0};
  // Has room: it is as long as there can be buffers.
  if (!done_.push(std::move(done))) return pool_.give_back(buffer);
  wake_.notify();
}

void BufferExchange::records_dropped(std::uint64_t count) noexcept {
  dropped_.fetch_add(count, std::memory_order_relaxed);
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
