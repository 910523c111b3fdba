#include "vitrail/train/captions/caption.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/captions/captions.h"
#include "vitrail/train/guided_attention.h"
#include "vitrail/train/run/records.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

// Images of tiny_options(), by tables that say what is in them.
CaptionTaskOptions tiny_captions(const fs::path& folder) {
  const ClassifyOptions images = test::tiny_options(folder);
  for (const auto& [part, count] : {std::pair("train", 8), {"validation", 4}}) {
    std::ofstream table(folder / (std::string(part) + ".csv"));
    for (int i = 0; i < count; ++i) {
      int number = 0;
      for (const char* name : {"red", "green", "blue"}) {
        table << "data/" << part << "/class" << number++ << "/" << i << ".png," << name << "\n";
      }
    }
  }
  CaptionTaskOptions options;
  options.data_dir = (folder / "train.csv").string();
  options.val_dir = (folder / "validation.csv").string();
  options.output = images.output;
  options.experiment = "tiny";
  options.model = images.model;
  options.model_kwargs = images.model_kwargs;
  options.decoder_kwargs = R"({"hidden_size": 24})";
  options.batch_size = 4;
  options.epochs = 3;
  options.lr = 5e-3;
  options.images.crop_pct = 1;
  options.augment.no_aug = true;
  options.threads = 1;
  return options;
}

// What is wrong with these options after a change.
template <typename Change>
std::string error_with(CaptionTaskOptions options, const Change& change) {
  change(options);
  return error_of([&] {
    validate(options);
    options.make("");
  });
}

// What transformers' generate() does with the files of these folders.
TEST(CaptionOptions, AreThoseOfTheFolder) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary / "vit";
  fs::copy(test::golden_path("models/joint/captioner/vit"), folder, fs::copy_options::recursive);
  const auto read = [&](const std::string& generation) {
    io::write_atomically(folder / "generation_config.json", generation);
    const std::unique_ptr<models::Captioner> model = models::load_captioner(folder);
    return std::pair(std::pair(model->start, model->end), caption_options(*model, "generation_config.json").config);
  };
  const auto [tokens, all] = read(R"({"decoder_start_token_id": 9, "bos_token_id": 8, "eos_token_id": [5, 6],
                                      "num_beams": 1, "max_length": 9, "no_repeat_ngram_size": 2})");
  EXPECT_EQ(tokens, std::pair(std::int64_t{9}, std::int64_t{5})) << "and not those of config.json";
  EXPECT_EQ(all.num_beams, 1);
  EXPECT_EQ(all.max_new_tokens, 8) << "behind the first token";
  EXPECT_EQ(all.no_repeat_ngram_size, 2);
  EXPECT_EQ(all.eos_token_id, (std::vector<std::int64_t>{5, 6}));
  const auto [begun, bare] = read(R"({"bos_token_id": 8})");
  EXPECT_EQ(begun, std::pair(std::int64_t{8}, std::int64_t{7}));
  EXPECT_EQ(bare.eos_token_id, std::vector<std::int64_t>()) << "no token ends a text there";
  EXPECT_EQ(bare.num_beams, 3) << "ours, where nothing is said";

  fs::remove(folder / "generation_config.json");
  nlohmann::json config = io::read_json(folder / "config.json");
  config["num_beams"] = 1;
  config["decoder"]["max_length"] = 6;
  io::write_atomically(folder / "config.json", config.dump());
  const std::unique_ptr<models::Captioner> old = models::load_captioner(folder);
  const generate::GenerationConfig legacy = caption_options(*old, "config.json").config;
  EXPECT_EQ(legacy.num_beams, 1);
  EXPECT_EQ(legacy.max_new_tokens, 5);
  EXPECT_EQ(legacy.eos_token_id, std::vector<std::int64_t>{7});
  fs::create_directories(temporary / "written");
  old->write(temporary / "written");
  const nlohmann::json written = io::read_json(temporary / "written/generation_config.json");
  EXPECT_EQ(written.at("num_beams"), 1) << "the copy writes as the old one";
  EXPECT_EQ(written.at("max_length"), 6);
}

TEST(CaptionOptions, EndTextsOfBlipAsItsConfigSays) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary / "blip";
  fs::copy(test::golden_path("models/joint/blip_caption"), folder, fs::copy_options::recursive);
  const std::string said = R"({"_from_model_config": true, "eos_token_id": 2, "num_beams": 2})";
  io::write_atomically(folder / "generation_config.json", said);
  const std::unique_ptr<models::Captioner> model = models::load_captioner(folder);
  const generate::GenerationConfig config = caption_options(*model, "generation_config.json").config;
  EXPECT_NE(model->end, 2);
  EXPECT_EQ(config.eos_token_id, std::vector<std::int64_t>{model->end});
  EXPECT_EQ(config.num_beams, 2);
  fs::create_directories(temporary / "written");
  model->write(temporary / "written");
  EXPECT_EQ(io::read_text(temporary / "written/generation_config.json"), said);
}

TEST(LearningToCaption, WritesTheLettersOfTheClass) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_captions(folder.path());
  options.epochs = 40;
  options.val_interval = 40;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("exact"), 90);
  EXPECT_LT(result.figure("loss"), 0.1);
  EXPECT_EQ(io::read_image(result.folder / "captions.png").width, 720);
  const fs::path best = result.folder / "best";
  EXPECT_TRUE(models::is_captioner_folder(best));
  const std::unique_ptr<models::Captioner> model = models::load_captioner(best);
  const text::Tokenizer tokenizer = text::load_tokenizer(best);
  const data::CaptionedImages validation = data::open_captioned_images(options.val_dir);
  EvaluateOptions small;
  small.batch_size = 5;
  const CaptionEvaluation again =
      evaluate_captions(*model, tokenizer, validation, small, caption_options(*model, 1, 64));
  EXPECT_NEAR(again.exact, result.figure("exact"), 1e-9);
  EXPECT_NEAR(again.loss, result.figure("loss"), 1e-4);
  EXPECT_EQ(again.count, 12);
  std::vector<io::Image> images;
  for (const std::int64_t i : {0, 1, 2}) {
    images.push_back(validation.images->image(i));
  }
  EXPECT_EQ(caption(*model, tokenizer, prepared(model->image_model.pretrained, images), caption_options(*model, 3, 64)),
            (std::vector<std::string>{"red", "green", "blue"}));
  EXPECT_LT(model->layer_of("blocks.0.attn.qkv.weight"), model->layer_of("decoder.start.h.0.weight"));
  EXPECT_EQ(model->layer_of("decoder.out.bias"), model->depth() + 1);
}

TEST(LearningToCaption, TakesSentencesOfATable) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_captions(folder.path());
  std::ofstream table(folder / "captions.csv");
  table << "path,label\n";
  for (int i = 0; i < 8; ++i) {
    table << "data/train/class0/" << i << ".png,\"Red, and number " << i << "\"\n";
    table << "data/train/class1/" << i << ".png,Green\n";
  }
  table.close();
  options.data_dir = (folder / "captions.csv").string();
  options.val_dir = "";
  options.val_split = "";
  options.decoder = "gru";
  options.epochs = 1;
  const FitResult result = fit(options);
  const fs::path last = result.folder / "last";
  EXPECT_EQ(text::load_tokenizer(last).decode(text::load_tokenizer(last).encode("Red, 7").ids), "Red, 7");
}

// A transformer that attends to the image, with pieces of words in lower case, and two captions of some images.
CaptionTaskOptions tiny_pairs(const fs::path& folder) {
  CaptionTaskOptions options = tiny_captions(folder);
  for (const auto& [part, count] : {std::pair("train", 8), {"validation", 4}}) {
    std::ofstream table(folder / (std::string("captions_") + part + ".csv"));
    table << "path,caption\n";
    for (int i = 0; i < count; ++i) {
      int number = 0;
      for (const char* name : {"Red", "green", "blue"}) {
        const std::string path =
            "data/" + std::string(part) + "/class" + std::to_string(number++) + "/" + std::to_string(i) + ".png";
        table << path << "," << name << " all over\n";
        if (i % 2 == 0) {
          table << path << ",all " << name << "\n";
        }
      }
    }
  }
  const auto folder_of = [&](const char* part) {
    const fs::path own = folder / part;
    fs::create_directories(own);
    fs::create_directory_symlink(folder / "data", own / "data");
    fs::rename(folder / (std::string("captions_") + part + ".csv"), own / "captions.csv");
    return own.string();
  };
  options.data_dir = folder_of("train");
  options.val_dir = folder_of("validation");
  options.decoder = "gpt2";
  options.decoder_kwargs = R"({"n_embd": 24, "n_layer": 2, "n_head": 2})";
  options.vocab_size = 514;
  options.max_length = 12;
  return options;
}

TEST(LearningToCaption, WritesByATransformerThatAttendsToTheImage) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_pairs(folder.path());
  options.epochs = 60;
  options.val_interval = 60;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("exact"), 90);
  const fs::path best = result.folder / "best";
  const std::unique_ptr<models::Captioner> model = models::load_captioner(best);
  const text::Tokenizer tokenizer = text::load_tokenizer(best);
  EXPECT_EQ(model->decoder_kind(), "gpt2");
  EXPECT_EQ(model->max_positions(), 13);
  const nlohmann::json generation = io::read_json(best / "generation_config.json");
  EXPECT_EQ(generation.at("num_beams"), 3) << "transformers writes as we do";
  EXPECT_EQ(generation.at("max_length"), 13);
  const data::CaptionedImages validation = data::open_captioned_images(options.val_dir);
  const Tensor x = prepared(model->image_model.pretrained, {validation.images->image(0)});
  const std::vector<Caption> best_two = [&] {
    CaptionOptions how = caption_options(*model, 2, 64);
    how.config.num_return_sequences = 2;
    return captions_of(*model, tokenizer, x, how).front();
  }();
  ASSERT_EQ(best_two.size(), 2);
  EXPECT_THAT((std::vector<std::string>{best_two[0].text, best_two[1].text}),
              testing::UnorderedElementsAre("red all over", "all red"));
  EXPECT_EQ(best_two[0].ids.back(), model->end);

  // It goes on from there.
  CaptionTaskOptions again = options;
  again.model = best.string();
  again.model_kwargs = "{}";
  again.decoder_kwargs = "{}";
  again.experiment = "again";
  again.epochs = 1;
  again.lr = 1e-6;
  EXPECT_GT(fit(again).figure("exact"), 90);
}

// Scenes of 32 pixels, which a Vision Transformer sees in patches of 8.
CaptionTaskOptions tiny_scenes(const fs::path& folder) {
  CaptionTaskOptions options = tiny_captions(folder);
  options.data_dir = "scenes:count=24,size=32";
  options.val_dir = "";
  options.val_split = "";
  options.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.decoder = "gpt2";
  options.decoder_kwargs = R"({"n_embd": 24, "n_layer": 2, "n_head": 2})";
  options.captions_per_image = 3;
  options.epochs = 12;
  options.attn_loss_coef = 1;
  return options;
}

TEST(LearningToCaption, LooksAtWhatCaptionsAreAboutIfItIsGuided) {
  const test::TemporaryFolder folder;
  const CaptionTaskOptions guided = tiny_scenes(folder.path());
  const data::CaptionedImages scenes = data::open_captioned_images(guided.data_dir, {.places = true});
  // How far the attention of the last layer is from what the first captions of four images are about.
  const auto distance = [&](const CaptionTaskOptions& options) {
    const fs::path last = fit(options).folder / "last";
    const std::unique_ptr<models::Captioner> model = models::load_captioner(last);
    const CaptionTokens captions(scenes.texts, text::load_tokenizer(last), 64);
    std::vector<io::Image> images;
    std::vector<const CaptionTokens::Ids*> texts;
    std::vector<std::vector<bool>> targets;
    for (std::size_t i = 0; i < 4; ++i) {
      images.push_back(scenes.images->image(static_cast<std::int64_t>(i)));
      texts.push_back(&captions.ids[i][0]);
      texts.push_back(&captions.ids[i][1]);
      for (std::size_t k = 0; k < 2; ++k) {
        targets.emplace_back(1, false);  // the class token
        std::ranges::copy(touched_patches(scenes.places[i][k], {4, 4}), std::back_inserter(targets.back()));
      }
    }
    std::vector<const std::vector<bool>*> wanted;
    for (const std::vector<bool>& target : targets) {
      wanted.push_back(&target);
    }
    const autograd::NoGrad no_grad;
    nn::Pass pass;
    const Tensor x = prepared(model->image_model.pretrained, images);
    const auto loss = [&](float coef) {
      return guided_caption_loss(*model, x, texts, wanted, coef, pass).data<float>()[0];
    };
    // Without a weight it is the loss of the words.
    EXPECT_NEAR(loss(0), caption_loss(*model, x, texts, pass).data<float>()[0], 1e-5);
    return loss(1) - loss(0);
  };
  CaptionTaskOptions free = guided;
  free.attn_loss_coef = 0;
  free.experiment = "free";
  EXPECT_LT(distance(guided), distance(free) - 0.2);
}

// Of an image model whose stages halve the grid, the decoder sees the last one.
TEST(LearningToCaption, IsGuidedOnTheGridThatTheDecoderSees) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_scenes(folder.path());
  options.model = "swin_tiny_patch4_window7_224";
  options.model_kwargs = R"({"img_size": 32, "window_size": 4, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2]})";
  options.epochs = 1;
  EXPECT_TRUE(fs::exists(fit(options).folder / "last"));
}

TEST(LearningToCaption, SaysWhatCannotBeGuided) {
  const test::TemporaryFolder folder;
  const CaptionTaskOptions good = tiny_scenes(folder.path());
  const auto error = [&](auto&& change) { return error_with(good, change); };
  EXPECT_EQ(error([](CaptionTaskOptions& o) {
              o.decoder = "lstm";
              o.decoder_kwargs = R"({"hidden_size": 24})";
            }),
            "--attn-loss-coef is for captioners whose decoder is a gpt2");
  EXPECT_EQ(error([](CaptionTaskOptions& o) { o.augment.no_aug = false; }),
            "--attn-loss-coef takes places in images as they are, which augmentation would move: give --no-aug too");
  const std::string table = (folder / "train.csv").string();
  EXPECT_EQ(error([&](CaptionTaskOptions& o) { o.data_dir = table; }),
            table +
                ": no caption says what it is about ('boxes' in its annotation, as `vitrail scenes` writes them), "
                "which --attn-loss-coef takes");
}

TEST(LearningToCaption, ResumesToTheSameBitsWithATransformer) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_pairs(folder.path());
  options.drop = 0.2;
  options.captions_per_image = 2;
  options.experiment = "whole";
  fit(options);
  options.experiment = "stopped";
  test::fit_in_two_parts(options, 8);
  const auto checksum = [&](const char* run) {
    return weights_checksum(*models::load_captioner(fs::path(options.output) / run / "last"));
  };
  EXPECT_EQ(checksum("whole"), checksum("stopped"));
}

TEST(LearningToCaption, ResumesToTheSameBits) {
  const test::TemporaryFolder folder;
  CaptionTaskOptions options = tiny_captions(folder.path());
  options.drop = 0.2;
  options.decoder_kwargs = R"({"hidden_size": 16, "num_layers": 2})";
  options.experiment = "whole";
  fit(options);
  options.experiment = "stopped";
  test::fit_in_two_parts(options, 8);
  const auto checksum = [&](const char* run) {
    return weights_checksum(*models::load_captioner(fs::path(options.output) / run / "last"));
  };
  EXPECT_EQ(checksum("whole"), checksum("stopped"));
}

TEST(LearningToCaption, SaysWhatCannotBe) {
  const test::TemporaryFolder folder;
  const CaptionTaskOptions good = tiny_captions(folder.path());
  const auto error = [&](auto&& change) { return error_with(good, change); };
  EXPECT_THAT(error([](CaptionTaskOptions& o) { o.decoder = "lsmt"; }), HasSubstr("lsmt"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) { o.decoder_kwargs = R"({"hiden_size": 3})"; }),
              HasSubstr("did you mean 'hidden_size'"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) { o.tokenizer = "nowhere.json"; }), HasSubstr("nowhere.json"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) { o.model = "gpt2"; }), HasSubstr("gpt2"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) {
                o.decoder = "gpt2";
                o.decoder_kwargs = R"({"n_embd": 10, "n_head": 3})";
              }),
              HasSubstr("the width 10 cannot be divided among 3 heads"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) {
                o.decoder = "gpt2";
                o.decoder_kwargs = R"({"n_layers": 2})";
              }),
              HasSubstr("did you mean 'n_layer'"));
  EXPECT_THAT(error([](CaptionTaskOptions& o) { o.train_split = "holdout"; }), HasSubstr("holdout"));
  EXPECT_THAT(error_of([&] { models::load_captioner(folder.path()); }), HasSubstr("config.json"));
}

}  // namespace
}  // namespace vitrail::train
