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
// The most recently used results are kept, up to a number of bytes; a larger one is given to the
// waiting threads and not kept.

/// Number of results made so far, and the wall time for them.
struct MadeResults {
  std::size_t count = 0;
  Duration time{};
};

template <class Value>
class SharedResults {
 public:
  /// Shared between users and the cache.
  using Pointer = std::shared_ptr<const Value>;
  using Make = std::function<Result<Value>()>;
  /// Bytes that a value holds beyond its own size.
  using BytesOf = std::size_t (*)(const Value&);

  explicit SharedResults(std::size_t bytes_kept,
                         BytesOf bytes_of = [](const Value&) { return std::size_t{0}; })
      : bytes_kept_(bytes_kept), bytes_of_(bytes_of) {}

  /// The result of `key`, known or made. Faults: those of `make`; and, once `stop` is true, that
  /// the wait was stopped. Exceptions of `make` are passed on.
  [[nodiscard]] Result<Pointer> get(const std::string& key, const std::atomic<bool>* stop,
                                    const Make& make) {
    const std::shared_ptr<Entry> entry = entry_of(key);
    std::unique_lock making(entry->making, std::defer_lock);
    while (!making.try_lock_for(kLook)) {
      if (stop != nullptr && *stop) return fail("stopped while it waited for a baseline");
    }
    if (entry->outcome) {
      const std::scoped_lock lock(mutex_);
      if (entry->kept) order_.splice(order_.begin(), order_, entry->place);
      return *entry->outcome;
    }
    const auto started = std::chrono::steady_clock::now();
    Result<Value> made = make();
    const auto took = std::chrono::steady_clock::now() - started;
    if (!made && stop != nullptr && *stop) return tl::unexpected<Error>(std::move(made).error());
    entry->outcome =
        made ? Result<Pointer>(std::make_shared<const Value>(*std::move(made)))
             : Result<Pointer>(tl::unexpected<Error>(std::move(made).error()));
    const std::scoped_lock lock(mutex_);
    ++made_.count;
    made_.time += std::chrono::duration_cast<Duration>(took);
    keep(key, *entry);
    return *entry->outcome;
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

  struct Entry;
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;
  using Order = std::list<typename Entries::iterator>;
  struct Entry {
    std::timed_mutex making;                 // held by the thread that makes the result
    std::optional<Result<Pointer>> outcome;  // guarded by `making`; nothing: not made yet
    bool kept = false;
    std::size_t bytes = 0;
    typename Order::iterator place{};  // if the result is kept
  };

  std::shared_ptr<Entry> entry_of(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Entry>& entry = entries_[key];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  }

  [[nodiscard]] std::size_t bytes_of_entry(const std::string& key,
                                           const Result<Pointer>& outcome) const {
    constexpr std::size_t kNodes = 160;  // bytes of the map's and list's nodes, and of reference
                                         // counts
    const std::size_t value = outcome ? sizeof(Value) + bytes_of_(**outcome)
                                      : outcome.error().file.size() +
                                            outcome.error().place.size() +
                                            outcome.error().message.size();
    return sizeof(Entry) + kNodes + key.size() + value;
  }

  void keep(const std::string& key, Entry& entry) {
    entry.bytes = bytes_of_entry(key, *entry.outcome);
    if (entry.bytes > bytes_kept_) {
      entries_.erase(key);
      return;
    }
    order_.push_front(entries_.find(key));
    entry.place = order_.begin();
    entry.kept = true;
    bytes_ += entry.bytes;
    while (bytes_ > bytes_kept_) {
      Entry& last = *order_.back()->second;
      last.kept = false;
      bytes_ -= last.bytes;
      entries_.erase(order_.back());
      order_.pop_back();
    }
  }

  const std::size_t bytes_kept_;
  const BytesOf bytes_of_;
  mutable std::mutex mutex_;
  Entries entries_;  // made, and being made
  Order order_;      // of the kept results, the last used first
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
