#include "vitrail/train/run/progress.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vitrail::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What `write` sends to a Progress.
template <class Write>
std::string output_of(bool terminal, Write&& write) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  {
    Progress progress(stream, terminal);
    write(progress);
  }
  std::fclose(stream);
  std::string result(text, size);
  std::free(text);
  return result;
}

void two_epochs(Progress& progress) {
  progress.set_interval(2);
  for (const char* title : {"epoch 1/2", "epoch 2/2"}) {
    progress.begin(title, 5);
    for (int i = 1; i <= 5; ++i) {
      progress.update(i, "loss 1.500", 5);
    }
    progress.end();
    progress.line("done");
  }
}

TEST(Progress, WritesPlainLinesWhereThereIsNoTerminal) {
  const std::string text = output_of(false, two_epochs);
  EXPECT_THAT(text, StartsWith("epoch 1/2 [2/5] loss 1.500, "));
  EXPECT_THAT(text, HasSubstr("epoch 2/2 [4/5] loss 1.500, "));
  EXPECT_THAT(text, Not(HasSubstr("[3/5]")));
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << "no control characters in a pipe";
  }
}

TEST(Progress, DrawsABarInPlaceOnATerminal) {
  const std::string text = output_of(true, two_epochs);
  EXPECT_THAT(text, HasSubstr("\repoch 1/2 ━"));
  EXPECT_THAT(text, HasSubstr("100%"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[Kdone\n")) << "the bar makes room for lasting lines";
  EXPECT_THAT(text, Not(HasSubstr("[2/5]")));
}

TEST(Progress, WritesDurationsAsPeopleSayThem) {
  EXPECT_EQ(duration_text(0.2), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7801), "2 h 10 min");
}

}  // namespace
}  // namespace vitrail::train
