// A language model that has learned next to nothing, which the tests of commands look at.
#pragma once

#include <string>

#include "tests/cli/commands.h"

namespace vitrail::test {

// Its text is path("text.txt"), its run path("runs/one").
class LanguageModel : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    write("text.txt", repeated("der Bär ist da.\n", 60));
    learned_ = vitrail("train " + path("text.txt") +
                       " --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 20 --epochs 1 -b 4 "
                       "--threads 1 --output " +
                       path("runs") + " --experiment one");
  }
  static Outcome generate(const std::string& arguments, const std::string& input = "") {
    return vitrail("generate " + path("runs/one") + " " + arguments + " --threads 1", input);
  }

  static inline Outcome learned_;
};

}  // namespace vitrail::test
