// Training by several processes, as a person starts it: mpirun -n 4 vitrail train …
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/commands.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Open MPI refuses root, and more ranks than cores, unless it is told to do as it is bid.
const std::string as_anybody =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_odls_base_sigkill_timeout=1 "
    "PRTE_MCA_odls_base_sigkill_timeout=1 ";

class Ranks : public OnImages {
 protected:
  void SetUp() override {
    if (!dist::has_mpi()) {
      GTEST_SKIP() << "this program was built without MPI";
    }
    if (std::system((launcher(2) + " true >/dev/null 2>&1").c_str()) != 0) {
      GTEST_SKIP() << "mpirun is not there, or cannot start two processes here";
    }
  }
  static std::string launcher(int ranks) {
    return as_anybody + fmt::format("mpirun -n {} --oversubscribe --bind-to none", ranks);
  }
  static Outcome on(int ranks, const std::string& arguments) { return vitrail(arguments, "", launcher(ranks)); }

  // What is trained: a ViT on images, or a GPT on a text; three epochs of four updates of four batches.
  static std::string images() {
    return "train " + path("data") + small() + " -b 2 --epochs 3 --lr 3e-3 --val-split ''";
  }
  static std::string text() {
    const std::string file = path("text.txt");
    std::string words;
    for (int i = 0; i < 120; ++i) {
      words += i % 3 == 0 ? "the cat sat on the mat. " : "a dog ran after it, and away. ";
    }
    io::write_atomically(file, words);
    return "train " + file +
           " --task lm --model-kwargs n_layer=2 n_head=2 n_embd=16 --block-size 16 -b 8 --epochs 3 --threads 1 "
           "--val-interval 3";
  }
  static std::string named(const std::string& name) {
    return " --output " + path("runs") + " --experiment " + name + " --grad-shards 4 --recovery-interval 2";
  }
  static std::string weights(const std::string& name) {
    return io::read_text(path("runs/" + name + "/last/model.safetensors"));
  }

  // Starts so many ranks (0: the command does so), sends one of them the signal once updates have been saved, or
  // SIGTERM to what was started, and returns the status of that.
  static int killed(int ranks, const std::string& arguments, const std::string& name, int signal = SIGKILL);
};

// The processes that `parent` has started.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream file(entry.path() / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t behind_name = text.rfind(')');
    pid_t pid = 0;
    char state = 0;
    pid_t from = 0;
    if (behind_name != std::string::npos && std::sscanf(text.c_str(), "%d", &pid) == 1 &&
        std::sscanf(text.c_str() + behind_name + 1, " %c %d", &state, &from) == 2 && from == parent) {
      children.push_back(pid);
    }
  }
  return children;
}

int Ranks::killed(int ranks, const std::string& arguments, const std::string& name, int signal) {
  const pid_t launched = fork();
  if (launched == 0) {
    const int null = open("/dev/null", O_RDWR);
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      dup2(null, file);
    }
    const std::string command = "exec env " + (ranks == 0 ? as_anybody : launcher(ranks)) + " " + VITRAIL_PROGRAM +
                                " " + arguments + named(name);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(99);
  }
  // Each checkpoint is a new file: the first is that of step 0.
  const std::string state = path("runs/" + name + "/last/train-state.safetensors");
  std::set<std::pair<time_t, long>> seen;
  for (int turn = 0; turn < 30000 && seen.size() < 3; ++turn) {
    struct stat file = {};
    if (stat(state.c_str(), &file) == 0) {
      seen.emplace(file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::vector<pid_t> processes = children_of(launched);
  if (signal == SIGTERM) {
    kill(launched, signal);
    processes.clear();
  }
  if (ranks == 0 && !processes.empty()) {
    processes = children_of(processes.front());  // of mpirun
  }
  if (!processes.empty()) {
    kill(processes.back(), signal);
  }
  int status = 0;
  waitpid(launched, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Ranks, WriteWhatTheyHaveToSay) {
  const std::string logs = path("logs");
  const Outcome two = on(2, images() + named("logged") + " --all-ranks-log " + logs);
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(io::read_text(logs + "/rank-1.log"), HasSubstr("epoch 3/3, "));
  EXPECT_FALSE(fs::exists(logs + "/rank-0.log"));
  EXPECT_EQ(two.out.find("epoch 3/3: loss "), two.out.rfind("epoch 3/3: loss "));
  EXPECT_THAT(vitrail(images() + named("lonely") + " --all-ranks-log " + logs).out,
              HasSubstr("note: --all-ranks-log is for several ranks"));
}

TEST_F(Ranks, GiveTheWeightsOfOneProcess) {
  for (const auto& [kind, arguments] : {std::pair{"vit", images()}, std::pair{"gpt", text()}}) {
    const std::string one = fmt::format("{}-1", kind);
    ASSERT_EQ(vitrail(arguments + named(one)).status, 0);
    for (const int ranks : {2, 4}) {
      const std::string name = fmt::format("{}-{}", kind, ranks);
      const Outcome outcome = on(ranks, arguments + named(name));
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr(fmt::format("{} ranks of 1 thread", ranks)));
      EXPECT_EQ(weights(name), weights(one)) << name;
    }
  }
}

TEST_F(Ranks, KilledOnFourGoOnWithTwo) {
  for (const auto& [kind, arguments] : {std::pair{"vit", images()}, std::pair{"gpt", text()}}) {
    const std::string longer = arguments + " --epochs 6";
    const std::string whole = fmt::format("{}-whole", kind);
    const std::string name = fmt::format("{}-killed", kind);
    ASSERT_EQ(vitrail(longer + named(whole)).status, 0);
    EXPECT_NE(killed(4, longer, name), 0);
    const Outcome outcome = on(2, "train --resume " + path("runs/" + name));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("going on after step"));
    EXPECT_EQ(weights(name), weights(whole)) << name;
  }
}

// A run whose folder lies on the machine of rank 0 alone: here the other rank looks for the same path elsewhere.
TEST_F(Ranks, GoOnWithARunThatOnlyTheFirstHas) {
  for (const auto& [kind, arguments] : {std::pair{"vit", images()}, std::pair{"gpt", text()}}) {
    const std::string longer = arguments + " --epochs 5";
    const std::string whole = fmt::format("{}-undivided", kind);
    const std::string name = fmt::format("{}-of-one-machine", kind);
    ASSERT_EQ(vitrail(longer + named(whole)).status, 0);
    EXPECT_NE(killed(2, longer, name), 0);
    const std::string elsewhere = path(fmt::format("{}-elsewhere", kind));
    const std::string temporary = path(fmt::format("{}-tmp", kind));
    fs::create_directories(elsewhere);
    fs::create_directories(temporary);
    const std::string resumed = "train --resume runs/" + name;
    const std::string at = fmt::format("{}mpirun --oversubscribe --bind-to none -n 1 --wdir {}", as_anybody, path(""));
    const std::string other = fmt::format(" : -n 1 --wdir {} -x TMPDIR={} {} {}", elsewhere, temporary,
                                          std::string(VITRAIL_PROGRAM), resumed);
    const Outcome outcome = vitrail(resumed + other, "", at);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 1 does not have this checkpoint of the run and gets it from rank 0 (0."));
    EXPECT_THAT(outcome.out, HasSubstr("going on after step"));
    EXPECT_EQ(weights(name), weights(whole)) << name;
    EXPECT_TRUE(fs::is_empty(temporary));
    EXPECT_TRUE(fs::is_empty(elsewhere));
    // What is wrong on one rank alone is said by it, what is wrong on all once; no copy is left.
    const auto resume_otherwise = [&](const std::string& here, const std::string& there) {
      return vitrail(resumed + here + other + there, "", at);
    };
    const Outcome alone = resume_otherwise(" --epochs 9", " --epochs -3");
    EXPECT_NE(alone.status, 0);
    EXPECT_THAT(alone.err, HasSubstr("vitrail: rank 1: --epochs must be"));
    EXPECT_THAT(resume_otherwise("", " --nonsense").err, HasSubstr("rank 1: there is no flag '--nonsense'"));
    const Outcome all = resume_otherwise(" --epochs -3", " --epochs -3");
    EXPECT_EQ(all.status, 2);
    EXPECT_THAT(all.err, AllOf(HasSubstr("vitrail train: --epochs must be"), Not(HasSubstr("rank 1: --epochs"))));
    EXPECT_THAT(resume_otherwise(" --epochs 1", " --epochs 1").err,
                HasSubstr("the run 'runs/" + name + "' is in epoch"));
    EXPECT_TRUE(fs::is_empty(temporary));
    // A run that nobody has is refused as by one process.
    const Outcome none = vitrail("train --resume runs/none : -n 1 --wdir " + elsewhere + " " +
                                     std::string(VITRAIL_PROGRAM) + " train --resume runs/none",
                                 "", at);
    EXPECT_NE(none.status, 0);
    EXPECT_THAT(none.err, HasSubstr("'runs/none' is not a run folder: it has no config.toml"));
  }
}

TEST_F(Ranks, HaveAThreadForTheirMessages) {
  ASSERT_EQ(vitrail(images() + named("without-thread")).status, 0);
  const Outcome with = on(2, images() + named("with-thread") + " --comm-thread 0");
  ASSERT_EQ(with.status, 0) << with.err;
  EXPECT_EQ(weights("with-thread"), weights("without-thread"));
  const Outcome nowhere = on(2, images() + named("nowhere") + " --comm-thread 5000");
  EXPECT_NE(nowhere.status, 0);
  EXPECT_THAT(nowhere.err, HasSubstr("--comm-thread: there is no core 5000 that this process may use"));
  EXPECT_THAT(vitrail(images() + named("one-with-thread") + " --comm-thread 0").out,
              HasSubstr("note: --comm-thread is for several ranks"));
}

// Other instructions, or another number of threads, give other bits, which --grad-shards promises to be the same.
TEST_F(Ranks, OfUnlikeProcessorsShareNoBits) {
#ifndef __x86_64__
  GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA bounds oneDNN on x86 alone";
#endif
  const std::string training = images() + named("unlike");
  const std::string other = " : -n 1 -x ONEDNN_MAX_CPU_ISA=SSE41 " + std::string(VITRAIL_PROGRAM) + " " + training;
  const Outcome outcome = vitrail(training + other, "", launcher(1));
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("rank 1 on '"), HasSubstr("computes by other instruction sets than rank 0")));
}

TEST_F(Ranks, DoNotWaitForEverForOneThatDoesNotStart) {
  const Outcome outcome = vitrail(images() + named("waiting") + " --comm-timeout 2 : -n 1 sleep 40", "", launcher(1));
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 has waited 10 s for all ranks to start (MPI_Init)"));
}

TEST_F(Ranks, ShareTheOptimizer) {
  for (const auto& [kind, arguments] : {std::pair{"vit", images()}, std::pair{"gpt", text()}}) {
    const std::string clipped = arguments + " --clip-grad 0.5";
    const std::string whole = fmt::format("{}-zero-0", kind);
    const Outcome alone = vitrail(clipped + " --zero 1" + named(whole));
    ASSERT_EQ(alone.status, 0) << alone.err;
    EXPECT_THAT(alone.out, HasSubstr("note: --zero is for several ranks"));
    for (const int stage : {1, 2}) {
      const std::string name = fmt::format("{}-zero-{}", kind, stage);
      const Outcome outcome = on(2, clipped + fmt::format(" --zero {}", stage) + named(name));
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_EQ(weights(name), weights(whole)) << name;
    }
  }
}

TEST_F(Ranks, MeasureWhatLiesBetweenThem) {
  const std::string file = path("link.json");
  const Outcome outcome = on(2, "bench comm --threads 1 --output " + file);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("2 ranks"), HasSubstr("sums over all ranks, ms")));
  const nlohmann::json json = nlohmann::json::parse(io::read_text(file));
  ASSERT_EQ(json.at("links").size(), 1U);
  EXPECT_GT(json["links"][0].at("mb_per_second"), 0);
  EXPECT_EQ(json.at("sums").size(), 4U);
  const std::string scale =
      "scale --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 "
      "num_heads=3 -b 2 --threads 1 --steps 2 --ranks 1 2 --comm " +
      file;
  const nlohmann::json scaled = nlohmann::json::parse(vitrail(scale + " --json").out);
  EXPECT_EQ(scaled.at("links").size(), 1U);
  EXPECT_EQ(scaled["links"][0].at("rows").size(), 2U);
  EXPECT_THAT(vitrail(scale).out, HasSubstr("measured"));
  refuses(scale + " --gbps 1", "--gbps", 2);
  refuses("bench comm", "what lies between ranks is measured by several of them");
  refuses("bench comm --model vit_tiny_patch16_224", "--model has no effect on comm", 2);
  refuses("bench train", "--model is required", 2);
  refuses("scale --model vit_tiny_patch16_224 --comm " + path("nowhere.json"), "nowhere.json");
  io::write_atomically(path("no.json"), "{}");
  refuses("scale --model vit_tiny_patch16_224 --comm " + path("no.json"), "is no file of `vitrail bench comm");
}

TEST_F(Ranks, AreLaunchedAgain) {
  const std::string longer = images() + " --epochs 6";
  ASSERT_EQ(vitrail(longer + named("launch-whole")).status, 0);
  EXPECT_EQ(killed(0, "launch -n 4 -- " + longer, "launched"), 0);
  EXPECT_EQ(weights("launched"), weights("launch-whole"));
  const Outcome diverged =
      vitrail("launch -n 2 -- " + longer + " --opt sgd --lr 1e30 --warmup-epochs 0" + named("diverged"));
  EXPECT_EQ(diverged.status, 1);
  EXPECT_THAT(diverged.err, AllOf(HasSubstr("the loss is "), Not(HasSubstr("going on from the checkpoint"))));
  const std::string long_run = images() + " --epochs 2000";
  EXPECT_EQ(killed(0, "launch -n 2 -- " + long_run, "asked", SIGTERM), 128 + SIGTERM);
  const std::string metrics = io::read_text(path("runs/asked/metrics.jsonl"));
  EXPECT_THAT(metrics, Not(HasSubstr("\"epoch\": 2000")));
  refuses("launch -n 2 -- " + longer + " --lr -1" + named("misspelt"), "--lr", 2);
  refuses("launch -n 2", "what is to be started follows", 2);
  refuses("launch -- train x", "-n, the number of ranks, or --hosts is needed", 2);
  refuses("launch --hosts " + path("nowhere") + " -- train x", "there is no file");
}

TEST_F(Ranks, GiveUpOneThatNoLongerMoves) {
  const std::string longer = images() + " --epochs 6";
  ASSERT_EQ(vitrail(longer + named("moving")).status, 0);
  EXPECT_NE(killed(2, longer + " --comm-timeout 2", "still", SIGSTOP), 0);
  const Outcome again = on(2, "train --resume " + path("runs/still"));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(weights("still"), weights("moving"));
}

// Two hosts that tools/netlab joins by a slow link.
class RanksOfTwoHosts : public Ranks {
 protected:
  void SetUp() override {
    Ranks::SetUp();
    const std::string said = path("hosts");
    if (!IsSkipped() && (std::system((in_lab("--delay 1") + mpirun + " hostname >" + said + " 2>&1").c_str()) != 0 ||
                         io::read_text(said).find("node2") == std::string::npos)) {
      GTEST_SKIP() << "tools/netlab cannot join hosts here: it needs root, iproute2, /dev/net/tun, a compiler and Open "
                      "MPI 4";
    }
  }
  static std::string in_lab(const std::string& flags) {
    return as_anybody + "timeout -k 1 100 " + VITRAIL_SOURCE_DIR + "/tools/netlab " + flags;
  }
  static constexpr const char* mpirun = " mpirun -n 2 --oversubscribe --bind-to none";
};

TEST_F(RanksOfTwoHosts, GiveTheWeightsOfOneProcess) {
  ASSERT_EQ(vitrail(images() + named("near")).status, 0);
  const Outcome far = vitrail(images() + named("far"), "", in_lab("--delay 2 --loss 1") + mpirun);
  ASSERT_EQ(far.status, 0) << far.err;
  EXPECT_THAT(far.out, HasSubstr("2 ranks of 1 thread"));
  EXPECT_EQ(weights("far"), weights("near"));
}

// mpirun itself would wait for the other host for ever: only `launch` ends it.
TEST_F(RanksOfTwoHosts, SayWhoIsMissingIfTheLinkIsCut) {
  const std::string script = path("cut.sh");  // half a second after the first checkpoint
  io::write_atomically(script, "(while ! [ -e " + path("runs/cut/last") +
                                   " ]; do sleep 0.1; done; sleep 0.5; ip -n $NETLAB-2 link set eth0 down) &\n"
                                   "exec \"$@\"\n");
  const Outcome outcome =
      vitrail("launch -n 2 --max-restarts 0 -- " + images() + " --epochs 900 --comm-timeout 2" + named("cut"), "",
              in_lab("--delay 1") + " sh " + script);
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("for the rank 1 (last heard of "), HasSubstr("given up after 0 restarts")));
  EXPECT_EQ(vitrail("predict " + path("runs/cut/last") + " " + path("data")).status, 0);
}

TEST_F(Ranks, AreLaunchedForTheRunThatIsMeant) {
  // Another run has the name: it is left as it is.
  ASSERT_EQ(vitrail(images() + named("taken")).status, 0);
  const std::string before = io::read_text(path("runs/taken/last/train-state.safetensors"));
  const Outcome taken = vitrail("launch -n 2 -- " + images() + " --epochs 9" + named("taken"));
  EXPECT_EQ(taken.status, 1) << taken.err;
  EXPECT_THAT(taken.err, AllOf(HasSubstr("--resume"), Not(HasSubstr("going on from"))));
  EXPECT_EQ(io::read_text(path("runs/taken/last/train-state.safetensors")), before);
  // A flag that is wrong ends it, whatever checkpoint there is.
  const Outcome wrong = vitrail("launch -n 2 -- train --resume " + path("runs/taken") + " --epochs 9 --lr -1");
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--lr"), Not(HasSubstr("going on from"))));
  // A run may be named by its checkpoint, or by the file of --config.
  EXPECT_EQ(vitrail("launch -n 2 -- train --resume " + path("runs/taken/last") + " --epochs 4").status, 0);
  io::write_atomically(path("run.toml"), "output = \"" + path("elsewhere") + "\"\nexperiment = \"configured\"\n");
  EXPECT_EQ(vitrail("launch -n 2 -- " + images() + " --grad-shards 4 -c " + path("run.toml")).status, 0);
  EXPECT_TRUE(fs::exists(path("elsewhere/configured/best")));
}

TEST_F(Ranks, SayWhatIsWrongOnOneAlone) {
  const std::string first = as_anybody + "mpirun --oversubscribe --bind-to none -n 1 " + VITRAIL_PROGRAM + " " +
                            images() + named("sole") + " : -n 1";
  const Outcome outcome = vitrail(images() + named("sole") + " --epochs -1", "", first);
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("vitrail train: rank 1: --epochs"));
}

TEST_F(Ranks, SpeakOnce) {
  const Outcome outcome = on(2, images() + named("once"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string begin = "2 ranks of 1 thread";
  EXPECT_EQ(outcome.out.find(begin), outcome.out.rfind(begin));
  const Outcome refused = on(3, images() + named("refused"));
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("vitrail: --grad-shards 4 cannot be divided among 3 ranks: take a multiple of 3"));
  EXPECT_EQ(refused.err.find("--grad-shards 4"), refused.err.rfind("--grad-shards 4"));
  EXPECT_FALSE(fs::exists(path("runs/refused")));
  const Outcome nowhere = on(2, "train " + path("nowhere") + small() + named("nowhere"));
  EXPECT_NE(nowhere.status, 0);
  const std::string sentence = "nowhere: no such file";
  EXPECT_THAT(nowhere.err, HasSubstr(sentence));
  EXPECT_EQ(nowhere.err.find(sentence), nowhere.err.rfind(sentence));
}

TEST_F(Ranks, AreRefusedWhatFollowsOneProcess) {
  text();  // writes it
  const Outcome outcome =
      on(2, "train " + path("text.txt") + " --task lm --model gru --bptt 8 --model-kwargs hidden_size=16 --output " +
                path("runs") + " --experiment streams");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks cannot train this together: with --bptt a batch goes on where the last"));
}

}  // namespace
}  // namespace vitrail::test
