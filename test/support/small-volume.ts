import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of a few bytes, for `await using`. */
export interface SmallVolume extends AsyncDisposable {
  readonly path: string
  setReadOnly(): Promise<void>
}

/**
 * Mounts a tmpfs (needs root). It is mounted only in a namespace of a child process, so that nothing
 * stays mounted however the test ends; /proc leads into the namespace.
 */
export async function mountSmallVolume(bytes: number): Promise<SmallVolume> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-volume-'))
  const script = `mount -t tmpfs -o size=${bytes} tmpfs "$0" && echo mounted
    read line && mount -o remount,ro "$0" && echo read-only; cat`
  const child = spawn('unshare', ['--mount', 'sh', '-c', script, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  const said = async (): Promise<void> => {
    const first = await Promise.race([once(child.stdout, 'data'), exit.then(() => undefined)])
    if (first === undefined) throw new Error('the volume was not mounted: it needs root')
  }
  await said()
  return {
    path: `/proc/${child.pid}/root${folder}`,
    setReadOnly: async () => {
      child.stdin.write('\n')
      await said()
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end()
      await exit
      await rmdir(folder)
    },
  }
}
