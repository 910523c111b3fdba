#include "vitrail/data/pairs/counted_captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vitrail/data/boxes/boxed_images.h"

namespace vitrail::data {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

const std::vector<std::string> blood = {"Platelets", "RBC", "WBC"};
const std::vector<std::string> street = {"bus", "traffic light", "traffic light pole", "person"};

TEST(CountedCaptions, SayHowManyThereAre) {
  EXPECT_EQ(caption_of_counts({2, 11, 1}, blood), "two platelets, eleven red cells and one white cell");
  EXPECT_EQ(caption_of_counts({1, 30, 0}, blood), "one platelet and 30 red cells");
  EXPECT_EQ(caption_of_counts({0, 13, 0}, blood), "13 red cells");
  EXPECT_EQ(caption_of_counts({0, 0, 0}, blood), "nothing");
  EXPECT_EQ(caption_of_counts({2, 1, 3, 1}, street),
            "two bus, one traffic light, three traffic light poles and one person");
}

TEST(CountedCaptions, AreReadAsTheyAreWritten) {
  for (const auto& classes : {blood, street}) {
    for (const std::int64_t first : {0, 1, 2, 12, 13}) {
      for (const std::int64_t last : {0, 1, 7}) {
        std::vector<std::int64_t> counts(classes.size(), 0);
        counts.front() = first;
        counts[1] = 3;
        counts.back() = last;
        EXPECT_THAT(counts_of_caption(caption_of_counts(counts, classes), classes), Optional(counts));
      }
    }
  }
  EXPECT_THAT(counts_of_caption("One White cell and two Platelets", blood), Optional(ElementsAre(2, 0, 1)));
  EXPECT_THAT(counts_of_caption("nothing", blood), Optional(ElementsAre(0, 0, 0)));
}

TEST(CountedCaptions, AreNotReadIntoOtherTexts) {
  for (const char* text :
       {"a red cell", "red cells", "two", "two red cell walls", "two red cells and", "two red cells, ",
        "one red cell and two red cells", "-1 red cells", "two red cells one white cell"}) {
    EXPECT_EQ(counts_of_caption(text, blood), std::nullopt) << text;
  }
}

TEST(CountedCaptions, CountTheBoxesOfImages) {
  const std::string source = "scenes:count=5,style=cells";
  const BoxedImages boxed = open_boxed_images(source);
  const CaptionedImages captioned = open_captioned_images(source);
  ASSERT_EQ(captioned.images->size(), 5);
  EXPECT_EQ(captioned.counted, boxed.classes);
  for (std::size_t i = 0; i < 5; ++i) {
    std::int64_t total = 0;
    for (const std::int64_t count : captioned.counts[i]) {
      total += count;
    }
    EXPECT_EQ(total, std::ssize(boxed.objects[i]));
    EXPECT_THAT(captioned.texts[i], ElementsAre(caption_of_counts(captioned.counts[i], boxed.classes)));
  }
}

}  // namespace
}  // namespace vitrail::data
