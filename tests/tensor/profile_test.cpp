#include "vitrail/tensor/profile.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Profile, GivesEachOpTheTimeSinceTheOneBefore) {
  Profile::flops(5);  // nobody listens
  const Profile profile;
  Profile::flops(10);
  Profile::traffic(3, DType::bf16, 2);
  Profile::mark("one", Profile::Phase::forward);
  Profile::mark("two", Profile::Phase::backward);
  ASSERT_EQ(profile.events().size(), 2U);
  const Profile::Event& one = profile.events()[0];
  const Profile::Event& two = profile.events()[1];
  EXPECT_EQ(one.name, "one");
  EXPECT_EQ(one.flops, 10);
  EXPECT_EQ(one.bytes, 12);
  EXPECT_EQ(two.flops, 0);
  EXPECT_EQ(two.phase, Profile::Phase::backward);
  EXPECT_DOUBLE_EQ(one.begin + one.seconds, two.begin) << "nothing is left out";
}

TEST(Profile, TheInnermostOfAThreadListens) {
  Profile outer;
  {
    const Profile inner;
    Profile::mark("inside", Profile::Phase::forward);
    EXPECT_EQ(inner.events().size(), 1U);
  }
  outer.skip();
  Profile::mark("outside", Profile::Phase::update);
  ASSERT_EQ(outer.events().size(), 1U);
  EXPECT_EQ(name_of(outer.events()[0].phase), "update");
}

}  // namespace
}  // namespace vitrail
