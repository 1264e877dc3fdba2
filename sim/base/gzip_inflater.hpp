// Unpacks gzip, member by member, with a block of input and a block of output at a time: one
// interface over several libraries. The caller knows where members begin and what may follow the
// last one (ByteStream).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace bubblesim {

class GzipInflater {
 public:
  enum class Status {
    kOpen,       ///< inside a member
    kMemberEnd,  ///< the member has ended with right length and checksum
    kDamaged,    ///< not gzip from here on: earlier output is good
  };
  struct Step {
    std::size_t taken = 0;  ///< bytes of the input
    std::size_t made = 0;   ///< bytes of the output
    Status status = Status::kOpen;
  };

  GzipInflater() = default;
  GzipInflater(const GzipInflater&) = delete;
  GzipInflater& operator=(const GzipInflater&) = delete;
  virtual ~GzipInflater() = default;

  /// Announces that the next input is a member's header.
  virtual void start_member() = 0;

  /// Unpacks `input` into `output`, which has room, until either is used up or the member ends;
  /// `input` may be cut anywhere. Text held back for lack of room comes with a step without input.
  /// An open step that neither takes nor makes bytes needs more input. To be called between
  /// start_member() and the first status that is not kOpen.
  [[nodiscard]] virtual Step step(std::string_view input, std::span<char> output) = 0;
};

struct GzipLibrary {
  std::string_view name;
  std::unique_ptr<GzipInflater> (*make)();
};

/// This build's libraries, the fastest first; never empty. All of them give the same text of a
/// whole file; of a damaged one, they may find the damage a few bytes sooner or later.
[[nodiscard]] std::span<const GzipLibrary> gzip_libraries();

/// zlib: in every build.
[[nodiscard]] std::unique_ptr<GzipInflater> make_zlib_inflater();
/// ISA-L: three times as fast; only in some builds.
[[nodiscard]] std::unique_ptr<GzipInflater> make_isal_inflater();

}  // namespace bubblesim
