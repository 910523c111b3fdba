// `vitrail launch` starts a training on several ranks, and starts it again from its last checkpoint if it breaks off.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/say.h"
#include "vitrail/io/file.h"
#include "vitrail/io/toml.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/host.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/run_log.h"
#include "vitrail/train/run_options.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds time_to_save(60);
constexpr std::chrono::seconds time_to_end(15);  // of mpirun, once the training has ended

struct LaunchFlags {
  std::int64_t ranks = 0;
  std::string hosts;
  std::int64_t max_restarts = 3;
  std::vector<std::string> words;
};

// A machine, and how many ranks it takes.
struct Host {
  std::string name;
  std::int64_t slots = 1;
};

// A file of lines "node1 slots=2", as mpirun's --hostfile.
std::vector<Host> read_hosts(const std::string& path) {
  check(io::is_file(path), "--hosts: there is no file '{}'", path);
  std::vector<Host> hosts;
  int number = 0;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    Host host;
    if (!(words >> host.name)) {
      continue;
    }
    for (std::string word; words >> word;) {
      const bool is_slots = word.starts_with("slots=");
      const std::string count = is_slots ? word.substr(6) : "";
      check(is_slots && !count.empty() && count.size() < 6 &&
                std::ranges::all_of(count, [](unsigned char c) { return std::isdigit(c) != 0; }) &&
                std::stoll(count) > 0,
            "{}: line {}: '{}' is not slots=N", path, number, word);
      host.slots = std::stoll(count);
    }
    hosts.push_back(host);
  }
  check(!hosts.empty(), "{} names no hosts", path);
  return hosts;
}

// Sees whether a training that has begun to write to a run goes on there.
class Watch {
 public:
  explicit Watch(const fs::path& run) : run_(run), size_(metrics_size()) {}
  // Whether it had the run's lock, and for time_to_end nobody has had it, and nothing was written. Where files cannot
  // be locked, nothing is known.
  bool has_ended() {
    const std::uintmax_t size = metrics_size();
    begun_ = begun_ || size > size_;  // who writes has the lock, so that it is not taken from a training that begins
    const bool is_locked_now = begun_ && is_locked();
    was_locked_ = was_locked_ || is_locked_now;
    if (!was_locked_ || is_locked_now || size != size_ || !still_since_) {
      still_since_ = Clock::now();
    }
    size_ = size;
    return Clock::now() - *still_since_ > time_to_end;
  }

 private:
  std::uintmax_t metrics_size() const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(run_ / "metrics.jsonl", error);
    return error ? 0 : size;
  }
  bool is_locked() const {
    try {
      const train::RunLock unused(run_);
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  fs::path run_;
  std::uintmax_t size_;
  bool begun_ = false;
  bool was_locked_ = false;
  std::optional<Clock::time_point> still_since_ = std::nullopt;
};

// How a program ended: what wait() says, and whether it was made to, as it had not stopped in time.
struct Ended {
  int status = 0;
  bool by_force = false;
};

// Runs a program to its end in a process group of its own, without input. If the user asks to stop, it is told so by
// SIGUSR1, which mpirun passes on to the ranks at once (SIGTERM only later, and not for long), and may take a minute.
// Where a link is cut, mpirun may wait for the other machine for ever: what `watch` has seen the end of is killed.
Ended run_program(const std::vector<std::string>& words, bool quiet = false, Watch* watch = nullptr) {
  const pid_t child = fork();
  check(child >= 0, "no process can be started: {}", std::strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    if (quiet) {
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  Ended ended;
  std::optional<Clock::time_point> told;
  for (int turn = 0; waitpid(child, &ended.status, WNOHANG) == 0; ++turn) {
    if (turn % 50 == 0 && watch != nullptr && !ended.by_force && watch->has_ended()) {  // once a second
      kill(-child, SIGKILL);
      ended.by_force = true;
    }
    if (train::Interrupt::requested() && !told) {
      kill(child, SIGUSR1);
      told = Clock::now();
    }
    if (told && !ended.by_force && Clock::now() - *told > time_to_save) {
      kill(child, SIGTERM);
      ended.by_force = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return ended;
}

// The hosts that answer. Open MPI reaches them by ssh too.
std::vector<Host> that_answer(std::vector<Host> hosts) {
  const std::string here = host_name();
  std::erase_if(hosts, [&here](const Host& host) {
    const bool is_here = host.name == "localhost" || host.name == "127.0.0.1" || host.name == here ||
                         host.name == here.substr(0, here.find('.'));
    const bool answers =
        is_here ||
        run_program({"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", host.name, "true"}, true).status == 0;
    if (!answers) {
      say("vitrail launch: {} does not answer and is left out\n", host.name);
    }
    return !answers;
  });
  check(!hosts.empty(), "none of the hosts answers");
  return hosts;
}

// What a config.toml has; nothing if there is none.
nlohmann::json read_config(const fs::path& file) {
  return fs::exists(file) ? io::read_toml(file) : nlohmann::json::object();
}

// What a config says of an option, in whichever group it stands; null if nothing.
nlohmann::json in_config(const nlohmann::json& config, const std::string& option) {
  for (const auto& [group, options] : config.items()) {
    if (group == option) {
      return options;
    }
    if (options.is_object() && options.contains(option)) {
      return options[option];
    }
  }
  return nullptr;
}

// The largest number of ranks up to `most` among which the shards of a run can be divided.
std::int64_t ranks_for(const fs::path& run, std::int64_t most) {
  const nlohmann::json found = in_config(read_config(run / "config.toml"), "grad_shards");
  const std::int64_t shards = found.is_number_integer() ? found.get<std::int64_t>() : 0;
  while (shards > 0 && shards % most != 0) {
    --most;
  }
  return most;
}

class Launch {
 public:
  Launch(const LaunchFlags& flags, std::vector<std::string> arguments);
  int go();

 private:
  fs::path name_run();
  std::vector<std::string> command(const std::vector<std::string>& arguments) const;

  const LaunchFlags& flags_;
  std::vector<std::string> arguments_;
  std::vector<Host> hosts_;
  bool resumes_ = false;
  fs::path run_;
};

Launch::Launch(const LaunchFlags& flags, std::vector<std::string> arguments)
    : flags_(flags), arguments_(std::move(arguments)) {
  if (!flags.hosts.empty()) {
    hosts_ = read_hosts(flags.hosts);
  }
  const std::string resumed = value_of(arguments_, "--resume");
  resumes_ = !resumed.empty();
  run_ = resumes_ ? train::run_folder_of(resumed) : name_run();
  if (getuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  }
}

// The folder of a new run: as the flags say, or the file of --config. One without a name is given one.
fs::path Launch::name_run() {
  fs::path file = value_of(arguments_, "--config");
  if (file.empty()) {
    file = value_of(arguments_, "-c");
  }
  if (fs::is_directory(file)) {
    file = train::run_folder_of(file) / "config.toml";
  }
  const nlohmann::json config = read_config(file);
  const auto said = [&](const std::string& option, const std::string& otherwise) {
    const std::string given = value_of(arguments_, "--" + option);
    const nlohmann::json found = in_config(config, option);
    return !given.empty() ? given : found.is_string() ? found.get<std::string>() : otherwise;
  };
  std::string name = said("experiment", "");
  if (name.empty()) {
    name = fmt::format("{:%Y%m%d-%H%M%S}-launched", fmt::localtime(std::time(nullptr)));
    arguments_.insert(arguments_.end(), {"--experiment", name});
  }
  return fs::path(said("output", train::RunOptions().output)) / name;
}

std::vector<std::string> Launch::command(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = {"mpirun", "--bind-to", "none"};
  if (isatty(STDOUT_FILENO) == 0) {  // mpirun gives the ranks a terminal of its own
    words.insert(words.end(), {"-x", "TERM=dumb"});
  }
  std::int64_t ranks = flags_.ranks;
  if (hosts_.empty()) {
    words.emplace_back("--oversubscribe");
  } else {
    std::vector<std::string> places;
    std::int64_t slots = 0;
    for (const Host& host : hosts_) {
      places.push_back(fmt::format("{}:{}", host.name, host.slots));
      slots += host.slots;
    }
    words.insert(words.end(), {"--host", fmt::format("{}", fmt::join(places, ","))});
    ranks = ranks == 0 ? slots : std::min(ranks, slots);
  }
  const std::int64_t most = std::max<std::int64_t>(ranks, 1);
  const std::int64_t taken = ranks_for(run_, most);
  if (taken < most) {
    say("vitrail launch: {} of {}: the --grad-shards of the run are divided among so many\n", taken,
        io::counted(most, "ranks"));
  }
  words.insert(words.end(), {"-n", fmt::format("{}", taken)});
  words.push_back(fs::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

int Launch::go() {
  const train::Interrupt interrupt;
  std::vector<std::string> arguments = arguments_;
  const bool is_taken = !resumes_ && fs::exists(run_ / "config.toml");  // then the training refuses to write over it
  if (resumes_) {
    const train::RunLock unused(run_);  // throws where another process is training in it
  }
  const std::int64_t begun_at = train::step_of_checkpoint(run_ / "last");
  std::int64_t reached = begun_at;
  for (std::int64_t restarts = 0;;) {
    Watch watch(run_);
    const auto [status, by_force] = run_program(command(arguments), false, &watch);
    const std::int64_t step = train::step_of_checkpoint(run_ / "last");
    if (train::Interrupt::requested()) {
      if (by_force) {
        say("vitrail launch: it has not stopped within {} s and was ended; {}\n", time_to_save.count(),
            step < 0 ? "there is no checkpoint yet"
                     : fmt::format("the checkpoint of step {} is whole: {}", step, run_.string()));
      }
      return 128 + train::Interrupt::signal();
    }
    if (by_force) {
      say("vitrail launch: the training had ended, but mpirun had not after {} s, and was killed\n",
          time_to_end.count());
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    check(code != 127, "mpirun was not found: install an MPI (script/bootstrap --mpi)");
    if (code == agreed_status) {
      return EXIT_FAILURE;  // it would come to the same end again
    }
    const bool killed = code == 128 + SIGKILL;
    if (code == 0 || code == usage_status || is_taken || (step < 0 && !killed)) {
      return code;  // it is done, or was asked for what it does not do, or there is nothing to go on from
    }
    restarts = step > reached ? 1 : restarts + 1;
    reached = std::max(step, reached);
    if (restarts > flags_.max_restarts) {
      say("vitrail launch: given up after {} without progress; {}\n", io::counted(flags_.max_restarts, "restarts"),
          step < 0 ? "nothing was saved yet"
                   : fmt::format("the checkpoint of step {} is whole: {}", step, run_.string()));
      return code;
    }
    say("vitrail launch: it ended with {}; {}\n", code,
        step < 0 ? "beginning again" : fmt::format("going on from the checkpoint of step {}", step));
    if (!hosts_.empty()) {
      hosts_ = that_answer(hosts_);
    }
    if (step > begun_at) {  // until then, config.toml may lack the flags that were given now
      arguments = {arguments_.front(), "--resume", run_.string()};
    }
  }
}

}  // namespace

void add_launch(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "launch", "Train on several ranks (MPI), and go on from the last checkpoint if they break off");
  const auto flags = std::make_shared<LaunchFlags>();
  CLI::Option* ranks = command.add_option("-n,--ranks", flags->ranks, "Ranks (default: all slots of --hosts)")
                           ->type_name("N")
                           ->check(whole_number(1, 100000));
  command.add_option("--hosts", flags->hosts, "File with a machine a line, as mpirun's hostfile: node1 slots=2")
      ->type_name("FILE");
  command.add_option("--max-restarts", flags->max_restarts, "Most restarts between two checkpoints")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(0, 1000000));
  command.add_option("COMMAND", flags->words, "What is started, after --: train … or pretrain …")->type_name("");
  add_examples(command, {"vitrail launch -n 4 -- train photos --model vit_small_patch16_224 --grad-shards 4",
                         "vitrail launch --hosts machines -- train --resume output/train/NAME"});
  command.callback([flags, ranks] {
    const std::vector<std::string>& words = flags->words;
    check_usage(!words.empty(), "what is to be started follows: vitrail launch -n 4 -- train …");
    check_usage(words.front() == "train" || words.front() == "pretrain",
                "'{}' is not for several ranks: what is started is 'train …' or 'pretrain …'", words.front());
    check_usage(ranks->count() > 0 || !flags->hosts.empty(), "-n, the number of ranks, or --hosts is needed");
    if (const int code = Launch(*flags, words).go(); code != 0) {
      throw CLI::RuntimeError(code);
    }
  });
}

}  // namespace vitrail::cli
