// One walk over a name finds all words that it contains: the automaton of Aho and Corasick
// ("Efficient string matching: an aid to bibliographic search", 1975), made at compile time.
#include "sim/program/kernel_class.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace bubblesim::program {
namespace {

constexpr std::array<std::string_view, 18> kComputeWords{
    "gemm",  "conv",    "nvjet",  "cutlass", "wgrad",    "dgrad",  "xmma", "flash",  "attention",
    "fmha",  "winograd", "implicit", "matmul", "tensorop", "cublas", "Cijk", "moe_gemm", "fprop"};

constexpr std::array<std::string_view, 24> kMemoryWords{
    "elementwise", "norm",    "softmax", "reduce", "copy",   "fill",      "embedding", "gather",
    "scatter",     "dropout", "pool",    "cat",    "index",  "sort",      "scan",      "transpose",
    "adam",        "sgd",     "optimizer", "relu", "gelu",   "triton_poi", "triton_red", "memset"};

/// Letters without regard to case, the underscore, and one for all that no word has.
constexpr std::size_t kLetters = 28;

constexpr std::size_t letter_of(char c) {
  if (c >= 'a' && c <= 'z') return static_cast<std::size_t>(c - 'a');
  if (c >= 'A' && c <= 'Z') return static_cast<std::size_t>(c - 'A');
  return c == '_' ? 26 : 27;
}

constexpr std::size_t most_states() {
  std::size_t states = 1;
  for (const std::string_view word : kComputeWords) states += word.size();
  for (const std::string_view word : kMemoryWords) states += word.size();
  return states;
}

/// A state is the longest beginning of a word that the text read so far ends with; 0: none.
class WordFinder {
 public:
  constexpr WordFinder() {
    for (const std::string_view word : kComputeWords) add(word, KernelClass::kCompute);
    for (const std::string_view word : kMemoryWords) add(word, KernelClass::kMemory);
    complete();
  }

  [[nodiscard]] constexpr std::uint16_t next(std::uint16_t state, char c) const {
    return next_[state][letter_of(c)];
  }
  /// What the words say that end here; kUnknown: none ends.
  [[nodiscard]] constexpr KernelClass ending(std::uint16_t state) const { return ending_[state]; }

 private:
  constexpr void add(std::string_view word, KernelClass meaning) {
    std::uint16_t state = 0;
    for (const char c : word) {
      std::uint16_t& after = next_[state][letter_of(c)];
      if (after == 0) after = static_cast<std::uint16_t>(++states_);
      state = after;
    }
    note(state, meaning);
  }

  constexpr void note(std::uint16_t state, KernelClass meaning) {
    if (ending_[state] != KernelClass::kCompute && meaning != KernelClass::kUnknown) {
      ending_[state] = meaning;
    }
  }

  // By length: a state goes on as the longest shorter one does where its own words do not.
  constexpr void complete() {
    std::array<std::uint16_t, most_states()> queue{};
    std::array<std::uint16_t, most_states()> shorter{};
    std::size_t queued = 1;
    for (std::size_t i = 0; i < queued; ++i) {
      const std::uint16_t state = queue[i];
      for (std::size_t letter = 0; letter < kLetters; ++letter) {
        std::uint16_t& after = next_[state][letter];
        const std::uint16_t otherwise = state == 0 ? 0 : next_[shorter[state]][letter];
        if (after == 0) {
          after = otherwise;
          continue;
        }
        shorter[after] = otherwise;
        note(after, ending_[otherwise]);
        queue[queued++] = after;
      }
    }
  }

  std::array<std::array<std::uint16_t, kLetters>, most_states()> next_{};
  std::array<KernelClass, most_states()> ending_{};
  std::size_t states_ = 0;
};

constexpr WordFinder kWords;

}  // namespace

KernelClass classify_kernel(std::string_view name) {
  KernelClass found = KernelClass::kUnknown;
  std::uint16_t state = 0;
  for (const char c : name) {
    state = kWords.next(state, c);
    const KernelClass ending = kWords.ending(state);
    if (ending == KernelClass::kCompute) return ending;
    if (ending != KernelClass::kUnknown) found = ending;
  }
  return found;
}

}  // namespace bubblesim::program
