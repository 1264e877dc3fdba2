// Completions and man pages, made from the commands' declarations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

bool has_program(const Workplace& place, const std::string& name) {
  return place.shell("command -v " + name).code == 0;
}

// What bash offers for the words, the last of which is being typed.
std::string offered(const Workplace& place, const std::string& words, int last) {
  return place
      .shell("bash -c 'source completions; COMP_WORDS=(" + words + ") COMP_CWORD=" +
             std::to_string(last) + "; _bubblesim; echo ${COMPREPLY[*]}'")
      .out;
}

TEST(Completion, BashOffersCommandsOptionsAndKnownValues) {
  const Workplace place;
  place.write("completions", place.bubblesim("completion bash").out);
  EXPECT_EQ(offered(place, "bubblesim ins", 1), "inspect\n");
  EXPECT_EQ(offered(place, "bubblesim capture att", 2), "attach\n");
  EXPECT_EQ(offered(place, "bubblesim run job.btr --not", 3), "--notices\n");
  EXPECT_EQ(offered(place, "bubblesim run --mode o", 3), "offline online\n");
  EXPECT_EQ(offered(place, "bubblesim run job", 2), "\n") << "the shell offers files";
}

TEST(Completion, OfEveryShellIsReadByIt) {
  const Workplace place;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = place.bubblesim("completion " + shell).out;
    EXPECT_THAT(script, HasSubstr("notices")) << shell;
    place.write("completions", script);
    if (!has_program(place, shell)) continue;
    const Outcome read = place.shell(shell + " -n completions");
    EXPECT_EQ(read.code, 0) << shell << "\n" << read.err;
  }
  EXPECT_EQ(place.bubblesim("completion tcsh").code, 2);
}

TEST(Man, EveryCommandHasAPageWithItsOptions) {
  const Workplace place;
  EXPECT_EQ(place.bubblesim("man --all pages").code, 0);
  const std::string page = place.read("pages/bubblesim-run.1");
  EXPECT_EQ(page, place.bubblesim("man run").out);
  EXPECT_THAT(page, testing::StartsWith(".TH \"BUBBLESIM-RUN\" 1 \"\" \"bubblesim "));
  EXPECT_THAT(page, HasSubstr("bubblesim\\-run \\- Simulates a training job"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-notices\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.nf\n  bubblesim run "));
  EXPECT_THAT(place.read("pages/bubblesim.1"), HasSubstr("\\fBbubblesim\\-run\\fR(1)"));
  EXPECT_THAT(place.read("pages/bubblesim-capture-attach.1"), HasSubstr(".SH OPTIONS"));
}

TEST(Man, PagesAreFormattedWithoutAWarning) {
  const Workplace place;
  if (!has_program(place, "groff")) GTEST_SKIP() << "no groff";
  ASSERT_EQ(place.bubblesim("man --all pages").code, 0);
  const Outcome formatted = place.shell("groff -man -Tutf8 -ww pages/*.1 > /dev/null");
  EXPECT_EQ(formatted.code, 0);
  EXPECT_EQ(formatted.err, "");
}

}  // namespace
}  // namespace bubblesim::app_test
