#include "vitrail/io/pickle.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace vitrail::io {
namespace {

using namespace std::string_literals;
using test::error_of;
using ::testing::HasSubstr;

constexpr std::array<std::string_view, 2> harmless = {"collections.OrderedDict", "torch.Size"};

Pickle parse_pickle(const std::string& bytes) {
  return read_pickle({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, harmless, "file");
}
std::string pickle_complaint(const std::string& bytes) {
  return error_of([&] { parse_pickle(bytes); });
}

TEST(Pickle, HasPythonsValues) {
  const auto integer = [](const std::string& bytes) { return parse_pickle(bytes).root->integer; };
  EXPECT_EQ(integer("K\xff."), 255);
  EXPECT_EQ(integer("M\1\2."), 513);
  EXPECT_EQ(integer("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(integer("\x8a\0."s), 0);
  EXPECT_EQ(integer("\x8a\1\xff."), -1);
  EXPECT_EQ(integer("\x8a\2\xff\0."s), 255);
  EXPECT_EQ(integer("\x8a\10\0\0\0\0\0\0\0\x80."s), INT64_MIN);
  EXPECT_EQ(parse_pickle("\x8a\11\0\0\0\0\0\0\0\0\1."s).root->kind, PickleKind::long_integer);
  EXPECT_EQ(integer("\x88."), 1);
  EXPECT_EQ(parse_pickle("\x89.").root->kind, PickleKind::boolean);
  EXPECT_EQ(parse_pickle("N.").root->kind, PickleKind::none);
  EXPECT_EQ(parse_pickle("G\xbf\xf8\0\0\0\0\0\0."s).root->real, -1.5);
  const std::string text = "X\2\0\0\0\xc3\xbc."s;
  EXPECT_EQ(parse_pickle(text).root->text, "ü");
  const std::string old_text = "U\2ab.";
  EXPECT_EQ(parse_pickle(old_text).root->text, "ab");
}

TEST(Pickle, MakesListsDictsAndTuples) {
  EXPECT_EQ(parse_pickle(").").root->items.size(), 0U);
  EXPECT_EQ(parse_pickle("N\x85.").root->items.size(), 1U);
  EXPECT_EQ(parse_pickle("NN\x86.").root->items.size(), 2U);
  EXPECT_EQ(parse_pickle("NNN\x87.").root->items.size(), 3U);
  EXPECT_EQ(parse_pickle("(NNNNt.").root->items.size(), 4U);
  EXPECT_EQ(parse_pickle("]Na(NNe.").root->items.size(), 3U);
  EXPECT_EQ(parse_pickle("}NNs(NNNNu.").root->items.size(), 6U);
  EXPECT_EQ(parse_pickle("ccollections\nOrderedDict\n)RNNs}b.").root->kind, PickleKind::dict);
  const Pickle call = parse_pickle("ctorch\nSize\nK\3\x85\x81.");
  EXPECT_EQ(call.root->kind, PickleKind::call);
  EXPECT_EQ(call.root->items[0]->text, "torch.Size");
  const Pickle persistent = parse_pickle("K\3Q.");
  EXPECT_EQ(persistent.root->items[0]->integer, 3);
  EXPECT_EQ(persistent.persistent.size(), 1U);
}

TEST(Pickle, RemembersValues) {
  const Pickle shared = parse_pickle("]q\0h\0a."s);
  EXPECT_EQ(shared.root, shared.root->items[0]);  // a list that holds itself
  EXPECT_EQ(parse_pickle("K\7r\0\0\1\0j\0\0\1\0\x86."s).root->items[1]->integer, 7);
  EXPECT_EQ(parse_pickle("K\1.K\2.").size, 3U);
}

// However deep values lie in each other, reading and forgetting them takes no stack.
TEST(Pickle, MayNestDeeply) {
  EXPECT_EQ(parse_pickle("N" + std::string(1 << 20, '\x85') + ".").values.size(), (1U << 20) + 1);
}

TEST(Pickle, RefusesWhatIsNotAllowed) {
  EXPECT_THAT(
      pickle_complaint("cposix\nsystem\nX\1\0\0\0x\x85R."s),
      HasSubstr("file: the pickle asks for Python's posix.system, which a checkpoint of tensors does not need"));
  EXPECT_THAT(pickle_complaint("c" + std::string(1000, 'x') + "\ny\n."), HasSubstr("xxx…, which"));
  EXPECT_THAT(pickle_complaint("c\xff\ny\n."), HasSubstr("\xef\xbf\xbd.y"));
  EXPECT_THAT(pickle_complaint("S'x'\n."), HasSubstr("the opcode STRING (0x53), which no checkpoint"));
  EXPECT_THAT(pickle_complaint("\x80\4\x95."), HasSubstr("the opcode FRAME (0x95)"));
  EXPECT_THAT(pickle_complaint("\xfe."), HasSubstr("damaged: there is no opcode 0xfe"));
}

TEST(Pickle, SaysWhatIsDamaged) {
  for (const char* cut : {"", "\x80", "K", "X\4", "X\4\1\1\1abc", "ctorch", "ctorch\nSize", "G\1", "\x8a\3x"}) {
    EXPECT_THAT(pickle_complaint(cut), HasSubstr("file: the pickle is cut short")) << cut;
  }
  for (const char* empty : {"q\1", "\x85", "N\x86", "R", "NR", "a", "b", "Q", "(N\x86", "N(a", "N(q\1"}) {
    EXPECT_THAT(pickle_complaint(empty + "."s), HasSubstr("a value is missing")) << empty;
  }
  EXPECT_THAT(pickle_complaint("t."), HasSubstr("a mark is missing"));
  EXPECT_THAT(pickle_complaint("NN."), HasSubstr("it ends with 2 values"));
  EXPECT_THAT(pickle_complaint("."), HasSubstr("it ends with 0 values"));
  EXPECT_THAT(pickle_complaint("N(."), HasSubstr("it ends with 1 values"));
  EXPECT_THAT(pickle_complaint("h\1."), HasSubstr("it remembers nothing as number 1"));
  EXPECT_THAT(pickle_complaint("NNa."), HasSubstr("items for what is no list"));
  EXPECT_THAT(pickle_complaint("]NNs."), HasSubstr("items for what is no dict"));
  EXPECT_THAT(pickle_complaint("}(NNNu."), HasSubstr("items for what is no dict"));
  EXPECT_THAT(pickle_complaint("N)R."), HasSubstr("a call of what is no function"));
  EXPECT_THAT(pickle_complaint("ctorch\nSize\nNR."), HasSubstr("a call of what is no function"));
  EXPECT_THAT(pickle_complaint("NNb."), HasSubstr("attributes of what is no object"));
  EXPECT_THAT(pickle_complaint("ccollections\nOrderedDict\nN\x85R."), HasSubstr("an OrderedDict of arguments"));
  EXPECT_THAT(pickle_complaint("X\0\0\x80\2"s + std::string(40 << 20, 'x') + "."),
              HasSubstr("a pickle of more than 16777216 bytes"));
}

}  // namespace
}  // namespace vitrail::io
