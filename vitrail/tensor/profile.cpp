#include "vitrail/tensor/profile.h"

#include <utility>

namespace vitrail {
namespace {

thread_local Profile* current_profile = nullptr;
thread_local Profile::Phase current_phase = Profile::Phase::forward;

}  // namespace

Profile::Profile() : outer_(current_profile) { current_profile = this; }
Profile::~Profile() { current_profile = outer_; }

double Profile::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

void Profile::skip() {
  last_ = now();
  flops_ = 0;
  bytes_ = 0;
}

void Profile::flops(double count) {
  if (current_profile != nullptr) {
    current_profile->flops_ += count;
  }
}

void Profile::traffic(double bytes) {
  if (current_profile != nullptr) {
    current_profile->bytes_ += bytes;
  }
}

void Profile::mark(std::string_view name) {
  if (current_profile == nullptr) {
    return;
  }
  Profile& profile = *current_profile;
  const double end = profile.now();
  profile.events_.push_back({name, current_phase, profile.last_, end - profile.last_, profile.flops_, profile.bytes_});
  profile.last_ = end;
  profile.flops_ = 0;
  profile.bytes_ = 0;
}

Profile::Inner::Inner(std::string_view name, double bytes) {
  if (current_profile != nullptr) {
    event_ = {name, current_phase, current_profile->now(), 0, 0, bytes};
  }
}

Profile::Inner::~Inner() {
  if (current_profile != nullptr) {
    event_.seconds = current_profile->now() - event_.begin;
    current_profile->last_ += event_.seconds;
    current_profile->events_.push_back(event_);
  }
}

Profile::Within::Within(Phase phase) : outer_(std::exchange(current_phase, phase)) {}
Profile::Within::~Within() { current_phase = outer_; }

Profile::Pause::Pause() : outer_(std::exchange(current_profile, nullptr)) {}
Profile::Pause::~Pause() { current_profile = outer_; }

std::string_view name_of(Profile::Phase phase) {
  switch (phase) {
    case Profile::Phase::forward:
      return "forward";
    case Profile::Phase::backward:
      return "backward";
    case Profile::Phase::update:
      return "update";
  }
  return "";
}

}  // namespace vitrail
