// `vitrail bleu` beside sacrebleu's command.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

std::string corpus_file(const std::string& name) { return golden_path("text/bleu/" + name).string(); }

TEST(BleuCommand, PrintsWhatSacrebleuPrints) {
  const nlohmann::json scores = io::read_json(golden_path("text/bleu/scores.json"));
  for (const nlohmann::json& command : scores["commands"]) {
    const auto arguments = command["arguments"].get<std::string>();
    const std::string folder = golden_path("text/bleu").string();
    const Outcome outcome = vitrail("bleu " + arguments, "", "cd " + folder + " &&");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, command["output"].get<std::string>()) << arguments;
  }
}

TEST(BleuCommand, ReadsStandardInput) {
  const std::string lines = io::read_text(corpus_file("hyp.txt"));
  const Outcome piped = vitrail("bleu " + corpus_file("ref0.txt"), lines);
  EXPECT_EQ(piped.out, vitrail("bleu " + corpus_file("ref0.txt") + " -i " + corpus_file("hyp.txt")).out);
}

TEST(BleuCommand, SaysWhatDoesNotFit) {
  const std::string ref = "bleu " + corpus_file("ref0.txt");
  const Outcome shorter = vitrail(ref, "one\ntwo\n");
  EXPECT_EQ(shorter.status, 1);
  EXPECT_THAT(shorter.err, HasSubstr("'standard input' has 2 lines, but '" + corpus_file("ref0.txt") +
                                     "' has 24 lines: only one of them has line 3"));
  EXPECT_THAT(vitrail(ref, "one\n\xff\n").err, HasSubstr("standard input: line 2 is not UTF-8: byte 1"));
  EXPECT_THAT(vitrail("bleu /dev/null").err, HasSubstr("'standard input' is empty: there is nothing to score"));
  EXPECT_THAT(vitrail(ref + " -e latin-77", "one\n").err, HasSubstr("no encoding has the name 'latin-77'"));
  EXPECT_THAT(vitrail("bleu nowhere.txt").err, HasSubstr("nowhere.txt"));
  for (const auto& [flags, message] : {std::pair(" -sv 1", "--smooth-value is for --smooth-method floor and add-k"),
                                       {" -tok 14a", "14a"},
                                       {" -m ter", "ter"},
                                       {" -l german", "--language-pair is the codes of two languages such as de-en"},
                                       {" -l german -tok intl", "--language-pair is the codes of two languages"},
                                       {" -l en-ja", "choose one by --tokenize"},
                                       {" -sl -m bleu chrf", "--sentence-level takes one metric"}}) {
    const Outcome outcome = vitrail(ref + flags, "one\n");
    EXPECT_EQ(outcome.status, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << flags;
  }
}

}  // namespace
}  // namespace vitrail::test
