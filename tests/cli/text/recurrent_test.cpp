// Recurrent networks on the command line: vitrail forward on a folder with torch's weights; a language model that is
// trained, described, continues texts and shows how far back it learns.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

TEST(RecurrentForward, GivesTorchsNumbers) {
  const TemporaryFolder folder;
  const io::Safetensors golden_file = golden("nn/recurrent.safetensors");
  const std::string prefix = "packed_lstm.";
  io::NamedTensors weights;
  for (const std::string& name : golden_file.names()) {
    if (name.starts_with(prefix + "p.")) {
      weights.emplace_back(name.substr(prefix.size() + 2), golden_file.get(name));
    }
  }
  io::save_safetensors(folder / "model.safetensors", weights);
  io::write_atomically(folder / "config.json",
                       R"({"architecture": "lstm", "input_size": 4, "hidden_size": 6, "num_layers": 2, "bias": true,
                           "batch_first": true, "dropout": 0.0, "bidirectional": true, "proj_size": 0})");
  io::NamedTensors input;
  for (const char* name : {"x", "h_0", "c_0", "lengths"}) {
    input.emplace_back(name, golden_file.get(prefix + name));
  }
  io::save_safetensors(folder / "x.safetensors", input);
  const std::string command = "forward " + folder.path().string() + " --input " + (folder / "x.safetensors").string() +
                              " --output " + (folder / "y.safetensors").string();
  const Outcome outcome = vitrail(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("output           f32 [4, 7, 12]"));
  const io::Safetensors result = io::Safetensors::open(folder / "y.safetensors");
  expect_close(result.get("output"), golden_file.get(prefix + "y"), 1e-5);
  expect_close(result.get("h_n"), golden_file.get(prefix + "h_n"), 1e-5);
  expect_close(result.get("c_n"), golden_file.get(prefix + "c_n"), 1e-5);

  EXPECT_THAT(vitrail(command + " --features").err, HasSubstr("is a recurrent network: it takes no"));
  io::save_safetensors(folder / "x.safetensors", {{"y", random_tensor({1, 2, 4})}});
  EXPECT_THAT(vitrail(command).err, HasSubstr("there is no tensor 'x'; expected x f32 [B, T, 4]"));
  io::save_safetensors(folder / "x.safetensors", {{"x", random_tensor({1, 2, 5})}});
  EXPECT_THAT(vitrail(command).err,
              HasSubstr("the input of a recurrent network must be [batch, time, 4] f32 or bf16, not [1, 2, 5] f32"));
}

TEST(RecurrentLanguageModel, IsTrainedDescribedAndContinuesTexts) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 60; ++i) {
    text << "der Bär ist da. ";
  }
  text.close();
  const auto train = [&](const std::string& model) {
    return vitrail("train " + path("text.txt") + " --task lm --model " + model +
                   " --model-kwargs hidden_size=24 num_layers=1 --bptt 16 --epochs 40 --lr 1e-2 -b 4 --threads 1 "
                   "--output " +
                   path("runs") + " --experiment " + model);
  };
  const Outcome trained = train("gru");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("bits per character"));
  EXPECT_EQ(vitrail("generate " + path("runs/gru") + " 'der B' --max-new-tokens 11").out, "der Bär ist da. \n");
  EXPECT_EQ(vitrail("generate " + path("runs/gru") + " 'der B' --num-beams 3 --max-new-tokens 11").out,
            "der Bär ist da. \n");
  const Outcome info = vitrail("info " + path("runs/gru"));
  EXPECT_THAT(info.out, HasSubstr("which predicts the next token of a text"));
  EXPECT_THAT(info.out, HasSubstr("1 of width 24"));
  EXPECT_THAT(info.out, ::testing::Not(HasSubstr("positions")));

  ASSERT_EQ(train("lstm").status, 0);
  const Outcome drawn = vitrail("gradients " + path("runs/gru") + " " + path("runs/lstm/") + " --text " +
                                path("text.txt") + " --steps 30 --output " + path("gradients.svg"));
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.out, ::testing::ContainsRegex("k +0 +1 +2 +5 +10 +20\ngru +[0-9].*\nlstm +[0-9].*\nlstm c +[0-9]"));
  EXPECT_THAT(io::read_text(folder / "gradients.svg"), HasSubstr("steps back in time"));
  const Outcome compared = vitrail("compare " + path("runs/gru") + " " + path("runs/lstm"));
  EXPECT_THAT(compared.out, ::testing::ContainsRegex("gru +\\| gru +\\|"));
  const std::string gradients = "gradients " + path("runs/gru") + " --output " + path("x.svg") + " --text ";
  // How far back is looked does not change what is seen nearer.
  const auto five_steps_back = [&](const std::string& steps) {
    const Outcome few = vitrail(gradients + path("text.txt") + " --texts 200 --json --steps " + steps);
    return nlohmann::json::parse(few.out)[0]["h"][5].get<double>();
  };
  EXPECT_NEAR(five_steps_back("6") / five_steps_back("20"), 1, 0.15);
  EXPECT_THAT(vitrail(gradients + path("text.txt") + " --steps 5000").err,
              HasSubstr("960 tokens are too few for 5000 steps and one more"));
  EXPECT_THAT(vitrail("gradients " + golden_path("models/text/gpt2").string() + " --text " + path("text.txt")).err,
              HasSubstr("is no recurrent network"));
}

TEST(Captions, AreLearnedWrittenAndEvaluated) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  write_images(folder / "data" / "train", 8, 2);
  write_images(folder / "data" / "validation", 4, 2, 1);
  for (const char* part : {"data/train", "data/validation"}) {
    std::filesystem::rename(folder / part / "class0", folder / part / "red");
    std::filesystem::rename(folder / part / "class1", folder / part / "green");
  }
  const Outcome trained = vitrail(
      "train " + path("data") +
      " --task caption --model gru_rows --img-size 8 --model-kwargs hidden_size=24 --decoder gru --decoder-kwargs "
      "hidden_size=24 --crop-pct 1 --no-aug -b 4 --lr 1e-2 --epochs 30 --val-interval 30 --threads 1 --output " +
      path("runs") + " --experiment letters");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome said = vitrail("predict " + path("runs/letters") + " " + path("data/validation"));
  EXPECT_THAT(said.out, HasSubstr("red/0.png: red\n"));
  EXPECT_THAT(said.out, HasSubstr("green/3.png: green\n"));
  EXPECT_THAT(
      vitrail("predict " + path("runs/letters") + " " + path("data/validation/green/2.png") + " --format csv").out,
      HasSubstr("file,caption\n"));
  const Outcome evaluated = vitrail("eval " + path("runs/letters") + " " + path("data") + " --split validation --json");
  EXPECT_THAT(evaluated.out, HasSubstr("\"exact\": 100"));
  for (const char* flag : {"--tta 2", "--topk 3", "--truncate", "--batch-tokens 8"}) {
    EXPECT_THAT(vitrail("predict " + path("runs/letters") + " x.png " + flag).err,
                HasSubstr("it takes none of --topk, --tta, --truncate and --batch-tokens"));
  }
  const Outcome told = vitrail("info " + path("runs/letters"));
  EXPECT_THAT(told.out, HasSubstr("a captioner, which writes about an image"));
  EXPECT_THAT(told.out, HasSubstr("gru, 1 layer of width 24"));
  EXPECT_THAT(vitrail("info " + path("runs/letters") + " --json").out, HasSubstr("\"architecture\": \"gru_rows\""));
  EXPECT_THAT(vitrail("attention " + path("runs/letters") + " " + path("data/validation/green/2.png")).err,
              HasSubstr("gru_rows, has no attention to show: `vitrail caption --attention` shows where"));
}

TEST(Captions, ShowTheAttentionOfTheirImageModel) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  write_images(folder / "data" / "train", 4, 2);
  const Outcome trained = vitrail(
      "train " + path("data/train") +
      " --task caption --model vit_tiny_patch16_224 --img-size 8 --model-kwargs patch_size=4 embed_dim=16 depth=2 "
      "num_heads=2 --decoder gru --decoder-kwargs hidden_size=8 --val-split '' --no-aug -b 4 --epochs 1 --threads 1 "
      "--output " +
      path("runs") + " --experiment letters");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome drawn = vitrail("attention " + path("runs/letters") + " " + path("data/train/class0/0.png") +
                                " --output " + path("maps"));
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "maps" / "layer01-head01.png"));
}

TEST(Captions, AreWrittenByATransformerAndDrawn) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  ASSERT_EQ(vitrail("scenes " + path("train") + " --count 12").status, 0);
  ASSERT_EQ(vitrail("scenes " + path("test") + " --start 100 --count 4").status, 0);
  const Outcome trained =
      vitrail("train " + path("train") + " --val-dir " + path("test") +
              " --task caption --model vit_tiny_patch16_224 --model-kwargs img_size=64 patch_size=16 embed_dim=16 "
              "depth=1 num_heads=2 --decoder gpt2 --decoder-kwargs n_embd=16 n_layer=2 n_head=2 --vocab-size 560 "
              "--max-length 20 --no-aug -b 4 --epochs 1 --threads 1 --output " +
              path("runs") + " --experiment words");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("CIDEr"));
  EXPECT_THAT(trained.out + trained.err, HasSubstr("true of the scene"));
  const std::string image = path("test/images/000100.png");
  const Outcome said =
      vitrail("caption " + path("runs/words") + " " + image +
              " --beams 2 --num-return-sequences 2 --format json --attention --output " + path("looked"));
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("\"score\""));
  EXPECT_TRUE(std::filesystem::exists(folder / "looked" / "000100.png"));
  EXPECT_THAT(vitrail("info " + path("runs/words")).out, HasSubstr("gpt2, 2 blocks of width 16, 21 tokens at most"));
  EXPECT_THAT(vitrail("eval " + path("runs/words") + " " + path("test")).out, HasSubstr("true of the scene"));
  EXPECT_THAT(vitrail("eval " + path("runs/words") + " " + path("test") + " --json").out, HasSubstr("\"Bleu_4\""));
  const auto error = [&](const std::string& flags) {
    return vitrail("caption " + path("runs/words") + " " + image + " " + flags).err;
  };
  EXPECT_THAT(error("--max-new-tokens 90"), HasSubstr("--max-new-tokens is 90, but"));
  EXPECT_THAT(error("--attention"), HasSubstr("--output"));
  EXPECT_THAT(error("--attention --layer 2 --output " + path("looked")), HasSubstr("there is no layer 2"));
  EXPECT_THAT(vitrail("caption " + path("nowhere") + " " + image).err, HasSubstr("there is no model folder"));
  EXPECT_THAT(vitrail("caption vitrail/cifar10_vit " + image).err, HasSubstr("captions no images"));
}

TEST(FrameNetwork, IsTrainedSaysAndIsEvaluated) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  for (const char* color : {"red", "green"}) {
    for (int object = 0; object < 3; ++object) {
      const std::filesystem::path place = folder.path() / "data" / color / std::to_string(object);
      std::filesystem::create_directories(place);
      for (int t = 0; t < 4; ++t) {
        io::Image image(8, 8);
        image.pixels[static_cast<std::size_t>(3 * (t + object) + (*color == 'r' ? 0 : 1))] = 255;
        io::write_png(place / ("view-" + std::to_string(t) + ".png"), image);
      }
      io::write_png(place / "masks.png", io::Image(8, 32));
    }
  }
  const Outcome trained = vitrail("train " + path("data") +
                                  " --task frames --frames 'view-*' --model linear --img-size 8 --cell gru "
                                  "--cell-kwargs hidden_size=16 --no-aug -b 2 "
                                  "--val-share 0.34 --lr 1e-2 --epochs 20 --val-interval 20 --threads 1 --output " +
                                  path("runs") + " --experiment views");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(vitrail("predict " + path("runs/views") + " " + path("data") + " --frames 'view-*' --topk 1").out,
              HasSubstr("red/1:  red "));
  EXPECT_THAT(
      vitrail("predict " + path("runs/views") + " " + path("data/green/2") + " --frames 'view-*' --format csv").out,
      HasSubstr("sequence,rank,label,index,probability\n"));
  const Outcome evaluated =
      vitrail("eval " + path("runs/views") + " " + path("data") + " --frames 'view-*' --output " + path("report"));
  EXPECT_THAT(evaluated.out, HasSubstr("6 sequences"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "report" / "confusion.svg"));
  EXPECT_THAT(vitrail("eval " + path("runs/views") + " " + path("data") + " --tta 2").err, HasSubstr("takes no --tta"));
}

}  // namespace
}  // namespace vitrail::test
