import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const cache = join(import.meta.dirname, '../../../.cache/client-go')
const goRoot = join(cache, 'usr/lib/go-1.26')
const go = join(goRoot, 'bin/go')
/** The GOPATH of the client-go that is compiled: Debian's, or another one with its dependencies. */
// biome-ignore lint/style/noProcessEnv: the folder of a release that this project does not bring along.
const goPath = process.env['CLIENT_GO'] ?? join(cache, 'usr/share/gocode')
const binary = join(goPath, 'program')
const testBinary = join(goPath, 'program.test')

/** Why tests with client-go cannot run; false when they can. */
export const whyNot: string | false = existsSync(go)
  ? false
  : 'client-go is not installed; tools/client-go installs it'

/** Compiles the Go program of this folder. Takes minutes the first time, seconds after that. */
export function buildProgram(): Promise<void> {
  return buildGo(import.meta.dirname, binary)
}

/** Compiles the Go tests of this folder, which need the fake clock of `testing/synctest`. */
export function buildGoTests(): Promise<void> {
  return compile(['test', '-c', '-vet=off'], import.meta.dirname, testBinary)
}

/** Compiles the Go program of any folder. */
export function buildGo(folder: string, output: string): Promise<void> {
  return compile(['build'], folder, output)
}

async function compile(command: readonly string[], folder: string, output: string): Promise<void> {
  // Not optimized: compiling all of client-go takes longer than running the program.
  const flags = ['-gcflags=all=-N -l -dwarf=false', '-ldflags=-s -w']
  await promisify(execFile)(go, [...command, ...flags, '-o', output, '.'], {
    cwd: folder,
    env: {
      PATH: '/usr/bin:/bin',
      HOME: cache,
      GOROOT: goRoot,
      GOPATH: goPath,
      GOCACHE: join(cache, 'build'),
      GO111MODULE: 'off',
      GOTOOLCHAIN: 'local',
      CGO_ENABLED: '0',
    },
  })
}

/** The Go files of this folder that gofmt would change. */
export async function unformatted(): Promise<string> {
  const { stdout } = await promisify(execFile)(join(goRoot, 'bin/gofmt'), [
    '-l',
    import.meta.dirname,
  ])
  return stdout
}

/** Runs one Go test; fails when it does. */
export async function runGoTest(
  name: string,
  flags: Readonly<Record<string, string>>,
): Promise<void> {
  const args = Object.entries(flags).map(([flag, value]) => `-${flag}=${value}`)
  const child = spawn(testBinary, [`-test.run=^${name}$`, ...args], {
    // Without modules Go behaves as an old release, whose timers no bubble can fake.
    env: { GODEBUG: 'asynctimerchan=0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  try {
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`${name} ended with ${code}: ${output}`)
  } finally {
    child.kill('SIGKILL')
  }
}

/** The output of the program, line by line; fails when its exit code is not 0. */
export async function* runProgram(args: readonly string[]): AsyncGenerator<unknown> {
  const child = spawn(binary, args, {
    // Informers then compare the result of a watch with a list, and panic if they differ.
    env: { KUBE_WATCHLIST_INCONSISTENCY_DETECTOR: 'true' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  try {
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line)
    const [code] = await ended
    if (code !== 0) throw new Error(`the program ended with ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
}
