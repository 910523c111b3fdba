// Captions: the data that they are learned from, and how they are written and evaluated.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CaptionTables : public OnScenes {};

TEST_F(CaptionTables, AreTaken) {
  const std::string rows = lines_of({"scenes/images/000000.png,a red circle", "scenes/images/000001.png,a bird",
                                     "scenes/images/000001.png,a nice bird"});
  write("named.csv", "path,caption\n" + rows);
  write("plain.csv", rows);
  for (const char* table : {"named.csv", "plain.csv"}) {
    fs::remove_all(path("runs/captions"));
    const Outcome trained = train_epoch(path(table) + scenes_captioner(), "captions");
    EXPECT_THAT(trained.out, HasSubstr("2 training images with 3 captions")) << table << trained.err;
    EXPECT_THAT(vitrail("eval " + path("runs/captions") + " " + path(table)).out, HasSubstr("2 images")) << table;
  }
  write("parts.csv", lines_of({"path,caption,split", "scenes/images/000000.png,a red circle,train",
                               "scenes/images/000001.png,a bird,val", "scenes/images/000001.png,a nice bird,val"}));
  const std::string eval = "eval " + path("runs/captions") + " " + path("parts.csv");
  EXPECT_THAT(vitrail(eval + " --split validation").out, HasSubstr("1 image"));
  refuses(eval, "split into parts (train, val): choose one of them");
  refuses("eval " + path("runs/captions") + " " + path("named.csv") + " --split validation",
          "there is no part 'validation': no column 'split'");
}

TEST_F(CaptionTables, NeedNotHaveOneForEachImage) {
  ASSERT_EQ(train_epoch(path("scenes") + scenes_captioner(), "told").status, 0);
  write("empty.csv", "path,caption\nscenes/images/000000.png,a bird\nscenes/images/000001.png,\n");
  const Outcome eval = vitrail("eval " + path("runs/told") + " " + path("empty.csv"));
  EXPECT_THAT(eval.err, HasSubstr("note: " + path("empty.csv") + ": 1 image without a text is left out"));
}

TEST_F(CaptionTables, MayDoWithoutEvaluation) {
  write("two.csv", "path,caption,split\nscenes/images/000000.png,a bird,train\nscenes/images/000001.png,a bird,mine\n");
  refuses("train " + path("two.csv") + " --output " + path("runs") +
              scenes_captioner().substr(0, scenes_captioner().find(" --val")),
          "there is no part 'validation', only train, mine; name another folder with --val-dir, hold images out by "
          "--val-share, or train without evaluation by --val-split ''");
}

// A caption that is drawn follows from the seed and the image's number, whatever is captioned beside it.
TEST_F(CaptionTables, DrawForEachImageByItself) {
  fs::copy(VITRAIL_SOURCE_DIR "/weights/scenes_caption", path("draws"), fs::copy_options::recursive);
  write("draws/generation_config.json",
        R"({"do_sample": true, "num_beams": 1, "temperature": 3.0, "top_k": 0, "max_length": 8})");
  const std::string command = "caption " + path("draws") + " " + path("scenes/images") + " --threads 1";
  const std::string all = printed(command);
  EXPECT_EQ(printed(command + " -b 1"), all);
  EXPECT_EQ(printed(command + " -b 3"), all);
  EXPECT_NE(printed(command + " --seed 1"), all);
  EXPECT_THAT(vitrail("caption " + path("draws") + " " + path("scenes/images") + " --seed 1").err,
              Not(HasSubstr("changes nothing")));
}

class CaptionedImages : public OnImages {};

TEST_F(CaptionedImages, AreCountedWithoutThoseLeftOut) {
  const std::string data = scenes("captions", 8);
  change_json(data + "/captions.json", [](nlohmann::json& json) {
    std::erase_if(json["annotations"].get_ref<nlohmann::json::array_t&>(),
                  [](const nlohmann::json& one) { return one["image_id"] == 3; });
  });
  const Outcome captions = train_epoch(data + " --val-split ''" + small_captioner(), "less");
  EXPECT_THAT(captions.out, HasSubstr("1 image without a text is left out"));
  EXPECT_THAT(captions.out, Not(HasSubstr("not images by their names")));
  change_json(data + "/captions.json",
              [](nlohmann::json& json) { json["annotations"][1]["id"] = json["annotations"][0]["id"]; });
  refuses("train " + data + " --val-split ''" + small_captioner() + " --output " + path("runs"), "is there twice");
  fs::create_directories(path("latin"));
  std::ofstream(path("latin/captions.csv")) << "path,caption\n../data/train/red/0.png,\"ein r\xF6ter Kreis\"\n";
  refuses("train " + path("latin") + " --val-split ''" + small_captioner() + " --output " + path("runs"),
          "the text of '../data/train/red/0.png' is not UTF-8");
  const Outcome said = vitrail("caption " + path("runs/less/last") + " " + data + "/images/000002.png --format json");
  EXPECT_EQ(nlohmann::json::parse(said.out)[0]["image_id"], 2) << said.err;
}

TEST_F(CaptionedImages, HaveWordsThatTheTokenizerDoesNotKnow) {
  std::ofstream table(path("captions.csv"));
  table << "path,caption,split\n";
  for (int i = 0; i < 12; ++i) {
    table << "data/train/red/" << i << ".png," << (i < 8 ? "a red one" : "\xC3\xBC\xC3\xBC") << ","
          << (i < 8 ? "train" : "validation") << "\n";
  }
  table.close();
  const Outcome trained =
      vitrail("train " + path("captions.csv") + " --task caption --model resnet18 --decoder lstm --tokenizer char " +
              "--decoder-kwargs hidden_size=8 --model-kwargs layers=[1,1,1,1] channels=[8,8,8,8] img_size=32 " +
              "--epochs 1 -b 4 --threads 1 --output " + path("runs") + " --experiment captions");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("the captions to evaluate on: 2 of 2 tokens are"));
  const Outcome judged =
      vitrail("eval " + path("runs/captions") + " " + path("captions.csv") + " --split validation --threads 1");
  EXPECT_THAT(judged.err, HasSubstr("the captions: 2 of 2 tokens are"));
}

TEST_F(CaptionedImages, AreSaidToBeWrittenByBeams) {
  const auto with_shipped = [](const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
  };
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  const Outcome refused = with_shipped("caption vitrail/scenes_caption " + path("scenes/images/000000.png") +
                                       " --beams 1 --num-return-sequences 2");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("it needs --"), HasSubstr("beams"), Not(HasSubstr("sample"))));
  const std::string judge = "eval vitrail/scenes_caption " + path("scenes") + " --threads 1";
  EXPECT_THAT(with_shipped(judge).out, HasSubstr("4 images, greedy"));
  EXPECT_THAT(with_shipped(judge + " --num-beams 3").out, HasSubstr("4 images, 3 beams"));
  EXPECT_EQ(nlohmann::json::parse(with_shipped(judge + " --num-beams 3 --json").out).at("num_beams"), 3);
  EXPECT_THAT(with_shipped(judge + " --batch-tokens 100").err, HasSubstr("nor --batch-tokens"));
}

TEST_F(CaptionedImages, AreEvaluatedAsTheyAreWritten) {
  const std::string model = path("captioner");
  fs::copy(VITRAIL_SOURCE_DIR "/weights/scenes_caption", model, fs::copy_options::recursive);
  io::write_atomically(model + "/generation_config.json",
                       R"({"num_beams": 2, "no_repeat_ngram_size": 2, "length_penalty": -2, "max_length": 40})");
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 8 --seed 9").status, 0);
  const Outcome written = vitrail("caption " + model + " " + path("scenes/images") + " --format csv --threads 1");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("num_beams 2"));
  EXPECT_EQ(written.out, vitrail("caption " VITRAIL_SOURCE_DIR "/weights/scenes_caption " + path("scenes/images") +
                                 " --format csv --threads 1 --beams 2 --no-repeat-ngram-size 2 --length-penalty -2")
                             .out)
      << "and end, though the file says by which token no more than that of the model does";
  write("written.csv", "path" + written.out.substr(written.out.find(',')));
  const std::string judge = "eval " + model + " " + path("written.csv") + " --threads 1 --num-beams ";
  EXPECT_THAT(vitrail(judge + "2").out, HasSubstr("exact 100.00 %"));
  io::write_atomically(model + "/generation_config.json", R"({"do_sample": true, "temperature": 9.0})");
  EXPECT_EQ(vitrail(judge + "1").out,
            vitrail("eval " VITRAIL_SOURCE_DIR "/weights/scenes_caption " + path("written.csv") + " --threads 1").out)
      << "no words are drawn";
  io::write_atomically(model + "/generation_config.json", R"({"num_beams": 2, "no_repeat_ngram_size": 2})");
  const Outcome greedy = vitrail(judge + "1");
  EXPECT_THAT(greedy.out, AllOf(HasSubstr("greedy"), Not(HasSubstr("exact 100.00 %"))));
  EXPECT_THAT(greedy.err, AllOf(HasSubstr("no_repeat_ngram_size 2"), Not(HasSubstr("num_beams"))));

  ASSERT_EQ(vitrail("convert " + model + " --output " + path("copy")).status, 0);
  EXPECT_EQ(io::read_text(path("copy/generation_config.json")), io::read_text(model + "/generation_config.json"));
}

}  // namespace
}  // namespace vitrail::test
