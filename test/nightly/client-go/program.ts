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

/** Why tests with client-go cannot run; false when they can. */
export const whyNot: string | false = existsSync(go)
  ? false
  : 'client-go is not installed; tools/client-go installs it'

/** Compiles the Go program of this folder. Takes minutes the first time, seconds after that. */
export function buildProgram(): Promise<void> {
  return buildGo(import.meta.dirname, binary)
}

/** Compiles the Go program of any folder. */
export async function buildGo(folder: string, output: string): Promise<void> {
  // Not optimized: compiling all of client-go takes longer than running the program.
  const flags = ['-gcflags=all=-N -l -dwarf=false', '-ldflags=-s -w']
  await promisify(execFile)(go, ['build', ...flags, '-o', output, '.'], {
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
