// The link between the network namespaces of tools/netlab where it has a delay or loses packets: a TUN device in each,
// and this process, which carries packets from one to the other. It stands in for the kernel's netem, which not every
// kernel has.
//
// usage: netlab_relay DELAY_US LOSS_PERCENT RATE_BITS NAMESPACE…
//
// The namespace i, from 1, has the address 10.77.0.i. A packet leaves its namespace at RATE_BITS a second (0: at once),
// behind those that are still waiting, and arrives DELAY_US later; LOSS_PERCENT of them never do. Prints "ready" once
// all devices are there.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

// What waits in front of a link, as long as tc's tbf in tools/netlab lets it; later packets are dropped.
constexpr std::chrono::milliseconds most_queued{50};

[[noreturn]] void die(const std::string& what) {
  std::perror(("netlab_relay: " + what).c_str());
  std::exit(1);
}

struct Packet {
  Clock::time_point due;
  std::uint64_t number;  // packets that are due together keep their order
  std::size_t to;
  std::vector<char> bytes;
  bool operator>(const Packet& other) const { return due != other.due ? due > other.due : number > other.number; }
};

// The TUN device eth0 of a namespace, which stays this process's when it leaves the namespace.
int open_device(const std::string& name) {
  const int space = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
    die("the network namespace " + name);
  }
  close(space);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, "eth0", IFNAMSIZ - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0) {
    die("/dev/net/tun in " + name);
  }
  return device;
}

// The namespace, from 0, that an IPv4 packet goes to; `count` if it goes to none of them.
std::size_t destination(const std::vector<char>& packet, std::size_t count) {
  if (packet.size() < 20 || (static_cast<unsigned char>(packet[0]) >> 4) != 4) {
    return count;
  }
  std::uint32_t address = 0;
  std::memcpy(&address, packet.data() + 16, sizeof(address));
  const std::uint32_t host = ntohl(address);
  const std::uint32_t i = host & 0xFF;
  return (host >> 8) == 0x0A4D00 && i >= 1 && i <= count ? i - 1 : count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("usage: netlab_relay DELAY_US LOSS_PERCENT RATE_BITS NAMESPACE…\n", stderr);
    return 2;
  }
  const std::chrono::microseconds delay(std::atoll(argv[1]));
  std::bernoulli_distribution is_lost(std::atof(argv[2]) / 100);
  const double bits_per_second = std::atof(argv[3]);
  std::vector<pollfd> devices;
  for (int i = 4; i < argc; ++i) {
    devices.push_back({open_device(argv[i]), POLLIN, 0});
  }
  std::puts("ready");
  std::fflush(stdout);

  std::mt19937_64 random(0);
  std::vector<Clock::time_point> free_from(devices.size());  // when each link has sent what waits in front of it
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> under_way;
  std::vector<char> buffer(1 << 16);
  for (std::uint64_t number = 0;;) {
    timespec wait{};
    if (!under_way.empty()) {
      const auto left = std::max(under_way.top().due - Clock::now(), Clock::duration::zero());
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      wait = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    if (ppoll(devices.data(), devices.size(), under_way.empty() ? nullptr : &wait, nullptr) < 0) {
      die("ppoll");
    }
    for (std::size_t from = 0; from < devices.size(); ++from) {
      for (ssize_t size = 0; (size = read(devices[from].fd, buffer.data(), buffer.size())) > 0;) {
        std::vector<char> bytes(buffer.begin(), buffer.begin() + size);
        const std::size_t to = destination(bytes, devices.size());
        const Clock::time_point now = Clock::now();
        Clock::time_point& sent = free_from[from];
        if (to == devices.size() || is_lost(random) || sent > now + most_queued) {
          continue;
        }
        const double seconds = bits_per_second > 0 ? 8.0 * static_cast<double>(size) / bits_per_second : 0;
        sent =
            std::max(sent, now) + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
        under_way.push({sent + delay, number++, to, std::move(bytes)});
      }
    }
    for (const Clock::time_point now = Clock::now(); !under_way.empty() && under_way.top().due <= now;
         under_way.pop()) {
      const Packet& packet = under_way.top();
      if (write(devices[packet.to].fd, packet.bytes.data(), packet.bytes.size()) < 0 && errno != EAGAIN &&
          errno != EIO) {
        die("sending a packet");
      }
    }
  }
}
