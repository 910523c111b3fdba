# Doxygen's filter for Markdown pages. Doxygen 1.9 does not know the anchors that GitHub gives to headings, so here each
# heading gets its anchor as a label, PAGE-ANCHOR, and links to PAGE.md#ANCHOR become references to it. And it ends `code`
# at a single quote, so code that has one goes between two backticks.
function page_of(path) {
  sub(/.*\//, "", path)
  sub(/\.md$/, "", path)
  return path
}

FNR == 1 { page = page_of(FILENAME); code = 0 }
/^```/ { code = !code }
code || /^    / { print; next }

/^##+ / {
  anchor = tolower($0)
  sub(/^#+ /, "", anchor)
  gsub(/[^a-z0-9 _-]/, "", anchor)
  gsub(/ /, "-", anchor)
  print $0 " {#" page "-" anchor "}"
  next
}

{
  line = ""
  while (match($0, /`[^`]+`/)) {
    code_span = substr($0, RSTART, RLENGTH)
    line = line substr($0, 1, RSTART - 1) (code_span ~ /'/ ? "`" code_span "`" : code_span)
    $0 = substr($0, RSTART + RLENGTH)
  }
  $0 = line $0
  line = ""
  while (match($0, /\]\([^():]*#[^()]*\)/)) {
    target = substr($0, RSTART + 2, RLENGTH - 3)
    hash = index(target, "#")
    to = hash == 1 ? page : page_of(substr(target, 1, hash - 1))
    line = line substr($0, 1, RSTART + 1) "@ref " to "-" substr(target, hash + 1) ")"
    $0 = substr($0, RSTART + RLENGTH)
  }
  print line $0
}
