// The request for a recording, and its two forms: in the environment of the job, or as the same
// variables over the control socket. Shared by the injected library and the command.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

enum class GraphRecords : std::uint8_t { kNode, kGraph };
/// Who may read a recording: names of kernels and ranges say what a job computes.
enum class Readers : std::uint8_t { kOwner, kAll };

/// kLight: kernels and the calls by which NCCL launches; no copies, waits, memory or other calls.
enum class Detail : std::uint8_t { kFull, kLight };
enum class Names : std::uint8_t { kPlain, kHashed };
/// How iterations are found: by ranges that mark them or, without such ranges, by collectives of
/// the communicator of most ranks, whose numbers its ranks agree on.
enum class CountedBy : std::uint8_t { kRanges, kCollectives };

/// The options' words in messages and in the environment; the first is the default.
inline constexpr std::array<Choice<GraphRecords>, 2> kGraphsWords{
    {{"node", GraphRecords::kNode}, {"graph", GraphRecords::kGraph}}};
inline constexpr std::array<Choice<Readers>, 2> kReadersWords{
    {{"owner", Readers::kOwner}, {"all", Readers::kAll}}};
inline constexpr std::array<Choice<Detail>, 2> kDetailsWords{
    {{"full", Detail::kFull}, {"light", Detail::kLight}}};
inline constexpr std::array<Choice<Names>, 2> kNamesWords{
    {{"plain", Names::kPlain}, {"hashed", Names::kHashed}}};
inline constexpr std::array<Choice<CountedBy>, 2> kCountWords{
    {{"ranges", CountedBy::kRanges}, {"collectives", CountedBy::kCollectives}}};
/// URG does not end a process that does not handle it.
inline constexpr std::array<Choice<int>, 4> kSignalWords{
    {{"none", 0}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"URG", SIGURG}}};

struct StartRequest {
  std::string output;  ///< path of the .btr file, or of a folder: then rank<N>.btr in it
  std::optional<Duration> duration;            ///< recording stops after it; > 0
  std::optional<std::uint64_t> max_bytes;      ///< stops when the file is this long; >= 1 MiB
  std::optional<std::uint32_t> iterations;     ///< stops after this many whole iterations
  std::optional<std::int64_t> start_at_unix_s; ///< waits for this second, on all ranks alike
  std::optional<std::uint32_t> first_iteration; ///< begins where this numbered iteration does
  /// The next recording of `iterations` starts this many after the start of the last; a folder
  /// each.
  std::optional<std::uint32_t> every;
  std::optional<Duration> last;                ///< keeps this much in memory, writes it at the end
  Duration delay{};                            ///< from the request to the start
  GraphRecords graphs = GraphRecords::kNode;
  bool memory = true;
  Readers readers = Readers::kOwner;
  Detail detail = Detail::kFull;
  Names names = Names::kPlain;
  CountedBy counted = CountedBy::kRanges;
  int signal = 0;  ///< ends a recording and begins the next, in a folder each; 0: none does

  friend bool operator==(const StartRequest&, const StartRequest&) = default;
};

/// The variables of the environment (documented in capture/README.md). All begin with
/// BUBBLESIM_CAPTURE_; empty is the same as unset. START: "now", or the delay: seconds ("5") or a
/// time ("500ms"); unset: idle until the socket says start.
inline constexpr const char* kEnvStart = "BUBBLESIM_CAPTURE_START";
inline constexpr const char* kEnvOutput = "BUBBLESIM_CAPTURE_OUTPUT";
inline constexpr const char* kEnvDuration = "BUBBLESIM_CAPTURE_DURATION";
inline constexpr const char* kEnvMaxBytes = "BUBBLESIM_CAPTURE_MAX_BYTES";
inline constexpr const char* kEnvIterations = "BUBBLESIM_CAPTURE_ITERATIONS";
inline constexpr const char* kEnvStartAt = "BUBBLESIM_CAPTURE_START_AT";
inline constexpr const char* kEnvFirstIteration = "BUBBLESIM_CAPTURE_FIRST_ITERATION";
inline constexpr const char* kEnvEvery = "BUBBLESIM_CAPTURE_EVERY";
inline constexpr const char* kEnvLast = "BUBBLESIM_CAPTURE_LAST";
inline constexpr const char* kEnvGraphs = "BUBBLESIM_CAPTURE_GRAPHS";
inline constexpr const char* kEnvMemory = "BUBBLESIM_CAPTURE_MEMORY";
inline constexpr const char* kEnvReaders = "BUBBLESIM_CAPTURE_READERS";
inline constexpr const char* kEnvDetail = "BUBBLESIM_CAPTURE_DETAIL";
inline constexpr const char* kEnvNames = "BUBBLESIM_CAPTURE_NAMES";
inline constexpr const char* kEnvCount = "BUBBLESIM_CAPTURE_COUNT";
inline constexpr const char* kEnvSignal = "BUBBLESIM_CAPTURE_SIGNAL";
/// A folder for path sockets, where abstract ones do not reach (containers).
inline constexpr const char* kEnvSocketFolder = "BUBBLESIM_CAPTURE_SOCKETS";
/// Only processes whose executable's file name is this one open a control socket.
inline constexpr const char* kEnvOnly = "BUBBLESIM_CAPTURE_ONLY";
/// The libcupti to load, instead of the one found.
inline constexpr const char* kEnvCupti = "BUBBLESIM_CAPTURE_CUPTI";

using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Nothing if START is unset. A fault names the variable, its value and the allowed ones.
[[nodiscard]] Result<std::optional<StartRequest>> request_from_environment(const Environment& env);
/// The variables that make request_from_environment give `request` back.
[[nodiscard]] std::map<std::string, std::string> environment_of(const StartRequest& request);

enum class RecorderState : std::uint8_t {
  kIdle,       ///< nothing asked
  kScheduled,  ///< waits for its time
  kStarting,   ///< CUPTI is being set up; may take seconds
  kRecording,
  kStopping,
  kFailed,     ///< the last start or the recording failed; `message` says why; may be started again
};
[[nodiscard]] std::string_view state_name(RecorderState state);

/// A recorder's report on itself.
struct RecorderStatus {
  RecorderState state = RecorderState::kIdle;
  std::int64_t pid = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string executable;
  std::string output;          ///< of the present or last recording
  std::string message;         ///< why it failed, or records less; may be empty
  std::string cupti;           ///< path and version of the CUPTI in use; empty: not looked for yet
  Duration recorded{};         ///< length of the present or last recording
  std::uint64_t records = 0;   ///< written
  std::uint64_t bytes = 0;     ///< in the file
  std::uint64_t lost = 0;      ///< dropped by CUPTI, by full queues or a full disk
  std::uint32_t iterations = 0;  ///< seen whole

  friend bool operator==(const RecorderStatus&, const RecorderStatus&) = default;
};

/// One datagram of the control socket, and its answer. Every command is answered, an unreadable one
/// with `message` and the state.
struct ControlCommand {
  enum class Kind : std::uint8_t { kStart, kStop, kStatus, kMark };
  Kind kind = Kind::kStatus;
  StartRequest start;   ///< of kStart
  std::string mark;     ///< of kMark: its name

  friend bool operator==(const ControlCommand&, const ControlCommand&) = default;
};

inline constexpr std::size_t kMaxMessageBytes = 64U << 10U;

/// One JSON object (keys: control_message.cpp). Bytes that are no UTF-8 become U+FFFD; the texts of
/// a status too long for a message are cut.
[[nodiscard]] std::string encode(const ControlCommand& command);
/// Faults: not JSON, unknown or missing keys, wrong types, values out of range, too long.
[[nodiscard]] Result<ControlCommand> decode_command(std::string_view text);
[[nodiscard]] std::string encode(const RecorderStatus& status);
[[nodiscard]] Result<RecorderStatus> decode_status(std::string_view text);

// The limits of a request: the same in messages, in the environment and on the command line.

/// Bounds `duration` and `delay`, so that sums of nanoseconds cannot overflow.
inline constexpr Duration kLongestSpan = std::chrono::hours(24 * 366);
inline constexpr Bytes kLeastMaxBytes{1U << 20U};
/// Bounds `start_at_unix_s`: the year 2200.
inline constexpr std::int64_t kLastStartUnixSeconds = 7'258'118'400;
/// Bounds `output`, as the system limits paths.
inline constexpr std::size_t kMaxOutputBytes = 4095;
/// Bounds a mark's name.
inline constexpr std::size_t kMaxMarkBytes = 1024;

/// A path that a file or folder can have: not empty, not too long, UTF-8 without control
/// characters (messages are JSON). The fault's message begins with "found".
[[nodiscard]] Result<void> check_output(std::string_view path);
/// Checks a mark's name as check_output() does, but for its length.
[[nodiscard]] Result<void> check_mark(std::string_view name);

// The addresses at which the recorder of a process listens: an abstract SOCK_SEQPACKET socket
// "\0bubblesim.<uid>.<pid>", and, if BUBBLESIM_CAPTURE_SOCKETS names a folder, the path
// <folder>/bubblesim.<uid>.<pid>.sock. <uid> is the effective user of the recorded process.

struct ControlAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  std::string text;  ///< for messages; '@' stands for the leading zero byte
};

[[nodiscard]] ControlAddress abstract_address(uid_t user, pid_t process);
/// Faults: a folder whose name is too long for a socket's path (107 bytes in all).
[[nodiscard]] Result<ControlAddress> path_address(std::string_view folder, uid_t user,
                                                  pid_t process);

}  // namespace bubblesim::capture
