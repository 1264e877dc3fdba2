// The collectives of a job under construction: each rank asks for its next use of a communicator,
// and ranks with the same use get the same collective. The network transfer of a collective is
// computed once for each size.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "sim/base/counters.hpp"
#include "sim/network/topology.hpp"
#include "sim/synth/rank_grid.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::synth {

inline constexpr CounterSpec kFoldedApart{
    "synth_folded_ranks_lie_otherwise", Severity::kNotice,
    "exchanges whose folded groups lie on nodes, leaves or regions in several ways that take "
    "different times: each takes as long as the slowest (\"folding\": \"nothing\" simulates all)"};

/// Communicators whose uses are counted separately.
enum class Channel : std::uint8_t {
  kTensor, kContext, kExpert, kData, kExpertData, kTokenSplit, kEmbedding, kCopies, kNorm,
  kWideArea, kPrimary, kSecondary, kUpdated, kResponses, kWeights, kForwardTransfer,
  kBackwardTransfer, kReceived,
};

[[nodiscard]] std::string_view channel_name(Channel channel);

/// One use of a communicator.
struct Use {
  Channel channel = Channel::kTensor;
  std::uint32_t communicator = 0;  ///< distinguishes communicators of a channel
  std::uint64_t number = 0;        ///< of the use; for transfers: by iteration, edge and
                                   ///< micro-batch
  friend auto operator<=>(const Use&, const Use&) = default;
};

class CollectiveTable {
 public:
  CollectiveTable(const network::Topology& topology, workload::JobProgram& job)
      : topology_(topology), job_(job) {}

  /// The collective of `use`, made at the first request. All ranks of a use ask with the same kind,
  /// bytes, communicator and form.
  std::uint32_t find(const Use& use, network::CollectivePattern kind, double bytes,
                     const Communicator& communicator, const network::CollectiveKernel& form);

  /// Blocks of the collective's kernel on each rank.
  [[nodiscard]] std::uint32_t channels(std::uint32_t collective) const {
    return job_.transfers[job_.collectives[collective].transfer].channels;
  }

 private:
  struct Demand {
    network::CollectivePattern kind;
    std::uint64_t bytes;
    std::uint32_t first_rank;
    std::uint32_t sender;    ///< of a pair
    std::uint32_t receiver;
    std::uint32_t members;
    Channel channel;
    network::CollectiveKernel form;
    friend auto operator<=>(const Demand&, const Demand&) = default;
  };
  std::uint32_t group_of(const Use& use, const Communicator& communicator);
  std::uint32_t transfer_of(const Demand& demand, const Communicator& communicator);

  const network::Topology& topology_;
  workload::JobProgram& job_;
  std::map<Use, std::uint32_t> uses_;
  std::map<std::tuple<Channel, std::uint32_t, std::uint32_t>, std::uint32_t> groups_;
  std::map<Demand, std::uint32_t> transfers_;
};

// The network load of a collective of folded ranks, which their groups run, too.
//
// Every group is planned; a link's load is the sum over groups. Usually all groups lie on nodes in
// the same way, and the first represents all. If a group straddles a node and another does not (3
// tensor ranks on nodes of 8), or one leaf is full of groups and another is not, the slowest
// represents all, since groups wait for each other when gradients are exchanged.

/// Whether all groups take the same time when each runs alone.
enum class Twins : std::uint8_t { kAlike, kApart };

struct FoldedTransfer {
  network::Transfer transfer;
  Twins twins = Twins::kAlike;
};

/// Plans groups until their places on nodes, leaves and regions repeat, or all of them. Complexity:
/// O(ranks of a pipeline stage).
[[nodiscard]] FoldedTransfer folded_transfer(const network::Topology& topology,
                                             network::CollectivePattern kind, Bytes bytes,
                                             const Communicator& communicator,
                                             const network::CollectiveKernel& form);

}  // namespace bubblesim::synth
