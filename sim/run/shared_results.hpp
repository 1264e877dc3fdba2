// Results by key that several threads need and one of them makes.
//
// Thread-safe. The first thread that asks for a result makes it, without a lock held; others that
// ask for it meanwhile wait, those that ask for another do not. The maker of a result must not ask
// for another one: two makers could wait for each other for ever. A fault is a result too, unless
// the maker was stopped: then, as after an exception, the next thread in line makes it anew.
//
// Kept is what was used last, up to a number of bytes; what is too large for that is given to those
// that wait, and not kept.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::run {

/// What was made so far, and the wall time that it took.
struct MadeResults {
  std::size_t count = 0;
  Duration time{};
};

template <class Value>
class SharedResults {
 public:
  /// Shared by those that use it and, for those that come, by the cache.
  using Pointer = std::shared_ptr<const Value>;
  using Make = std::function<Result<Value>()>;
  /// Bytes that a value holds beyond its own size.
  using BytesOf = std::size_t (*)(const Value&);

  explicit SharedResults(std::size_t bytes_kept,
                         BytesOf bytes_of = [](const Value&) { return std::size_t{0}; })
      : bytes_kept_(bytes_kept), bytes_of_(bytes_of) {}

  /// The result of `key`, known or made. Faults: those of `make`; and, once `stop` is true, that
  /// it was stopped while it waited. What `make` throws is thrown on.
  [[nodiscard]] Result<Pointer> get(const std::string& key, const std::atomic<bool>* stop,
                                    const Make& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      std::shared_ptr<Entry>& known = entries_[key];
      if (!known) {
        known = std::make_shared<Entry>();
        const std::shared_ptr<Entry> own = known;
        lock.unlock();
        return make_it(key, own, stop, make);
      }
      const std::shared_ptr<Entry> entry = known;
      while (!entry->ended) {
        if (stop != nullptr && *stop) return fail("stopped while it waited for a baseline");
        stop == nullptr ? changed_.wait(lock) : void(changed_.wait_for(lock, kLook));
      }
      if (!entry->outcome) continue;  // given up
      if (entry->kept) order_.splice(order_.begin(), order_, entry->place);
      return *entry->outcome;
    }
  }

  [[nodiscard]] MadeResults made() const {
    const std::scoped_lock lock(mutex_);
    return made_;
  }
  /// About the bytes of what is kept.
  [[nodiscard]] std::size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20};  // how often a waiter looks for the stop

  struct Entry {
    std::optional<Result<Pointer>> outcome;
    bool ended = false;  // with an outcome, or given up
    bool kept = false;
    std::size_t bytes = 0;
    std::list<std::string>::iterator place{};  // in order_, if kept
  };

  /// Gives an entry up, if it ends without an outcome.
  struct Keeper {
    SharedResults& results;
    const std::string& key;
    Entry& entry;
    ~Keeper() {
      const std::scoped_lock lock(results.mutex_);
      entry.ended = true;
      if (!entry.outcome) results.entries_.erase(key);
      results.changed_.notify_all();
    }
  };

  Result<Pointer> make_it(const std::string& key, const std::shared_ptr<Entry>& entry,
                          const std::atomic<bool>* stop, const Make& make) {
    const Keeper keeper{*this, key, *entry};
    const auto started = std::chrono::steady_clock::now();
    Result<Value> made = make();
    const auto took = std::chrono::steady_clock::now() - started;
    if (!made && stop != nullptr && *stop) return tl::unexpected<Error>(std::move(made).error());
    Result<Pointer> outcome =
        made ? Result<Pointer>(std::make_shared<const Value>(*std::move(made)))
             : Result<Pointer>(tl::unexpected<Error>(std::move(made).error()));
    const std::scoped_lock lock(mutex_);
    ++made_.count;
    made_.time += std::chrono::duration_cast<Duration>(took);
    entry->bytes = bytes_of_entry(key, outcome);
    entry->outcome = outcome;
    keep(key, *entry);
    return outcome;
  }

  [[nodiscard]] std::size_t bytes_of_entry(const std::string& key,
                                           const Result<Pointer>& outcome) const {
    constexpr std::size_t kNodes = 160;  // of the map and the list, and counts of references
    const std::size_t value = outcome ? sizeof(Value) + bytes_of_(**outcome)
                                      : outcome.error().file.size() +
                                            outcome.error().place.size() +
                                            outcome.error().message.size();
    return sizeof(Entry) + kNodes + 2 * key.size() + value;
  }

  void keep(const std::string& key, Entry& entry) {
    if (entry.bytes > bytes_kept_) {
      entries_.erase(key);
      return;
    }
    order_.push_front(key);
    entry.place = order_.begin();
    entry.kept = true;
    bytes_ += entry.bytes;
    while (bytes_ > bytes_kept_) {
      const auto last = entries_.find(order_.back());
      last->second->kept = false;
      bytes_ -= last->second->bytes;
      entries_.erase(last);
      order_.pop_back();
    }
  }

  const std::size_t bytes_kept_;
  const BytesOf bytes_of_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // made, and being made
  std::list<std::string> order_;  // of those that are kept, the last used first
  std::size_t bytes_ = 0;
  MadeResults made_;
};

}  // namespace bubblesim::run
