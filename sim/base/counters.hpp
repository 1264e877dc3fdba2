// Data-quality counters: nothing is lost quietly. Each counter is declared once as a constant
// with its severity; a set of counts travels with every trace, run and results row.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bubblesim {

/// The meaning of a count other than zero for the reader of a result.
enum class Severity : std::uint8_t {
  kInfo,    ///< normal, good to know
  kNotice,  ///< an assumption or inference was made
  kLoss,    ///< something recorded or asked for is not in the result
  kError,   ///< the result must not be trusted; gives a non-zero exit
};

[[nodiscard]] std::string_view severity_name(Severity severity);

/// A declared counter; a constexpr constant beside the code that counts.
struct CounterSpec {
  std::string_view name;  ///< snake_case, unique in the program
  Severity severity;
  std::string_view help;  ///< one sentence: the counted event and its consequence
};

/// Counts by name, in name order. Zero counts are not held.
class CounterSet {
 public:
  struct Entry {
    Severity severity;
    std::string help;
    std::uint64_t count = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  void add(const CounterSpec& spec, std::uint64_t count = 1);
  void add(std::string_view name, const Entry& entry);
  /// Replaces the count.
  void reset(const CounterSpec& spec, std::uint64_t count);
  void merge(const CounterSet& other);
  [[nodiscard]] std::uint64_t count(std::string_view name) const;
  [[nodiscard]] bool has_error() const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  friend bool operator==(const CounterSet&, const CounterSet&) = default;

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace bubblesim
