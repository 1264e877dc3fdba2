// Completions and man pages, made from the commands' declarations (scripts/cmake/documents.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

bool has_program(const Workplace& place, const std::string& name) {
  return place.shell("command -v " + name).code == 0;
}

// All documents, in the folder "made".
void make_documents(const Workplace& place) {
  const Outcome made =
      place.shell("bubblesim describe | python3 scripts/cmake/documents.py made 0.2.0");
  ASSERT_EQ(made.code, 0) << made.err;
}

// What bash offers for the words, the last of which is being typed.
std::string offered(const Workplace& place, const std::string& words, int last) {
  return place
      .shell("bash -c 'source made/bubblesim; COMP_WORDS=(" + words + ") COMP_CWORD=" +
             std::to_string(last) + "; _bubblesim; echo ${COMPREPLY[*]}'")
      .out;
}

TEST(Completion, BashOffersCommandsOptionsAndKnownValues) {
  const Workplace place;
  make_documents(place);
  EXPECT_EQ(offered(place, "bubblesim ins", 1), "inspect\n");
  EXPECT_EQ(offered(place, "bubblesim capture att", 2), "attach\n");
  EXPECT_EQ(offered(place, "bubblesim run job.btr --not", 3), "--notices\n");
  EXPECT_EQ(offered(place, "bubblesim run --mode o", 3), "offline online\n");
  EXPECT_EQ(offered(place, "bubblesim run job", 2), "\n") << "the shell offers files";
}

TEST(Completion, OfEveryShellIsReadByIt) {
  const Workplace place;
  make_documents(place);
  for (const auto& [shell, file] : {std::pair{"bash", "bubblesim"},
                                    {"zsh", "_bubblesim"},
                                    {"fish", "bubblesim.fish"}}) {
    EXPECT_THAT(place.read(std::string("made/") + file), HasSubstr("notices")) << shell;
    if (!has_program(place, shell)) continue;
    const Outcome read = place.shell(std::string(shell) + " -n made/" + file);
    EXPECT_EQ(read.code, 0) << shell << "\n" << read.err;
  }
}

TEST(Man, EveryCommandHasAPageWithItsOptions) {
  const Workplace place;
  make_documents(place);
  const std::string page = place.read("made/man/bubblesim-run.1");
  EXPECT_THAT(page, testing::StartsWith(".TH \"BUBBLESIM-RUN\" 1 \"\" \"bubblesim 0.2.0\""));
  EXPECT_THAT(page, HasSubstr("bubblesim\\-run \\- Simulates a training job"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-notices\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.nf\n  bubblesim run "));
  EXPECT_THAT(place.read("made/man/bubblesim.1"), HasSubstr("\\fBbubblesim\\-run\\fR(1)"));
  EXPECT_THAT(place.read("made/man/bubblesim-capture-attach.1"), HasSubstr(".SH OPTIONS"));
}

TEST(Man, PagesAreFormattedWithoutAWarning) {
  const Workplace place;
  if (!has_program(place, "groff")) GTEST_SKIP() << "no groff";
  make_documents(place);
  const Outcome formatted = place.shell("groff -man -Tutf8 -ww made/man/*.1 > /dev/null");
  EXPECT_EQ(formatted.code, 0);
  EXPECT_EQ(formatted.err, "");
}

}  // namespace
}  // namespace bubblesim::app_test
