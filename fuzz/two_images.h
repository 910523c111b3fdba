// Images for the files of a target to name.
#pragma once

#include "folder.h"
#include "vitrail/io/image.h"

// Writes a.png and b.png, of 20 x 10 pixels; to be called once, and true for that.
inline bool with_two_images(const Folder& folder) {
  for (const char* name : {"a.png", "b.png"}) {
    vitrail::io::write_png(folder.path() / name, vitrail::io::Image(20, 10));
  }
  return true;
}
