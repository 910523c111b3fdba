// Learning without labels, and model folders of transformers', as a person would use them.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/data/tar_writer.h"
#include "tests/support/program.h"
#include "vitrail/io/image.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Pretrain : public ::testing::Test {
 protected:
  Pretrain() {
    for (int i = 0; i < 24; ++i) {
      const fs::path place = folder_ / "photos" / (i % 2 == 0 ? "a" : "b");
      fs::create_directories(place);
      io::Image image(16, 16);
      const Philox philox(7, static_cast<std::uint64_t>(i));
      for (std::size_t p = 0; p < image.pixels.size(); ++p) {
        image.pixels[p] =
            static_cast<std::uint8_t>((i % 2 == static_cast<int>(p / 24) % 2 ? 150 : 50) + philox.word(p) % 50);
      }
      io::write_png(place / (std::to_string(i) + ".png"), image);
    }
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  TemporaryFolder folder_;
};

TEST_F(Pretrain, LearnsDrawsAndIsFineTuned) {
  const Outcome learned = vitrail("pretrain mae " + path("photos") + " --output " + path("runs") +
                                  " --experiment mae --model vit_tiny_patch16_224 --model-kwargs img_size=16 "
                                  "patch_size=4 embed_dim=24 depth=2 num_heads=3 --decoder-dim 16 --decoder-depth 1 "
                                  "--decoder-heads 2 --epochs 4 -b 8 --lr 1e-3 --threads 1");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.out, HasSubstr("75 % of the patches hidden"));
  EXPECT_THAT(learned.out, HasSubstr("reconstructions.png"));
  const io::Image drawn = io::read_image(path("runs/mae/reconstructions.png"));
  EXPECT_EQ(drawn.width, 3 * 224 + 2 * 6);
  EXPECT_EQ(drawn.height, 20 + 8 * (224 + 6) - 6) << "8 images under the names of the columns";

  const std::string best = path("runs/mae/best");
  const Outcome sheet = vitrail("reconstruct " + best + " " + path("photos/a/2.png") + " " + path("photos/b/3.png") +
                                " --output " + path("sheet.png"));
  ASSERT_EQ(sheet.status, 0) << sheet.err;
  EXPECT_EQ(io::read_image(path("sheet.png")).height, 20 + 2 * 224 + 6);
  TarWriter archive;
  for (const char* name : {"a/2.png", "b/3.png"}) {
    archive.add_file(name, path("photos/") + name);
  }
  archive.write(path("photos.tar"));
  const Outcome packed = vitrail("reconstruct " + best + " " + path("photos.tar") + " --output " + path("packed.png"));
  ASSERT_EQ(packed.status, 0) << packed.err;
  EXPECT_EQ(io::read_image(path("packed.png")).pixels, io::read_image(path("sheet.png")).pixels);

  const Outcome tuned = vitrail("train " + path("photos") + " --val-split '' --output " + path("runs") +
                                " --experiment tuned --model " + best + " --linear-probe --epochs 1 -b 8 --threads 1");
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const Outcome predicted = vitrail("predict " + path("runs/tuned/best") + " " + path("photos/a/2.png"));
  EXPECT_EQ(predicted.status, 0) << predicted.err;

  EXPECT_EQ(vitrail("train " + path("photos") + " --resume " + path("runs/mae")).status, 1);
  const Outcome more = vitrail("pretrain --resume " + path("runs/mae") + " --epochs 5");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("--epochs was 4 and is now 5"));
}

TEST_F(Pretrain, ADinoRunGivesAnEncoderThatIsFineTuned) {
  const Outcome learned = vitrail("pretrain dino " + path("photos") + " --output " + path("runs") +
                                  " --experiment dino --model vit_tiny_patch16_224 --model-kwargs img_size=16 "
                                  "patch_size=4 embed_dim=24 depth=2 num_heads=3 --out_dim 32 --norm_last_layer false "
                                  "--head-hidden-dim 16 --local_crops_number=2 --epochs 2 -b 8 --threads 1");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.out, HasSubstr("2 views of 16x16 and 2 of 8x8 pixels of each image, 32 outputs"));
  EXPECT_THAT(learned.out, HasSubstr("teacher entropy"));
  EXPECT_THAT(learned.out, HasSubstr("effective rank"));
  const Outcome taken = vitrail("encoder " + path("runs/dino") + " --output " + path("encoder"));
  ASSERT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("the teacher's encoder, without DINO's head"));
  EXPECT_THAT(taken.out, HasSubstr("24 numbers for an image of 16x16 pixels"));
  EXPECT_EQ(io::read_json(path("encoder/config.json")).at("num_classes"), 0);
  EXPECT_FALSE(io::read_json(path("encoder/config.json")).at("model_args").contains("pos_embed_resize"))
      << "timm does not know it";
  const Outcome of_best = vitrail("encoder " + path("runs/dino/best/") + " --output " + path("of-best"));
  EXPECT_THAT(of_best.out, HasSubstr("the teacher's encoder, without DINO's head")) << of_best.err;
  for (const std::string& start : {std::string("--model "), std::string("--model vit_tiny_patch16_224 --model-kwargs "
                                                                        "img_size=16 patch_size=4 embed_dim=24 depth=2 "
                                                                        "num_heads=3 --initial-checkpoint ")}) {
    const Outcome tuned = vitrail("train " + path("photos") + " --val-split '' --output " + path("runs") +
                                  " --epochs 1 -b 8 --threads 1 " + start + path("encoder"));
    EXPECT_EQ(tuned.status, 0) << tuned.err;
  }
  const Outcome again = vitrail("encoder " + path("runs/dino") + " --output " + path("encoder"));
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("choose another --output"));
  EXPECT_THAT(vitrail("pretrain simclr " + path("photos") + " -b 1").err, HasSubstr("--batch-size 1 is too small"));
}

TEST_F(Pretrain, SimclrAndMocov3RunsGiveTheirEncoders) {
  const std::string vit =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 "
      "num_heads=3 --epochs 2 -b 8 --threads 1 --output " +
      path("runs") + " ";
  const Outcome simclr = vitrail("pretrain simclr " + path("photos") + " --experiment simclr --hidden-dim 16 " +
                                 "--projection-dim 8 --batch-stats view" + vit);
  ASSERT_EQ(simclr.status, 0) << simclr.err;
  EXPECT_THAT(vitrail("encoder " + path("runs/simclr") + " --output " + path("simclr")).out,
              HasSubstr("the encoder, without the projector"));

  const std::string mocov3 = "pretrain mocov3 " + path("photos") + " --moco-dim 8 --moco-mlp-dim 16" + vit;
  const Outcome whole = vitrail(mocov3 + "--experiment whole");
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Outcome taken = vitrail("encoder " + path("runs/whole/last") + " --output " + path("mocov3"));
  ASSERT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("the base encoder (not the momentum encoder)"));
  const Outcome found = vitrail("knn " + path("photos") + " " + path("photos") + " -k 3 --model " + path("mocov3"));
  EXPECT_EQ(found.status, 0) << found.err;
}

TEST_F(Pretrain, ReadyMadeViewsTakeThePlaceOfImages) {
  const std::string views = golden_path("self_supervised/views_two.safetensors").string();
  const std::string flags =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 "
      "num_heads=2 --hidden-dim 16 --epochs 2 -b 4 --threads 1 --output " +
      path("runs");
  const Outcome learned = vitrail("pretrain simclr --views " + views + " --experiment views" + flags);
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_TRUE(fs::exists(path("runs/views/best/model.safetensors")));
  const Outcome both = vitrail("pretrain simclr " + path("photos") + " --views " + views + flags);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--views are made already: DATA has no place beside them"));
  const Outcome neither = vitrail("pretrain simclr" + flags);
  EXPECT_EQ(neither.status, 2);
  EXPECT_THAT(neither.err, HasSubstr("DATA is missing"));
  const Outcome other = vitrail("pretrain dino --views " + views + flags.substr(0, flags.find(" --hidden-dim")) +
                                " --out-dim 16 -b 4 --output " + path("runs"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("view2"));
}

TEST_F(Pretrain, AnAutoencoderIsCutAndLookedInto) {
  const Outcome learned = vitrail("pretrain autoencoder " + path("photos") + " --output " + path("runs") +
                                  " --experiment ae --latent-dim 2 --model vit_tiny_patch16_224 --model-kwargs "
                                  "img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3 --decoder-dim 16 "
                                  "--decoder-depth 1 --decoder-heads 2 --epochs 2 -b 8 --threads 1");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.out, HasSubstr("a bottleneck of 2 numbers, and a transformer as its decoder"));
  EXPECT_TRUE(fs::exists(path("runs/ae/reconstructions.png")));

  const Outcome taken = vitrail("encoder " + path("runs/ae") + " --output " + path("encoder"));
  ASSERT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("the encoder and its bottleneck, without the decoder"));
  EXPECT_THAT(taken.out, HasSubstr("2 numbers for an image"));
  EXPECT_EQ(io::read_json(path("encoder/config.json")).at("num_classes"), 2);
  EXPECT_FALSE(fs::exists(path("encoder/decoder.safetensors")));
  const Outcome before = vitrail("encoder " + path("runs/ae") + " --no-bottleneck --output " + path("before"));
  EXPECT_THAT(before.out, HasSubstr("24 numbers for an image")) << before.err;
  EXPECT_EQ(io::read_json(path("before/config.json")).at("num_classes"), 0);

  const Outcome embedded = vitrail("embed " + path("encoder") + " " + path("photos") +
                                   " --unlabeled --logits --output-dtype bf16 --output " + path("latent.safetensors"));
  ASSERT_EQ(embedded.status, 0) << embedded.err;
  EXPECT_THAT(embedded.out, HasSubstr("features [24, 2] bf16"));

  std::ofstream(path("a.txt")) << path("photos/a/0.png") << "\nphotos/a/2.png\n\n";
  std::ofstream(path("b.txt")) << "photos/b/1.png\r\n" << path("photos/b/3.png") << "\n";
  const Outcome direction = vitrail("latent " + path("runs/ae") + " --direction " + path("a.txt") + " " +
                                    path("b.txt") + " --steps 3 --output " + path("direction.png"));
  ASSERT_EQ(direction.status, 0) << direction.err;
  EXPECT_THAT(direction.out, HasSubstr("in 2 dimensions; along it,"));
  EXPECT_GE(io::read_image(path("direction.png")).width, 4 * 224);
  const Outcome between = vitrail("latent " + path("runs/ae/best") + " --between " + path("photos/a/0.png") + " " +
                                  path("photos/b/1.png") + " --output " + path("between.png"));
  ASSERT_EQ(between.status, 0) << between.err;
  EXPECT_GE(io::read_image(path("between.png")).width, 10 * 224);
  const Outcome sheet =
      vitrail("reconstruct " + path("runs/ae") + " " + path("photos/a/2.png") + " --output " + path("sheet.png"));
  EXPECT_EQ(sheet.status, 0) << sheet.err;

  std::ofstream(path("none.txt")) << "\n";
  EXPECT_THAT(vitrail("latent " + path("runs/ae") + " --direction " + path("a.txt") + " " + path("none.txt")).err,
              HasSubstr("names no images"));
  EXPECT_THAT(vitrail("latent " + path("encoder") + " --between a.png b.png").err, HasSubstr("has no decoder"));
  EXPECT_EQ(vitrail("latent " + path("runs/ae")).status, 2);
}

TEST_F(Pretrain, RefusesWhatIsAboutClasses) {
  const Outcome outcome = vitrail("pretrain mae " + path("photos") + " --mixup 0.8");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no flag '--mixup'"));
  EXPECT_EQ(vitrail("train " + path("photos") + " --mask-ratio 0.5").status, 2);
  const Outcome model = vitrail("reconstruct " + golden_path("models/hf_vit").string() + " " + path("photos"));
  EXPECT_EQ(model.status, 1);
  EXPECT_THAT(model.err, HasSubstr("not a masked autoencoder"));
}

TEST_F(Pretrain, FoldersOfTransformersAreOpenedAndConverted) {
  const std::string hub = golden_path("models/hf_vit").string();
  const Outcome predicted = vitrail("predict " + hub + " " + path("photos/a/2.png"));
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, ::testing::AnyOf(HasSubstr("ant"), HasSubstr("bee"), HasSubstr("cat"), HasSubstr("dog"),
                                              HasSubstr("elk"), HasSubstr("fox"), HasSubstr("gnu")));
  EXPECT_EQ(vitrail("attention " + hub + " " + path("photos/a/2.png") + " --output " + path("maps")).status, 0);
  ASSERT_EQ(vitrail("convert " + hub + " --output " + path("timm")).status, 0);
  EXPECT_EQ(io::read_json(path("timm/config.json")).at("architecture"), "vit_base_patch16_224");
  ASSERT_EQ(vitrail("convert " + path("timm") + " --layout huggingface --output " + path("hub")).status, 0);
  const io::Safetensors before = io::Safetensors::open(hub + "/model.safetensors");
  const io::Safetensors after = io::Safetensors::open(path("hub/model.safetensors"));
  ASSERT_EQ(before.names().size(), after.names().size());
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  // A masked autoencoder's folder: its encoder in either layout.
  const std::string mae = golden_path("models/hf_mae").string();
  ASSERT_EQ(vitrail("convert " + mae + " --output " + path("mae-timm")).status, 0);
  EXPECT_EQ(io::read_json(path("mae-timm/config.json")).at("num_classes"), 0);
  ASSERT_EQ(vitrail("convert " + path("mae-timm") + " --layout huggingface --output " + path("mae-hub")).status, 0);
  EXPECT_EQ(io::read_json(path("mae-hub/config.json")).at("model_type"), "vit");
  const Outcome refused = vitrail("convert vit_base_patch16_siglip_224 --output " + path("no") +
                                  " --layout huggingface --model-kwargs depth=1");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("no class token"));
  const Outcome over = vitrail("convert " + hub + " --output " + path("photos"));
  EXPECT_EQ(over.status, 1);
  EXPECT_TRUE(fs::exists(path("photos/a/2.png")));
}

}  // namespace
}  // namespace vitrail::test
