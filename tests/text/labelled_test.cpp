#include "vitrail/text/labelled.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::text {
namespace {

using test::error_of;

// What is read of a file of this name and content, or what is wrong with it, from the file's name on.
template <class Read>
std::string reading(const std::string& name, const std::string& content, Read&& read) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / name) << content;
  std::string result;
  const std::string error = error_of([&] { result = read(folder / name); });
  return error == "no error" ? result : error.substr(error.find(name));
}

std::string texts(const std::string& name, const std::string& content) {
  return reading(name, content, [](const std::filesystem::path& path) {
    std::string all;
    for (const LabelledText& text : read_labelled_texts(path)) {
      all += "[" + text.label + "|" + text.text + (text.second.empty() ? "" : "|" + text.second) + "]";
    }
    return all;
  });
}

std::string sentences(const std::string& content) {
  return reading("tags.txt", content, [](const std::filesystem::path& path) {
    std::string all;
    for (const TaggedSentence& sentence : read_tagged_sentences(path)) {
      all += "[";
      for (std::size_t i = 0; i < sentence.words.size(); ++i) {
        all += sentence.words[i] + "/" + sentence.labels[i] + " ";
      }
      all.back() = ']';
    }
    return all;
  });
}

std::string running(const std::string& name, const std::string& content) {
  return reading(name, content, [](const std::filesystem::path& path) { return read_running_text(path); });
}

TEST(LabelledTexts, MayBeOfPartsByTruths) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.csv") << "text;label;is_valid\nyes;joy;False\nno;anger;True\n";
  const std::vector<LabelledText> all = read_labelled_texts(folder / "a.csv");
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].split, "train");
  EXPECT_EQ(all[1].split, "validation");
  EXPECT_EQ(all[1].text, "no");
}

TEST(LabelledTexts, MayBeObjectsWithOtherThanTexts) {
  EXPECT_EQ(texts("a.jsonl", "{\"text\": \"a\", \"label\": true}\n{\"text\": \"b\", \"label\": 1.5}\n"),
            "[true|a][1.5|b]");
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.jsonl") << "{\"text\": \"a\", \"label\": 1, \"is_valid\": true}\n"
                                       "{\"text\": \"b\", \"label\": 2, \"is_valid\": false}\n";
  const std::vector<LabelledText> all = read_labelled_texts(folder / "a.jsonl");
  EXPECT_EQ(all[0].split, "validation");
  EXPECT_EQ(all[1].split, "train");
}

TEST(RunningText, IsThatOfATable) {
  EXPECT_EQ(running("a.txt", "text,label\nit is, so\n"), "text,label\nit is, so\n") << "no table by its name";
  EXPECT_EQ(running("a.csv", "label,text\n1,\"it is, so\"\n2,\"two\nlines\"\n"), "it is, so\n\ntwo\nlines");
  EXPECT_EQ(running("a.tsv", "text\tmeta\nit is\t1\n"), "it is");
  EXPECT_EQ(running("a.jsonl", "{\"text\": \"it\", \"label\": [1]}\n{\"text\": \"is\"}\n"), "it\n\nis");
  EXPECT_EQ(
      running("a.tsv", "good\tit is\n"),
      "a.tsv: the first line must name the column 'text', but has 'good', 'it is' (a text that is to be read as it "
      "stands has another ending, such as .txt)");
  EXPECT_EQ(running("a.csv", "text\n\"it\r\nis\"\n"), "it\nis");
  EXPECT_EQ(running("a.csv", "sentence1,sentence2\na,b\n"), "a.csv: line 2 has two texts, where one was expected");
  EXPECT_EQ(running("a.csv", "text,text_pair\na,\n"), "a");
  EXPECT_EQ(running("a.jsonl", "{\"text\": \"a\", \"text_pair\": \"b\"}\n"),
            "a.jsonl: line 1 has two texts, where one was expected");
  const auto alone = [](const std::string& name, const std::string& content) {
    return reading(name, content,
                   [](const std::filesystem::path& path) { return names_texts_alone(path) ? "yes" : "no"; });
  };
  EXPECT_EQ(alone("a.csv", "id,text\n1,a\n"), "yes");
  EXPECT_EQ(alone("a.csv", "Label;Text\n1;a\n"), "no");
  EXPECT_EQ(alone("a.jsonl", "{\"text\": \"a\"}\n"), "yes");
  EXPECT_EQ(alone("a.jsonl", "\n{\"text\": \"a\"}\n"), "yes");
  EXPECT_EQ(alone("a.csv", "id, Text\n1,a\n"), "yes");
  EXPECT_EQ(alone("a.csv", "sentence1,sentence2\na,b\n"), "no");
  EXPECT_EQ(alone("a.jsonl", "[1, 2]\n"), "no");
  EXPECT_EQ(alone("a.tsv", "joy\tWhat a day!\n"), "no");
  EXPECT_EQ(alone("a.txt", "text\n"), "no");
  EXPECT_EQ(running("a.csv", "text,split\na,train\nb,test\n"),
            "a.csv: its texts are of the parts 'test' and 'train': a file of each part was expected");
}

TEST(TaggedSentences, AreNotThoseOfConllU) {
  const std::string remedy =
      " is CoNLL-U's: write the columns of the word and of its label alone, such as "
      "`grep -E '^[0-9]+[[:space:]]|^$' FILE | cut -f2,4`";
  EXPECT_EQ(sentences("# sent_id = 1\n1\tA\ta\tDET\t_\t_\t0\t_\t_\t_\n"), "tags.txt: line 1" + remedy);
  EXPECT_EQ(sentences("1\tA\ta\tDET\t_\t_\t0\t_\t_\t_\n"), "tags.txt: line 1" + remedy);
  EXPECT_EQ(sentences("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"), "tags.txt: line 1" + remedy) << "a range of words";
  EXPECT_EQ(sentences("# O\n1 O\n"), "[#/O 1/O]");
}

TEST(LabelledTexts, AreReadFromTables) {
  EXPECT_EQ(texts("a.txt", "joy\tWhat a day!\n\nanger\tNo, \"no\"!\r\n"), "[joy|What a day!][anger|No, \"no\"!]");
  EXPECT_EQ(texts("a.tsv", "id\tsentence\tlabel\n1\tGood.\t1\n2\tBad.\t0\n"), "[1|Good.][0|Bad.]");
  EXPECT_EQ(texts("a.csv", "label,text\njoy,\"one, two\"\n"), "[joy|one, two]");
  EXPECT_EQ(texts("a.csv", "sentence1,sentence2,label\na,b,yes\n"), "[yes|a|b]");
  EXPECT_EQ(
      texts("a.jsonl", "{\"text\": \"a\", \"label\": 3}\n\n{\"label\": \"x\", \"text\": \"b\", \"text_pair\": \"c\"}"),
      "[3|a][x|b|c]");
}

TEST(LabelledTexts, SayWhatIsWrongWithAFile) {
  EXPECT_EQ(texts("a.txt", "joy\n"), "a.txt: line 1 has 1 field, expected 2: a label, a tab, a text");
  EXPECT_EQ(texts("a.txt", "joy\ta\n\tb\n"), "a.txt: line 2 has no label");
  EXPECT_EQ(texts("edges.tsv", "a\tb\n0\t633\n0\t1862\n"),
            "edges.tsv: both columns are numbers: a label, a tab, a text were expected");
  EXPECT_EQ(texts("sums.tsv", "2\t1 + 1\n3\t3\n"), "[2|1 + 1][3|3]");
  EXPECT_EQ(texts("a.txt", "joy\t\n"), "a.txt: line 1 has no text");
  EXPECT_EQ(texts("a.txt", "\n"), "a.txt: there are no texts");
  EXPECT_EQ(texts("a.csv", "joy,what\n"),
            "a.csv: the first line must name the columns 'text' and 'label', but has "
            "'joy', 'what'");
  EXPECT_EQ(texts("a.csv", "text,label\na\n"), "a.csv: line 2 has 1 field, expected 2");
  EXPECT_EQ(texts("a.csv", "label,sentence,Sentence1\njoy,a,b\n"),
            "a.csv: line 1 names 'sentence' and 'sentence1', each of which could be meant");
  EXPECT_EQ(texts("a.jsonl", "{\"text\": \"a\"}\n"), "a.jsonl: line 1 has no 'label'");
  EXPECT_EQ(texts("a.jsonl", "{\"text\": \"a\", \"sentence\": \"b\", \"label\": 1}\n"),
            "a.jsonl: line 1 has 'text' and 'sentence', each of which could be meant");
  EXPECT_EQ(texts("a.jsonl", "{\"text\": 1.5, \"label\": 1}\n"),
            "a.jsonl: line 1: 'text' must be a string, but is 1.5");
  EXPECT_EQ(texts("a.txt", "joy\tcaf\xe9\n"), "a.txt: line 1 is not UTF-8: byte 8 of it is 0xe9");
}

TEST(TaggedSentences, AreReadFromTables) {
  EXPECT_EQ(sentences("-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n\nall\tDT\tO\r\n"),
            "[EU/B-ORG rejects/O][all/O]");
  EXPECT_EQ(sentences("EU NNP B-ORG\nall O\n"),
            "tags.txt: line 2 has 2 columns, but those before have 3: a word and its label were expected");
  EXPECT_EQ(sentences("EU\n"), "tags.txt: line 1 has a word, but no label");
  EXPECT_EQ(sentences("\n\n"), "tags.txt: there are no sentences");
}

TEST(Labels, AreSortedAndFound) {
  EXPECT_EQ(sorted_labels({"10", "9", "b", "a", "9"}), (std::vector<std::string>{"9", "10", "a", "b"}));
  const std::vector<std::string> labels = {"anger", "joy"};
  EXPECT_EQ(index_of_label(labels, "joy", "x"), 1);
  EXPECT_EQ(error_of([&] { index_of_label(labels, "angr", "x.tsv"); }),
            "x.tsv: the label 'angr' is none of the 2 that are known (did you mean 'anger'?)");
}

}  // namespace
}  // namespace vitrail::text
