// What a twenty-first newcomer would stumble on, who leaves the trodden ways: captions, detectors, what others have
// made.
#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TwentyFirstWalk : public Commands {};

TEST_F(TwentyFirstWalk, EvaluatesCaptionsAsTheyAreWritten) {
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

TEST_F(TwentyFirstWalk, NamesModelsOfTransformersThatItDoesNotHave) {
  fs::create_directories(path("other"));
  write("other/config.json", R"({"model_type": "conditional_detr", "architectures": ["X"]})");
  const std::string fault = "other/config.json: 'model_type' is 'conditional_detr', which vitrail does not have";
  for (const char* command : {"detect", "caption", "ask", "predict"}) {
    const std::string question = std::string(command) == "ask" ? " \"what?\"" : "";
    refuses(std::string(command) + " " + path("other") + " " + path("data/train/red/0.png") + question, fault);
  }
}

}  // namespace
}  // namespace vitrail::test
