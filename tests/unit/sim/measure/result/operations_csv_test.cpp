// What each operation did as a table, by hand.
#include "sim/measure/measured_result.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;

capture::RigJob job_of_two() {
  capture::RigJob job;
  program::Program& program = job.plan.program;
  program.ops.resize(2);
  program.ops[0].name = program.names.intern("gemm<1, 2>");
  program.ops[1].name = program.names.intern("Memcpy HtoD");
  program.ops[1].kind = program::WorkKind::kCopy;
  program.ops[1].stream = 3;
  return job;
}

TEST(OperationsCsv, RowsAreInTheOrderOfStartsAndNamesWithCommasAreQuoted) {
  capture::JobOutcome outcome;
  outcome.record.emplace();
  outcome.record->name = "job";
  outcome.record->operations = {
      {.op = 0, .pass = 1, .called = 10ns, .start = 30ns, .end = 40ns, .returned = 15ns,
       .noticed = 50ns},
      {.op = 1, .pass = 1, .called = 1ns, .start = 5ns, .end = 20ns, .returned = 4ns,
       .noticed = 25ns}};
  EXPECT_EQ(operations_csv({job_of_two()}, {outcome}),
            "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n"
            "job,1,1,copy,3,Memcpy HtoD,1,5,20,4,25\n"
            "job,1,0,kernel,0,\"gemm<1, 2>\",10,30,40,15,50\n");
}

TEST(OperationsCsv, AJobThatDiedHasNoRows) {
  EXPECT_EQ(operations_csv({job_of_two()}, {capture::JobOutcome{}}),
            "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n");
}

}  // namespace
}  // namespace bubblesim::measure
