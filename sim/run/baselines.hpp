// Baselines: a run's parts simulated alone, as denominators for its policies. Runs of one process
// that differ only in policies share all of them.
//
// A baseline is a few numbers (bubbles: 32 bytes each), so that a cache holds those of a whole
// sweep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/run/fill_queue.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {

// Results by key that several threads need and one of them makes.
//
// Thread-safe. The first thread that asks for a result makes it, holding that result's lock alone;
// threads that ask for the same result meanwhile wait. A maker must not ask for a result itself, or
// threads could wait for ever. A fault is a result, too, unless the maker was stopped: then, as
// after an exception, the next waiting thread makes the result.
//
// Results in use are always shared. The most recently used results are kept, up to a number of
// bytes; the last one used is kept whatever its size.

/// Number of results made so far, and the wall time for them.
struct MadeResults {
  std::size_t count = 0;
  Duration time{};
};

template <class Value, class Fault = Error>
class SharedResults {
 public:
  /// Shared between users and the cache.
  using Pointer = std::shared_ptr<const Value>;
  using Make = std::function<tl::expected<Value, Fault>()>;
  /// Bytes that a value holds beyond its own size.
  using BytesOf = std::size_t (*)(const Value&);

  explicit SharedResults(std::size_t bytes_kept,
                         BytesOf bytes_of = [](const Value&) { return std::size_t{0}; })
      : bytes_kept_(bytes_kept), bytes_of_(bytes_of) {}

  /// The result of `key`, known or made. Faults: those of `make`; and, once `stop` is true, that
  /// the wait was stopped. Exceptions of `make` are passed on.
  [[nodiscard]] tl::expected<Pointer, Fault> get(const std::string& key,
                                                 const std::atomic<bool>* stop, const Make& make) {
    const std::shared_ptr<Entry> entry = entry_of(key);
    std::unique_lock making(entry->making, std::defer_lock);
    while (!making.try_lock_for(kLook)) {
      if (stop != nullptr && *stop) return fail("stopped while it waited for a baseline");
    }
    Outcome outcome = entry->outcome.lock();
    if (!outcome) {
      const auto started = std::chrono::steady_clock::now();
      auto made = make();
      const auto took = std::chrono::steady_clock::now() - started;
      if (!made && stop != nullptr && *stop) return tl::make_unexpected(std::move(made).error());
      outcome = std::make_shared<const tl::expected<Value, Fault>>(std::move(made));
      entry->outcome = outcome;
      const std::scoped_lock lock(mutex_);
      ++made_.count;
      made_.time += std::chrono::duration_cast<Duration>(took);
    }
    keep(key, *entry, outcome);
    if (!*outcome) return tl::make_unexpected(outcome->error());
    return Pointer(outcome, &**outcome);
  }

  [[nodiscard]] MadeResults made() const {
    const std::scoped_lock lock(mutex_);
    return made_;
  }
  /// Approximate bytes of the kept results.
  [[nodiscard]] std::size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20};  // how often a waiter checks `stop`

  using Outcome = std::shared_ptr<const tl::expected<Value, Fault>>;
  struct Kept {
    std::string key;
    Outcome outcome;
    std::size_t bytes = 0;
  };
  struct Entry {
    std::timed_mutex making;  // held by the thread that makes the result
    std::weak_ptr<const tl::expected<Value, Fault>> outcome;  // guarded by `making`
    std::optional<typename std::list<Kept>::iterator> kept;   // guarded by `mutex_`
  };

  std::shared_ptr<Entry> entry_of(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Entry>& entry = entries_[key];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  }

  void keep(const std::string& key, Entry& entry, const Outcome& outcome) {
    constexpr std::size_t kNodes = 160;  // of the map and list, and reference counts
    const std::scoped_lock lock(mutex_);
    if (entry.kept) return order_.splice(order_.begin(), order_, *entry.kept);
    const std::size_t held = *outcome ? bytes_of_(**outcome) : 0;
    order_.push_front({key, outcome, sizeof(Entry) + sizeof *outcome + kNodes + key.size() + held});
    entry.kept = order_.begin();
    bytes_ += order_.front().bytes;
    while (bytes_ > bytes_kept_ && order_.size() > 1) {
      const Kept last = std::move(order_.back());
      order_.pop_back();
      bytes_ -= last.bytes;
      const auto of_last = entries_.find(last.key);
      of_last->second->kept.reset();
      const bool in_use = last.outcome.use_count() > 1 || of_last->second.use_count() > 1;
      if (!in_use) entries_.erase(of_last);
    }
  }

  const std::size_t bytes_kept_;
  const BytesOf bytes_of_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // kept, in use, and being made
  std::list<Kept> order_;                                  // the last used first
  std::size_t bytes_ = 0;
  MadeResults made_;
};

/// The training job without fillers.
struct TrainingAlone {
  Duration simulated{};       ///< from the start to the end of the run
  Duration mean_iteration{};
  double iterations_per_s = 0;  ///< 0: no iteration finished in the measured window
  std::vector<Duration> pass{};  ///< observe::pass_of()
  bool whole_passes = true;      ///< every rank finished one in the measured window
  observe::UseAlone use{};
  std::optional<observe::PowerLimitCost> power_limit{};  ///< nothing: power is not limited
};

/// The bubble tables of a job, by rank.
using BubbleTables = std::vector<schedule::BubbleTable>;

/// Keys of a run's baselines. Equal keys promise equal inputs. The inputs of training alone are the
/// config without its name, fillers and policies; of a filler alone, the same and the filler; of
/// bubbles, programs and device.
struct BaselineKeys {
  std::string training;
  std::vector<std::string> fillers;  ///< by RunConfig::fillers
  std::string bubbles;
  friend bool operator==(const BaselineKeys&, const BaselineKeys&) = default;
};

/// Bytes kept of baselines (training and fillers, each) and of bubbles: enough for tens of
/// thousands of runs, and for large jobs.
inline constexpr std::size_t kBaselineBytesKept = std::size_t{8} << 20;
inline constexpr std::size_t kBubbleBytesKept = std::size_t{32} << 20;

/// Thread-safe.
struct BaselineCache {
  SharedResults<TrainingAlone> training{kBaselineBytesKept, [](const TrainingAlone& alone) {
                                          return alone.pass.capacity() * sizeof(Duration);
                                        }};
  SharedResults<FillerProfile> fillers{kBaselineBytesKept};
  SharedResults<BubbleTables> bubbles{kBubbleBytesKept, [](const BubbleTables& tables) {
                                        std::size_t bytes = 0;
                                        for (const schedule::BubbleTable& table : tables) {
                                          bytes += sizeof table;
                                          bytes += table.capacity() * sizeof table.front();
                                        }
                                        return bytes;
                                      }};
};

/// A cache, and the keys of the run's baselines in it.
struct SharedBaselines {
  BaselineCache* cache = nullptr;  ///< null: the run simulates its own
  BaselineKeys keys;
};

}  // namespace bubblesim::run
