// Plain JavaScript: a Node that is too old for the sources must be able to say so.
const MAJOR = 24

if (Number.parseInt(process.versions.node, 10) < MAJOR) {
  process.stderr.write(
    `Error: building tidings needs Node 24.21 or newer of that line; this is ${process.version}. "npm ci --include=dev" installs it, and the compiler, also where NODE_ENV is "production".\n`,
  )
  process.exitCode = 1
}
