// `vitrail info` of data: what there is to learn from, and by which command.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class InfoData : public OnImages {
 protected:
  static std::vector<std::string> tasks_of(const Json& told) {
    std::vector<std::string> tasks;
    for (const Json& kind : told.at("kinds")) {
      tasks.push_back(kind.at("task"));
    }
    return tasks;
  }
  static Json told(const std::string& source) {
    const Outcome info = vitrail("info " + source + " --json");
    EXPECT_EQ(info.status, 0) << info.err;
    return Json::parse(info.out);
  }
};

TEST_F(InfoData, CountsTheImagesOfClassesByPart) {
  const Json data = told(path("data"));
  EXPECT_THAT(tasks_of(data), ElementsAre("classify"));
  const Json& kind = data.at("kinds")[0];
  EXPECT_EQ(kind.at("command"), "vitrail train " + path("data"));
  EXPECT_EQ(told(path("data/train")).at("kinds")[0].at("command"), "vitrail train " + path("data/train"));
  ASSERT_EQ(kind.at("parts").size(), 2U);
  EXPECT_EQ(kind.at("parts")[0], Json::parse(R"({"part": "train", "images": 32, "classes": ["blue", "red"]})"));
  EXPECT_EQ(kind.at("parts")[1].at("part"), "validation");
  const Outcome lines = vitrail("info " + path("data"));
  EXPECT_THAT(lines.out, HasSubstr("  train        32 images, 2 classes: blue, red\n"));
}

TEST_F(InfoData, FindsAllThatIsBesideImages) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 12").status, 0);
  const Json scenes = told(path("scenes"));
  EXPECT_THAT(tasks_of(scenes), ElementsAre("detect", "caption", "vqa")) << "images and masks are no classes";
  EXPECT_EQ(scenes.at("kinds")[0].at("parts")[0].at("images"), 12);
  EXPECT_EQ(scenes.at("kinds")[1].at("parts")[0].at("captions"), 60);
  EXPECT_EQ(scenes.at("kinds")[2].at("parts")[0].at("questions"), 96);
  EXPECT_THAT(tasks_of(told(path("scenes/captions.json"))), ElementsAre("caption"));
  const Json drawn = told("scenes:count=20");
  EXPECT_THAT(tasks_of(drawn), ElementsAre("detect", "caption", "vqa"));
  for (const Json& kind : drawn.at("kinds")) {
    EXPECT_EQ(kind.at("parts")[1].at("images"), 2) << "the part for validation: " << kind;
  }
  EXPECT_THAT(tasks_of(told("scenes:count=20,task=count")), ElementsAre("classify"));
  EXPECT_THAT(tasks_of(told("scenes:count=20,style=cells")), ElementsAre("detect")) << "nothing is said of cells";
  EXPECT_EQ(told("sets:task=sort,count=30").at("kinds")[0].at("parts")[0].at("sets"), 30);
}

TEST_F(InfoData, EachCommandThatItNamesOpensTheData) {
  ASSERT_EQ(vitrail("scenes " + path("named") + " --count 12").status, 0);
  const std::map<std::string, std::string> small_ones = {
      {"detect",
       " --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 encoder_ffn_dim=32 "
       "decoder_ffn_dim=32 encoder_attention_heads=2 decoder_attention_heads=2 num_queries=8"},
      {"caption", ""},
      {"vqa", ""}};
  const Json scenes = told(path("named"));
  ASSERT_EQ(scenes.at("kinds").size(), small_ones.size());
  for (const Json& kind : scenes.at("kinds")) {
    const std::string task = kind.at("task");
    const std::string command = kind.at("command").get<std::string>().substr(std::string("vitrail ").size());
    const Outcome run = vitrail(command + small_ones.at(task) + " --epochs 1 --threads 1 --output " + path("runs") +
                                " --experiment " + task);
    EXPECT_EQ(run.status, 0) << command << run.err;
  }
}

TEST_F(InfoData, TellsTextsFromImages) {
  write("texts.csv", "text,label,split\nhello,a,train\nworld,b,train\nagain,a,val\n");
  const Json texts = told(path("texts.csv"));
  EXPECT_THAT(tasks_of(texts), ElementsAre("classify-text"));
  EXPECT_EQ(texts.at("kinds")[0].at("parts")[0],
            Json::parse(R"({"part": "train", "texts": 2, "classes": ["a", "b"]})"));
  write("words.conll", "he NOUN\nran VERB\n\nshe NOUN\n");
  EXPECT_EQ(told(path("words.conll")).at("kinds")[0].at("parts")[0].at("words"), 3);
  fs::create_directories(path("pairs"));
  write("pairs/train.de", "eins\nzwei\n");
  write("pairs/train.en", "one\ntwo\n");
  write("pairs/test_2016.de", "drei\n");
  write("pairs/test_2016.en", "three\n");
  write("pairs/notes.txt", "to be read\n");
  const Json pairs = told(path("pairs"));
  EXPECT_THAT(tasks_of(pairs), ElementsAre("translate", "lm"));
  EXPECT_EQ(pairs.at("kinds")[0].at("command"),
            "vitrail train --task translate --src " + path("pairs/train.de") + " --tgt " + path("pairs/train.en"));
  EXPECT_EQ(pairs.at("kinds")[0].at("parts")[0].at("line pairs"), 2);
  write("pairs/train.fr", "un\ndeux\n");
  write("pairs/val.de", "eins\n");
  write("pairs/val.en", "one\n");
  const Json more = told(path("pairs"));
  EXPECT_THAT(more.at("kinds")[0].at("command").get<std::string>(), HasSubstr(" --val-src " + path("pairs/val.de")));
  EXPECT_THAT(more.at("kinds")[0].at("parts")[0].at("notes")[0].get<std::string>(), HasSubstr("train.fr"));
  write("plain.md", "# a text\n");
  EXPECT_THAT(tasks_of(told(path("plain.md"))), ElementsAre("lm"));
  refuses("info " + path("pairs/broken"), "there is no model");
  write("broken.tsv", "good\tfine\nbad\n");
  refuses("info " + path("broken.tsv"), "line 2 has 1 field, expected 2: a label, a tab, a text");
}

TEST_F(InfoData, NamesTheFileOfTextsToTrainOn) {
  fs::create_directories(path("labelled"));
  write("labelled/dev.tsv", "a\tone\nb\ttwo\n");
  write("labelled/broken.tsv", "a\n");
  write("labelled/train.tsv", "a\tone\nb\ttwo\nb\tthree\n");
  const Json labelled = told(path("labelled"));
  EXPECT_THAT(tasks_of(labelled), ElementsAre("classify-text"));
  EXPECT_EQ(labelled.at("kinds")[0].at("command"), "vitrail train " + path("labelled/train.tsv") +
                                                       " --task classify-text --tokenizer TOKENIZER --val-data " +
                                                       path("labelled/dev.tsv"));
  EXPECT_TRUE(labelled.at("kinds")[0].at("parts")[0].contains("error")) << labelled;
}

TEST_F(InfoData, KeepsWhatIsRecognisedAndCannotBeRead) {
  ASSERT_EQ(vitrail("scenes " + path("halved") + " --count 12").status, 0);
  write("halved/captions.json", "{");
  fs::remove(path("halved/images/000002.png"));
  const Outcome halved = vitrail("info " + path("halved"));
  EXPECT_EQ(halved.status, 0) << halved.err;
  EXPECT_THAT(halved.out, HasSubstr("Images with boxes\n  all          cannot be read: "));
  EXPECT_THAT(halved.out, HasSubstr("captions.json: not valid JSON"));
  EXPECT_THAT(halved.out, HasSubstr("Questions about images\n  all          cannot be read: "));
  EXPECT_THAT(halved.out, HasSubstr("vitrail pretrain mae " + path("halved")));
  write("unlabelled.csv", "path,label\ndata/train/red/1.png,red\ndata/train/blue/1.png,\n");
  EXPECT_THAT(vitrail("info " + path("unlabelled.csv")).out, HasSubstr("line 3 has no label"));
  write("other.csv",
        "path,label,split\ndata/train/red/1.png,red,train\ndata/train/blue/1.png,blue,train\n"
        "data/train/red/2.png,Red,val\n");
  EXPECT_THAT(vitrail("info " + path("other.csv")).out,
              HasSubstr("val          cannot be read: " + path("other.csv") +
                        ": the class 'Red' is unknown (did you mean 'red'?)"));
}

TEST_F(InfoData, TellsSequencesAndImagesWithoutClasses) {
  for (const std::string place : {"moving/cow/1", "moving/cow/2", "moving/dog/1", "loose"}) {
    fs::create_directories(path(place));
    io::write_png(fs::path(path(place)) / "a.png", image(0, 1));
    io::write_png(fs::path(path(place)) / "b.png", image(1, 2));
  }
  const Json moving = told(path("moving"));
  EXPECT_THAT(tasks_of(moving), ElementsAre("classify", "frames"));
  EXPECT_EQ(moving.at("kinds")[1].at("parts")[0].at("sequences"), 3);
  const Json loose = told(path("loose"));
  EXPECT_THAT(tasks_of(loose), ElementsAre("classify", "mae"));
  EXPECT_THAT(loose.at("kinds")[0].at("parts")[0].at("error").get<std::string>(),
              HasSubstr("outside of any class folder"));
  EXPECT_FALSE(loose.at("kinds")[0].contains("command"));
  ASSERT_EQ(vitrail("shard " + path("data") + " --output " + path("shards")).status, 0);
  EXPECT_THAT(tasks_of(told(path("shards"))), ElementsAre("classify"));
}

TEST_F(InfoData, SaysWhatIsWrong) {
  fs::create_directories(path("empty"));
  refuses("info " + path("empty"), "is neither a model folder, which has a config.json, nor data: ");
  refuses("info " + path("data") + " --zero", "is not a model folder: it has no config.json", 2);
  refuses("info " + path("data") + " --num-classes 3", "is not a model folder", 2);
  refuses("info nothing_such", "there is no model 'nothing_such'");
  refuses("train " + path("data") + small() + " --epochs 1 --output " + path("data/train"),
          "lies among the images of '" + path("data/train") + "'");
  refuses("pretrain mae " + path("data/train") + small() + " --epochs 1 --output " + path("data/train/runs"),
          "lies among the images of");
  EXPECT_EQ(train(path("data"), "inside", small() + " --output " + path("data/runs")).status, 0) << "beside its parts";
  fs::remove_all(path("data/runs"));
  refuses("info nothing.csv", "'nothing.csv' is neither a model folder, which has a config.json, nor data: ");
  refuses("info " + write("nothing.csv", ""), "nothing.csv: there are no texts");
  refuses("info " + write("captioned.csv", "image_path,caption\na.png,a cat\n"),
          "names neither an image nor the columns 'path' and 'caption'");
  refuses("info " + write("gone.csv", "file,category\na.png,cat\n"), "line 2 names the image");
  refuses("info " + write("others.csv", "a,b\n1,2\n"), "the first line must name the columns 'text' and 'label'");
  write("weights.gguf", "GGUF of something");
  refuses("info " + path("weights.gguf"), "not a data set");
  fs::create_directories(path("judged"));
  fs::copy(path("data/validation"), path("judged/validation"), fs::copy_options::recursive);
  EXPECT_FALSE(told(path("judged")).at("kinds")[0].contains("command")) << "there is nothing to train on";
  const std::string broken = copy_of_data("half");
  fs::remove_all(broken + "/validation/red");
  fs::create_directories(broken + "/validation/red");
  const Outcome half = vitrail("info " + broken);
  EXPECT_EQ(half.status, 0) << half.err;
  EXPECT_THAT(half.out, HasSubstr("  validation   cannot be read: "));
}

TEST_F(InfoData, SaysHowToLearnFromPartsWithYears) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  fs::create_directories(path("coco/annotations"));
  for (const char* part : {"train2017", "val2017"}) {
    fs::copy(path("scenes/images"), path("coco/") + part);
    fs::copy(path("scenes/instances.json"), path("coco/annotations/instances_") + part + ".json");
  }
  EXPECT_THAT(vitrail("info " + path("coco")).out, HasSubstr("vitrail train " + path("coco") + " --task detect\n"));
}

TEST_F(InfoData, TakesAnswersForNoBoxes) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  fs::create_directories(path("vqa"));
  fs::copy(path("scenes/images"), path("vqa/images"));
  fs::copy(path("scenes/vqa_questions.json"), path("vqa/questions.json"));
  fs::copy(path("scenes/vqa_annotations.json"), path("vqa/annotations.json"));
  EXPECT_THAT(vitrail("info " + path("vqa")).out, AllOf(HasSubstr("--task vqa"), Not(HasSubstr("boxes"))));
}

}  // namespace
}  // namespace vitrail::test
