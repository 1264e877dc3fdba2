// The bucket of tokens of one process, as the launch hook of Tencent's vcuda-controller keeps it
// (tkestack/vcuda-controller, src/hijack_call.c: rate_limiter, delta, change_token): a launch takes
// a token a thread block, and waits while the bucket is below 0. A watcher adds tokens
// periodically; their number grows while the process uses at most its limit of the GPU, and shrinks
// while it uses more. The arithmetic is that of the code, in whole numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace bubblesim::policies {

/// The constants of vcuda-controller's code, and those of the GPU.
struct VcudaConstants {
  std::int64_t sms = 1;
  std::int64_t threads_per_sm = 2048;  ///< resident threads, by the CUDA attribute
  std::int64_t factor = 32;            ///< tokens of a full bucket, for each resident thread
};

class VcudaTokens {
 public:
  /// `limit`: percent of the GPU, 1 to 100.
  VcudaTokens(const VcudaConstants& constants, std::int64_t limit)
      : limit_(limit),
        step_(constants.sms * constants.sms * constants.threads_per_sm / 256),
        most_(constants.threads_per_sm * constants.sms * constants.factor) {}

  /// True: a launch of `blocks` passes, and has taken its tokens. Any launch passes while the
  /// bucket is not below 0.
  [[nodiscard]] bool passes(std::uint64_t blocks) {
    if (tokens_ < 0) return false;
    tokens_ -= static_cast<std::int64_t>(blocks);
    return true;
  }

  /// The watcher saw the process use `used` percent of the GPU; `alone`: no other process ran. If a
  /// process is alone and below a tenth of its limit, it has just begun: its bucket is filled, and
  /// the number added stays.
  void refill(std::int64_t used, bool alone) {
    if (alone && used < limit_ / kBegins) {
      tokens_ = next_share(used);
      return;
    }
    share_ = next_share(used);
    tokens_ = std::min(tokens_ + share_, most_);
  }

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }

 private:
  static constexpr std::int64_t kLeastDifference = 5;  ///< percent
  static constexpr std::int64_t kBegins = 10;  ///< below its limit over this a process has only
                                               ///< begun

  [[nodiscard]] std::int64_t next_share(std::int64_t used) const {
    const std::int64_t difference = std::max(std::abs(limit_ - used), kLeastDifference);
    std::int64_t change = step_ * difference / 10;
    if (difference > limit_ / 2) change = change * difference * 2 / (limit_ + 1);
    return used <= limit_ ? std::min(share_ + change, most_)
                          : std::max(share_ - change, std::int64_t{0});
  }

  std::int64_t limit_;
  std::int64_t step_;
  std::int64_t most_;
  std::int64_t tokens_ = 0;
  std::int64_t share_ = 0;
};

}  // namespace bubblesim::policies
