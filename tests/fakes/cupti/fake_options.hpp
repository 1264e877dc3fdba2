// How the fake CUPTI misbehaves, read from FAKE_CUPTI when it is loaded: "name=number,name,...".
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace fake {

/// | option | what it does |
/// |---|---|
/// | subscribe=N | subscribing fails with N |
/// | holder=TEXT | name of the subscriber that holds CUPTI; with subscribe=39 |
/// | subscribe_ms=N | subscribing takes N ms |
/// | fail_kind=K, fail_with=N | enabling kind K fails with N (default 14) |
/// | shared | one buffer for all threads; otherwise one a thread, as in CUDA 13 |
/// | shuffle | flushed buffers come back in another order |
/// | keep=N | N buffers are never given back |
/// | keep_large | buffers of more than 64 KiB are never given back |
/// | drops=N | the first query for dropped records answers N more |
/// | null_names | kernels have no name |
/// | unknown | after every kernel comes a record of kUnknownKind |
/// | fatal_after=N | a fatal error is reported with the Nth kernel |
/// | flush_ms=N | a flush takes N ms |
/// | step_ms=N | its clock is set forward by N ms after 0.3 s |
/// | stop_fails | disabling any kind fails with 7 |
class Options {
 public:
  explicit Options(const char* text) {
    std::istringstream in(text == nullptr ? "" : text);
    for (std::string item; std::getline(in, item, ',');) {
      const std::size_t equals = item.find('=');
      values_[item.substr(0, equals)] = equals == std::string::npos ? "1" : item.substr(equals + 1);
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise = 0) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoull(found->second);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

inline const Options& options() {
  static const Options* const one = new Options(std::getenv("FAKE_CUPTI"));
  return *one;
}

}  // namespace fake
