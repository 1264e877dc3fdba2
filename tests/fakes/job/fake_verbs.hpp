// What the fake job can do. A verb is "name:number:number:..."; it returns 0, or what went wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

struct Verb {
  std::string name;
  std::vector<std::string> arguments;

  [[nodiscard]] std::uint64_t number(std::size_t i, std::uint64_t otherwise = 0) const;
  [[nodiscard]] std::string text(std::size_t i) const;
};

[[nodiscard]] Verb parse_verb(const std::string& text);

/// | verb | what the job does |
/// |---|---|
/// | init | cuInit |
/// | cupti | loads libcupti.so.13 from the folder given, as PyTorch does |
/// | launch:N | N kernels of 1 to 5 us |
/// | threads:T:N | T threads with N kernels each, on two devices |
/// | rate:N:US | N kernels, one each US microseconds |
/// | graph:N:K | N launches of a graph of K nodes |
/// | nccl_graph:N | captures an all-reduce of 1000 floats and a kernel, launches them N times |
/// | nccl:N:US | N all-reduces of 8 ranks, US apart, each after two of 4 ranks |
/// | mixed:N | N times a copy, a memset, an event, a wait, an allocation, a synchronisation |
/// | mark_iterations:N:K | N iterations of K kernels, each in an NVTX range "iteration I" |
/// | two_markers:N | two threads at once: N iterations of one kernel, each marked by both |
/// | values:N | N times: stream 7 does "first" and writes a value; 8 waits for it and does "then" |
/// | gpus:N | N times: 300 us of work on GPU 0, 20 us on GPU 1, a synchronisation of GPU 1 |
/// | destroy | destroys the context |
/// | sleep:MS | waits |
/// | traced:MS, untraced:MS | waits at most so long for a tracer, for its end |
/// | say:TEXT, hear | a line to stdout; a line from stdin |
[[nodiscard]] int do_verb(const Verb& verb);

/// | verb | what the process does |
/// |---|---|
/// | fork:exit, fork:quit | a child that tries to launch and ends by exit() or _exit() |
/// | workers:N | N children at once, forked from as many threads |
/// | exec:VERBS | becomes a new fake_job; in VERBS '+' stands between verbs |
/// | spawn:VERBS | runs another fake_job and waits for it |
/// | inject:COUNT | loads the recorder and calls its entry point COUNT times |
/// | dlclose | loads the recorder, starts it, unloads it |
/// | signals:N | sends itself N SIGUSR1; none may reach a thread of the recorder |
/// | exit:N, quit:N, kill | ends: exit(N), _exit(N), SIGKILL |
/// | limit:BYTES | no file may grow beyond; SIGXFSZ as the system has it |
/// | closed_stderr | closes descriptor 2 |
/// | rss:MB | fails if the process has ever held more memory |
/// Nothing if it is none of these.
[[nodiscard]] int do_process_verb(const Verb& verb, bool& known);

}  // namespace fake
