#include "vitrail/tensor/profile.h"

#include <chrono>

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Profile, GivesEachOpTheTimeSinceTheOneBefore) {
  Profile::flops(5);  // nobody listens
  const Profile profile;
  Profile::flops(10);
  Profile::traffic(3, DType::bf16, 2);
  Profile::mark("one");
  {
    const Profile::Within within(Profile::Phase::backward);
    Profile::mark("two");
  }
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

TEST(Profile, TakesAnInnerEventOffTheOp) {
  const Profile profile;
  const auto wait = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  wait();
  Profile::flops(4);
  {
    const Profile::Inner inner("inner", 8);
    wait();
  }
  {
    const Profile::Pause pause;
    Profile::flops(100);
  }
  Profile::mark("op");
  ASSERT_EQ(profile.events().size(), 2U);
  const Profile::Event& inner = profile.events()[0];
  const Profile::Event& op = profile.events()[1];
  EXPECT_EQ(inner.bytes, 8);
  EXPECT_EQ(op.flops, 4);
  EXPECT_GE(inner.seconds, 2e-3);
  EXPECT_GE(op.seconds, 2e-3);
  EXPECT_DOUBLE_EQ(op.begin + op.seconds, inner.seconds + op.seconds) << "each moment counts once";
}

TEST(Profile, TheInnermostOfAThreadListens) {
  Profile outer;
  {
    const Profile inner;
    Profile::mark("inside");
    EXPECT_EQ(inner.events().size(), 1U);
  }
  outer.skip();
  const Profile::Within within(Profile::Phase::update);
  Profile::mark("outside");
  ASSERT_EQ(outer.events().size(), 1U);
  EXPECT_EQ(name_of(outer.events()[0].phase), "update");
}

}  // namespace
}  // namespace vitrail
