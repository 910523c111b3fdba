// Any bytes as the event file that a resumed run goes on with: what is intact stays, and records come behind it.
#include "vitrail/io/events.h"

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(events)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("events");
  const MemoryLimit limit;
  const std::string name = "events.out.tfevents.1.host.1";
  folder.write(name, text_of(data, size));
  try {
    std::uintmax_t whole = 0;
    {
      io::EventWriter writer(folder.path(), 5);
      writer.scalar("loss", 3, 0.5);
      writer.flush();
      require(writer.path().filename() == name);
      whole = std::filesystem::file_size(writer.path());
    }
    // All of it is intact now, and nothing lies behind step 5.
    const io::EventWriter again(folder.path(), 5);
    require(std::filesystem::file_size(again.path()) == whole);
  } catch (const Error&) {
  }
  return 0;
}
