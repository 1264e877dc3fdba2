// Journals of runs in flight: what a process that died leaves, and what follows from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "sim/sweep/run_journal.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

const std::string kFirst(32, '1');
const std::string kSecond(32, '2');

store::PlannedRun run_of(const std::string& key) {
  store::PlannedRun run;
  run.key = key;
  return run;
}

/// As a process that died left it; `letter`: r in flight, c crashed, - ended.
std::string left(const std::string& key, char letter, const std::string& sweep = "s") {
  return "runs in flight of a process of bubblesim sweep " + sweep + "\n" + key + ' ' + letter +
         '\n';
}

DeadJournals read(const Folder& folder, const std::string& sweep = "s") {
  auto dead = DeadJournals::read({folder.path("runs.db"), sweep});
  EXPECT_TRUE(dead) << dead.error().text();
  return *std::move(dead);
}

std::size_t files(const Folder& folder) {
  const std::filesystem::directory_iterator all(folder.path(""));
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(RunJournal, OfAProcessThatLivesIsNoEvidenceAndGoesWithIt) {
  const Folder folder;
  {
    const auto journal = RunJournal::create({folder.path("runs.db"), "s"});
    ASSERT_TRUE(journal) << journal.error().text();
    (*journal)->started(run_of(kFirst));
    EXPECT_EQ(files(folder), 1U);
    EXPECT_TRUE(read(folder).empty());
    (*journal)->ended();
  }
  EXPECT_EQ(files(folder), 0U);
}

TEST(RunJournal, NamesTheRunOfTheThreadThatCrashes) {
  const Folder folder;
  const auto journal = RunJournal::create({folder.path("runs.db"), "s"});
  ASSERT_TRUE(journal) << journal.error().text();
  (*journal)->started(run_of(kFirst));
  EXPECT_STREQ(RunJournal::mark_crash(), kFirst.c_str());
  std::thread([] { EXPECT_EQ(RunJournal::mark_crash(), nullptr) << "has no run"; }).join();
  (*journal)->ended();
  EXPECT_EQ(RunJournal::mark_crash(), nullptr);
}

TEST(DeadJournals, CountTheDeathsOfARunAndSaveOnesThatEnded) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r') + kSecond + " -\n");
  folder.write("runs.db.running-bbbbbb", left(kFirst, 'r'));
  const DeadJournals dead = read(folder);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 2U);
  EXPECT_FALSE(dead.suspicion(kFirst).crashed);
  EXPECT_EQ(dead.suspicion(kSecond).deaths, 0U);
}

TEST(DeadJournals, AreOfOneSweepAndSkipWhatIsNoJournal) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r', "other"));
  folder.write("runs.db.running-bbbbbb", "");
  folder.write("runs.db.running-cccccc", left("not a key", 'r') + kSecond.substr(0, 20));
  folder.write("more-runs.db.running-dddddd", left(kSecond, 'r'));
  const DeadJournals dead = read(folder);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 0U);
  EXPECT_EQ(dead.suspicion(kSecond).deaths, 0U);
  EXPECT_EQ(read(folder, "other").suspicion(kFirst).deaths, 1U);
}

TEST(DeadJournals, AreForgottenUnlessTheyNameARunOfAnotherShard) {
  const Folder folder;
  folder.write("runs.db.running-aaaaaa", left(kFirst, 'r'));
  folder.write("runs.db.running-bbbbbb", left(kSecond, 'c'));
  DeadJournals dead = read(folder);
  dead.forget_but({kSecond});
  EXPECT_EQ(files(folder), 1U);
  EXPECT_EQ(dead.suspicion(kFirst).deaths, 0U);
  EXPECT_TRUE(dead.suspicion(kSecond).crashed);
}

// One kill is no evidence: it may have been the user's, of the whole program.
TEST(DeadJournals, ARunIsTriedAgainThenAloneThenNotUnlessItCrashed) {
  EXPECT_EQ(trust_in({0, false}), Trust::kWithOthers);
  EXPECT_EQ(trust_in({1, false}), Trust::kWithOthers);
  EXPECT_EQ(trust_in({2, false}), Trust::kAlone);
  EXPECT_EQ(trust_in({3, false}), Trust::kNone);
  EXPECT_EQ(trust_in({1, true}), Trust::kNone);
  EXPECT_THAT(reason_of({1, true}), HasSubstr("brought the program down"));
  EXPECT_THAT(reason_of({3, false}), HasSubstr("in flight 3 times"));
}

}  // namespace
}  // namespace bubblesim::sweep
