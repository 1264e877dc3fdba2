// A file beside the store that lists the runs in flight, so that the next start knows which run
// killed a process. Each process has a file of its own while it runs; one that ends in order
// removes it.
//
// Each thread has a line: the key of its run and a letter. One system call writes the line in place
// when a run starts or ends, so that it survives the process, though not a power cut. The file is
// locked (flock(2)) while its process lives, as other processes can see.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

/// The place of a sweep's journals: STEM.running-XXXXXX.
struct JournalPlace {
  std::string stem;   ///< path of the store; any path for a store that is no file
  std::string sweep;  ///< journals of other sweeps are left alone
  std::string share = {};    ///< this process's part of the sweep, as one line
  std::string process = {};  ///< this process for others to see, as one line
};

/// While it lives, other processes that want a journal beside the same store wait, so that none
/// appears between reading the existing journals and making one's own.
class JournalTurn {
 public:
  explicit JournalTurn(const JournalPlace& place);
  ~JournalTurn();
  JournalTurn(const JournalTurn&) = delete;
  JournalTurn& operator=(const JournalTurn&) = delete;

 private:
  int folder_;  ///< locked; -1: no folder, or its file system has no locks
};

class RunJournal {
 public:
  /// Fault: the file cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<RunJournal>> create(const JournalPlace& place);
  /// Removes the file.
  ~RunJournal();
  RunJournal(const RunJournal&) = delete;
  RunJournal& operator=(const RunJournal&) = delete;

  /// started(), ended(): of the calling thread's run. A thread has one run at a time.
  void started(const store::PlannedRun& run);
  void ended();

  /// Removes the file, for a process that ends without destructors.
  void remove() const noexcept;

  /// For signal handlers that end the process: notes that the calling thread's run caused the
  /// crash. Returns its key; null: the thread has no run. Async-signal-safe.
  [[nodiscard]] static const char* mark_crash() noexcept;

 private:
  RunJournal(std::string path, int file);

  std::string path_;
  int file_;
  std::mutex mutex_;
  std::vector<std::size_t> free_;  // lines that no thread uses
  std::size_t lines_ = 0;
};

/// The evidence against a run in journals of dead processes.
struct Suspicion {
  std::size_t deaths = 0;  ///< processes that died while it was in flight
  bool crashed = false;    ///< its thread got the fatal signal
};

/// Journals of dead processes, and a living process that does the same share.
class DeadJournals {
 public:
  /// Fault: an existing folder or file cannot be read.
  [[nodiscard]] static Result<DeadJournals> read(const JournalPlace& place);

  /// The living process that does the same share of the sweep; empty: none.
  [[nodiscard]] const std::string& living() const { return living_; }
  [[nodiscard]] Suspicion suspicion(const std::string& key) const;
  [[nodiscard]] bool empty() const { return journals_.empty(); }
  /// Removes the files, except those with a run of another shard.
  void forget_but(const std::unordered_set<std::string>& needed_keys);

 private:
  struct Journal {
    std::string path;
    std::vector<std::string> keys;
  };

  void take(const std::string& path, const JournalPlace& place);
  void note_living(const std::string& path, const JournalPlace& place);

  std::vector<Journal> journals_;
  std::map<std::string, Suspicion> suspicions_;
  std::string living_;
};

/// Whether a run is tried again. A run that crashed a process is not; a run in flight when a
/// process was killed is, but from the second time on alone and after all others, and not after the
/// third.
enum class Trust : std::uint8_t { kWithOthers, kAlone, kNone };
inline constexpr std::size_t kDeathsBeforeAlone = 2;
inline constexpr std::size_t kDeathsBeforeFailed = 3;

[[nodiscard]] Trust trust_in(const Suspicion& suspicion);

/// Why a run is not tried again.
[[nodiscard]] std::string reason_of(const Suspicion& suspicion);

}  // namespace bubblesim::sweep
