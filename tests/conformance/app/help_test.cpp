// Help texts: each command has one, and its examples work.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::StartsWith;
using Completion = AtWorkplace;
using Man = AtWorkplace;
using Help = AtShortWorkplace;

// Under "Subcommands:", a name starts in the third column.
std::vector<std::string> commands(const Workplace& place) {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(place.bubblesim("--help").out)) {
    if (line.starts_with("Subcommands:")) listed = true;
    if (!listed || line.size() < 3 || !line.starts_with("  ") || line[2] == ' ') continue;
    names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// The text with the lines of a paragraph in one.
std::string unwrapped(std::string text) {
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\n' && text[i - 1] != '\n' && text[i + 1] != '\n') text[i] = ' ';
  }
  return text;
}

// Lines of a help text that are a command.
std::vector<std::string> examples(const std::string& help) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(help)) {
    if (line.starts_with("  bubblesim ")) found.push_back(line.substr(2));
  }
  return found;
}

TEST_F(Help, NamesTheCommands) {
  EXPECT_THAT(commands(place), testing::IsSupersetOf(
      {"import", "inspect", "run", "export", "policies", "devices"}));
}

TEST_F(Help, OfEveryCommandHasAnExampleAndGoesToStandardOutput) {
  for (const std::string& name : commands(place)) {
    const Outcome help = place.bubblesim(name + " --help");
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.err, IsEmpty()) << name;
    EXPECT_THAT(examples(help.out), testing::Not(IsEmpty())) << name;
    EXPECT_THAT(examples(help.out), testing::Each(HasSubstr("bubblesim " + name))) << name;
  }
}

// In the order of the commands: what import writes is what inspect and export read. Lengths are
// cut: that an example works does not depend on them.
TEST_F(Help, ExamplesOfEveryCommandWork) {
  for (const std::string& name : commands(place)) {
    for (const std::string& example : examples(place.bubblesim(name + " --help").out)) {
      // The sample job at full length takes a minute; run_test.cpp has it in short.
      if (example.find("run traces/") != std::string::npos) continue;
      // Reports of measurements; run_test.cpp makes some.
      if (example.find("validate out/") != std::string::npos) continue;
      // Jobs on a GPU; capture_test.cpp and fill_test.cpp have jobs that need none.
      if (name == "capture" || name == "fill") continue;
      const bool fake = example.find("--fake") != std::string::npos;
      if ((name == "measure" || name == "calibrate") && !fake) continue;
      // Stores that a sweep has written; sweep_test.cpp makes one.
      if (name == "results" || name == "report") continue;
      // Data that is not of this tree.
      if (example.find("../shared/") != std::string::npos) continue;
      const Outcome outcome = place.shell(ShortWorkplace::short_line(example));
      EXPECT_EQ(outcome.code, 0) << example << "\n" << outcome.err;
    }
  }
}

TEST_F(Help, OfACommandIsTheSameInBothWays) {
  for (const std::string name : {"run", "devices", "capture attach", "help"}) {
    const Outcome help = place.bubblesim("help " + name);
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_EQ(help.out, place.bubblesim(name + " --help").out);
  }
  EXPECT_EQ(place.bubblesim("help").out, place.bubblesim("--help").out);
}

TEST_F(Help, ListsACommandALineAndHoldsNoControlCharacters) {
  EXPECT_THAT(place.bubblesim("help").out, HasSubstr("\n  run                         Simulates a "
                                                     "training job with fillers under each policy "
                                                     "and prints the comparison\n  measure "));
  for (const std::string& name : commands(place)) {
    for (const char letter : place.bubblesim("help " + name).out) {
      ASSERT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= ' ') << name;
    }
  }
}

TEST_F(Help, ListsAWholeSentenceOfEachCommand) {
  const std::string list = place.bubblesim("--help").out;
  for (const std::string& name : commands(place)) {
    const std::size_t line = list.find("\n  " + name + " ");
    ASSERT_NE(line, std::string::npos) << name;
    const std::size_t begin = list.find_first_not_of(' ', line + 3 + name.size());
    const std::string sentence = list.substr(begin, list.find('\n', begin) - begin);
    const std::string help = unwrapped(place.bubblesim(name + " --help").out);
    EXPECT_THAT(help, HasSubstr(sentence + ".")) << name;
  }
}

TEST_F(Help, VersionSaysWhatWasBuiltAndHow) {
  const Outcome version = place.bubblesim("--version");
  EXPECT_EQ(version.code, 0);
  const std::vector<std::string> lines = lines_of(version.out);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_THAT(lines[0], testing::ContainsRegex("^bubblesim [0-9]+\\.[0-9]+\\.[0-9]+\\+"));
  EXPECT_THAT(lines[1], StartsWith("compiler: "));
  EXPECT_THAT(lines[2], StartsWith("with"));
  for (const char* part : {"ISA-L", "PostgreSQL", "Python", "sanitizers"}) {
    EXPECT_THAT(version.out, HasSubstr(part));
  }
}

// Completions and man pages, made from the commands' declarations (scripts/cmake/documents.py).

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

TEST_F(Completion, BashOffersCommandsOptionsAndKnownValues) {
  make_documents(place);
  EXPECT_EQ(offered(place, "bubblesim ins", 1), "inspect\n");
  EXPECT_EQ(offered(place, "bubblesim capture att", 2), "attach\n");
  EXPECT_EQ(offered(place, "bubblesim run job.btr --not", 3), "--notices\n");
  EXPECT_EQ(offered(place, "bubblesim run --mode o", 3), "offline online\n");
  EXPECT_EQ(offered(place, "bubblesim run job", 2), "\n") << "the shell offers files";
}

TEST_F(Completion, OfEveryShellIsReadByIt) {
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

TEST_F(Man, EveryCommandHasAPageWithItsOptions) {
  make_documents(place);
  const std::string page = place.read("made/man/bubblesim-run.1");
  EXPECT_THAT(page, testing::StartsWith(".TH \"BUBBLESIM-RUN\" 1 \"\" \"bubblesim 0.2.0\""));
  EXPECT_THAT(page, HasSubstr("bubblesim\\-run \\- Simulates a training job"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-notices\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.nf\n  bubblesim run "));
  EXPECT_THAT(place.read("made/man/bubblesim.1"), HasSubstr("\\fBbubblesim\\-run\\fR(1)"));
  EXPECT_THAT(place.read("made/man/bubblesim-capture-attach.1"), HasSubstr(".SH OPTIONS"));
}

TEST_F(Man, PagesAreFormattedWithoutAWarning) {
  if (!has_program(place, "groff")) GTEST_SKIP() << "no groff";
  make_documents(place);
  const Outcome formatted = place.shell("groff -man -Tutf8 -ww made/man/*.1 > /dev/null");
  EXPECT_EQ(formatted.code, 0);
  EXPECT_EQ(formatted.err, "");
}

}  // namespace
}  // namespace bubblesim::app_test
