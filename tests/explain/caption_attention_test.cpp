#include "vitrail/explain/caption_attention.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/text/train.h"

namespace vitrail::explain {
namespace {

using test::expect_close;
using test::golden_path;

// Row n of transformers' cross-attention is that of decoder_input_ids[n], which produced the token behind it. The image
// has two tokens in front of its grid of 2 x 2 patches with DeiT, one with ViT, none with Swin, whose grid is 4 x 4.
TEST(CaptionAttention, IsThatOfTheStepThatProducedAToken) {
  for (const auto& [name, prefix, side] :
       {std::tuple("vit", 1, 2), std::tuple("deit", 2, 2), std::tuple("swin", 0, 4)}) {
    const std::filesystem::path folder = golden_path("models/joint/captioner") / name;
    const std::unique_ptr<models::Captioner> model = models::load_captioner(folder);
    const io::Safetensors golden = io::Safetensors::open(folder / "expected.safetensors");
    const Tensor inputs = golden.get("decoder_input_ids").narrow(0, 0, 1).contiguous();
    const std::int64_t* const read = inputs.data<std::int64_t>();
    std::vector<std::int64_t> ids(read + 1, read + inputs.numel());
    ids.push_back(3);  // is not read
    const std::vector<Tensor> maps =
        caption_attention(*model, golden.get("pixel_values").narrow(0, 0, 1).contiguous(), ids);
    ASSERT_EQ(maps.size(), 2);
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const Tensor wanted = golden.get(fmt::format("cross_attention.{}", i)).narrow(0, 0, 1);
      expect_close(
          maps[i],
          wanted.narrow(3, prefix, side * side).contiguous().reshape({wanted.size(1), wanted.size(2), side, side}),
          1e-5, name);
    }
  }
}

TEST(CaptionAttention, PutsTheTokensOfAWordTogether) {
  const std::vector<std::string> texts(50, "a large red bird, and birds");
  const text::Tokenizer tokenizer = text::train_clip_bpe(texts, 520);
  std::vector<std::int64_t> ids = tokenizer.encode("a large redder bird", false).ids;
  ids.push_back(tokenizer.encode("a").ids.back());
  const std::vector<CaptionWord> words = words_of_caption(tokenizer, ids);
  ASSERT_EQ(words.size(), 5);
  std::size_t next = 0;
  for (const CaptionWord& word : words) {
    EXPECT_EQ(word.first, next);
    EXPECT_GT(word.last, word.first);
    next = word.last;
  }
  EXPECT_EQ(next, ids.size());
  EXPECT_EQ(words[1].word, "large");
  EXPECT_EQ(words[2].word, "redder");
  EXPECT_GT(words[2].last, words[2].first + 1);
  EXPECT_EQ(words[4].word, "<|endoftext|>");
}

TEST(CaptionAttention, IsDrawnAsAStripWithAnOverlayForEachWord) {
  const io::Image image(64, 64);
  std::vector<CaptionWord> words;
  for (std::size_t i = 0; i < 7; ++i) {
    words.push_back({"word", i, i + 1});
  }
  const io::Image strip = caption_strip(image, words, Tensor::full({7, 2, 2}, 0.25F));
  EXPECT_GT(strip.width, 6 * 64);
  EXPECT_GT(strip.height, 2 * 64) << "two rows";
}

}  // namespace
}  // namespace vitrail::explain
