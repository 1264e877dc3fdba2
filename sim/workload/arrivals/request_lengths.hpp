// The lengths of requests' prompts and outputs: recorded with their arrivals, or drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/shared.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"

namespace bubblesim::workload {

/// Every length is the same.
struct FixedLength {
  std::uint32_t tokens = 1;  ///< at least 1
};

/// Lognormal, rounded to the nearest whole number and then clamped to [least, most], so that the
/// mean of drawn lengths may differ from `mean`.
struct LognormalLength {
  double mean = 1;          ///< tokens, of the distribution before clamping; > 0
  double cv = 1;            ///< coefficient of variation, > 0
  std::uint32_t least = 1;  ///< at least 1
  std::uint32_t most = 1;   ///< at least `least`
};

using LengthSpec = std::variant<FixedLength, LognormalLength>;

/// The longest that it can draw.
[[nodiscard]] std::uint32_t longest(const LengthSpec& length);

/// Conversations of a number of users, whose turns arrive one after another: request n is the next
/// turn of user n modulo `users`. A turn's prompt is the conversation so far, and a drawn number of
/// new tokens.
struct Sessions {
  std::uint32_t users = 1;   ///< at least 1
  std::uint32_t turns = 1;   ///< of a conversation, after which the user begins another; at least 1
  /// Prompt and output of a turn together; a user whose next turn would exceed it begins another
  /// conversation with that turn.
  std::uint32_t window = 1;
};

/// Prompts and outputs are drawn independently of each other.
struct DrawnLengths {
  LengthSpec prompt;
  LengthSpec output;
  std::optional<Sessions> sessions{};  ///< nothing: requests are independent
};

/// The largest request that it can draw: of those with the longest output, the longest prompt.
[[nodiscard]] RecordedLength largest(const DrawnLengths& drawn);

/// Pairs of prompt and output of recorded requests.
struct ListedLengths {
  enum class Pick : std::uint8_t {
    kInOrder,   ///< request n has the n-th, cyclically
    kAtRandom,  ///< each is drawn from all of them, without hashes: a bootstrap of the file
  };
  Shared<std::vector<RecordedLength>> list;  ///< at least one
  Pick pick = Pick::kInOrder;
};

using RequestLengths = std::variant<DrawnLengths, ListedLengths>;

/// Lengths by the number of the request. The same stream and spec give the same lengths, whichever
/// requests are asked for.
class LengthSequence {
 public:
  LengthSequence(RequestLengths spec, RandomStream random);

  /// Calls must be in ascending order of numbers; numbers may repeat.
  [[nodiscard]] const RecordedLength& length_of(std::uint64_t number);

 private:
  /// A user's tokens in the present conversation.
  struct User {
    std::uint64_t conversation = 0;
    std::uint32_t turns = 0;
    std::uint32_t tokens = 0;
  };

  void draw();
  [[nodiscard]] std::uint32_t draw(const LengthSpec& length);
  void say(const Sessions& sessions);

  RequestLengths spec_;
  RandomStream random_;
  std::uint64_t drawn_ = 0;  ///< requests so far
  RecordedLength last_;
  std::vector<User> users_;
  std::uint64_t conversations_ = 0;
};

}  // namespace bubblesim::workload
