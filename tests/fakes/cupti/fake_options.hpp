// How the fake CUPTI misbehaves, read from FAKE_CUPTI when it is loaded: "name=number,name,...".
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fake {

/// | option | what it does |
/// |---|---|
/// | subscribe=N | subscribing fails with N |
/// | holder=TEXT | who holds CUPTI; with subscribe=39 |
/// | subscribe_ms=N | subscribing takes so long |
/// | fail_kind=K, fail_with=N | enabling kind K fails with N (default 14) |
/// | shared | one buffer for all threads; otherwise one a thread, as CUDA 13 does |
/// | shuffle | flushed buffers come back in another order |
/// | keep=N | so many buffers stay out until the process ends |
/// | keep_large | so do all of more than 64 KiB |
/// | drops=N | so many records were dropped, by the first count asked for |
/// | null_names | kernels have no name |
/// | unknown | after every kernel comes a record of a kind that nobody knows |
/// | fatal_after=N | a fatal error is reported with the Nth kernel |
/// | flush_ms=N | a flush takes so long |
/// | step_ms=N | its clock is set forward by so much after 0.3 s |
/// | stop_fails | disabling anything fails with 7 |
class Options {
 public:
  explicit Options(const char* text);

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise = 0) const;
  [[nodiscard]] std::string text(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

[[nodiscard]] const Options& options();

}  // namespace fake
