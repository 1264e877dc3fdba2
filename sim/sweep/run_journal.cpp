#include "sim/sweep/run_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace bubblesim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKey = 32;
constexpr std::size_t kLine = kKey + 3;  // key, space, letter, end of line
constexpr char kRunning = 'r';
constexpr char kCrashed = 'c';
constexpr char kIdle = '-';
constexpr std::string_view kSuffix = ".running-";
constexpr std::uintmax_t kLargestJournal = 1U << 20U;  // that is read: 30,000 threads

/// A handler of signals is handed nothing: the run of each thread must be reachable without an
/// object.
struct Current {
  int file = -1;
  off_t place = 0;
  std::array<char, kKey + 1> key{};
};
thread_local Current current;

void write_letter(const Current& run, char letter) noexcept {
  // A journal that cannot be written (disk full) says less; the store tells of the disk.
  [[maybe_unused]] const auto written =
      pwrite(run.file, &letter, 1, run.place + static_cast<off_t>(kKey) + 1);
}

std::string heading(const std::string& sweep) {
  std::string name = sweep;
  std::replace(name.begin(), name.end(), '\n', ' ');
  return "runs in flight of a process of bubblesim sweep " + name + "\n";
}

std::string owner_line(const JournalPlace& place) {
  return place.share + " is of " + place.process + "\n";
}

fs::path folder_of(const JournalPlace& place) {
  const fs::path stem(place.stem);
  return stem.has_parent_path() ? stem.parent_path() : fs::path(".");
}

/// The open file of a process that has ended; -1: it lives, or there is none any more.
int open_dead(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  close(file);
  return -1;
}

bool is_key(std::string_view text) {
  return text.size() == kKey && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

JournalTurn::JournalTurn(const JournalPlace& place)
    : folder_(open(folder_of(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ >= 0) flock(folder_, LOCK_EX);
}

JournalTurn::~JournalTurn() {
  if (folder_ >= 0) close(folder_);
}

Result<std::unique_ptr<RunJournal>> RunJournal::create(const JournalPlace& place) {
  std::string path = place.stem + std::string(kSuffix) + "XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return fail(path, {}, std::string("cannot be made: ") + std::strerror(errno));
  std::unique_ptr<RunJournal> journal(new RunJournal(path, file));
  const std::string text = heading(place.sweep) + owner_line(place);
  const bool locked = flock(file, LOCK_EX) == 0;
  if (!locked || pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail(path, {}, std::string("cannot be locked and written: ") + std::strerror(errno));
  }
  journal->lines_ = text.size();
  return journal;
}

RunJournal::RunJournal(std::string path, int file) : path_(std::move(path)), file_(file) {}

RunJournal::~RunJournal() {
  remove();
  close(file_);
}

void RunJournal::remove() const noexcept { unlink(path_.c_str()); }

void RunJournal::started(const store::PlannedRun& run) {
  current.file = file_;
  {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      free_.push_back(lines_);
      lines_ += kLine;
    }
    current.place = static_cast<off_t>(free_.back());
    free_.pop_back();
  }
  std::string line = run.key.substr(0, kKey);
  line.resize(kKey, ' ');
  std::copy(line.begin(), line.end(), current.key.begin());
  line += {' ', kRunning, '\n'};
  [[maybe_unused]] const auto written = pwrite(file_, line.data(), line.size(), current.place);
}

void RunJournal::ended() {
  if (current.file < 0) return;
  write_letter(current, kIdle);
  const std::scoped_lock lock(mutex_);
  free_.push_back(static_cast<std::size_t>(current.place));
  current.file = -1;
}

const char* RunJournal::mark_crash() noexcept {
  if (current.file < 0) return nullptr;
  write_letter(current, kCrashed);
  return current.key.data();
}

Result<DeadJournals> DeadJournals::read(const JournalPlace& place) {
  DeadJournals found;
  const fs::path folder = folder_of(place);
  const std::string prefix = fs::path(place.stem).filename().string() + std::string(kSuffix);
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (!at->path().filename().string().starts_with(prefix)) continue;
    const int dead = open_dead(at->path());
    if (dead < 0) found.note_living(at->path().string(), place);
    if (dead < 0) continue;
    if (fs::file_size(at->path(), code) <= kLargestJournal) found.take(at->path().string(), place);
    close(dead);
  }
  if (code) return fail(folder.string(), {}, "cannot be read: " + code.message());
  return found;
}

void DeadJournals::take(const std::string& path, const JournalPlace& place) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  // An empty file is of a process that is about to lock it.
  if (!std::getline(file, line) || line + "\n" != heading(place.sweep)) return;
  Journal journal{path, {}};
  while (std::getline(file, line)) {
    if (line.size() + 1 != kLine || !is_key(line.substr(0, kKey))) continue;
    if (line.back() != kRunning && line.back() != kCrashed) continue;
    journal.keys.push_back(line.substr(0, kKey));
    Suspicion& suspicion = suspicions_[journal.keys.back()];
    ++suspicion.deaths;
    suspicion.crashed = suspicion.crashed || line.back() == kCrashed;
  }
  journals_.push_back(std::move(journal));
}

void DeadJournals::note_living(const std::string& path, const JournalPlace& place) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || line + "\n" != heading(place.sweep)) return;
  const std::string ours = owner_line({{}, {}, place.share, {}});
  const std::string_view begin = std::string_view(ours).substr(0, ours.size() - 1);
  if (std::getline(file, line) && line.starts_with(begin)) living_ = line.substr(begin.size());
}

Suspicion DeadJournals::suspicion(const std::string& key) const {
  const auto found = suspicions_.find(key);
  return found == suspicions_.end() ? Suspicion{} : found->second;
}

void DeadJournals::forget_but(const std::unordered_set<std::string>& needed_keys) {
  std::erase_if(journals_, [&](const Journal& journal) {
    const bool needed = std::any_of(journal.keys.begin(), journal.keys.end(),
                                    [&](const auto& key) { return needed_keys.contains(key); });
    if (needed) return false;
    unlink(journal.path.c_str());
    for (const std::string& key : journal.keys) suspicions_.erase(key);
    return true;
  });
}

Trust trust_in(const Suspicion& suspicion) {
  if (suspicion.crashed || suspicion.deaths >= kDeathsBeforeFailed) return Trust::kNone;
  return suspicion.deaths >= kDeathsBeforeAlone ? Trust::kAlone : Trust::kWithOthers;
}

std::string reason_of(const Suspicion& suspicion) {
  if (suspicion.crashed) {
    return "brought the program down: a failed check, a fault of memory, or a policy that did not "
           "return, of which the program said more on standard error";
  }
  return "was in flight " + std::to_string(suspicion.deaths) +
         " times when the program was killed, the last time alone; it may need more memory than "
         "there is";
}

}  // namespace bubblesim::sweep
