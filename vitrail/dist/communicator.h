/// \file
/// Processes that work together: who they are, messages between them, and what is waited for.
///
/// The processes of a run are its ranks, numbered from 0. A Communicator has two implementations, MPI and "alone"; all
/// that is built on its messages (tree_sum.h) knows neither. Only one thread of a process may call it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "vitrail/tensor/error.h"

namespace vitrail::dist {

/// A message on its way. Its memory must stay as it is until done() has returned true.
class Message {
 public:
  virtual ~Message() = default;
  virtual bool done() = 0;  ///< whether it has been sent, or has arrived; never waits
};
using Messages = std::vector<std::unique_ptr<Message>>;

/// Thrown by all ranks together, with the same words: one of them tells it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Throws AgreedError unless `condition` holds, of what all ranks know alike.
template <class... Args>
void check_agreed(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw AgreedError(fmt::format(format, std::forward<Args>(args)...));
  }
}

/// The ranks of a run, as one of them sees them.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Begins to send `bytes` to the rank `to`. Messages with one tag arrive in the order in which they were sent.
  virtual std::unique_ptr<Message> send(std::span<const std::byte> bytes, int to, int tag) = 0;
  /// Begins to receive a message of exactly that many bytes.
  std::unique_ptr<Message> receive(std::span<std::byte> bytes, int from, int tag);
  /// Starts a thread on the core `core` that moves messages on while this one computes, until what it returns is gone:
  /// without it they move when this rank asks for one of them. Throws Error if this process may not use that core.
  virtual std::shared_ptr<void> move_messages_from(int /*core*/) { return nullptr; }
  /// Ends this rank with the exit status 1, and so all of them: the launcher ends the others.
  [[noreturn]] virtual void abort() = 0;

  /// After so many seconds wait() gives a rank up.
  double timeout = 120;
  /// Whether this rank has been asked to stop, as all are when one has died: then wait() gives up after half a minute,
  /// or three times the longest wait so far.
  std::function<bool()> stopping = {};
  double longest_wait = 0;  ///< that has ended well, in seconds
  /// How long ago a message of another rank was taken here, its last sign of life; nothing if none has been yet.
  std::optional<double> seconds_without(int rank) const;

 protected:
  virtual std::unique_ptr<Message> begin_receive(std::span<std::byte> bytes, int from, int tag) = 0;

 private:
  std::map<int, std::chrono::steady_clock::time_point> heard_;  // when the last message of each rank came
};

/// This process by itself.
std::unique_ptr<Communicator> alone();
/// The ranks that `mpirun` or Slurm has started, of which this process is one; alone() if it was started by itself.
/// Throws Error if it is one of several and this program was built without MPI. To be called once. Where others of them
/// do not start within `timeout` seconds, this process says so and ends.
std::unique_ptr<Communicator> started_ranks(double timeout = 120);
/// The number that the launcher has given this process, 0 if it was started by itself, and how many there are. Known
/// before started_ranks().
int announced_rank();
int announced_ranks();
/// Whether this program was built with MPI.
bool has_mpi();

/// Tags of messages: those of the functions below, of the sharded optimizer and of files, and the first that others may
/// use.
enum Tag : int { sizes_tag, bytes_tag, weights_tag, moments_tag, files_tag, first_free_tag };

/// A message that is waited for, and the rank that it comes from or goes to.
struct Awaited {
  std::unique_ptr<Message> message;
  int rank = 0;
};
/// Takes the messages that are done out of the list; whether none is left.
bool take_done(std::vector<Awaited>& messages);
/// Waits until all messages are done. After Communicator::timeout seconds throws an Error that names the ranks which
/// have not come to `where` ("step 40"), and when they were last heard of.
void wait(Communicator& ranks, std::vector<Awaited>& messages, const std::string& where);

/// What each rank gives, for all to have, by rank. `where` says in an error what was waited for.
std::vector<std::string> all_gather(Communicator& ranks, const std::string& own, const std::string& where);

}  // namespace vitrail::dist
