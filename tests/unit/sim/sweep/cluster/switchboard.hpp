// Ranks as threads of one process, and between them a line that loses, doubles, damages and delays.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/sweep/cluster/transport.hpp"

namespace bubblesim::sweep {

enum class Mishap : std::uint8_t { kNone, kLost, kTwice, kDamaged };

/// What happens to the n-th message (from 0) between two ranks.
using Mishaps = std::function<Mishap(int from, int to, std::uint64_t number)>;

class Switchboard {
 public:
  explicit Switchboard(int ranks, Mishaps mishaps = {}, Duration delay = {})
      : ranks_(ranks), mishaps_(std::move(mishaps)), delay_(delay) {}

  /// The rank is dead from now on: its messages and those to it vanish; others may be told.
  void kill(int rank) {
    const std::scoped_lock lock(mutex_);
    dead_[rank] = true;
    changed_.notify_all();
  }
  /// Messages of the rank are kept until release().
  void hold(int rank) {
    const std::scoped_lock lock(mutex_);
    held_[rank] = true;
  }
  void release(int rank) {
    const std::scoped_lock lock(mutex_);
    held_[rank] = false;
    changed_.notify_all();
  }

  [[nodiscard]] int ranks() const { return ranks_; }

  void send(int from, int to, std::vector<std::uint8_t> bytes) {
    const std::scoped_lock lock(mutex_);
    if (dead_[from] || dead_[to]) return;
    const Mishap mishap = mishaps_ ? mishaps_(from, to, counts_[{from, to}]++) : Mishap::kNone;
    if (mishap == Mishap::kLost) return;
    if (mishap == Mishap::kDamaged) bytes[bytes.size() / 2] ^= 0x10U;
    const auto due = std::chrono::steady_clock::now() + delay_;
    waiting_.push_back({from, to, due, bytes});
    if (mishap == Mishap::kTwice) waiting_.push_back({from, to, due, std::move(bytes)});
    changed_.notify_all();
  }

  std::optional<Message> receive(int rank, Duration longest) {
    std::unique_lock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + longest;
    for (;;) {
      const auto now = std::chrono::steady_clock::now();
      for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
        if (it->to != rank || it->due > now || held_[it->from]) continue;
        Message message{it->from, std::move(it->bytes)};
        waiting_.erase(it);
        return message;
      }
      if (now >= end) return std::nullopt;
      changed_.wait_until(lock, std::min(end, now + std::chrono::milliseconds{2}));
    }
  }

  /// Ranks know of themselves, so that a dead one's thread can end.
  bool gone(int worker, int asked_by) {
    const std::scoped_lock lock(mutex_);
    return dead_[asked_by] || dead_[worker];
  }

 private:
  struct Waiting {
    int from;
    int to;
    std::chrono::steady_clock::time_point due;
    std::vector<std::uint8_t> bytes;
  };

  int ranks_;
  Mishaps mishaps_;
  Duration delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, bool> dead_, held_;
  std::map<std::pair<int, int>, std::uint64_t> counts_;
  std::vector<Waiting> waiting_;
};

/// One rank's end of it.
class Line final : public Transport {
 public:
  Line(Switchboard& board, int rank) : board_(board), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return board_.ranks(); }
  void send(int to, std::vector<std::uint8_t> bytes) override {
    board_.send(rank_, to, std::move(bytes));
  }
  [[nodiscard]] std::optional<Message> receive(Duration longest) override {
    return board_.receive(rank_, longest);
  }
  [[nodiscard]] bool gone(int rank) override { return board_.gone(rank, rank_); }
  void part(Parting) override {}

 private:
  Switchboard& board_;
  int rank_;
};

}  // namespace bubblesim::sweep
